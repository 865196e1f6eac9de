"""How much each queue may hold: quota and dominant share, with what it may borrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from placeopt.model import Cluster
from placeopt.model.policy import Queue, Quota
from placeopt.problem.arrays import UNLIMITED, IntArray

AMOUNTS = ("gpu_milli", "cpu_millicores", "memory_mib")
MOST_STATED = 10**12
"""What a quota may say; more is no limit."""


def ceilings(queues: Iterable[Queue], total: list[int]) -> IntArray:
    """Return the most that each queue may hold of each of ``AMOUNTS``, shape (queues, 3); a cluster has ``total``."""
    rows = [_ceiling(queue, total) for queue in queues]
    return np.array(rows, dtype=np.int64).reshape(len(rows), 3)


def in_amounts(queues: Iterable[Queue], cluster: Cluster) -> tuple[Queue, ...]:
    """
    Return queues that may hold as much as on ``cluster`` on any other one: no shares, only quotas.

    For rounds on a part of a cluster, or on what a failure leaves of it: what runs there within its share of the whole
    may be beyond the same share of less.
    """
    changed = []
    for queue in queues:
        most = zip(AMOUNTS, _ceiling(queue, cluster.amounts), strict=True)
        quota = Quota(**{name: amount for name, amount in most if amount <= MOST_STATED})
        own = {"quota": quota, "borrow": Quota(), "dominant_share_percent": None, "borrow_percent": 0}
        changed.append(queue.model_copy(update=own))
    return tuple(changed)


def _ceiling(queue: Queue, total: Sequence[int]) -> list[int]:
    """Return the most that a queue may hold of each of ``AMOUNTS``, of which a cluster has ``total``."""
    more = [getattr(queue.borrow, name) or 0 for name in AMOUNTS]
    own = [getattr(queue.quota, name) for name in AMOUNTS]
    ceiling = [UNLIMITED if a is None else a + b for a, b in zip(own, more, strict=True)]
    if queue.dominant_share_percent is None:
        return ceiling
    percent = queue.dominant_share_percent + queue.borrow_percent
    return [min(c, t * percent // 100) for c, t in zip(ceiling, total, strict=True)]
