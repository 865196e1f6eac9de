"""Rule: a queue's quota and dominant share, with what it may borrow."""

from __future__ import annotations

import numpy as np

from placeopt.linear import NO_LOWER, ModelBuilder
from placeopt.problem import RESOURCES, UNLIMITED, IntArray, Placement, Problem, State
from placeopt.problem.changes import shares_of
from placeopt.terms.protocols import Scope
from placeopt.terms.variables import Variables


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
    rows = []
    for queue in problem.policy.queues:
        own = (queue.quota.gpu_milli, queue.quota.cpu_millicores, queue.quota.memory_mib)
        more = (queue.borrow.gpu_milli, queue.borrow.cpu_millicores, queue.borrow.memory_mib)
        ceiling = [UNLIMITED if a is None else a + (b or 0) for a, b in zip(own, more, strict=True)]
        if queue.dominant_share_percent is not None:
            percent = queue.dominant_share_percent + queue.borrow_percent
            ceiling = [min(c, t * percent // 100) for c, t in zip(ceiling, total, strict=True)]
        rows.append(ceiling)
    return np.array(rows, dtype=np.int64).reshape(len(rows), 3)
