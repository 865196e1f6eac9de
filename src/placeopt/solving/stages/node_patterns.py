"""Stage ``patterns``: fillings of whole nodes, priced, mixed by linear programs, and made into a plan."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from placeopt.errors import OutOfTime, PlaceoptError
from placeopt.formulations.node_patterns import (
    RELAXES,
    BundleGroups,
    JobGroups,
    NodeStates,
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
from placeopt.heuristics import assign_gpus, greedy
from placeopt.heuristics.greedy import stop_at
from placeopt.heuristics.job_orders import order_jobs
from placeopt.model.plan import StageOutcome
from placeopt.problem import IntArray
from placeopt.solvers.result import Basis
from placeopt.solving.context import SolveContext
from placeopt.solving.sizes import SIZES, product
from placeopt.solving.solver_call import Solve
from placeopt.terms.objective import value

CLOSE = 1e-4
"""The mix is good enough when no prices promise more than this part beyond it."""
MOST_ROUNDS = 60
"""Linear programs at most."""
SMOOTHING = 0.7
"""How much the prices tried beside those of the linear program stay where they proved most (Wentges 1997)."""
SIMPLEX_WORK = 2.0
"""Work of one linear program in deterministic mode."""


def is_large(context: SolveContext) -> bool:
    """Tell whether the round is large enough to mix fillings before exact stages, which prove small ones sooner."""
    return product(context) >= SIZES.patterns_product


def run_node_patterns(context: SolveContext, solve: Solve, score: str, order: str) -> None:
    """Prove a bound by prices of fillings, and offer the plan that a mix of fillings gives, filled up by greedy."""
    started, before, bound = time.monotonic(), context.incumbent, context.value_bound
    if context.value_proven or context.incumbent is None:
        context.record("patterns", "skipped", started, "the value is proven already")
        return
    if context.problem.changeable:
        context.record("patterns", "skipped", started, "running jobs may be changed, which fillings do not know")
        return
    search = None
    try:
        search = _Search(context, solve)
        search.mix()
        search.mixed = search.objective
        search.prove()
        refused = None
        if search.mixed > context.incumbent.value:
            search.dive()
            refused = _offer(context, search, score, order)
        detail = search.told()
    except PlaceoptError as error:
        context.stopped()
        refused, detail = None, str(error)
        if search is None or not isinstance(error, OutOfTime):
            context.record("patterns", "skipped", started, detail)
            return
    if refused:
        context.record("patterns", "failed", started, f"{detail}: refused by the referee: {refused}")
        return
    outcome: StageOutcome = "improved" if context.incumbent is not before else "kept"
    if outcome == "kept" and context.value_bound < bound:
        outcome = "proved"
    context.record("patterns", outcome, started, detail)


def _offer(context: SolveContext, search: _Search, score: str, order: str) -> str | None:
    """Offer the mix, rounded down and filled up by greedy."""
    problem = context.problem
    jobs = ((wish.job, wish.option, wish.nodes) for wish in search.placement_requests())
    deadline = float("inf") if context.budget.deterministic else context.budget.deadline
    settled = assign_gpus(problem, jobs, stop_at(deadline, context.cancelled))
    result = greedy(
        problem,
        order_jobs(problem, order),
        score,
        deadline=deadline,
        cancelled=context.cancelled,
        start=settled,
    )
    return context.offer(result.allocation)


@dataclass
class _Search:
    """Column generation on one round."""

    context: SolveContext
    solve: Solve
    bundle_groups: BundleGroups = field(init=False)
    states: NodeStates = field(init=False)
    job_groups: JobGroups = field(init=False)
    master: PatternMaster = field(init=False)
    price: IntArray = field(init=False)
    whole: IntArray = field(init=False)
    rest: np.ndarray = field(init=False)
    values: np.ndarray | None = None
    fixed: IntArray = field(init=False)
    programs: int = 0
    objective: int = 0
    mixed: int = 0
    _basis: Basis | None = None

    def __post_init__(self) -> None:
        """Begin with the fillings of the best plan so far."""
        context, state = self.context, self.context.base
        self.bundle_groups = bundle_groups_of(context.problem)
        self.states = node_states_of(state, self.bundle_groups)
        self.job_groups = job_groups_of(state, self.bundle_groups)
        self._held = value(context.problem, state.allocation())
        self.fixed = np.zeros(0, dtype=np.int64)
        self.master = PatternMaster(self.bundle_groups, self.states, self.job_groups, self._held)
        best = context.incumbent.allocation if context.incumbent is not None else state.allocation()
        self.master.add(patterns_of_plan(context.problem, best, self.bundle_groups, self.states))
        self._fits = PatternPricing(self.bundle_groups, self.states, "up", self._check_time)

    def _check_time(self) -> None:
        if self.context.stopped():
            raise OutOfTime("the time limit came before the fillings were priced")

    def mix(self) -> None:
        """Find fillings until no prices promise much more than the mix of those known is worth."""
        center, promised = None, None
        for _ in range(MOST_ROUNDS):
            self._check_time()
            if not self._program():
                return
            tried = [self.price]
            if center is not None:
                tried.append((SMOOTHING * center + (1 - SMOOTHING) * self.price).astype(np.int64))
            new = 0
            for price in tried:
                best, found = self._fits.price(price)
                new += self.master.add(enumerate(found))
                bound = proven_bound(self.job_groups, price, best, self.states.count, self._held)
                if promised is None or bound < promised:
                    center, promised = price, bound
            if not new or (promised is not None and promised - self.objective <= CLOSE * abs(self.objective)):
                return

    def dive(self) -> None:
        """Make the mix whole: jobs of several bundles first, then fillings, the largest parts first."""
        if self.values is None:
            return
        mixed = self.values
        if self.master.fix_gangs(mixed, down=False) and not self._program():
            self.master.fix_gangs(mixed, down=True)
            self._program()
        for _ in range(MOST_ROUNDS):
            if not (self.rest > EXACT).any():
                return
            _, found = self._fits.price(self.price)
            self.master.add(enumerate(found))
            self.fixed = self.master.round_up(self.whole, self.rest)
            if not self._program() and not (self.master.release_gangs() and self._program()):
                return

    def _program(self) -> bool:
        """Solve the linear program over the fillings known; tells whether there is a new mix."""
        limits = self.context.budget
        model = self.master.model(self.fixed, limits.deadline)
        options = replace(limits.options(SIMPLEX_WORK), relax=True, start=self._basis, keep_basis=True)
        solution = self.solve("highs", model, options)
        if solution.status != "optimal" or solution.duals is None or solution.relaxed_values is None:
            self.context.note_limit(solution.limit)
            return False
        self.programs += 1
        self.price = self.master.prices(model, solution.duals)
        self.price[self._fits.free_of_charge] = 0
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
        self.context.prove_value(bound, RELAXES)

    def placement_requests(self) -> Iterator[PlacementRequest]:
        """Yield the jobs of the mix, as far as it is whole."""
        used = zip(self.master.patterns, self.whole.tolist(), strict=False)  # patterns added since are not used
        return placement_requests(self.context.problem, self.bundle_groups, self.states, self.job_groups, used)

    def told(self) -> str:
        """Say what was done."""
        return (
            f"{len(self.master.patterns)} fillings of {len(self.states)} node states, {self.programs} linear programs; "
            f"mix worth {self.mixed}, whole {self.objective}"
        )
