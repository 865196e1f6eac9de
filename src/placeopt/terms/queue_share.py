"""Rule: a queue's quota and dominant share, with what it may borrow."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from placeopt.linear import NO_LOWER, ModelBuilder
from placeopt.model import Cluster
from placeopt.model.policy import Queue, Quota
from placeopt.problem import RESOURCES, UNLIMITED, IntArray, Placement, Problem, State
from placeopt.problem.changes import shares_of
from placeopt.terms.protocols import Scope
from placeopt.terms.variables import Variables

AMOUNTS = ("gpu_milli", "cpu_millicores", "memory_mib")
MOST_STATED = 10**12
"""What a quota may say; more is no limit."""


class QueueShare:
    """SODA V-C: what the jobs of a queue hold together, running ones included."""

    name = "queue_share"
    scope: Scope = "cluster"

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Tell whether the job's queue may hold that much more."""
        problem = state.problem
        queue = problem.class_queue[problem.job_class[job]]
        if queue < 0:
            return True
        use = option_use(problem)[placement.option]
        use[GPU_MILLI] = sum(shares_of(problem, placement))
        return bool((state.queue_used[queue] + use <= queue_ceilings(problem)[queue]).all())

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """One row per queue and resource; of GPU share, running jobs may hold more than their option's request."""
        v, problem = variables, variables.problem
        if not problem.policy.queues:
            return
        queue = problem.class_queue[problem.options.job_class[v.start_option]]
        use, room = option_use(problem)[v.start_option], queue_ceilings(problem) - v.state.queue_used
        mine = queue >= 0
        more = v.grant_milli - problem.options.milli[v.grant_option]
        extra = np.flatnonzero((more > 0) & mine[v.grant_start])
        for r in range(use.shape[1]):
            grants = extra if r == GPU_MILLI else extra[:0]
            builder.add_rows(
                np.concatenate([queue[mine], queue[v.grant_start[grants]]]),
                np.concatenate([v.start[mine], v.grant[grants]]),
                np.concatenate([use[mine, r], more[grants]]),
                np.full(len(room), NO_LOWER, dtype=np.int64),
                room[:, r],
            )


GPU_MILLI = 0
"""Position of GPU share in ``option_use``."""


def option_use(problem: Problem) -> IntArray:
    """Shape (O, 3): GPU share in thousandths, millicores and MiB that a whole job in the option holds."""
    options = problem.options
    cpu, memory = RESOURCES.index("cpu_millicores"), RESOURCES.index("memory_mib")
    node = options.demand[:, [cpu, memory]] * options.workers[:, None]
    return np.concatenate([options.total_milli[:, None], node], axis=1)


def queue_ceilings(problem: Problem) -> IntArray:
    """Shape (queues, 3): most that each queue may hold, in the units of ``option_use``."""
    cpu, memory = RESOURCES.index("cpu_millicores"), RESOURCES.index("memory_mib")
    total = [1000 * problem.num_gpus, *(int(problem.node_capacity[:, r].sum()) for r in (cpu, memory))]
    rows = [_ceiling(queue, total) for queue in problem.policy.queues]
    return np.array(rows, dtype=np.int64).reshape(len(rows), 3)


def in_amounts(queues: Iterable[Queue], cluster: Cluster) -> tuple[Queue, ...]:
    """
    Return queues that may hold as much as on ``cluster``, whatever cluster they come to: no shares, only quotas.

    For rounds on a part of a cluster, or on what a failure leaves of it: what runs there within its share of the whole
    may be beyond the same share of less.
    """
    machines = {machine.id: machine for machine in cluster.machines}
    used = [machines[node.machine] for node in cluster.nodes]
    total = [
        1000 * sum(len(machine.gpus) for machine in used),
        sum(machine.cpu_millicores for machine in used),
        sum(machine.memory_mib for machine in used),
    ]
    changed = []
    for queue in queues:
        most = zip(AMOUNTS, _ceiling(queue, total), strict=True)
        quota = Quota(**{name: amount for name, amount in most if amount <= MOST_STATED})
        own = {"quota": quota, "borrow": Quota(), "dominant_share_percent": None, "borrow_percent": 0}
        changed.append(queue.model_copy(update=own))
    return tuple(changed)


def _ceiling(queue: Queue, total: list[int]) -> list[int]:
    """Return the most that a queue may hold of each of ``AMOUNTS``, of which a cluster has ``total``."""
    more = [getattr(queue.borrow, name) or 0 for name in AMOUNTS]
    own = [getattr(queue.quota, name) for name in AMOUNTS]
    ceiling = [UNLIMITED if a is None else a + b for a, b in zip(own, more, strict=True)]
    if queue.dominant_share_percent is None:
        return ceiling
    percent = queue.dominant_share_percent + queue.borrow_percent
    return [min(c, t * percent // 100) for c, t in zip(ceiling, total, strict=True)]
