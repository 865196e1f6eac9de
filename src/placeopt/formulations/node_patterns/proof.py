"""What prices of bundle groups prove, in integers: nothing of an LP is believed."""

from __future__ import annotations

import numpy as np

from placeopt.formulations.node_patterns.job_groups import JobGroups
from placeopt.problem import IntArray

RELAXES = (
    "where the workers of a job are, and which GPUs and sockets they hold",
    "node resources but the two that bind on most nodes, and what rounding the demand for these down leaves",
    "GPU memory, queues and uplinks",
)


def proven_bound(job_groups: JobGroups, price: IntArray, best: IntArray, count: IntArray, held: int) -> int:
    """
    Bound on the net value of every plan that keeps what is held.

    Parameters
    ----------
    price
        Shape (D,): what a bundle of each bundle group pays, in parts of ``job_groups.scale``, not negative. Any prices
        will do.
    best
        Shape (S,): no pattern of a state pays more than this at these prices, in the same parts.
    count
        Shape (S,): nodes in each state.
    held
        Value of what is held.

    Notes
    -----
    A plan's value is what its jobs are worth less what their bundles pay, plus what the bundles pay. The first is at
    most the sum over job groups of its jobs x the best of its starts, or 0; the second is paid by the patterns of the
    nodes. Workers of a job may be anywhere, on as many nodes as there are bundles.
    """
    over = job_groups.value * job_groups.scale - job_groups.bundles * price[job_groups.bundle_group]
    margin = np.zeros(len(job_groups.jobs), dtype=np.int64)
    np.maximum.at(margin, job_groups.job_group, over)
    total = sum(m * n for m, n in zip(margin.tolist(), job_groups.size.tolist(), strict=True))
    total += sum(b * n for b, n in zip(best.tolist(), count.tolist(), strict=True))
    bound: int = held + total // job_groups.scale
    return bound
