"""Stage ``branch-and-price``: branch and price; proves the cost level where a round decomposes into groups of GPUs."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from placeopt.errors import OutOfTime, PlaceoptError
from placeopt.formulations.branch_and_price import (
    BranchLimits,
    Column,
    ColumnMaster,
    ColumnPricing,
    MasterModel,
    Priced,
    columns_of,
    fold_twins,
    make_bundle_groups,
    make_cross_group_patterns,
    make_gpu_groups,
    realise,
)
from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel
from placeopt.problem import IntArray
from placeopt.readable import plural
from placeopt.solvers.certify import dual_bound
from placeopt.solvers.result import Solution
from placeopt.solving.context import SolveContext
from placeopt.solving.incumbent import Refused
from placeopt.solving.stage import StageReport

FRONTIER = (60, 1_000, None)
"""Partial contents of a GPU group kept while columns are collected: more where fewer find none."""

EACH = 12
"""Columns taken of each place and node group at a time."""

MAX_COLUMNS = 40_000
"""Columns up to which an integer model is tried."""

FIRST_SLACK = 1_000
"""Columns are taken up to this part of the bound above it at first, then up to four times as much."""

ROOT_SHARE = 0.15
"""Share of the time left that the first search for a good plan, among the columns of the root, may take."""

QUICK_SHARE, QUICK_GAP = 0.3, 0.0003
"""Share of the time left, and relative gap, at which the search for a good plan among known columns ends."""

WORK_PER_SECOND = 1.0
"""Deterministic work per second of the time limit for an integer model, so that work, not the clock, ends it."""

LEAST_STEPS, STEPS_PER_SECOND = 60, 100
"""
Relaxations in deterministic mode, in any case and per second of the time limit. The root of the library's rounds takes
20 to 45; the number of nodes is bounded by nothing else.
"""
STEPS_OF_INTEGER = 10
"""Relaxations that an integer model counts as."""

NO_PRESOLVE = (("presolve", "off"),)
"""On some ten thousand columns in thirty rows presolve takes HiGHS ten seconds, the search without it one to three."""

RELAXED_WORK = 60.0
"""Deterministic work that a relaxation may take."""

FRACTION = 1e-6
"""Distance from an integer from which on a count is branched on."""


@dataclass(frozen=True)
class BranchAndPrice:
    """Proves the least cost at the proven value, or as good a bound on it as there is time for."""

    name: ClassVar[str] = "branch-and-price"
    uses_solver: ClassVar[bool] = True
    share: float = 1.0
    """Part of the time left that it may take; other stages come after. Deterministic rounds go by work."""
    root_share: float = 1.0
    """Part of that time within which the root has to be done: a round that is too large for it is left to others."""

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only where costs count and the value is proven."""
        if reason := context.budget.stop_reason():
            return reason
        if not context.weighted or not context.value_proven:
            return "no cost counts, or the value is open"
        return "the cost is proven" if context.proven else None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Search the tree."""
        context.bounds.prove_cost(0)  # no term is ever negative
        if context.proven:
            return
        try:
            tree = _Tree(context, self.share, self.share * self.root_share)
            tree.run()
        except _RefusedColumns as error:
            yield StageReport(level="cost", offer=error.offer)
        except PlaceoptError as error:
            context.budget.note_error(error)
            yield StageReport(str(error), "skipped", level="cost")
        else:
            yield StageReport(tree.detail, proved=context.proven, level="cost")


class _RefusedColumns(Exception):
    """The referee refused a plan made of columns, so nothing that they prove counts."""

    def __init__(self, offer: Refused) -> None:
        super().__init__(offer.why)
        self.offer = offer


class _Unsolved(PlaceoptError):
    """A model of the tree has no solution that the search could go on from: neither clock nor user ended it."""


@dataclass(order=True)
class _Node:
    """A part of the plans: those whose counts stay within limits. ``values`` of the counts, ``duals`` of the rows."""

    bound: int
    number: int
    limits: BranchLimits = field(compare=False)
    values: NDArray[np.float64] = field(compare=False)
    layout: MasterModel = field(compare=False)
    duals: NDArray[np.float64] = field(compare=False)


class _Tree:
    """Branch on counts, generate columns at every node, and end with integer models of the columns that can matter."""

    def __init__(self, context: SolveContext, share: float, root_share: float) -> None:
        self._context = context
        self._started, self._deadline = time.monotonic(), context.budget.until(root_share)
        self._whole_deadline = context.budget.until(share)
        groups = make_gpu_groups(context.relaxed, make_bundle_groups(context.relaxed, context.weighted))
        patterns = make_cross_group_patterns(groups)
        self._pricing = ColumnPricing(groups, patterns, self._check)
        self._master = ColumnMaster(groups, patterns, context.weighted, context.bounds.value)
        self._pool: dict[Column, None] = {}
        self._add(columns_of(groups, patterns, context.incumbent.allocation))
        self._penalty = self._first_penalty()
        self._nodes = 0
        self._models = 0
        self._steps, self._most_steps = 0, LEAST_STEPS + STEPS_PER_SECOND * context.budget.work_s
        self._tried, self._past_half = 0, False  # columns of the last search for a plan; whether half time has come
        self._cut = ""

    @property
    def detail(self) -> str:
        """What was done, in words."""
        return (
            ", ".join(
                plural(count, noun)
                for count, noun in ((len(self._pool), "column"), (self._nodes, "node"), (self._models, "integer model"))
            )
            + self._cut
        )

    def run(self) -> None:
        """Process the nodes, the lowest bound first; the bound of the round is the lowest of the open ones."""
        nodes: list[_Node] = []
        closed: list[int] = []
        at_work: list[int] = []
        try:
            self._push(nodes, {})
            self._deadline = self._whole_deadline
            if nodes:
                self._find_plan(ROOT_SHARE * self._left_s)
            while nodes and nodes[0].bound < self._least and not self._context.is_closed:
                node = heapq.heappop(nodes)
                at_work = [node.bound]
                self._prove([node.bound, *closed])
                fractional = np.flatnonzero(np.abs(node.values - np.rint(node.values)) > FRACTION)
                if len(fractional):
                    self._branch(nodes, node, int(fractional[0]))
                else:
                    closed.append(self._close(node))
                at_work = []
        except (OutOfTime, _Unsolved) as error:
            self._cut = f": {error}"
            self._context.budget.note_error(error)
        if self._nodes:
            self._prove([*closed, *at_work, *(node.bound for node in nodes)])

    def _prove(self, open_bounds: list[int]) -> None:
        self._context.bounds.prove_cost(min([self._least, *open_bounds]), self._master.leaves_out)

    @property
    def _least(self) -> int:
        """Cost of the best plan."""
        return self._context.incumbent.cost

    def _branch(self, nodes: list[_Node], node: _Node, which: int) -> None:
        low, high = node.limits.get(which, (NO_LOWER, NO_UPPER))
        floor = int(np.floor(node.values[which]))
        self._push(nodes, {**node.limits, which: (low, floor)})
        self._push(nodes, {**node.limits, which: (floor + 1, high)})

    def _push(self, nodes: list[_Node], limits: BranchLimits) -> None:
        """Add the node unless no plan in it is better than the best."""
        node = self._generate(limits)
        self._nodes += 1
        if node.bound < self._least:
            heapq.heappush(nodes, node)

    def _generate(self, limits: BranchLimits) -> _Node:
        """Solve the relaxation over all columns, or as far as is needed to see that its plans are no better."""
        while True:
            self._find_plan_in_time()
            layout = self._master.build(list(self._pool), limits, penalty=self._penalty, deadline=self._deadline)
            solution = self._run(layout.model, relax=True)
            if solution.duals is None or solution.relaxed_values is None:
                cause = solution.message or f"stopped by {solution.limit}"
                raise _Unsolved(f"a relaxation ended with {solution.status}: {cause}")
            prices, duals = self._master.multipliers(layout, solution.duals)
            values = self._master.count_values(layout, solution.relaxed_values)
            if solution.bound is not None and solution.bound >= self._least:
                bound = self._bound(layout, duals, self._pricing.excess_bound(prices))
                if bound >= self._least:
                    return _Node(bound, self._nodes, limits, values, layout, solution.duals)
            for most in FRONTIER:
                priced = self._pricing.run(prices, -1, most=most, each=EACH)
                new = self._add(priced.columns)
                if new or priced.complete:
                    break
            if new:
                continue
            bound = self._bound(layout, duals, priced)
            if bound < self._least and solution.relaxed_values[layout.extra].sum() > FRACTION:
                self._penalty = self._penalty * 4  # artificial columns must not pay
                continue
            return _Node(bound, self._nodes, limits, values, layout, solution.duals)

    def _close(self, node: _Node) -> int:
        """
        Return a bound on the node, which is the cost of the best plan where nothing in it is better.

        A model of the columns at hand looks for a good plan. Then one of all columns that a better plan can have, by
        their reduced costs, closes the node.
        """
        self._integer(list(self._pool), node.limits, QUICK_SHARE * self._left_s, QUICK_GAP)
        prices, _ = self._master.multipliers(node.layout, node.duals)
        slack = max(1, node.bound // FIRST_SLACK)
        while True:
            before = self._least
            slack = min(slack, before - node.bound)  # with the columns of the best plan, which is the hint
            if slack <= 0:
                return before
            priced = self._pricing.run(prices, slack)
            if len(priced.columns) > MAX_COLUMNS:
                self._cut = f", {len(priced.columns)} columns are too many"
                self._context.budget.note_limit("size")
                return node.bound
            solution = self._integer(priced.columns, node.limits, self._left_s, 0.0)
            beyond = node.bound + slack + 1  # what a plan with any other column costs at least
            if solution.status not in ("optimal", "infeasible"):
                self._cut = f", an integer model of {len(priced.columns)} columns: {solution.status}"
                return node.bound if solution.bound is None else max(node.bound, min(beyond, solution.bound))
            objective = NO_UPPER if solution.objective is None else solution.objective
            if beyond >= before or objective <= beyond:
                return min(before, objective)
            slack *= 4

    def _find_plan_in_time(self) -> None:
        """Look for a good plan once more when half of the time is used, if new columns have come since."""
        half = (self._started + self._deadline) / 2
        late = not self._context.budget.params.deterministic and time.monotonic() > half
        if self._tried < len(self._pool) and not self._past_half and late:
            self._past_half = True
            self._find_plan(self._left_s / 2)

    def _find_plan(self, seconds: float) -> None:
        """Look for a good plan among the columns at hand: a good incumbent closes nodes early."""
        self._tried = len(self._pool)
        self._integer(list(self._pool), {}, seconds, QUICK_GAP)

    def _integer(self, columns: list[Column], limits: BranchLimits, seconds: float, gap: float) -> Solution:
        """Solve an integer model of some columns and those of the best plan, and offer the plan that it finds."""
        best = columns_of(self._master.gpu_groups, self._master.patterns, self._context.incumbent.allocation)
        columns = list(dict.fromkeys([*columns, *best]))
        layout = self._master.build(columns, limits, penalty=None, deadline=self._deadline)
        hint = self._master.values_of(layout, columns, best, self._context.incumbent.allocation)
        folded = fold_twins(self._master, columns, layout)
        solution = self._run(
            folded.model, relax=False, seconds=seconds, gap=gap, hint=None if hint is None else folded.fold(hint)
        )
        self._models += 1
        if solution.values is not None:
            values = folded.unfold(solution.values, layout.model.num_variables)
            offer = self._context.incumbent.offer(realise(self._master, columns, layout, values))
            if isinstance(offer, Refused):
                raise _RefusedColumns(offer)
        return solution

    def _first_penalty(self) -> IntArray:
        """Return shape (K,): above twice the largest share of a bundle of each kind in a column of the best plan."""
        bundles, columns = self._master.gpu_groups.bundle_groups, list(self._pool)
        uses = self._master.uses(columns)
        cost = np.array([abs(column.cost) for column in columns], dtype=np.int64)
        size = bundles.gpus * bundles.milli
        share = (cost // np.maximum(uses @ size, 1))[:, None] * size * (uses > 0)
        penalty: IntArray = 2 * share.max(axis=0, initial=0) + int(cost.max(initial=0)) // 10 + 1
        return penalty

    def _bound(self, layout: MasterModel, duals: NDArray[np.float64], priced: Priced) -> int:
        """Return what the duals prove for the columns of the model, less what all others could gain beside them."""
        groups = self._master.gpu_groups
        bound = dual_bound(layout.model, duals) - int(groups.multiplicity @ priced.group_excess)
        return bound - sum(
            len(g.nodes) * int(over) for g, over in zip(groups.node_groups, priced.node_group_excess, strict=True)
        )

    def _add(self, columns: list[Column]) -> int:
        """Take in columns; return how many were new."""
        before = len(self._pool)
        self._pool.update(dict.fromkeys(columns))
        return len(self._pool) - before

    @property
    def _left_s(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    def _check(self) -> None:
        """Raise ``OutOfTime`` at the deadline, and where the user cancelled."""
        if self._context.budget.stopped() or not self._left_s:
            raise OutOfTime("no time left to price columns")

    def _run(
        self,
        model: LinearModel,
        *,
        relax: bool,
        seconds: float | None = None,
        gap: float = 0.0,
        hint: IntArray | None = None,
    ) -> Solution:
        self._check()
        budget = self._context.budget
        self._steps += 1 if relax else STEPS_OF_INTEGER
        if budget.params.deterministic and self._steps > self._most_steps:
            budget.note_limit("work")
            raise _Unsolved("no work left for another model")
        solver = "highs" if relax else budget.integer_solver
        options = replace(
            budget.options(RELAXED_WORK if relax else WORK_PER_SECOND * budget.work_s, seconds, self._deadline),
            threads=1 if relax else budget.threads,
            gap=gap,
            relax=relax,
            hint=hint,
            extra=NO_PRESOLVE if solver == "highs" and not relax else (),
        )
        return self._context.solvers.solve(solver, model, options)
