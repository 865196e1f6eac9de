"""What prices of kinds prove, in integers: nothing of an LP is believed."""

from __future__ import annotations

import numpy as np

from placeopt.formulations.node_patterns.job_groups import JobGroups
from placeopt.problem import IntArray

RELAXES = (
    "where the workers of a job are, and which GPUs and sockets they hold",
    "node resources but the two that bind on most nodes, and what rounding the demand for these down leaves",
    "GPU memory, queues and uplinks",
)


def proven_bound(crowds: JobGroups, price: IntArray, best: IntArray, count: IntArray, held: int) -> int:
    """
    Bound on the net value of every plan that keeps what is held.

    Parameters
    ----------
    price
        Shape (D,): what a bundle of each kind pays, in parts of ``crowds.scale``, not negative. Any prices will do.
    best
        Shape (S,): no filling of a state pays more than this at these prices, in the same parts.
    count
        Shape (S,): nodes in each state.
    held
        Value of what is held.

    Notes
    -----
    A plan's value is what its jobs are worth less what their bundles pay, plus what the bundles pay. The first is at
    most the sum over crowds of its jobs x the best of its ways, or 0; the second is paid by the fillings of the nodes.
    Workers of a job may be anywhere, on as many nodes as there are bundles.
    """
    over = crowds.value * crowds.scale - crowds.bundles * price[crowds.kind]
    margin = np.zeros(len(crowds.jobs), dtype=np.int64)
    np.maximum.at(margin, crowds.crowd, over)
    total = sum(m * n for m, n in zip(margin.tolist(), crowds.size.tolist(), strict=True))
    total += sum(b * n for b, n in zip(best.tolist(), count.tolist(), strict=True))
    bound: int = held + total // crowds.scale
    return bound
