"""The number of nodes of a type with which all jobs are placed: proven from below, found from above."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from placeopt.arguments import checked
from placeopt.deadline import Deadline
from placeopt.edits import apply, more_nodes, unread_in
from placeopt.errors import OutOfTime
from placeopt.feasibility.fit import fit as fit_alone
from placeopt.feasibility.free_capacity import free_capacity_of
from placeopt.feasibility.requirement import requirements_of
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance
from placeopt.problem import State, compile_problem
from placeopt.whatif.answers import NodesNeeded, NodeTrial
from placeopt.whatif.round_solving import LEAST_S, ROUND_SHARE, Limits, Trial, attempt, placing_only, true_of

QUICK = "stranding"
"""A greedy method with a bound, which refutes most numbers of nodes at once."""
MOST_NODES = 100_000
NAMED = 100


@checked
def add(
    instance: Instance,
    node_type: str,
    *,
    limits: Limits | None = None,
    cancel: threading.Event | None = None,
    on_news: Callable[[NodeTrial], None] | None = None,
) -> NodesNeeded:
    """
    Find the fewest nodes of a type with which all jobs of the round are placed; running jobs stay where they are.

    Parameters
    ----------
    instance
        The round.
    node_type
        A machine type of the cluster: added nodes have the domain, labels and taints that all nodes of the type share.
        Or the id of a node to copy.
    limits
        ``time_limit_s`` applies to the whole search.
    cancel
        Set it from another thread to stop with the interval known by then.
    on_news
        Called after every number that was tried.

    Returns
    -------
    NodesNeeded
        The interval and every number that was tried.

    Raises
    ------
    BadInput
        If there is no such machine type or node.

    Notes
    -----
    More nodes never place less, so a number that is proven insufficient refutes all smaller ones, and a plan for one
    number holds for all larger ones. The next number follows from the missing GPUs, then from halving.
    """
    limits = limits or Limits(60.0)
    clock = Deadline(limits.time_limit_s, cancel)
    with Engine() as engine:
        answer = _NodeSearch(NodeTrials(engine, instance, [node_type], limits, cancel), on_news).run(node_type)

    def again() -> NodesNeeded:
        left = replace(limits, time_limit_s=max(LEAST_S, clock.left_s))
        return add(unread.freest(instance), node_type, limits=left, cancel=cancel)

    unread = unread_in(instance, moved=())
    return true_of(answer, unread, again, lambda one: (one.at_least, one.found, one.impossible, one.never))


class NodeTrials:
    """Rounds with further nodes, within the time of one question; only placing counts, and running jobs stay."""

    def __init__(
        self,
        engine: Engine,
        instance: Instance,
        node_types: Sequence[str],
        limits: Limits,
        cancel: threading.Event | None,
    ) -> None:
        self.instance, self.time_limit_s = placing_only(instance), limits.time_limit_s
        self.clock = Deadline(limits.time_limit_s, cancel)
        self._engine, self._types, self._limits = engine, node_types, limits
        self.nodes = self.with_nodes([1] * len(node_types)).cluster.nodes[-len(node_types) :]
        """One more node of each type."""
        runs = {held.job for held in instance.running}
        self.waiting = [job for job in self.instance.jobs if job.id not in runs]
        self.workers = sum(max(option.most_workers for option in job.options) for job in self.waiting)
        """Of the waiting jobs; more nodes than that never help, since each worker is on one node."""

    def solve(self, counts: Sequence[int], time_limit_s: float, *, thorough: bool) -> Trial:
        """Solve the round with a number of nodes of each type, by a quick method with a bound unless thorough."""
        method = self._limits.method if thorough else QUICK
        limits = replace(self._limits, time_limit_s=time_limit_s, method=method)
        return attempt(self._engine, self.with_nodes(counts), limits, self.clock)

    def with_nodes(self, counts: Sequence[int]) -> Instance:
        """Return the round with a number of nodes of each type."""
        kinds = enumerate(zip(self._types, counts, strict=True))
        steps = [
            more_nodes(self.instance, node_type, count, mark=f"-{kind}") for kind, (node_type, count) in kinds if count
        ]
        return apply(self.instance, steps)


class _NodeSearch:
    """``refuted`` is the largest number proven insufficient, ``found`` the smallest sufficient one; others are open."""

    def __init__(self, trials: NodeTrials, on_news: Callable[[NodeTrial], None] | None) -> None:
        self._trials, self._on_news = trials, on_news
        cluster, [node] = trials.instance.cluster, trials.nodes
        self._price = cluster.price_of(node)
        self._node_milli = 1000 * len(cluster.machine_of(node).gpus)
        self._milli = {job.id: job.gpu_milli for job in trials.instance.jobs}
        self._quick_s = 0.0
        """Duration of the longest quick round."""
        self._tried: dict[tuple[int, bool], NodeTrial] = {}
        self._short: dict[int, int] = {}
        """Refuted number -> weight that the bound leaves unplaced."""
        self._most = min(trials.workers, MOST_NODES)
        self.refuted, self.found = -1, self._most + 1
        self.open_low, self.open_high = self._most + 1, -1

    def run(self, node_type: str) -> NodesNeeded:
        """Search until bounds meet or the time is over."""
        never = self._never()
        if not never:
            self._try(0, thorough=False)
            if self.found > 0:
                self._bracket()
                self._close()
        none = bool(never) or self.refuted >= self._most
        return NodesNeeded(
            node_type=node_type,
            at_least=None if none else self.refuted + 1,
            found=None if none or self.found > self._most else self.found,
            price_milli_per_hour=self._price,
            gpus=self._node_milli // 1000,
            impossible=none,
            never=never[:NAMED],
            tried=tuple(sorted(self._tried.values(), key=lambda trial: trial.nodes)),
            seconds=self._trials.clock.spent_s,
        )

    def _never(self) -> tuple[str, ...]:
        """Return waiting jobs that do not fit beside the running ones even with a node for each of their workers.

        Those of kinds that are not reached by the deadline are left out.
        """
        waiting = self._trials.waiting
        most = max((option.most_workers for job in waiting for option in job.options), default=0)
        problem = compile_problem(self._trials.with_nodes([min(most, self._most)]))
        state, number = State(problem), {name: j for j, name in enumerate(problem.job_ids)}
        fits: dict[int, bool] = {}
        out = []
        for job in waiting:
            if job.id not in number:
                continue  # it consists of groups, whose members are jobs here
            kind = int(problem.job_class[number[job.id]])
            if kind not in fits:
                requirements = requirements_of(problem, job)
                try:
                    fits[kind] = fit_alone(free_capacity_of(state, job), requirements, self._trials.clock) is not None
                except OutOfTime:
                    break
            if not fits[kind]:
                out.append(job.id)
        return tuple(out)

    def _bracket(self) -> None:
        """Find a sufficient number, from the missing GPUs, with a step that doubles each time."""
        nodes, step = 0, 1
        while self.found > self._most and nodes < self._most and not self._over():
            last = self._last(nodes)
            short = -(-last.gpu_milli_waiting // max(self._node_milli, 1))
            nodes = min(self._most, nodes + max(step, short))
            self._try(nodes, thorough=nodes == self._most)
            step *= 2

    def _close(self) -> None:
        """After a number was found: refute from below by quick rounds, find from above by thorough ones."""
        if self.found > self._most:
            return
        while self.refuted + 1 < self.found and not self._over():
            low, high = self.refuted, min(self.found, self.open_low)
            if low + 1 < high:
                self._try(self._guess(low, high), thorough=False)
            if self._over() or self.refuted + 1 >= self.found:
                break
            low, high = max(self.refuted, self.open_high), self.found
            if low + 1 < high:
                self._try((low + high) // 2, thorough=True)
            elif self.refuted + 1 >= min(self.found, self.open_low):
                break  # all between was tried thoroughly, or refuted

    def _guess(self, low: int, high: int) -> int:
        """Return the number below which the bound proves a shortage; the middle if it proves none."""
        short = self._short.get(low, 0)
        guess = low + short // max(self._node_milli, 1) if short else (low + high) // 2
        return min(max(guess, low + 1), high - 1)

    def _try(self, nodes: int, *, thorough: bool) -> None:
        if self._over() or (nodes, thorough) in self._tried:
            if (nodes, thorough) in self._tried:
                self._note(nodes, None, thorough=thorough)
            return
        clock = self._trials.clock
        # a round that ends before its first plan shows nothing
        share = max(ROUND_SHARE * clock.left_s, 2 * self._quick_s)
        began = clock.spent_s
        trial = self._trials.solve([nodes], min(clock.left_s, share), thorough=thorough)
        if not thorough:
            self._quick_s = max(self._quick_s, clock.spent_s - began)
        waiting = [unplaced.job for unplaced in trial.plan.unplaced]
        tried = NodeTrial(
            nodes=nodes,
            fits=trial.fits,
            waiting=len(waiting),
            gpu_milli_waiting=sum(self._milli[name] for name in waiting),
        )
        self._tried[(nodes, thorough)] = tried
        self._note(nodes, trial, thorough=thorough)
        if self._on_news is not None:
            self._on_news(tried)

    def _note(self, nodes: int, trial: Trial | None, *, thorough: bool) -> None:
        """Update the interval with the result of a number."""
        fits = None if trial is None else trial.fits
        if fits is False and trial is not None:
            self.refuted = max(self.refuted, nodes)
            self._short[nodes] = trial.total - trial.most
        elif fits:
            self.found = min(self.found, nodes)
        else:
            self.open_low = min(self.open_low, nodes)
            if thorough:
                self.open_high = max(self.open_high, nodes)

    def _last(self, nodes: int) -> NodeTrial:
        return self._tried.get((nodes, True)) or self._tried[(nodes, False)]

    def _over(self) -> bool:
        """Return whether the search was cancelled, or no time is left for one more round."""
        return not self._trials.clock.leaves(self._quick_s)
