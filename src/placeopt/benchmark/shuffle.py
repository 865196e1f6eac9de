"""A round with jobs and nodes in another order, on which results should not depend and often do."""

from __future__ import annotations

import random

from placeopt.model import Instance


def shuffled(instance: Instance, seed: int) -> Instance:
    """Return the instance with jobs and nodes in an order drawn from ``seed``; ids stay, and so do plans."""
    draw = random.Random(seed)  # noqa: S311 - repeatable, not secret
    jobs, nodes = list(instance.jobs), list(instance.cluster.nodes)
    draw.shuffle(jobs)
    draw.shuffle(nodes)
    cluster = instance.cluster.model_copy(update={"nodes": tuple(nodes)})
    return instance.model_copy(update={"jobs": tuple(jobs), "cluster": cluster})
