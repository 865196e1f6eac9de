"""What one stage of a round leaves for later ones, each under a name."""

from __future__ import annotations

from dataclasses import dataclass

from placeopt.formulations.capacity_relaxation import CapacityRelaxation
from placeopt.formulations.gpu_patterns import GpuPatterns
from placeopt.heuristics.lookahead import LookaheadDecision
from placeopt.heuristics.search import Guide
from placeopt.model import Plan
from placeopt.problem import Allocation, IntArray, State
from placeopt.solvers.race import Beside


@dataclass(frozen=True)
class BegunBound:
    """A relaxation of ``state`` that a solver works on while stages run that need none."""

    state: State
    patterns: GpuPatterns
    beside: Beside


@dataclass(frozen=True)
class CapacityPlan:
    """A capacity relaxation, how many jobs of each of its columns run, and what these are worth."""

    relaxation: CapacityRelaxation
    jobs: IntArray
    value: int


@dataclass(frozen=True)
class CostGuide:
    """What a relaxation of the cost gives: the value that its bound holds at, and prices for a search."""

    value: int
    guide: Guide


@dataclass
class Handover:
    """What stages leave for later ones."""

    previous_plan: Plan | None = None  # a plan of an earlier round, from the caller
    decision: LookaheadDecision | None = None
    """What look-ahead has decided on this very problem before the round, from the live cluster."""
    is_decided: bool = False  # whether look-ahead leaves nothing to decide
    begun_bound: BegunBound | None = None  # the relaxation that is being solved beside greedy
    first_pass: Allocation | None = None  # what greedy placed, whether or not that became the incumbent
    gpu_patterns: GpuPatterns | None = None
    """The relaxation of the whole round, for plans made of it; None where stages see only a part of the round."""
    capacity_plan: CapacityPlan | None = None  # how many jobs of each class a plan can hold
    cost_guide: CostGuide | None = None  # prices of nodes and jobs
    cost_bound_s: float = 0.0  # seconds that the latest bound on cost took
    has_searched: bool = False  # whether a search by large neighbourhoods has run
    improved: bool = False  # whether the stage before found a better plan; set by the runner
    not_reached: frozenset[int] = frozenset()  # jobs that the first pass of greedy did not reach
    blocks: str = ""
    """Why a job may wait although it would fit, by the rule of the method; empty where there is no such rule."""
