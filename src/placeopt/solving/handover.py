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
    """
    What stages leave for later ones.

    Attributes
    ----------
    previous_plan
        A plan of an earlier round, from the caller.
    decision
        What look-ahead has decided on this very problem before the round, from the live cluster.
    is_decided
        Whether look-ahead leaves nothing to decide.
    begun_bound
        The relaxation that is being solved beside greedy.
    first_pass
        What greedy placed, whether or not that became the incumbent.
    gpu_patterns
        The relaxation of the whole round, for plans made of it; None where stages see only a part of the round.
    capacity_plan
        How many jobs of each class a plan can hold.
    cost_guide
        Prices of nodes and jobs.
    cost_bound_s
        Seconds that the latest bound on cost took.
    has_searched
        Whether a search by large neighbourhoods has run.
    improved
        Whether the stage before found a better plan; set by the runner.
    not_reached
        Jobs that the first pass of greedy did not reach.
    blocks
        Why a job may wait although it would fit, by the rule of the method; empty where there is no such rule.
    """

    previous_plan: Plan | None = None
    decision: LookaheadDecision | None = None
    is_decided: bool = False
    begun_bound: BegunBound | None = None
    first_pass: Allocation | None = None
    gpu_patterns: GpuPatterns | None = None
    capacity_plan: CapacityPlan | None = None
    cost_guide: CostGuide | None = None
    cost_bound_s: float = 0.0
    has_searched: bool = False
    improved: bool = False
    not_reached: frozenset[int] = frozenset()
    blocks: str = ""
