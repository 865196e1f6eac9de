"""Stage ``patterns``: patterns of whole nodes by column generation, mixed by linear programs and made into a plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from placeopt.errors import OutOfTime, PlaceoptError
from placeopt.formulations.node_patterns import (
    RELAXES,
    PatternMaster,
    PatternPricing,
    PlacementRequest,
    bundle_groups_of,
    job_groups_of,
    node_states_of,
    patterns_of_plan,
    placement_requests,
    proven_bound,
)
from placeopt.formulations.node_patterns.master import EXACT
from placeopt.heuristics import assign_gpus
from placeopt.heuristics.greedy import stop_at
from placeopt.problem import IntArray
from placeopt.solvers.result import Basis
from placeopt.solving import sizes
from placeopt.solving.context import SolveContext
from placeopt.solving.incumbent import Offer
from placeopt.solving.stage import StageReport, StatedReason
from placeopt.terms.objective import value

CLOSE = 1e-4
"""The mix is good enough when prices bound the value within this part of it."""
MOST_ROUNDS = 60
"""Most linear programs."""
SMOOTHING = 0.7
"""Weight of the prices that proved most, beside those of the linear program (Wentges 1997)."""
SIMPLEX_WORK = 2.0
"""Work of one linear program in deterministic mode."""


@dataclass(frozen=True)
class NodePatterns:
    """Proves a bound on value by prices of patterns, and offers the plan that a mix of patterns gives."""

    name: ClassVar[str] = "patterns"
    uses_solver: ClassVar[bool] = True
    before_exact: bool = False
    """Whether an exact stage follows, which proves small rounds sooner."""

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only while the value is open, and where running jobs stay as they are."""
        if reason := context.budget.stop_reason():
            return reason
        if self.before_exact and sizes.product(context) < sizes.SIZES.patterns_product:
            return "the round is small enough for an exact stage"
        if context.value_proven:
            return StatedReason("the value is proven already")
        if context.problem.changeable:
            return StatedReason("running jobs may be changed, which fillings do not know")
        return None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Mix patterns, prove, and round the mix where it is worth more than the incumbent."""
        bound, search, offer = context.bounds.value, None, None
        try:
            search = _PatternSearch(context)
            search.mix()
            search.mixed = search.objective
            search.prove()
            if search.mixed > context.incumbent.value:
                search.dive()
                offer = _offer(context, search)
            detail = search.summary()
        except PlaceoptError as error:
            context.budget.stopped()
            detail = str(error)
            if search is None or not isinstance(error, OutOfTime):
                yield StageReport(detail, "skipped")
                return
        yield StageReport(detail, proved=context.bounds.value < bound, offer=offer)


def _offer(context: SolveContext, search: _PatternSearch) -> Offer:
    """Offer the mix, rounded down and filled up by greedy."""
    jobs = ((request.job, request.option, request.nodes) for request in search.placement_requests())
    stop = stop_at(context.budget.heuristic_deadline(), context.budget.cancelled)
    start = assign_gpus(context.problem, jobs, stop)
    return context.incumbent.offer(context.greedy.fill_up(context.problem, context.budget, start))


class _PatternSearch:
    """Column generation on one round."""

    price: IntArray  # of a bundle of each bundle group, by the last linear program
    whole: IntArray  # how often it uses each pattern, in whole nodes
    rest: np.ndarray  # what is left of that

    def __init__(self, context: SolveContext) -> None:
        """Begin with the patterns of the best plan so far."""
        self.context, state = context, context.base
        self.bundle_groups = bundle_groups_of(context.problem)
        self.states = node_states_of(state, self.bundle_groups)
        self.job_groups = job_groups_of(state, self.bundle_groups)
        self.values: np.ndarray | None = None
        self.fixed: IntArray = np.zeros(0, dtype=np.int64)
        self.programs = self.objective = self.mixed = 0
        self._basis: Basis | None = None
        self._held = value(context.problem, state.allocation())
        self.master = PatternMaster(self.bundle_groups, self.states, self.job_groups, self._held)
        best = context.incumbent.allocation
        self.master.add(patterns_of_plan(context.problem, best, self.bundle_groups, self.states))
        self._pricing = PatternPricing(self.bundle_groups, self.states, "up", self._check_time)

    def _check_time(self) -> None:
        if self.context.budget.stopped():
            raise OutOfTime("the time limit came before the fillings were priced")

    def mix(self) -> None:
        """Generate patterns until no prices bound the value much above that of the mix of those known."""
        center, least = None, None
        for _ in range(MOST_ROUNDS):
            self._check_time()
            if not self._program():
                return
            tried = [self.price]
            if center is not None:
                tried.append((SMOOTHING * center + (1 - SMOOTHING) * self.price).astype(np.int64))
            new = 0
            for price in tried:
                best, patterns = self._pricing.price(price)
                new += self.master.add(enumerate(patterns))
                bound = proven_bound(self.job_groups, price, best, self.states.count, self._held)
                if least is None or bound < least:
                    center, least = price, bound
            if not new or (least is not None and least - self.objective <= CLOSE * abs(self.objective)):
                return

    def dive(self) -> None:
        """Round the mix to integers: jobs of several bundles first, then patterns, the largest parts first."""
        if self.values is None:
            return
        mixed = self.values
        if self.master.fix_gangs(mixed, down=False) and not self._program():
            self.master.fix_gangs(mixed, down=True)
            self._program()
        for _ in range(MOST_ROUNDS):
            if not (self.rest > EXACT).any():
                return
            _, patterns = self._pricing.price(self.price)
            self.master.add(enumerate(patterns))
            self.fixed = self.master.round_up(self.whole, self.rest)
            if not self._program() and not (self.master.release_gangs() and self._program()):
                return

    def _program(self) -> bool:
        """Solve the linear program over the patterns known; tell whether there is a new mix."""
        budget = self.context.budget
        model = self.master.model(self.fixed, budget.deadline)
        options = replace(budget.options(SIMPLEX_WORK), relax=True, start=self._basis, keep_basis=True)
        solution = self.context.solvers.solve("highs", model, options)
        if solution.status != "optimal" or solution.duals is None or solution.relaxed_values is None:
            budget.note_limit(solution.limit)
            return False
        self.programs += 1
        self.price = self.master.prices(model, solution.duals)
        self.price[self._pricing.free_of_charge] = 0
        self.values = solution.relaxed_values
        self.whole, self.rest = self.master.whole(solution.relaxed_values)
        self.objective = solution.bound if solution.bound is not None else 0
        self._basis = solution.basis
        return True

    def prove(self) -> None:
        """Take the bound that the last prices prove; demands are rounded down there, so it holds."""
        if not self.programs:
            return
        pricing = PatternPricing(self.bundle_groups, self.states, "down", self._check_time)
        price = self.price.copy()
        price[pricing.free_of_charge] = 0
        best, _ = pricing.price(price, patterns=False)
        bound = proven_bound(self.job_groups, price, best, self.states.count, self._held)
        self.context.bounds.prove_value(bound, RELAXES)

    def placement_requests(self) -> Iterator[PlacementRequest]:
        """Yield the jobs of the mix, as far as it is in integers."""
        used = zip(self.master.patterns, self.whole.tolist(), strict=False)  # patterns added since are not used
        return placement_requests(self.context.problem, self.bundle_groups, self.states, self.job_groups, used)

    def summary(self) -> str:
        """Say what was done."""
        return (
            f"{len(self.master.patterns)} fillings of {len(self.states)} node states, {self.programs} linear programs; "
            f"mix worth {self.mixed}, whole {self.objective}"
        )
