"""A round in progress: the problem, the deadline, the best checked plan so far, the bounds, and what each stage did."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from placeopt.check import judge
from placeopt.errors import BadInput, CallerRaised, InternalFault
from placeopt.formats.collection import collection_paused
from placeopt.heuristics import greedy
from placeopt.heuristics.job_orders import order_jobs
from placeopt.heuristics.lookahead import LookaheadDecision, Wait
from placeopt.model import Instance, Plan
from placeopt.model.plan import PlanLimit, Stage, StageOutcome
from placeopt.problem import Allocation, Problem, State, open_state
from placeopt.solving.budget import Budget
from placeopt.solving.draft import draft_plan, standing_records
from placeopt.terms.objective import Weighted, trivial_gpu_milli_bound, trivial_value_bound, value, weighted_costs
from placeopt.terms.rules.minimal_utility import withdrawn
from placeopt.terms.standing import relaxed_state

LevelName = Literal["value", "cost"]


@dataclass(frozen=True)
class Progress:
    """
    News from a round.

    ``seconds`` since the call; ``stage`` at work; value placed, its bound and the relative gap between them, and the
    same of the cost level once it is being solved; None where unknown.
    """

    seconds: float
    stage: str
    value: int | None
    value_bound: int | None
    cost: int | None = None
    cost_bound: int | None = None

    @property
    def gap(self) -> float | None:
        """Relative gap of the first level that is not proven."""
        gap = relative_gap(self.value, self.value_bound)
        return relative_gap(self.cost, self.cost_bound) if gap == 0 and self.cost is not None else gap


@dataclass(frozen=True)
class Incumbent:
    """
    The best allocation, the draft of a plan that the referee has read, and the objective.

    Without draft, and so not read yet, are at most the running jobs alone: see ``SolveContext.begin``.
    """

    allocation: Allocation
    draft: Plan | None
    value: int
    cost: int
    raw: tuple[int, ...]  # score of every cost that counts, unweighted


@dataclass
class SolveContext:
    """
    State shared by the stages. ``begin`` takes the running jobs as they are; after that ``offer`` is the only way in
    for an allocation, ``prove`` for a bound.

    Raises nothing for what a stage got wrong: an allocation that the referee refuses is not taken, and the stage's
    outcome says so.
    """

    instance: Instance
    problem: Problem
    budget: Budget
    on_progress: Callable[[Progress], None] | None = None
    cancelled: Callable[[], bool] | None = None
    base: State = field(init=False)
    """All running jobs as they are, and nothing else."""
    open: State = field(init=False)
    """Only those of them that must stay as they are."""
    relaxed: State = field(init=False)
    """``open`` with room for all that stands: what bounds are made of."""
    weighted: tuple[Weighted, ...] = field(init=False)
    incumbent: Incumbent | None = None
    value_bound: int = field(init=False)
    """On the value of plans of ``problem``: what stages look for."""
    whole_bound: int = field(init=False)
    """On the value of any plan of the round as it was given: what a plan may call its bound."""
    cost_bound: int | None = None
    cost_relaxes: tuple[str, ...] = ()
    """What the bound on cost leaves out, beside terms that enter by a bound."""
    gpu_milli_bound: int = field(init=False)
    relaxes: tuple[str, ...] = ("everything but that each job fits alone",)
    """What the proof of ``whole_bound`` leaves out."""
    whole: Problem = field(init=False)
    """The round as it was given; ``problem`` may be narrower."""
    ahead: LookaheadDecision | None = None
    """What look-ahead decided, where it narrowed the round."""
    not_reached: frozenset[int] = frozenset()
    blocks: str = ""
    """Why a job may wait although it would fit: what the method's rule is; empty where there is none."""
    stages: list[Stage] = field(default_factory=list)
    limit: PlanLimit = "none"
    last_solver_error: str = ""
    """Why the latest solve failed that no stage has told of yet."""
    check_s: float = 0.0
    offer_s: float = 0.0
    """What building and checking the latest plan took."""

    def __post_init__(self) -> None:
        """Start from the running jobs alone."""
        self.whole = self.problem
        self._open()
        self.weighted = weighted_costs(self.problem)
        self.value_bound = self.whole_bound = trivial_value_bound(self.problem)
        self.gpu_milli_bound = trivial_gpu_milli_bound(self.problem)

    def _open(self) -> None:
        self.base = State(self.problem)
        self.open = open_state(self.problem) if self.problem.changeable else self.base  # stages change neither
        self.relaxed = relaxed_state(self.open, self.base)

    @property
    def narrowed(self) -> bool:
        """Whether stages see only a part of the round."""
        return self.ahead is not None

    @property
    def waits(self) -> dict[int, Wait]:
        """Jobs that had better wait, and for what."""
        return {} if self.ahead is None else self.ahead.waits

    def narrow(self, problem: Problem, ahead: LookaheadDecision) -> None:
        """
        Go on with a part of the round, from the running jobs alone; costs stay weighted as in the whole.

        What is proven of the part from then on says nothing of the whole, where more jobs may start.
        """
        if (
            problem is self.problem
            and self.incumbent is not None
            and self.incumbent.allocation == self.base.allocation()
        ):
            self.ahead = ahead  # all of the round: it has just begun so
            return
        held = self.incumbent
        read = None if held is None or held.allocation != self.base.allocation() else held.draft
        self.problem, self.ahead = problem, ahead
        self._open()
        self.value_bound = min(self.value_bound, trivial_value_bound(problem))
        self.begin(read)

    @property
    def value_proven(self) -> bool:
        """Whether the best plan's value meets its bound."""
        return self.incumbent is not None and self.incumbent.value == self.value_bound

    @property
    def proven(self) -> bool:
        """Whether both levels are proven."""
        return (
            self.value_proven
            and self.incumbent is not None
            and (not self.weighted or self.incumbent.cost == self.cost_bound)
        )

    @property
    def within_gap(self) -> bool:
        """Whether the asked-for gap is reached at the first level that is not proven."""
        if self.incumbent is None:
            return False
        gap = relative_gap(self.incumbent.value, self.value_bound)
        if gap == 0 and self.weighted:
            gap = relative_gap(self.incumbent.cost, self.cost_bound)
        return gap is not None and gap <= self.budget.gap

    def begin(self, read: Plan | None = None) -> None:
        """
        Start from the running jobs as they are.

        The referee reads them at once where they may be changed. Where they may not, every plan holds them all, and
        what breaks no rule with more beside it breaks none alone: so they are read with the first plan, and by
        themselves only if that is refused or there is none.

        Parameters
        ----------
        read
            Their draft, if the referee has accepted it before.

        Raises
        ------
        BadInput
            If they contradict each other; limits that they break stand.
        """
        allocation = self.base.allocation()
        raw, price = self._priced(allocation)
        self.incumbent = Incumbent(allocation, read, value(self.problem, allocation), price, raw)
        if self.problem.changeable:
            self.read()

    def read(self) -> tuple[Incumbent, Plan]:
        """
        Return the best allocation and its draft, which the referee has read.

        Raises
        ------
        BadInput
            If it is that of the running jobs, was not read before, and breaks a rule.
        """
        best = self.incumbent
        if best is None:
            raise InternalFault("the round has not begun")
        if best.draft is not None:
            return best, best.draft
        draft, found = self._judged(best.allocation)
        if found:  # every stage falls back on leaving the running jobs where they are
            raise BadInput(
                f"running placements: {found}; what runs when a round begins may exceed limits, but must be possible "
                f"under policy {self.problem.policy.name!r}"
            )
        self.incumbent = replace(best, draft=draft)
        return self.incumbent, draft

    def offer(self, allocation: Allocation) -> str | None:
        """
        Take ``allocation`` if it is strictly better and the referee accepts it.

        Jobs below their minimal utility are taken out of it first, and greedy fills the gaps: what made it may not have
        seen that rule whole.

        Returns
        -------
        str or None
            The referee's first complaint if it refused, else None.

        Raises
        ------
        InternalFault
            If a value above the proven bound passes the referee: then the bound is wrong.
        BadInput
            If it is refused, and already the running jobs alone break a rule.
        """
        if self.incumbent is not None and allocation == self.incumbent.allocation:
            return None
        lawful = withdrawn(self.problem, allocation)
        if lawful != allocation:
            order = order_jobs(self.problem, self.problem.policy.order)
            allocation = greedy(self.problem, order, deadline=self.budget.deadline, start=lawful).allocation
        gain = value(self.problem, allocation)
        if self.incumbent is not None and gain < self.incumbent.value:
            return None
        raw, price = self._priced(allocation)
        if self.incumbent is not None and (gain, -price) <= (self.incumbent.value, -self.incumbent.cost):
            return None
        draft, found = self._judged(allocation)
        if found:
            if self.incumbent is not None:
                self.read()
            return found
        if gain > self.value_bound:
            raise InternalFault(f"a checked plan is worth {gain}, above the proven bound {self.value_bound}")
        if self.incumbent is not None and gain > self.incumbent.value:
            self.cost_bound = None  # it held at the former value
        self.incumbent = Incumbent(allocation, draft, gain, price, raw)
        return None

    def _priced(self, allocation: Allocation) -> tuple[tuple[int, ...], int]:
        """Return the score of every cost that counts, and their weighted sum."""
        raw = tuple(w.cost.score(self.problem, allocation) for w in self.weighted)
        return raw, sum(w.weight * score for w, score in zip(self.weighted, raw, strict=True))

    def _judged(self, allocation: Allocation) -> tuple[Plan, str | None]:
        """Return the draft of a plan, and the referee's first complaint."""
        before = time.monotonic()
        with collection_paused():
            draft = draft_plan(self.instance, self.problem, allocation)
            found, standing = judge(self.instance, draft)
            if standing:
                draft = draft.model_copy(update={"standing": standing_records(standing)})
        self.offer_s = time.monotonic() - before
        self.check_s += self.offer_s
        return draft, f"{found[0].rule}: {found[0].message}" if found else None

    def prove_value(self, bound: int | None, relaxes: tuple[str, ...] = (), *, of_whole: bool = False) -> None:
        """
        Lower the bound on value, if it is lower.

        ``relaxes`` says what the proof leaves out, ``of_whole`` that it is one of the whole round, not only of the part
        to which it may have been narrowed.
        """
        if bound is None:
            return
        self.value_bound = min(self.value_bound, bound)
        if self.narrowed and not of_whole:
            return
        if bound < self.whole_bound:
            self.whole_bound, self.relaxes = bound, relaxes
        elif bound == self.whole_bound and len(relaxes) < len(self.relaxes):
            self.relaxes = relaxes

    def prove_cost(self, bound: int | None, relaxes: tuple[str, ...] = ()) -> None:
        """Raise the bound on cost at the proven value. ``relaxes`` says what the proof leaves out."""
        if bound is not None and (self.cost_bound is None or bound > self.cost_bound):
            self.cost_bound, self.cost_relaxes = bound, relaxes

    def record(
        self, name: str, outcome: StageOutcome, started: float, detail: str = "", level: LevelName = "value"
    ) -> None:
        """Note what a stage did; objective and bound are those of the level it worked on. Failed solves are told of."""
        at_value = level == "value"
        if self.last_solver_error and self.last_solver_error not in detail:
            detail = (
                f"{detail}; a solve failed: {self.last_solver_error}"
                if detail
                else f"a solve failed: {self.last_solver_error}"
            )
        self.last_solver_error = ""
        self.stages.append(
            Stage(
                name=name,
                outcome=outcome,
                detail=detail,
                objective=None if self.incumbent is None else self.incumbent.value if at_value else self.incumbent.cost,
                bound=self.value_bound if at_value else self.cost_bound,
                seconds=None if self.budget.deterministic else time.monotonic() - started,
            )
        )
        self.report(name)

    def report(self, stage: str, value_: int | None = None, bound: int | None = None) -> None:
        """Tell the caller how far the round is; ``value_`` and ``bound`` are news not yet taken in."""
        if self.on_progress is None:
            return
        held = None if self.incumbent is None else self.incumbent.value
        bounds = [self.whole_bound] if self.narrowed or bound is None else [self.value_bound, bound]
        news = Progress(
            seconds=time.monotonic() - self.budget.started,
            stage=stage,
            value=max((v for v in (held, value_) if v is not None), default=None),
            value_bound=min(bounds),
            cost=None if self.incumbent is None or not self.value_proven else self.incumbent.cost,
            cost_bound=None if self.narrowed else self.cost_bound,
        )
        try:
            self.on_progress(news)
        except Exception as error:
            raise CallerRaised(error) from error

    def keep_back(self, seconds: float) -> None:
        """Set the deadline so that ``seconds`` are left for what comes after the stages."""
        latest = self.budget.started + self.budget.time_limit_s - seconds
        self.budget = replace(self.budget, deadline=latest)

    def stopped(self) -> bool:
        """Whether the user cancelled or the deadline has passed; notes which."""
        if self.limit == "user" or (self.cancelled is not None and self.cancelled()):
            self.note_limit("user")
            return True
        if self.budget.left_s <= 0:
            self.note_limit("time")
            return True
        return False

    def note_limit(self, limit: PlanLimit) -> None:
        """Note what cut the round short; the weightiest reason stays."""
        if LIMITS.index(limit) > LIMITS.index(self.limit):
            self.limit = limit


LIMITS: tuple[PlanLimit, ...] = ("none", "size", "work", "time", "memory", "user")


def relative_gap(objective: int | None, bound: int | None) -> float | None:
    """|bound - objective| / max(1, |objective|), None while either is unknown."""
    if objective is None or bound is None:
        return None
    return abs(bound - objective) / max(1, abs(objective))
