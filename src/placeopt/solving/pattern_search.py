"""Patterns of whole nodes by column generation on one round: a mix, what its prices prove, and the mix made whole."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from placeopt.errors import OutOfTime
from placeopt.formulations.capacity_cut import CapacityCut
from placeopt.formulations.node_patterns import (
    NOTHING_MERGED,
    RELAXES,
    MergedBundles,
    PatternMaster,
    PatternPricing,
    PlacementRequest,
    TieredPricing,
    bundle_groups_of,
    capacity_model,
    capacity_prices,
    job_groups_of,
    merged_bundles_of,
    most_busy,
    node_states_of,
    patterns_of_plan,
    placement_requests,
    proven_bound,
    state_groups_of,
)
from placeopt.formulations.node_patterns.pricing import CELLS
from placeopt.problem import IntArray
from placeopt.solvers.result import Basis
from placeopt.solving.context import SolveContext
from placeopt.solving.pattern_charges import SMALL_NODES, charges_of
from placeopt.terms.costs.communication import Communication
from placeopt.terms.costs.fragmentation import Fragmentation
from placeopt.terms.objective import value, weight_of

CLOSE = 1e-4
"""The mix is good enough when prices bound the value within this part of it."""
MOST_ROUNDS = 100
"""Most linear programs of a mix, and most for making it whole."""
PLACED = 3.2
"""
Time reserved for placing the jobs of a mix, the check of the plan included, in multiples of what a check takes.
Measured from 10,000 to 100,000 jobs: 2.1 to 3.0.
"""
WHOLE_STEPS, PROOF_STEPS = 8, 2
"""
Time reserved for making a mix whole, and for the first proof before it, in multiples of a step of the mix: a pricing
and a linear program. Measured from 10,000 to 100,000 jobs: 5 to 10, and 0.5 to 1.5.
"""
CHARGED_ROUNDS, SMALL_ROUNDS = 10, 4
"""Last programs, of which jobs are charged; at 1,000 nodes plans cost up to a fifth more with 4."""
SMOOTHING = 0.7
"""Weight of the prices that proved most, beside those of the linear program (Wentges 1997)."""
GRIDS = (CELLS, 10 * CELLS, 50 * CELLS)
"""Cells of the grids that prove the bound: the first before the plan is made, finer ones after it until it is close."""
GRID_SHARE = 0.5
"""Part of the time left that a finer grid may take, if it takes as many times longer as it has more cells."""
CELLS_PER_JOB = 100
"""Cells of finer grids for a job of the round, at most: else small rounds take longer for tables than for all else."""
SIMPLEX_WORK = 2.0
"""Work of one linear program in deterministic mode."""

FEW_NODES = 256
"""Nodes that a mix may leave for an integer program: 100 to 140 of 1,000 in `varied`, which takes 0.1 to 0.3 s."""
INTEGER_TRIES = 4
"""How often it is tried, each time after one more step of rounding: in a third of rounds the first one does not end."""
INTEGER_SHARE, INTEGER_WORK, INTEGER_GAP = 0.25, 0.2, CLOSE / 20
"""Part of the time left that each try may take, its work in deterministic mode, and the gap at which it may end."""


class PatternSearch:
    """Column generation on one round."""

    price: IntArray  # of a bundle of each bundle group, by the last linear program
    values: np.ndarray  # of its columns

    def __init__(self, context: SolveContext, left: float) -> None:
        """Begin with the patterns of the best plan so far; ``left`` multiples of a check are left to later stages."""
        self._left = left
        self.context, state, best = context, context.base, context.incumbent.allocation
        groups = self._group(NOTHING_MERGED)
        merged = NOTHING_MERGED
        small = context.problem.num_nodes <= SMALL_NODES
        if self._is_single and not small and weight_of(context.weighted, Communication):
            merged = merged_bundles_of(state)
            groups = self._group(merged)
        # with groups of states, programs with charges, and tiers, take too long
        charges = charges_of(context, merged) if self._is_single else None
        self.job_groups = job_groups_of(state, self.bundle_groups, charges)
        self.programs = self.objective = self.mixed = 0
        self.check_s = context.budget.offer_s
        """Seconds that checking a plan of the mix takes, by the last plan and the number of jobs."""
        self._placed = max(sum(placement is not None for placement in best), 1)
        self._reserved_steps, self._reserved_checks = WHOLE_STEPS + PROOF_STEPS, PLACED + left
        self._pricing_s = self._program_s = 0.0  # what the last of each took
        self._grid = 0, 0.0  # cells of the last grid that proved, and the seconds it took
        self._basis: Basis | None = None
        self._center: IntArray | None = None
        self._least = 0
        self._held = value(context.problem, state.allocation())
        self.master = PatternMaster(self.bundle_groups, self.states, groups, self.job_groups, self._held)
        self.master.charged = False  # programs take twice as long where jobs are charged
        self.master.add_plan(patterns_of_plan(context.problem, best, self.bundle_groups, self.states))
        pricing = TieredPricing if self._is_single else PatternPricing
        self._pricing = pricing(self.bundle_groups, self.states, "up", self._check_time)

    def _group(self, merged: MergedBundles) -> IntArray:
        """Find bundle groups and states; return the group of each state."""
        self.bundle_groups = bundle_groups_of(self.context.problem, merged)
        self.states = node_states_of(self.context.base, self.bundle_groups)
        groups = state_groups_of(self.states)
        self.groups = len(np.unique(groups))
        return groups

    @property
    def _is_single(self) -> bool:
        """Whether each state is a group of its own."""
        return self.groups == len(self.states)

    @property
    def _ends(self) -> float:
        steps_s = self._reserved_steps * (self._pricing_s + self._program_s)
        return self.context.budget.deadline - steps_s - self._reserved_checks * self.check_s

    @property
    def _left_s(self) -> float:
        return max(0.0, self._ends - time.monotonic())

    def _check_time(self) -> None:
        budget = self.context.budget
        if budget.stopped() or budget.is_past(self._ends):
            raise OutOfTime("the time limit came before the patterns were priced")

    def mix(self) -> None:
        """Generate patterns until prices bound the value close to that of the mix, or the time left is needed."""
        with self.context.budget.until_out_of_time():
            self._generate()
        carried = self.context.handover.carried_prices
        if carried is not None and self._center is not None:
            carried.keep(self.bundle_groups, self.job_groups, self._center)
        if self.programs and self.job_groups.charge.any():
            with self.context.budget.until_out_of_time():
                self._charge()
        self.mixed = self.objective

    def _charge(self) -> None:
        """Mix the patterns known, and a few more, for jobs that are charged; as far as time permits."""
        self.master.charged = True
        small = self.context.problem.num_nodes <= SMALL_NODES
        for _ in range(SMALL_ROUNDS if small else CHARGED_ROUNDS):
            self._check_time()
            if not self._program() or not self._add_at(self.price):
                return

    def _generate(self) -> None:
        self._begin()
        for _ in range(MOST_ROUNDS):
            self._check_time()
            if not self._program() or (self._center is not None and self._is_close(self._least)):
                return
            center = self.price if self._center is None else self._center
            smoothed = (SMOOTHING * center + (1 - SMOOTHING) * self.price).astype(np.int64)
            if not self._add_at(smoothed) and not self._add_at(self.price):
                return

    def _is_close(self, bound: int, worth: int | None = None) -> bool:
        """Tell whether a bound is close to a value; None: that of the mix."""
        reached = self.objective if worth is None else worth
        return bound - reached <= CLOSE * abs(reached)

    def _begin(self) -> None:
        """Price patterns at the duals of what all nodes have together."""
        model = capacity_model(self.bundle_groups, self.states, self.job_groups)
        options = replace(self.context.budget.options(SIMPLEX_WORK), relax=True)
        solution = self.context.solvers.solve("highs", model, options)
        if solution.status == "optimal" and solution.duals is not None:
            price = capacity_prices(self.bundle_groups, self.job_groups, model, solution.duals)
            carried = self.context.handover.carried_prices
            if carried is not None:
                carried.put_into(self.bundle_groups, self.job_groups, price)
            price[self._pricing.free_of_charge] = 0
            self._add_at(price)

    def _add_at(self, price: IntArray) -> int:
        """Add the best patterns at a price, which becomes the center if it bounds the value closest."""
        began = time.monotonic()
        best = self._pricing.price(price)
        bound = proven_bound(self.job_groups, price, best.pays, self.states.count, self._held)
        if self._center is None or bound < self._least:
            self._center, self._least = price, bound
        added = self.master.add_best(best)
        self._pricing_s = time.monotonic() - began
        return added

    def dive(self) -> None:
        """Round the mix to integers, as far as time permits: jobs of several bundles first, then large parts."""
        self._reserved_steps, self._reserved_checks = 0, PLACED
        with self.context.budget.until_out_of_time():
            self._dive()

    def _dive(self) -> None:
        mixed = self.values
        if self.master.fix_gangs(mixed, down=False) and not self._program():
            self.master.fix_gangs(mixed, down=True)
            self._program()
        rest = self.master.copy()
        parts = rest.take(self.values, large=False)
        if parts and rest.nodes_left > FEW_NODES:
            self._dive_on()
            return
        self.master = rest
        if parts and self._again():
            self._fill_last_nodes()

    def _fill_last_nodes(self) -> None:
        """Fill the nodes that are left by an integer program; where it ends with less, round a step and try again."""
        best, worth, ended = None, 0, False
        with self.context.budget.until_out_of_time():
            for _ in range(INTEGER_TRIES):
                rest, whole = self.master.copy(), self._integers()
                if whole is not None and (best is None or rest.worth(whole) > worth):
                    best, worth = (rest, whole), rest.worth(whole)
                close = best is not None and self._is_close(self.objective, worth)
                if close or not self._round_step():
                    break
            ended = not close and self._dive_on()
        if best is not None and (worth > self.objective or not ended):
            self.master, self.values, self.objective = best[0], best[1].astype(np.float64), worth
            self.master.take(self.values)

    def _dive_on(self) -> bool:
        """Round the largest parts, and mix again for the nodes that are left, until none is; tell whether none is."""
        return any(not self._round_step() for _ in range(MOST_ROUNDS))

    def _round_step(self) -> bool:
        """Round the largest parts, and mix again; tell whether parts may be left."""
        return self.master.take(self.values) and self._again()

    def _again(self) -> bool:
        """Mix the best patterns for the nodes that are left; tell whether there is a new mix."""
        self.master.add_best(self._pricing.price(self.price))
        return self._program() or (self.master.release_gangs() and self._program())

    def _integers(self) -> IntArray | None:
        """Return a good mix in whole numbers of the patterns known, for the nodes that are left; None without one."""
        budget = self.context.budget
        options = budget.options(INTEGER_WORK, min(self._left_s, INTEGER_SHARE * budget.left_s))
        options = replace(options, gap=INTEGER_GAP)
        solution = self.context.solvers.solve(budget.integer_solver, self.master.model(budget.deadline), options)
        return solution.values

    def _program(self) -> bool:
        """Solve the linear program over the patterns known; tell whether there is a new mix."""
        budget, began = self.context.budget, time.monotonic()
        model = self.master.model(budget.deadline)
        options = replace(budget.options(SIMPLEX_WORK, self._left_s), relax=True, start=self._basis, keep_basis=True)
        solution = self.context.solvers.solve("highs", model, options)
        if solution.status != "optimal" or solution.duals is None or solution.relaxed_values is None:
            return False
        self.programs += 1
        self._program_s = time.monotonic() - began
        self.price = self.master.prices(model, solution.duals)
        self.price[self._pricing.free_of_charge] = 0
        self.values = solution.relaxed_values
        self.objective = self.master.worth(self.values)
        self._basis = solution.basis
        jobs = len(self.context.problem.running) + self.values[: len(self.job_groups.job_group)].sum()
        self.check_s = budget.offer_s * max(1.0, float(jobs) / self._placed)
        return True

    def prove(self, *, finely: bool = False) -> None:
        """
        Take the bound that the best prices prove; demands are rounded down there, so it holds.

        ``finely``: On finer grids, once nothing else is to be done.
        """
        self._reserved_steps, self._reserved_checks = (0, self._left) if finely else (WHOLE_STEPS, PLACED)
        budget = self.context.budget
        with budget.until_out_of_time():
            for cells in GRIDS if finely else GRIDS[:1]:
                small = cells <= max(CELLS, CELLS_PER_JOB * self.context.problem.num_jobs)
                is_open = not self._is_close(self.context.bounds.value) and not self.context.is_closed
                cells_before, took_s = self._grid
                is_finer = cells > cells_before
                if not (is_finer and small and self._center is not None and is_open):
                    continue
                if not cells_before or budget.has_left(took_s * cells / cells_before / GRID_SHARE):
                    began = time.monotonic()
                    self._prove(self._center.copy(), cells)
                    self._grid = cells, time.monotonic() - began

    def _prove(self, price: IntArray, cells: int) -> None:
        pricing = TieredPricing(self.bundle_groups, self.states, "down", self._check_time, cells)
        price[pricing.free_of_charge] = 0
        best = pricing.price(price, patterns=False)
        bound = proven_bound(self.job_groups, price, best.pays, self.states.count, self._held)
        self.context.bounds.prove_value(bound, RELAXES)
        pays = self.context.problem.options.bundles * price[self.bundle_groups.of_option]
        cut = CapacityCut.of_prices(pays, best.pays, self.states.count, self.job_groups.scale)
        self.context.handover.capacity_cut = cut
        if weight_of(self.context.weighted, Fragmentation):
            self.context.handover.most_busy = most_busy(pricing, self.bundle_groups, self.states)

    def placement_requests(self) -> Iterator[PlacementRequest]:
        """Yield the jobs of the mix, as far as it is in integers."""
        used, number = self.master.used.items(), self.values[: len(self.job_groups.job_group)]
        return placement_requests(self.context.problem, self.bundle_groups, self.states, self.job_groups, used, number)

    def summary(self) -> str:
        """Say what was done."""
        return (
            f"{len(self.master)} patterns of {self.groups} groups of {len(self.states)} node states, {self.programs} "
            f"linear programs; mix worth {self.mixed}, whole {self.objective}"
        )
