"""Numbers of further nodes, of one or several types: which place all jobs, proven from below, found from above."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from placeopt.deadline import Deadline
from placeopt.edits import apply, more_nodes
from placeopt.errors import OutOfTime
from placeopt.feasibility.fit import fit as fit_alone
from placeopt.feasibility.free_capacity import free_capacity_of
from placeopt.feasibility.requirement import requirements_of
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance
from placeopt.problem import State, compile_problem
from placeopt.whatif.round_solving import ROUND_SHARE, Limits, Trial, attempt, placing_only

QUICK = "stranding"
"""A greedy method with a bound, which refutes most numbers of nodes at once."""
MOST_NODES = 100_000
MOST_CELLS = 4_000_000
"""Size of the grid beyond which it is not made; then no lower bound of the price is proven."""
Counts = tuple[int, ...]
"""Nodes of each type."""
Grid = npt.NDArray[np.bool_]


class NodeSearch:
    """
    Rounds with further nodes, within the time of one question; only placing counts, and running jobs stay.

    More nodes never place less: counts that are proven insufficient refute all that have no more of any type, and a
    plan for some counts holds for all that have no fewer. Where none are known to suffice, equal numbers of all types
    grow until they do. Then the counts that cost less are a grid, and the open ones nearest to its middle price are
    tried next: by a quick method, which refutes, and by a thorough one, which finds.

    ``prices``: Of a node of each type; None: its price per hour. ``on_trial`` is called after every round.
    """

    def __init__(
        self,
        engine: Engine,
        instance: Instance,
        node_types: Sequence[str],
        limits: Limits,
        cancel: threading.Event | None,
        on_trial: Callable[[Counts, Trial], None],
        prices: Sequence[int] | None = None,
    ) -> None:
        self.instance, self.clock = placing_only(instance), Deadline(limits.time_limit_s, cancel)
        self._engine, self._types, self._limits, self._on_trial = engine, node_types, limits, on_trial
        self.nodes = self.with_nodes([1] * len(node_types)).cluster.nodes[-len(node_types) :]
        """One more node of each type."""
        cluster = self.instance.cluster
        self._prices = np.array([*map(cluster.price_of, self.nodes)] if prices is None else prices, dtype=np.int64)
        self._gpus = np.array([len(cluster.machine_of(node).gpus) for node in self.nodes], dtype=np.int64)
        runs = {held.job for held in instance.running}
        self._waiting = [job for job in self.instance.jobs if job.id not in runs]
        workers = sum(max(option.most_workers for option in job.options) for job in self._waiting)
        self.most = min(workers, MOST_NODES)
        """Of one type: beyond the waiting jobs' workers, each of which is on one node, more never help."""
        self.found: Counts | None = None
        """The cheapest counts that place all jobs."""
        self.refuted: list[Counts] = []
        self._undecided: list[tuple[Counts, bool]] = []
        self._open: Grid | None = None
        self._all_prices = np.zeros((), dtype=np.int64)
        self._quick_s = 0.0
        """Duration of the longest quick round."""

    @property
    def price(self) -> int | None:
        """The price of the cheapest counts found."""
        return None if self.found is None else int(self._prices @ self.found)

    @property
    def at_least(self) -> int | None:
        """The price below which no counts suffice, proven; None without a grid."""
        return None if self._open is None else int(self._all_prices[self._open].min(initial=self.price or 0))

    def with_nodes(self, counts: Sequence[int]) -> Instance:
        """Return the round with a number of nodes of each type."""
        kinds = enumerate(zip(self._types, counts, strict=True))
        steps = [
            more_nodes(self.instance, node_type, count, mark=f"-{kind}") for kind, (node_type, count) in kinds if count
        ]
        return apply(self.instance, steps)

    def never(self) -> tuple[str, ...]:
        """
        Return waiting jobs that do not fit beside the running ones even with a node for each of their workers.

        Those of kinds that are not reached by the deadline are left out, as are jobs of groups.
        """
        most = max((option.most_workers for job in self._waiting for option in job.options), default=0)
        problem = compile_problem(self.with_nodes([min(most, self.most)] * len(self._types)))
        state, number = State(problem), {name: j for j, name in enumerate(problem.job_ids)}
        fits: dict[int, bool] = {}
        out = []
        for job in self._waiting:
            if job.id not in number:
                continue  # it consists of groups, whose members are jobs here
            kind = int(problem.job_class[number[job.id]])
            if kind not in fits:
                requirements = requirements_of(problem, job)
                try:
                    fits[kind] = fit_alone(free_capacity_of(state, job), requirements, self.clock) is not None
                except OutOfTime:
                    break
            if not fits[kind]:
                out.append(job.id)
        return tuple(out)

    def know(self, counts: Counts, *, fits: bool | None, thorough: bool = True) -> None:
        """Enter what is known of some counts; None: a round did not decide it."""
        if fits:
            self.found = counts
            self._close()
        elif fits is None:
            self._undecided.append((counts, thorough))
        else:
            self.refuted.append(counts)
            if self._open is not None:
                self._open[_up_to(counts)] = False

    def run(self) -> None:
        """Search until bounds meet or the time is over."""
        if self.found is None:
            self._grow()
        tried = None if self._open is None else {thorough: self._open.copy() for thorough in (False, True)}
        while tried is not None and self._open is not None and not self._over():
            for counts, thorough in self._undecided:  # more nodes are harder to refute, fewer harder to fill
                tried[thorough][_up_to(counts) if thorough else tuple(slice(n, None) for n in counts)] = False
            self._undecided.clear()
            left = {thorough: mask & self._open for thorough, mask in tried.items()}
            if not any(mask.any() for mask in left.values()):
                break
            for thorough, mask in left.items():
                mask &= self._open
                if mask.any() and not self._over():
                    self._try(self._next(mask), thorough=thorough)

    def _grow(self) -> None:
        """Find sufficient equal numbers of all types: from the GPUs that are missing, with a step that doubles."""
        count, step = 0, 1
        while not self._over():
            trial = self._try((count,) * len(self._types), thorough=0 < count == self.most)
            if trial.fits or count == self.most:
                break
            milli = {job.id: job.gpu_milli for job in self._waiting}
            short = sum(milli.get(unplaced.job, 0) for unplaced in trial.plan.unplaced)
            count = min(self.most, count + max(step, -(-short // max(1000 * int(self._gpus.sum()), 1))))
            step *= 2

    def _close(self) -> None:
        """Leave open only what costs less than the counts found; make the grid of it, if there is none."""
        price = self.price or 0
        if self._open is not None:
            self._open &= self._all_prices < price
            return
        sizes = [int(max(price - 1, 0) // each) + 1 for each in self._prices]
        if float(np.prod(np.array(sizes, dtype=float))) > MOST_CELLS:
            return
        axes = [np.arange(size) * int(each) for size, each in zip(sizes, self._prices, strict=True)]
        self._all_prices = sum(np.ix_(*axes), np.zeros((), dtype=np.int64))
        self._open = self._all_prices < price
        for counts in self.refuted:
            self._open[_up_to(counts)] = False

    def _next(self, mask: Grid) -> Counts:
        """Return the counts whose price is nearest to the middle of those open; of equal ones those of most GPUs."""
        prices = self._all_prices[mask]
        off = np.abs(prices - (int(prices.min()) + int(prices.max())) // 2)
        near = np.argwhere(mask)[off == off.min()]
        return tuple(int(n) for n in near[int(np.argmax(near @ self._gpus))])

    def _try(self, counts: Counts, *, thorough: bool) -> Trial:
        # a round that ends before its first plan shows nothing
        share = max(ROUND_SHARE * self.clock.left_s, 2 * self._quick_s)
        began = self.clock.spent_s
        method = self._limits.method if thorough else QUICK
        limits = replace(self._limits, time_limit_s=min(self.clock.left_s, share), method=method)
        trial = attempt(self._engine, self.with_nodes(counts), limits, self.clock)
        if not thorough:
            self._quick_s = max(self._quick_s, self.clock.spent_s - began)
        self.know(counts, fits=trial.fits, thorough=thorough)
        self._on_trial(counts, trial)
        return trial

    def _over(self) -> bool:
        """Return whether the search was cancelled, or no time is left for one more round."""
        return not self.clock.leaves(self._quick_s)


def _up_to(counts: Counts) -> tuple[slice, ...]:
    return tuple(slice(0, n + 1) for n in counts)
