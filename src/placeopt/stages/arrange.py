"""Stage 2b: arrangements of nodes by column generation; proves the cost level where a round decomposes into rooms."""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass, field

import numpy as np

from placeopt.errors import InternalFault, OutOfTime, PlaceoptError
from placeopt.formulations.arrangements import (
    Column,
    Layout,
    Limits,
    Master,
    Pricing,
    columns_of,
    make_kinds,
    make_patterns,
    make_rooms,
    realise,
)
from placeopt.linear import NO_LOWER, NO_UPPER
from placeopt.model.plan import StageOutcome
from placeopt.problem import IntArray
from placeopt.solvers.certify import dual_bound
from placeopt.solvers.result import Solution, SolveOptions
from placeopt.stages.round import Round
from placeopt.stages.solving import Solve

FRONTIER = (60, 1_000, None)
"""Partial contents of a room kept while columns are collected: more where fewer find none."""

EACH = 12
"""Columns taken of each place and pattern at a time."""

MAX_COLUMNS = 40_000
"""Columns up to which an integer model is tried."""

FIRST_SLACK = 1_000
"""Columns are taken up to this part of the bound above it at first, four times as much whenever that was too little."""

QUICK_SHARE, QUICK_GAP = 0.3, 0.0003
"""Part of the time that is left, and relative gap, at which the search for a good plan among the columns at hand ends."""

WORK_PER_SECOND = 0.1
"""Deterministic work per second that a model may take, so that work, not the clock, ends it."""

RELAXED_WORK = 60.0
"""The same for a relaxation."""

FRACTION = 1e-6
"""Distance from an integer from which on a count is branched on."""


def run_arrange(round_: Round, solve: Solve) -> None:
    """Prove the least cost at the proven value, or as good a bound on it as there is time for."""
    started = time.monotonic()
    if round_.best is None or not round_.value_proven or not round_.weighted or round_.proven:
        return
    round_.prove_cost(0)  # no term is ever negative
    before = round_.best
    try:
        tree = _Tree(round_, solve)
        tree.run()
        detail, cut = tree.detail, tree.cut
    except PlaceoptError as error:
        round_.stopped()
        round_.record("arrangements", "skipped", started, str(error), "cost")
        return
    outcome: StageOutcome = "improved" if round_.best is not before else "proved" if round_.proven else "kept"
    round_.record("arrangements", outcome, started, f"{detail}{cut}", "cost")


@dataclass(order=True)
class _Node:
    """A part of the plans: those whose counts stay within limits."""

    bound: int
    number: int
    limits: Limits = field(compare=False)
    counts: np.ndarray = field(compare=False)
    layout: Layout = field(compare=False)
    duals: np.ndarray = field(compare=False)


