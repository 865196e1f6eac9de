"""What the stages of a round share: problem, incumbent, bounds and budget, and what one hands to another."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from placeopt.check import Referee
from placeopt.errors import CallerRaised
from placeopt.formulations.capacity_relaxation import CapacityRelaxation
from placeopt.formulations.cost_relaxation.model import CapacityCut
from placeopt.formulations.fillings import CarriedPrices
from placeopt.formulations.gpu_patterns import GpuPatterns
from placeopt.heuristics.lookahead import LookaheadDecision
from placeopt.heuristics.timeline import Start
from placeopt.model import Plan
from placeopt.model.plan import PlanLimit
from placeopt.model.plan import Stage as StageRecord
from placeopt.problem import Allocation, IntArray, Problem, State, open_state
from placeopt.solvers.racing import Beside
from placeopt.solvers.result import Progress, Solution
from placeopt.solving.bounds import FAR, Bounds, relative_gap
from placeopt.solving.bounds import Progress as RoundProgress
from placeopt.solving.budget import Budget
from placeopt.solving.draft import PlanForm, WholePlan
from placeopt.solving.greedy_rule import GreedyRule
from placeopt.solving.incumbent import Incumbent
from placeopt.solving.runners import SolverRunners
from placeopt.solving.searching import OtherStart, Searching
from placeopt.terms.objective import Weighted, trivial_gpu_milli_bound, trivial_value_bound, weighted_costs
from placeopt.terms.standing import relaxed_state

if TYPE_CHECKING:
    from placeopt.solving.filling_cost_search import FillingCostSearch
    from placeopt.solving.filling_search import FillingSearch
    from placeopt.solving.stages.exact import ExactTask


@dataclass(frozen=True)
class BegunBound:
    """A relaxation that a solver works on while stages run that need none."""

    patterns: GpuPatterns
    beside: Beside
    rounds: bool = False  # whether the solver also rounds it

    def bound(self, seconds: float) -> Solution | None:
        """Return what proves the bound, or None if it is not there within so many seconds."""
        news = self.beside.wait(seconds, lambda news: news.duals is not None)
        return Solution("optimal", bound=news.bound, duals=news.duals) if isinstance(news, Progress) else news


@dataclass(frozen=True)
class CapacityPlan:
    """A capacity relaxation, how many jobs of each of its columns run, and what these are worth."""

    relaxation: CapacityRelaxation
    jobs: IntArray
    value: int


@dataclass(frozen=True)
class CostGuide:
    """What a relaxation of the cost gives: the value that its bound holds at, and what jobs cost by its prices."""

    value: int
    surplus: NDArray[np.float64]  # (O,) cost of a job in the option beyond its worth; the less the better


@dataclass
class Handover:
    """What stages leave for later ones."""

    previous_plan: Plan | None = None  # a plan of an earlier round, from the caller
    start: Allocation | None = None  # where jobs were placed in parts of the round
    decision: LookaheadDecision | None = None
    """What look-ahead has decided on this very problem before the round, from the live cluster."""
    carried_prices: CarriedPrices | None = None  # of fillings, from earlier rounds of a live cluster, and for the next
    is_decided: bool = False  # whether look-ahead leaves nothing to decide
    begun_bound: BegunBound | None = None  # the relaxation that is being solved beside greedy
    first_pass: Allocation | None = None
    """The best that the heuristics placed, whether or not that became the incumbent."""
    gpu_patterns: GpuPatterns | None = None
    """The relaxation of the whole round, for plans made of it; None where stages see only a part of the round."""
    capacity_plan: CapacityPlan | None = None  # how many jobs of each class a plan can hold
    capacity_cut: CapacityCut | None = None  # what fillings of nodes proved of room, at the prices that proved most
    most_busy: IntArray | None = None  # (N,) GPUs of each node that jobs that start can make busy, as fillings proved
    cost_guide: CostGuide | None = None
    exact: ExactTask | None = None  # the level that the exact stage solved last
    fillings: FillingSearch | None = None  # column generation for the value, which goes on in every slice
    filling_costs: FillingCostSearch | None = None  # that for the cost of plans of one value
    cost_bound_s: float = 0.0  # seconds that the latest bound on cost took
    bound_guide: CostGuide | None = None  # the same at the bound on value, while that is open
    searching: Searching | None = None  # the local search, which runs beside stages
    other_start: OtherStart | None = None  # a plan that the search may begin with beside the best one
    finished: dict[str, Hashable] = field(default_factory=dict)
    """Stages -> what they began with when they did all that they can, whatever the time."""
    failed: set[object] = field(default_factory=set)  # stages that raised what nothing foresees
    resting: set[object] = field(default_factory=set)  # relaxations that do not run in the next slice
    is_alone: bool = False  # whether nothing but the search can do more
    ranked: int | None = 0  # number of the plan in which communicating jobs were improved last, all of them
    made_room: int | None = None  # number of the plan in which all jobs were tried in the place of others; 0: none
    not_reached: frozenset[int] = frozenset()  # jobs that the first pass of greedy did not reach
    blocks: str = ""
    """Why a job may wait although it would fit, by the rule of the method; empty where there is no such rule."""


class SolveContext:
    """
    State shared by the stages of a round.

    - ``instance``, ``whole``: The round as it was given, and compiled.
    - ``problem``: What stages see: ``whole``, or a part of it to which look-ahead has narrowed it.
    - ``base``: All running jobs as they are, and nothing else. Stages do not change it.
    - ``open``: Only the running jobs that must stay as they are.
    - ``relaxed``: ``open`` with room for all that stands: what bounds are made of.
    - ``weighted``: The costs that count, with their weights.
    - ``form``: How plans of the round are written, and who judges them.
    - ``incumbent``, ``bounds``, ``budget``: The best checked plan, what is proven, and what the round may use.
    - ``greedy``: How greedy places jobs in this round.
    - ``solvers``: What stages solve models with.
    - ``handover``: What stages leave for later ones.
    - ``ahead``: What look-ahead decided, where it narrowed the round.
    - ``stages``: Records of the stages that ran, for the plan. No stage reads them.
    - ``skipped``: Name and reason of every stage that did not run, for logs.
    - ``solver_error``: Why a solver failed, where no record has it yet.
    - ``solver_errors``: The latest such cause in each record, by its name.

    Raises ``BadInput`` if running jobs that may be changed contradict each other.
    """

    def __init__(
        self,
        problem: Problem,
        budget: Budget,
        *,
        greedy: GreedyRule | None = None,
        solvers: SolverRunners | None = None,
        handover: Handover | None = None,
        on_progress: Callable[[RoundProgress], None] | None = None,
        form: PlanForm | None = None,
        weighted: tuple[Weighted, ...] | None = None,
    ) -> None:
        self.instance, self.whole = problem.given, problem
        self.form = form or WholePlan(Referee(self.instance))
        self.budget = budget
        self.greedy = (greedy or GreedyRule()).for_problem(problem)
        self.handover = handover or Handover()
        self.ahead: LookaheadDecision | None = None
        self.stages: list[StageRecord] = []
        self.skipped: list[tuple[str, str]] = []
        self.solver_error, self.solver_errors = "", dict[str, str]()
        self._draws = 0
        self.solvers = solvers or SolverRunners(self, ())
        self._on_progress = on_progress
        stated = weighted_costs(problem) if weighted is None else weighted
        self.weighted = stated if self.form.is_whole else ()
        bound = trivial_value_bound(problem)
        self.bounds = Bounds(bound, bound, trivial_gpu_milli_bound(problem))
        self._see(problem)
        self.incumbent = self._running_alone()

    def _see(self, problem: Problem) -> None:
        self.problem = problem
        self.base = State(problem)
        self.open = open_state(problem) if problem.changeable else self.base
        self.relaxed = relaxed_state(self.open, self.base)

    def _running_alone(self, draft: Plan | None = None) -> Incumbent:
        """Return the running jobs as incumbent; ``draft`` is their plan, if the referee has accepted it before."""
        return Incumbent(self.form, self.problem, self.base, self.weighted, self.bounds, self.budget, draft)

    @property
    def narrowed(self) -> bool:
        """Whether stages see only a part of the round."""
        return self.bounds.narrowed

    @property
    def waits(self) -> dict[int, Start]:
        """Jobs that end earlier if they wait, and for what."""
        return {} if self.ahead is None else self.ahead.waits

    def narrow(self, problem: Problem, ahead: LookaheadDecision) -> None:
        """
        Show later stages a part of the round, from the running jobs alone; costs stay weighted as in the whole.

        What is proven of the part from then on does not hold for the whole, where more jobs may start.
        """
        held, self.ahead = self.incumbent, ahead
        runs_alone = held.allocation == self.base.allocation()
        if problem is self.problem and runs_alone:
            self.bounds.narrowed = True
            return
        self._see(problem)
        value_bound = min(self.bounds.value, trivial_value_bound(problem))
        self.bounds = replace(self.bounds, value=value_bound, narrowed=True)
        self.incumbent = self._running_alone(held.draft if runs_alone else None)

    @property
    def value_proven(self) -> bool:
        """Whether the best plan's value meets its bound."""
        return self.incumbent.value == self.bounds.value

    @property
    def has_cost_bound(self) -> bool:
        """Whether the relaxation of the cost was solved for plans of the best plan's value."""
        guide = self.handover.cost_guide
        return guide is not None and guide.value == self.incumbent.value

    @property
    def end_s(self) -> float:
        """
        Seconds that a bound at the value of the last plan needs: twice what the latest took.

        Where the value is proven and the cost is bounded at that value, no other bound can come.
        """
        bounded = self.value_proven and self.has_cost_bound
        return 0.0 if bounded else 2.0 * self.handover.cost_bound_s

    @property
    def proven(self) -> bool:
        """Whether both levels are proven."""
        return self.value_proven and (not self.weighted or self.incumbent.cost == self.bounds.cost)

    @property
    def is_closed(self) -> bool:
        """Whether both levels are proven, or the gap to stop at is reached at the first that is not."""
        if self.proven:
            return True
        gap = self.value_gap
        if gap == 0 and self.weighted:
            gap = relative_gap(self.incumbent.cost, self.bounds.cost)
        return gap is not None and gap <= self.budget.params.gap

    @property
    def limit(self) -> PlanLimit:
        """What cut the round short; nothing where it is proven, or within the gap."""
        return "none" if self.is_closed else self.budget.limit

    @property
    def value_gap(self) -> float | None:
        """Relative gap between the best plan's value and its bound."""
        beside = self.form.beside
        return relative_gap(self.incumbent.value + beside, self.bounds.value + beside)

    @property
    def is_far(self) -> bool:
        """Whether the best plan is worth much less than the bound: then what patterns of GPUs count does not bind."""
        gap = self.value_gap
        return gap is not None and gap > FAR

    def finish(self, stage: str, key: Hashable = None) -> None:
        """Note that a stage can do no more, whatever the time, while ``key`` is what it begins with."""
        self.handover.finished[stage] = key

    def has_finished(self, stage: str, key: Hashable = None) -> bool:
        """Whether `finish` was noted with this key."""
        finished = self.handover.finished
        return stage in finished and finished[stage] == key

    def draw_seed(self) -> int:
        """Return a seed that differs at each point of a round, so that a stage draws again when it runs again."""
        self._draws += 1
        return self.budget.params.seed + self._draws

    def report(self, stage: str, value: int | None = None, bound: int | None = None) -> None:
        """Pass news to the caller; ``value`` and ``bound`` are those of a solver that is still at work."""
        if self._on_progress is None:
            return
        held, bounds = self.incumbent, self.bounds
        value_bounds = [bounds.whole_value] if self.narrowed or bound is None else [bounds.value, bound]
        news = RoundProgress(
            seconds=time.monotonic() - self.budget.started,
            stage=stage,
            value=held.value if value is None else max(held.value, value),
            value_bound=min(value_bounds),
            cost=held.cost if self.value_proven else None,
            cost_bound=bounds.cost if self.value_proven and not self.narrowed else None,
        )
        try:
            self._on_progress(news)
        except Exception as error:
            raise CallerRaised(error) from error
