"""Rounds with further nodes, of one or several types, until the fewest that place all jobs are known."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from placeopt.deadline import Deadline
from placeopt.edits import apply, more_nodes
from placeopt.errors import OutOfTime
from placeopt.feasibility.fit import fit as fit_alone
from placeopt.feasibility.free_capacity import free_capacity_of
from placeopt.feasibility.requirement import requirements_of
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance
from placeopt.model.base import Record
from placeopt.problem import State, compile_problem
from placeopt.whatif.least import Counts, LeastSearch
from placeopt.whatif.round_solving import ROUND_SHARE, Limits, Trial, attempt, placing_only

QUICK = "stranding"
"""A greedy method with a bound, which refutes most numbers of nodes at once."""
MOST_NODES = 100_000


class NodeTrial(Record):
    """Numbers of nodes that were tried: whether all jobs fit (proven, or None), and the jobs that wait in the plan."""

    nodes: tuple[int, ...]
    """Of each type."""
    fits: bool | None
    waiting: int
    gpu_milli_waiting: int


class NodeRounds:
    """
    Rounds with further nodes, within the time of one question; only placing counts, and running jobs stay.

    Counts are tried by a quick method, which refutes, and by a thorough one, which finds. ``on_trial`` is called after
    every round. ``prices``: Of a node of each type; None: its price per hour.
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
        self.instance, self._clock = placing_only(instance), Deadline(limits.time_limit_s, cancel)
        self._engine, self._types, self._limits, self._on_trial = engine, node_types, limits, on_trial
        cluster = self._with_nodes([1] * len(node_types)).cluster
        nodes = cluster.nodes[-len(node_types) :]
        self.prices = [*map(cluster.price_of, nodes)]
        """Of one more node of each type, per hour, in thousandths."""
        self.gpus = [len(cluster.machine_of(node).gpus) for node in nodes]
        """Of one more node of each type."""
        runs = {held.job for held in instance.running}
        self._waiting = [job for job in self.instance.jobs if job.id not in runs]
        workers = sum(max(option.most_workers for option in job.options) for job in self._waiting)
        # beyond the waiting jobs' workers, each of which is on one node, more never help
        self.search = LeastSearch(self.prices if prices is None else prices, min(workers, MOST_NODES), self.gpus)
        self._quick_s = 0.0
        """Duration of the longest quick round."""

    def never(self) -> tuple[str, ...]:
        """
        Return waiting jobs that do not fit beside the running ones even with a node for each of their workers.

        Those of kinds that are not reached by the deadline are left out, as are jobs of groups.
        """
        most = max((option.most_workers for job in self._waiting for option in job.options), default=0)
        problem = compile_problem(self._with_nodes([min(most, self.search.most)] * len(self._types)))
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
                    fits[kind] = fit_alone(free_capacity_of(state, job), requirements, self._clock) is not None
                except OutOfTime:
                    break
            if not fits[kind]:
                out.append(job.id)
        return tuple(out)

    def run(self) -> None:
        """Search until bounds meet or the time is over."""
        milli = {job.id: job.gpu_milli for job in self._waiting}
        missing = 0
        while not self._over() and (counts := self.search.grown(missing)) is not None:
            trial = self._try(counts, thorough=0 < counts[0] == self.search.most)
            short = sum(milli.get(unplaced.job, 0) for unplaced in trial.plan.unplaced)
            missing = -(-short // max(1000 * sum(self.gpus), 1))
        tried = True
        while tried and not self._over():
            tried = False
            for thorough in (False, True):
                for counts in self.search.next(thorough=thorough):
                    if not self._over():
                        self._try(counts, thorough=thorough)
                        tried = True

    def _with_nodes(self, counts: Sequence[int]) -> Instance:
        """Return the round with a number of nodes of each type."""
        kinds = enumerate(zip(self._types, counts, strict=True))
        return apply(
            self.instance,
            [more_nodes(self.instance, name, count, mark=f"-{kind}") for kind, (name, count) in kinds if count],
        )

    def _try(self, counts: Counts, *, thorough: bool) -> Trial:
        # a round that ends before its first plan shows nothing
        share = max(ROUND_SHARE * self._clock.left_s, 2 * self._quick_s)
        began = self._clock.spent_s
        method = self._limits.method if thorough else QUICK
        limits = replace(self._limits, time_limit_s=min(self._clock.left_s, share), method=method)
        trial = attempt(self._engine, self._with_nodes(counts), limits, self._clock)
        if not thorough:
            self._quick_s = max(self._quick_s, self._clock.spent_s - began)
        self.search.know(counts, fits=trial.fits, thorough=thorough)
        self._on_trial(counts, trial)
        return trial

    def _over(self) -> bool:
        """Return whether the search was cancelled, or no time is left for one more round."""
        return not self._clock.leaves(self._quick_s)
