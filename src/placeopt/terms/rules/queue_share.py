"""Rule: a queue's quota and dominant share, with what it may borrow."""

from __future__ import annotations

import numpy as np

from placeopt.linear import ModelBuilder
from placeopt.problem import RESOURCES, IntArray, Placement, Problem, State
from placeopt.terms.queue_ceilings import queue_ceilings
from placeopt.terms.standing import add_limits
from placeopt.terms.variables import Variables


class QueueShare:
    """SODA V-C: what the jobs of a queue hold together, running ones included."""

    name = "queue_share"

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether the job's queue may hold that much more."""
        problem = state.problem
        queue = problem.class_queue[problem.job_class[job]]
        if queue < 0:
            return True
        use = option_use(problem)[placement.option]
        within = state.queue_used[queue] + use <= queue_ceilings(problem)[queue]
        return bool((within | (use == 0)).all())

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """One row per queue and resource."""
        v, problem = variables, variables.problem
        if not problem.policy.queues:
            return
        queue = problem.class_queue[problem.options.job_class[v.start_option]]
        use, room = option_use(problem)[v.start_option], queue_ceilings(problem) - v.state.queue_used
        mine = queue >= 0
        for r in range(use.shape[1]):
            amounts, starts = use[mine, r], v.starts_new[mine]
            add_limits(builder, queue[mine], v.start[mine], amounts, starts, room[:, r], v.excess.queue[:, r])


def option_use(problem: Problem) -> IntArray:
    """Shape (O, 3): GPU share in thousandths, millicores and MiB that a whole job in the option holds."""
    options = problem.options
    cpu, memory = RESOURCES.index("cpu_millicores"), RESOURCES.index("memory_mib")
    node = options.demand[:, [cpu, memory]] * options.workers[:, None]
    return np.concatenate([options.total_milli[:, None], node], axis=1)