class _Tree:
    """Branch on counts, generate columns at every node, and end with an integer model of the columns that can matter."""

    def __init__(self, round_: Round, solve: Solve) -> None:
        self.round, self._solve = round_, solve
        kinds = make_kinds(round_.open, round_.weighted)
        rooms = make_rooms(round_.open, kinds)
        patterns = make_patterns(rooms)
        self._pricing = Pricing(rooms, patterns, self._check)
        self._master = Master(rooms, patterns, round_.weighted, round_.value_bound)
        self._pool: list[Column] = []
        self._known: set[Column] = set()
        self._add(columns_of(rooms, patterns, self._best.allocation))
        self._penalty = self._first_penalty()
        self._nodes = 0
        self.cut = ""
        self.models = 0

    @property
    def detail(self) -> str:
        """What was done, in words."""
        return f"{len(self._pool)} columns, {self._nodes} nodes, {self.models} integer models"

    @property
    def _best(self):
        assert self.round.best is not None
        return self.round.best

    def run(self) -> None:
        """Work through the nodes, the lowest bound first; the bound of the round is the lowest that is left."""
        open_: list[_Node] = []
        stuck: list[int] = []
        try:
            self._push(open_, {})
            while open_ and open_[0].bound < self._best.cost:
                node = heapq.heappop(open_)
                self.round.prove_cost(min([node.bound, self._best.cost, *stuck]))
                fractional = np.abs(node.counts - np.rint(node.counts)) > FRACTION
                if fractional.any():
                    which = int(np.argmax(fractional))
                    low, high = node.limits.get(which, (NO_LOWER, NO_UPPER))
                    floor = int(np.floor(node.counts[which]))
                    stuck.append(node.bound)
                    self._push(open_, {**node.limits, which: (low, floor)})
                    self._push(open_, {**node.limits, which: (floor + 1, high)})
                    stuck.pop()
                else:
                    stuck.append(node.bound)
                    stuck.append(self._leaf(node))
                    stuck.remove(node.bound)
        except OutOfTime as error:
            self.cut = f": {error}"
            self.round.stopped()
        bounds = [node.bound for node in open_] + stuck
        if not self._nodes:
            return
        self.round.prove_cost(min([self._best.cost, *bounds]))

    def _push(self, open_: list[_Node], limits: Limits) -> None:
        node = self._generate(limits)
        if node is not None:
            heapq.heappush(open_, node)

    def _generate(self, limits: Limits) -> _Node | None:
        """Solve the relaxation over all columns; None where it is no better than the best plan."""
        while True:
            layout = self._master.build(self._pool, limits, penalty=self._penalty, deadline=self._deadline)
            solution = self._run(layout, relax=True)
            if solution.duals is None or solution.relaxed_values is None:
                raise OutOfTime(f"relaxation: {solution.status} {solution.message}".strip())
            prices, duals = self._master.multipliers(layout, solution.duals)
            for most in FRONTIER:
                priced = self._pricing.run(prices, -1, most=most, each=EACH)
                new = self._add(priced.columns)
                if new or priced.complete:
                    break
            if new:
                continue
            bound = self._bound(layout, duals, priced)
            if bound >= self._best.cost:
                self._nodes += 1
                return None
            if solution.relaxed_values[layout.extra].sum() > FRACTION:
                self._penalty *= 4
                continue
            self._nodes += 1
            counts = self._master.count_values(self._pool, layout, solution.relaxed_values)
            return _Node(bound, self._nodes, limits, counts, layout, solution.duals)

    def _leaf(self, node: _Node) -> int:
        """
        Return a bound on the node, which is the cost of the best plan where nothing in it can be better.

        A model of the columns at hand looks for a good plan. Then one of all columns that a better plan can have, by
        their reduced costs, settles it.
        """
        self._integer(list(self._pool), node.limits, QUICK_SHARE * self.round.limits.left_s, QUICK_GAP)
        prices, _ = self._master.multipliers(node.layout, node.duals)
        slack = max(1, node.bound // FIRST_SLACK)
        while True:
            before = self._best.cost
            slack = min(slack, before - node.bound - 1)
            if slack < 0:
                return before
            priced = self._pricing.run(prices, slack)
            if len(priced.columns) > MAX_COLUMNS:
                self.cut = f", {len(priced.columns)} columns are too many"
                self.round.cut("size")
                return node.bound
            solution = self._integer(priced.columns, node.limits, self.round.limits.left_s, 0.0)
            beyond = node.bound + slack + 1  # what a plan with another column costs at least
            if solution.status not in ("optimal", "infeasible"):
                self.cut = f", an integer model of {len(priced.columns)} columns: {solution.status}"
                if solution.limit != "none":
                    self.round.cut(solution.limit)
                return max(node.bound, min(beyond, node.bound if solution.bound is None else solution.bound))
            if beyond >= before or (solution.objective is not None and solution.objective <= beyond):
                return before if solution.objective is None else min(before, solution.objective)
            slack *= 4

    def _integer(self, columns: list[Column], limits: Limits, seconds: float, gap: float) -> Solution:
        """Solve an integer model of some columns, and offer the plan that it finds."""
        layout = self._master.build(columns, limits, penalty=None, deadline=self._deadline)
        solution = self._run(layout, relax=False, seconds=seconds, gap=gap)
        self.models += 1
        if solution.values is not None:
            refused = self.round.offer(realise(self._master, columns, layout, solution.values))
            if refused:
                raise InternalFault(f"arrangements: the referee refused a plan: {refused}")
        return solution

    def _first_penalty(self) -> IntArray:
        """Shape (K,): twice the dearest share that a bundle of each kind has in a column of the best plan."""
        kinds, uses = self._master.rooms.kinds, self._master.uses(self._pool)
        cost = np.array([abs(column.cost) for column in self._pool], dtype=np.int64)
        size = kinds.gpus * kinds.milli
        per_unit = cost // np.maximum(uses @ size, 1)
        share = per_unit[:, None] * size * (uses > 0)
        return 2 * share.max(axis=0, initial=0) + int(cost.max(initial=0)) // 10 + 1

    def _bound(self, layout: Layout, duals: np.ndarray, priced) -> int:
        rooms = self._master.rooms
        bound = dual_bound(layout.model, duals)
        bound -= int(rooms.place_count @ priced.place_over)
        return bound - sum(len(g.nodes) * int(over) for g, over in zip(rooms.groups, priced.group_over, strict=True))

    def _add(self, columns: list[Column]) -> int:
        new = [column for column in dict.fromkeys(columns) if column not in self._known]
        self._known.update(new)
        self._pool.extend(new)
        return len(new)

    @property
    def _deadline(self) -> float:
        return self.round.limits.deadline

    def _check(self) -> None:
        if self.round.stopped():
            raise OutOfTime("no time left to price columns")

    def _run(self, layout: Layout, *, relax: bool, seconds: float | None = None, gap: float = 0.0) -> Solution:
        self._check()
        limits = self.round.limits
        work = RELAXED_WORK if relax else WORK_PER_SECOND * limits.time_limit_s
        options = SolveOptions(
            time_limit_s=limits.left_s if seconds is None or limits.deterministic else seconds,
            threads=1 if relax else limits.threads,
            seed=limits.seed,
            deterministic=limits.deterministic,
            memory_limit_mib=limits.memory_limit_mib,
            relax=relax,
            gap=gap,
            work_limit=work if limits.deterministic else None,
        )
        return self._solve("highs", layout.model, options)
