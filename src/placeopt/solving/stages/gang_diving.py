"""Stage ``gang-diving``: the program over whole jobs is rounded, the widest gangs first, each put on nodes at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from placeopt.formulations.cost_relaxation import with_whole_jobs
from placeopt.heuristics.construction import PartPlacer, construct
from placeopt.linear import IntArray
from placeopt.problem import Allocation, State
from placeopt.solvers.result import Basis
from placeopt.solving.context import JobColumns, SolveContext
from placeopt.solving.stage import StageReport
from placeopt.solving.stages.capacity_relaxation import choose_numbers, first_waiting
from placeopt.solving.stages.job_columns import layout_of, solve_master

SHARE = 0.7
"""Part of the time left that the stage may take."""
STEPS_PER_S, LEAST_STEPS = 10, 20
"""
Steps, each of which prices whole jobs, per second of the time limit in deterministic mode, and those for which there
must be room, at what one took in this round. A dive that is cut leaves nothing but the time that it took from the
search: begun in any case, plans of 300 to 1,000 jobs cost 0.2 to 3.4 times as much, more in five rounds of seven.
"""
AT_ONCE = 4
"""Of the gangs of one size that lie in fractions, one in so many is rounded in a step."""
SHORT = 3.0
"""Price of room that is missing, in multiples of the dearest there is."""
WHOLE = 1e-5
"""Fractions below this are none."""
RANKING = "marginal_cost"
"""Score by which nodes for single bundles are ranked, as in ``construct``."""


@dataclass(frozen=True)
class GangDiving:
    """
    Offers plans of the cheapest set of jobs at the prices of whole jobs.

    The program over whole jobs has these jobs fixed, and is rounded by diving. Gangs of equally many GPUs, the widest
    first, lie as the program has them: some in fractions are rounded, the program is solved again, and once all are
    whole they are put on nodes, where racks have room for their parts. How they really lie goes back into the program.
    What is narrower than half of the largest domain is placed as in ``construct``.
    """

    name: ClassVar[str] = "gang-diving"
    uses_solver: ClassVar[bool] = True

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only where the value is proven, columns are there and the capacity relaxation chooses jobs."""
        if reason := context.budget.stop_reason():
            return reason
        handover, budget = context.handover, context.budget
        columns, capacity = handover.job_columns, handover.capacity_plan
        if context.is_closed:
            return "the round is proven, or within the gap"
        if columns is None or capacity is None or columns.value != context.incumbent.value:
            return "there are no columns of whole jobs for plans of this value"
        if not context.value_proven:
            return "the value is open"
        if not np.array_equal(capacity.relaxation.option, columns.prices.relaxation.option):
            return "the capacity relaxation is of other jobs"
        if self.name in handover.tried:
            return "it is done"
        seconds = LEAST_STEPS * columns.prices.pricing_s / SHARE
        in_time = budget.steps(STEPS_PER_S) >= LEAST_STEPS and budget.has_left(seconds)
        return None if in_time else "too little time is left"

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Round, place, fill up, and offer."""
        handover, budget = context.handover, context.budget
        columns, guide, capacity = handover.job_columns, handover.cost_guide, handover.capacity_plan
        assert columns is not None and guide is not None and capacity is not None  # noqa: PT018, S101 - see `skip_reason`
        handover.tried.add(self.name)
        numbers = choose_numbers(context, capacity, guide.guide.surplus)
        counts = np.zeros(len(context.problem.class_communication), dtype=np.int64)
        np.add.at(counts, context.problem.options.job_class[capacity.relaxation.option], numbers)
        chosen = first_waiting(context, counts)
        dive = _Dive(context, columns, numbers, chosen, budget.until(SHARE))
        start = dive.run()
        with budget.heuristic() as deadline:
            made = construct(
                context.problem,
                context.weighted,
                ranking=RANKING,
                guide=guide.guide,
                chosen=chosen,
                start=start,
                deadline=deadline,
                cancelled=budget.cancelled,
            )
        offer = context.incumbent.offer(made.allocation)
        yield StageReport(f"{dive.steps} steps, {dive.placed} gangs", level="cost", offer=offer)


class _Dive:
    """One dive: the jobs of each group that are not placed yet, and the columns that stand for those that are."""

    def __init__(
        self, context: SolveContext, columns: JobColumns, numbers: IntArray, chosen: IntArray, ends: float
    ) -> None:
        self._context, self._relaxation, self._master = context, columns.prices.relaxation, columns.master
        problem, node_classes = context.problem, self._relaxation.node_classes
        self._numbers, self._ends = numbers.copy(), ends
        self._basis: Basis | None = None
        whole, room = columns.prices.whole, np.concatenate(self._relaxation.capacity_rows)
        self._short = int(SHORT * np.abs(whole.multipliers[room]).max(initial=0.0)) + 1
        self._fixed: IntArray = np.zeros(0, dtype=np.int64)
        apart = len(problem.topology.domain_parent) + np.arange(problem.num_nodes)
        domain = np.where(node_classes.own >= 0, node_classes.own, apart)
        guide = context.handover.cost_guide
        assert guide is not None  # noqa: S101 - see `GangDiving.skip_reason`
        self._placer = PartPlacer(
            State(problem), context.weighted, guide.guide, domain, node_classes.place, lambda: context.budget.stopped()
        )
        self._jobs: dict[int, list[tuple[int, int, int]]] = {}  # of each group: job, option, column that counts it
        waiting: dict[int, list[int]] = {}
        for job in chosen.tolist():
            waiting.setdefault(int(problem.job_class[job]), []).append(job)
        for q in self._master.groups:
            for y in self._relaxation.bundle_columns[q].jobs.tolist():
                option = int(self._relaxation.option[y])
                of_class = waiting.get(int(problem.options.job_class[option]), [])
                for _ in range(int(numbers[y])):
                    self._jobs.setdefault(q, []).append((of_class.pop(), option, y))
        self.steps = self.placed = 0

    def run(self) -> Allocation:
        """Return the running jobs and the wide gangs."""
        domain = self._context.problem.topology.node_domain
        gpus = np.diff(self._context.problem.node_gpu_start)
        inside = domain >= 0
        least = int(np.bincount(domain[inside], gpus[inside]).max()) / 2 if inside.any() else 0
        size: dict[int, tuple[int, int]] = {}
        for q in self._jobs:
            group = self._relaxation.bundle_columns[q].bundle_group
            part = group.total // min((split.domains for split in group.splits), default=group.total + 1)
            if group.total >= least:
                size[q] = (part if part >= least else 0, group.total)
        with self._context.budget.until_out_of_time():
            for own in sorted(set(size.values()), reverse=True):
                if not self._place_all({q for q, other in size.items() if other == own}):
                    break
        return self._placer.state.allocation()

    def _place_all(self, groups: set[int]) -> bool:
        """Round the gangs of these groups, and put them on nodes; tell whether the program was solved."""
        if (lying := self._rounded(groups)) is None:
            return False
        wanted = [x for x in np.flatnonzero(lying).tolist() for _ in range(int(lying[x]))]
        wanted.sort(key=lambda x: -max(part.bundles for part in self._master.columns[x].layout.parts))
        for x in wanted:
            column = self._master.columns[x]
            if self._jobs[column.group]:
                self._put(column.group, [part.nodes for part in column.layout.parts])
        for q in groups:
            while self._jobs[q]:
                self._put(q)
        return True

    def _put(self, q: int, parts: list[tuple[tuple[int, int], ...]] | None = None) -> None:
        """Put the next job of a group on nodes, and fix how it lies; one without room is left out."""
        job, option, y = self._jobs[q].pop()
        placement = self._placer.put(job, option, parts or ())
        if placement is None:
            self._numbers[y] -= 1
            return
        x, _ = self._master.add(q, layout_of(self._context, self._relaxation, job, placement))
        self._grow()
        self._fixed[x] += 1
        self.placed += 1

    def _rounded(self, groups: set[int]) -> IntArray | None:
        """Return how many jobs of these groups lie by each column, all of them whole; None if that is not solved."""
        lying = np.zeros(0, dtype=np.int64)
        while True:
            values = self._solved(lying)
            if values is None:
                return None
            mine = np.array([column.group in groups for column in self._master.columns], dtype=bool)
            before = np.append(lying, np.zeros(len(values) - len(lying), dtype=np.int64))
            free = np.where(mine, values - self._fixed, 0.0)
            lying = np.maximum(np.floor(free + WHOLE).astype(np.int64), before)
            parts = np.where(mine, free - lying, 0.0)
            open_ = np.flatnonzero(parts > WHOLE)
            if not self._round_up(lying, parts, open_):
                return lying

    def _round_up(self, lying: IntArray, parts: NDArray[np.float64], among: IntArray) -> bool:
        """Add one to some columns, the largest fractions first, for which there is room; whether to any."""
        left = self._master.room_left(self._fixed + lying)
        seen: set[int] = set()
        for x in among[np.argsort(-parts[among], kind="stable")].tolist():
            column = self._master.columns[x]
            if column.group in seen or (column.coefficients > left[column.rows]).any():
                continue
            left[column.rows] -= column.coefficients
            lying[x] += 1
            seen.add(column.group)
            if len(seen) * AT_ONCE >= len(among):
                break
        return bool(seen)

    def _solved(self, lying: IntArray) -> NDArray[np.float64] | None:
        """Return how many jobs lie by each column, after new ones were priced; None if that is not solved."""
        values = self._program(lying, price=True)
        return None if values is None else self._program(lying, price=False)

    def _program(self, lying: IntArray, *, price: bool) -> NDArray[np.float64] | None:
        """Solve the program once; ``price``: whole jobs at its prices become columns."""
        master, budget = self._master, self._context.budget
        if budget.stopped() or budget.is_past(self._ends):
            return None
        self._grow()
        fixed = self._fixed.copy()
        fixed[: len(lying)] += lying
        model = master.model(self._numbers, fixed, self._short)
        solution, self._basis = solve_master(self._context, model, self._basis)
        if solution is None or solution.relaxed_values is None or solution.duals is None:
            return None
        if price:
            self.steps += 1
            whole = with_whole_jobs(self._relaxation, solution.duals, budget.deadline)
            for q, found in whole.layouts.items():
                master.add(q, found)
        return master.jobs(solution.relaxed_values)

    def _grow(self) -> None:
        """Give every column of the master a number of jobs."""
        new = len(self._master.columns) - len(self._fixed)
        self._fixed = np.append(self._fixed, np.zeros(new, dtype=np.int64))
