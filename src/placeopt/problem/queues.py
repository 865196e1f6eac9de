"""How much each queue may hold and keeps for itself, of all nodes and of each flavor, and what its jobs hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placeopt.model import Cluster, Instance, Policy
from placeopt.model.queues import Allowance, Queue, Quota
from placeopt.problem.arrays import UNLIMITED, Frozen, IntArray
from placeopt.problem.classes import effective_labels

AMOUNTS = ("gpu_milli", "cpu_millicores", "memory_mib")
MOST_STATED = 10**12
"""What a quota may say; more is no limit."""


@dataclass(frozen=True, eq=False)
class QueueTree(Frozen):
    """Q queues; A columns: `AMOUNTS` on all nodes, then on the nodes of each flavor."""

    above: list[list[int]]
    """Of each queue, itself and those above it."""
    ceilings: IntArray  # (Q, A) most that each may hold, UNLIMITED where nothing is stated
    kept: IntArray  # (Q, A) what each counts with above it at least

    @classmethod
    def of(cls, policy: Policy, total: Sequence[int]) -> QueueTree:
        """Return the queues of a policy, in its order; a cluster has ``total`` of each of `AMOUNTS`."""
        number = {queue.id: q for q, queue in enumerate(policy.queues)}
        rows: list[list[int]] = []
        kept: list[list[int]] = []
        for queue in policy.queues:
            of = {one.flavor: one for one in queue.flavors}
            by_flavor = [of.get(flavor.id, Allowance()) for flavor in policy.flavors]
            rows.append([*_ceiling(queue, total), *(most for one in by_flavor for most in _most(one))])
            kept.append([one.kept(name) for one in (queue, *by_flavor) for name in AMOUNTS])
        shape = len(rows), len(AMOUNTS) * (1 + len(policy.flavors))
        return cls(
            above=[[number[name] for name in policy.queues_above(queue.id)] for queue in policy.queues],
            ceilings=np.array(rows, dtype=np.int64).reshape(shape),
            kept=np.array(kept, dtype=np.int64).reshape(shape),
        )

    @cached_property
    def idle(self) -> IntArray:
        """Shape (Q, A): what each counts with while no job runs: what those below it keep."""
        used = np.zeros_like(self.kept)
        deepest_first = sorted(range(len(self.above)), key=lambda q: -len(self.above[q]))
        for q in deepest_first:
            for parent in self.above[q][1:2]:
                used[parent] += np.maximum(used[q], self.kept[q])
        return used

    def change(self, used: IntArray, queue: int, amounts: IntArray) -> None:
        """Add ``amounts``, (A,), that a job of a queue takes or gives back to what all queues count with, (Q, A)."""
        for q in self.above[queue]:
            before = np.maximum(used[q], self.kept[q])
            used[q] += amounts
            amounts = np.maximum(used[q], self.kept[q]) - before

    def room(self, used: IntArray, queue: int) -> IntArray:
        """Shape (A,): what jobs of a queue may hold more; below 0 where it, or a queue above it, is beyond a limit."""
        return [room for _, room in self.rooms(used, queue)][-1]

    def rooms(self, used: IntArray, queue: int) -> Iterator[tuple[int, IntArray]]:
        """Yield the queue and each one above it with what the limits up to there leave to its jobs, (A,)."""
        room = np.full(used.shape[1], UNLIMITED, dtype=np.int64)
        unused = np.zeros(used.shape[1], dtype=np.int64)  # of what is kept: it counts already
        for q in self.above[queue]:
            left = self.ceilings[q] - used[q]
            room = np.minimum(room, np.where(left < 0, left, left + unused))
            unused = unused + np.maximum(self.kept[q] - used[q], 0)
            yield q, room


def in_amounts(queues: Iterable[Queue], cluster: Cluster) -> tuple[Queue, ...]:
    """
    Return queues that may hold as much as on ``cluster`` on any other one: no shares, only quotas.

    For rounds on a part of a cluster, or on what a failure leaves of it: what runs there within its share of the whole
    may be beyond the same share of less.
    """
    changed = []
    for queue in queues:
        most = dict(zip(AMOUNTS, _ceiling(queue, cluster.amounts), strict=True))
        quota = Quota(**{name: amount for name, amount in most.items() if amount <= MOST_STATED})
        lend = Quota(**{name: max(0, most[name] - kept) for name in AMOUNTS if (kept := queue.kept(name))})
        own = {"quota": quota, "borrow": Quota(), "lend": lend, "dominant_share_percent": None, "borrow_percent": 0}
        changed.append(queue.model_copy(update=own))
    return tuple(changed)


def flavors_of_nodes(instance: Instance, policy: Policy) -> list[int]:
    """Return the flavor of each node, the first whose conditions it meets; -1: none."""
    if not policy.flavors:
        return [-1] * len(instance.cluster.nodes)
    models = {machine.id: {gpu.model for gpu in machine.gpus} for machine in instance.cluster.machines}
    found = []
    for node, labels in zip(instance.cluster.nodes, effective_labels(instance), strict=True):
        met = (
            f
            for f, flavor in enumerate(policy.flavors)
            if (not flavor.gpu_models or not models[node.machine].isdisjoint(flavor.gpu_models))
            and flavor.node_selector.items() <= labels.items()
        )
        found.append(next(met, -1))
    return found


def flavors_of_queue(policy: Policy, queue: str | None) -> list[int]:
    """Return the flavors on whose nodes jobs of a queue start, as numbers; none: any node."""
    names = {one.flavor for one in policy.flavors_of(queue)}
    return [f for f, flavor in enumerate(policy.flavors) if flavor.id in names]


def _most(allowance: Allowance) -> list[int]:
    """Return quota and borrow of each of ``AMOUNTS``."""
    return [UNLIMITED if (most := allowance.most(name)) is None else most for name in AMOUNTS]


def _ceiling(queue: Queue, total: Sequence[int]) -> list[int]:
    """Return the most that a queue may hold of each of ``AMOUNTS``, of which a cluster has ``total``."""
    if queue.dominant_share_percent is None:
        return _most(queue)
    percent = queue.dominant_share_percent + queue.borrow_percent
    return [min(c, t * percent // 100) for c, t in zip(_most(queue), total, strict=True)]
