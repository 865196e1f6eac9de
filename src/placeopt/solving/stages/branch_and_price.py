"""Stage 2b: arrangements of nodes by column generation; proves the cost level where a round decomposes into rooms."""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass, field, replace

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
    make_bundle_groups,
    make_cross_group_patterns,
    make_gpu_groups,
    realise,
)
from placeopt.linear import NO_LOWER, NO_UPPER
from placeopt.model.plan import StageOutcome
from placeopt.problem import IntArray
from placeopt.solvers.certify import dual_bound
from placeopt.solvers.result import Solution
from placeopt.solving.context import SolveContext
from placeopt.solving.solver_call import Solve

FRONTIER = (60, 1_000, None)
"""Partial contents of a room kept while columns are collected: more where fewer find none."""

EACH = 12
"""Columns taken of each place and node group at a time."""

MAX_COLUMNS = 40_000
"""Columns up to which an integer model is tried."""

FIRST_SLACK = 1_000
"""Columns are taken up to this part of the bound above it at first, four times as much whenever that was too little."""

QUICK_SHARE, QUICK_GAP = 0.3, 0.0003
"""Part of the time that is left, and relative gap, at which the search for a good plan among known columns ends."""

WORK_PER_SECOND = 0.1
"""Deterministic work per second of the time limit for an integer model, so that work, not the clock, ends it."""

RELAXED_WORK = 60.0
"""Deterministic work that a relaxation may take."""

FRACTION = 1e-6
"""Distance from an integer from which on a count is branched on."""


def run_branch_and_price(context: SolveContext, solve: Solve, share: float = 1.0) -> None:
    """
    Prove the least cost at the proven value, or as good a bound on it as there is time for.

    ``share`` is the part of the time left that may be used, for other stages come afterwards. Deterministic rounds go
    by work.
    """
    started, before = time.monotonic(), context.incumbent
    if before is None or not context.value_proven or not context.weighted:
        return
    context.prove_cost(0)  # no term is ever negative
    if context.proven:
        return
    try:
        tree = _Tree(context, solve, share)
        tree.run()
    except _Refused as error:
        context.record("arrangements", "failed", started, f"refused by the referee: {error}", "cost")
        return
    except PlaceoptError as error:
        context.stopped()
        context.record("arrangements", "skipped", started, str(error), "cost")
        return
    outcome: StageOutcome = "improved" if context.incumbent is not before else "proved" if context.proven else "kept"
    context.record("arrangements", outcome, started, tree.detail, "cost")


