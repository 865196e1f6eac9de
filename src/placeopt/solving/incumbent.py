"""The best checked plan so far. `Incumbent.offer` is the only way in for an allocation."""

from __future__ import annotations

import time
from dataclasses import dataclass

from placeopt.errors import BadInput, InternalFault
from placeopt.heuristics import greedy
from placeopt.heuristics.job_orders import order_jobs
from placeopt.model import Plan
from placeopt.problem import Allocation, Problem, State
from placeopt.solving.audit import below_minimum
from placeopt.solving.bounds import Bounds
from placeopt.solving.budget import Budget
from placeopt.solving.draft import PlanForm, Recorder, standing_records
from placeopt.terms.objective import Weighted, raw_costs, value
from placeopt.terms.rules import without_broken


@dataclass(frozen=True)
class Accepted:
    """The allocation is the new incumbent."""

    value: int
    cost: int


@dataclass(frozen=True)
class NotBetter:
    """The allocation is no better than the incumbent; the referee has not read it. Cost None: the value decides."""

    value: int
    cost: int | None


@dataclass(frozen=True)
class Refused:
    """The referee refuses the allocation; ``why`` is its first fault."""

    why: str


Offer = Accepted | NotBetter | Refused


def figures(offer: Offer) -> str:
    """Return value and cost of what was offered, in words."""
    if isinstance(offer, Refused):
        return "refused"
    return f"value {offer.value}" if offer.cost is None else f"value {offer.value}, cost {offer.cost}"


class Incumbent:
    """
    The best allocation so far, its objective, and the draft of its plan.

    Starts from the running jobs alone, which every stage can fall back on.

    - ``allocation``: Of every job; None for those that wait.
    - ``value``, ``cost``: Its objective: the value placed, and the weighted sum of the costs that count.
    - ``raw``: Score of every cost that counts, unweighted.
    - ``draft``: Its plan, which the referee has read; None for running jobs that are not read yet.

    The referee reads the running jobs at once where they may be changed. Where they may not, every plan holds them
    all, and what breaks no rule with more beside it breaks none alone: so they are read with the first plan, and by
    themselves only if that is refused or there is none.
    """

    def __init__(
        self,
        form: PlanForm,
        problem: Problem,
        base: State,
        weighted: tuple[Weighted, ...],
        bounds: Bounds,
        budget: Budget,
        draft: Plan | None = None,
    ) -> None:
        """``base`` holds the running jobs; ``draft`` is their plan, if the referee has accepted it before."""
        self._form, self._problem, self._weighted = form, problem, weighted
        self._bounds, self._budget = bounds, budget
        self._recorder: Recorder | None = None  # what offers have in common is written once
        self.allocation = base.allocation()
        self.value = value(problem, self.allocation)
        self._prices: tuple[tuple[int, ...], int] | None = None  # raw and cost, once they are asked for
        self.draft = draft
        self.number = 0
        """How many allocations were accepted."""
        if problem.changeable:
            self.read()

    @property
    def raw(self) -> tuple[int, ...]:
        """Score of every cost that counts, unweighted."""
        return self._scores()[0]

    @property
    def cost(self) -> int:
        """The weighted sum of the costs that count."""
        return self._scores()[1]

    def _scores(self) -> tuple[tuple[int, ...], int]:
        """Return ``raw`` and ``cost``, computed when they are needed: where a plan is worth more, they are not."""
        if self._prices is None:
            self._prices = self._priced(self.allocation)
        return self._prices

    def read(self) -> Plan:
        """
        Return the draft of the best plan, which the referee has read.

        Raises ``BadInput`` if it is that of the running jobs, was not read before, and breaks a rule.
        """
        if self.draft is not None:
            return self.draft
        draft, fault = self._judged(self.allocation)
        if fault:  # every stage falls back on leaving the running jobs where they are
            raise BadInput(
                f"running placements: {fault}; what runs when a round begins may exceed limits, but must be possible "
                f"under policy {self._problem.policy.name!r}"
            )
        self.draft = draft
        return draft

    def prepare(self) -> Recorder:
        """Do what the first offer needs, but no allocation: sooner, while nothing else can be done."""
        if self._recorder is None:
            self._recorder = Recorder(self._problem)
            self._form.prepare()
        return self._recorder

    def is_better(self, value_: int, cost: int) -> bool:
        """Tell whether an objective is strictly better than that of the incumbent."""
        return value_ > self.value or (value_ == self.value and cost < self.cost)

    def offer(self, allocation: Allocation, *, at_any_value: bool = False) -> Offer:
        """
        Take ``allocation`` if it is strictly better and the referee accepts it.

        By strict priorities, and ``at_any_value``, if the referee accepts it.

        Jobs below their minimal utility are taken out of it first, and greedy fills the gaps: what made it may not
        have seen that rule whole.

        Raises ``InternalFault`` if a value above the proven bound, or a cost below it, passes the referee: then the
        bound is wrong. Raises ``BadInput`` if it is refused, and already the running jobs alone break a rule.
        """
        if allocation == self.allocation:
            return NotBetter(self.value, self.cost)
        problem = self._problem
        allowed = without_broken(problem, allocation)
        if allowed != allocation:
            order = order_jobs(problem, problem.policy.order)
            allocation = greedy(problem, order, deadline=self._budget.deadline, start=allowed).allocation
        gain, by_value = value(problem, allocation), problem.policy.priorities == "price" and not at_any_value
        if by_value and gain < self.value:
            return NotBetter(gain, None)
        raw, cost = self._priced(allocation)
        if by_value and not self.is_better(gain, cost):
            return NotBetter(gain, cost)
        draft, fault = self._judged(allocation)
        if fault:
            self.read()
            return Refused(fault)
        if gain > self._bounds.value:
            raise InternalFault(f"a checked plan is worth {gain}, above the proven bound {self._bounds.value}")
        if self._bounds.cost is not None and cost < self._bounds.cost:
            raise InternalFault(f"a checked plan costs {cost}, below the proven bound {self._bounds.cost}")
        self.allocation, self.value, self._prices, self.draft = allocation, gain, (raw, cost), draft
        self.number += 1
        return Accepted(gain, cost)

    def _priced(self, allocation: Allocation) -> tuple[tuple[int, ...], int]:
        """Return the score of every cost that counts, and their weighted sum."""
        raw = raw_costs(self._problem, allocation, self._weighted)
        return raw, sum(w.weight * score for w, score in zip(self._weighted, raw, strict=True))

    def _judged(self, allocation: Allocation) -> tuple[Plan, str | None]:
        """Return the draft of a plan, and the first fault: the referee's, or a job below its minimal utility."""
        began = time.monotonic()
        recorder = self.prepare()
        before = time.monotonic()  # what is done once is no part of what another offer, or the end, will take
        draft = self._form.draft(self._problem, allocation, recorder)
        faults, standing = self._form.judge(draft)
        if standing:
            draft = draft.model_copy(update={"standing": standing_records(standing)})
        self._budget.offer_s = time.monotonic() - before
        self._budget.check_s += before - began + self._budget.offer_s
        why = [f"{fault.rule}: {fault.message}" for fault in faults[:1]] or below_minimum(self._problem, allocation)
        return draft, why[0] if why else None