class _Refused(Exception):
    """The referee refused a plan made of columns: nothing that they prove may be believed."""


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

    def __init__(self, context: SolveContext, solve: Solve, share: float) -> None:
        self._context, self._solve = context, solve
        limits = context.budget
        self._started, self._deadline = time.monotonic(), limits.deadline
        if not limits.deterministic:
            self._deadline = min(limits.deadline, self._started + share * limits.left_s)
        gpu_groups = make_gpu_groups(context.relaxed, make_bundle_groups(context.relaxed, context.weighted))
        patterns = make_cross_group_patterns(gpu_groups)
        self._pricing = ColumnPricing(gpu_groups, patterns, self._check)
        self._master = ColumnMaster(gpu_groups, patterns, context.weighted, context.value_bound)
        self._pool: dict[Column, None] = {}
        if context.incumbent is not None:
            self._add(columns_of(gpu_groups, patterns, context.incumbent.allocation))
        self._penalty = self._first_penalty()
        self._nodes = 0
        self._models = 0
        self._cut = ""

    @property
    def detail(self) -> str:
        """What was done, in words."""
        return f"{len(self._pool)} columns, {self._nodes} nodes, {self._models} integer models{self._cut}"

    def run(self) -> None:
        """Work through the nodes, the lowest bound first; the bound of the round is the lowest that is left."""
        nodes: list[_Node] = []
        closed: list[int] = []
        at_work: list[int] = []
        try:
            self._push(nodes, {})
            while nodes and nodes[0].bound < self._least and not self._context.within_gap:
                node = heapq.heappop(nodes)
                at_work = [node.bound]
                self._prove([node.bound, *closed])
                fractional = np.flatnonzero(np.abs(node.values - np.rint(node.values)) > FRACTION)
                if len(fractional):
                    self._branch(nodes, node, int(fractional[0]))
                else:
                    closed.append(self._settle(node))
                at_work = []
        except OutOfTime as error:
            self._cut = f": {error}"
            self._context.stopped()
        if self._nodes:
            self._prove([*closed, *at_work, *(node.bound for node in nodes)])

    def _prove(self, open_bounds: list[int]) -> None:
        self._context.prove_cost(min([self._least, *open_bounds]), self._master.leaves_out)

    @property
    def _least(self) -> int:
        """Cost of the best plan."""
        return NO_UPPER if self._context.incumbent is None else self._context.incumbent.cost

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
            self._secure()
            layout = self._master.build(list(self._pool), limits, penalty=self._penalty, deadline=self._deadline)
            solution = self._run(layout, relax=True)
            if solution.duals is None or solution.relaxed_values is None:
                cause = solution.message or f"stopped by {solution.limit}"
                raise OutOfTime(f"a relaxation ended with {solution.status}: {cause}")
            prices, duals = self._master.multipliers(layout, solution.duals)
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
            values = self._master.count_values(layout, solution.relaxed_values)
            return _Node(bound, self._nodes, limits, values, layout, solution.duals)

    def _settle(self, node: _Node) -> int:
        """
        Return a bound on the node, which is the cost of the best plan where nothing in it is better.

        A model of the columns at hand looks for a good plan. Then one of all columns that a better plan can have, by
        their reduced costs, settles it.
        """
        self._integer(list(self._pool), node.limits, QUICK_SHARE * self._left_s, QUICK_GAP)
        prices, _ = self._master.multipliers(node.layout, node.duals)
        slack = max(1, node.bound // FIRST_SLACK)
        while True:
            before = self._least
            slack = min(slack, before - node.bound - 1)
            if slack < 0:
                return before
            priced = self._pricing.run(prices, slack)
            if len(priced.columns) > MAX_COLUMNS:
                self._cut = f", {len(priced.columns)} columns are too many"
                self._context.note_limit("size")
                return node.bound
            solution = self._integer(priced.columns, node.limits, self._left_s, 0.0)
            beyond = node.bound + slack + 1  # what a plan with any other column costs at least
            if solution.status not in ("optimal", "infeasible"):
                self._cut = f", an integer model of {len(priced.columns)} columns: {solution.status}"
                self._context.note_limit(solution.limit)
                return node.bound if solution.bound is None else max(node.bound, min(beyond, solution.bound))
            found = NO_UPPER if solution.objective is None else solution.objective
            if beyond >= before or found <= beyond:
                return min(before, found)
            slack *= 4

    def _secure(self) -> None:
        """Look for a good plan among the columns at hand, once half of the time is gone without having done so."""
        late = time.monotonic() > (self._started + self._deadline) / 2
        if late and not self._models and not self._context.budget.deterministic:
            self._integer(list(self._pool), {}, self._left_s / 2, QUICK_GAP)

    def _integer(self, columns: list[Column], limits: BranchLimits, seconds: float, gap: float) -> Solution:
        """Solve an integer model of some columns, and offer the plan that it finds."""
        layout = self._master.build(columns, limits, penalty=None, deadline=self._deadline)
        solution = self._run(layout, relax=False, seconds=seconds, gap=gap)
        self._models += 1
        if solution.values is not None:
            refused = self._context.offer(realise(self._master, columns, layout, solution.values))
            if refused:
                raise _Refused(refused)
        return solution

    def _first_penalty(self) -> IntArray:
        """Shape (K,): twice the dearest share that a bundle of each kind has in a column of the best plan, and more."""
        bundle_groups, columns = self._master.gpu_groups.bundle_groups, list(self._pool)
        uses = self._master.uses(columns)
        cost = np.array([abs(column.cost) for column in columns], dtype=np.int64)
        size = bundle_groups.gpus * bundle_groups.milli
        share = (cost // np.maximum(uses @ size, 1))[:, None] * size * (uses > 0)
        penalty: IntArray = 2 * share.max(axis=0, initial=0) + int(cost.max(initial=0)) // 10 + 1
        return penalty

    def _bound(self, layout: MasterModel, duals: NDArray[np.float64], priced: Priced) -> int:
        """What the duals prove for the columns of the model, less what all others could gain beside them."""
        gpu_groups = self._master.gpu_groups
        bound = dual_bound(layout.model, duals) - int(gpu_groups.multiplicity @ priced.group_excess)
        return bound - sum(
            len(g.nodes) * int(over) for g, over in zip(gpu_groups.node_groups, priced.node_group_excess, strict=True)
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
        if self._context.stopped() or not self._left_s:
            raise OutOfTime("no time left to price columns")

    def _run(self, layout: MasterModel, *, relax: bool, seconds: float | None = None, gap: float = 0.0) -> Solution:
        self._check()
        limits = self._context.budget
        work = RELAXED_WORK if relax else WORK_PER_SECOND * limits.time_limit_s
        options = replace(
            limits.options(work),
            time_limit_s=self._left_s if seconds is None or limits.deterministic else seconds,
            threads=1 if relax else limits.threads,
            gap=gap,
            relax=relax,
        )
        solution = self._solve("highs", layout.model, options)
        if solution.limit == "user":
            self._context.note_limit("user")
        return solution
