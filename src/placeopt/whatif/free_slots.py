"""The number of disjoint slots of N free GPUs at every level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from placeopt.arguments import checked
from placeopt.errors import BadArgument
from placeopt.model import Instance
from placeopt.problem import State, compile_problem
from placeopt.problem.hardware import gpu_parts
from placeopt.whatif.answers import SlotCount, Slots
from placeopt.whatif.domain_levels import levels_of, nodes_under

SIZES = (1, 2, 4, 8, 16, 32, 64)


@checked
def slots(instance: Instance, sizes: Sequence[int] = SIZES, model: str | None = None) -> Slots:
    """
    Return the number of slots of free GPUs: a domain of f free GPUs has ``f // N`` slots of N.

    Parameters
    ----------
    instance
        The cluster and its running jobs.
    sizes
        Numbers of GPUs of a slot.
    model
        Count GPUs of this model only.

    Returns
    -------
    Slots
        By level: those inside machines, nodes, those of the network, and the cluster.

    Raises
    ------
    BadInput
        If a size is below 1 or no GPU is of that model.

    Notes
    -----
    Exact, and about GPUs alone; `placeopt.whatif.fit` also takes CPU and memory into account.
    """
    if not sizes or min(sizes) < 1:
        raise BadArgument(f"sizes: {list(sizes)}, expected numbers of GPUs from 1 on")
    problem = compile_problem(instance)
    models = np.array(problem.type_model, dtype=object)[problem.gpu_type]
    listed = ~problem.type_lost[problem.gpu_type]  # running jobs may hold GPUs that are not listed
    if model is not None and model not in models[listed]:
        raise BadArgument(
            f"model: no GPU of model {model!r}; there are: {', '.join(sorted(set(models[listed].tolist()))) or 'none'}"
        )
    free = (State(problem).gpu_jobs == 0) & problem.node_schedulable[problem.gpu_node]
    counted = listed if model is None else listed & (models == model)
    free &= counted
    names = np.array(problem.node_ids, dtype=object)[problem.gpu_node]
    domain_of: dict[str, list[object]] = {}
    for level in ("switch", "socket"):
        parts = gpu_parts(problem.instance, problem.topology, level).tolist()
        if any(part >= 0 for part in parts):
            domain_of[level] = [part if part >= 0 else None for part in parts]
    for level in levels_of(instance):
        above = {node: name for name, nodes in nodes_under(instance, level).items() for node in nodes}
        domain_of[level] = [above.get(name) for name in names]
    domain_of["cluster"] = [0] * len(names)
    counts = []
    for level, domains in domain_of.items():
        held = Counter(domain for domain, is_free in zip(domains, free, strict=True) if is_free and domain is not None)
        most = max(held.values(), default=0)
        counts += [
            SlotCount(level=level, size=size, slots=sum(f // size for f in held.values()), largest=most)
            for size in sorted(set(sizes))
        ]
    return Slots(free_gpus=int(free.sum()), gpus=int(counted.sum()), model=model, counts=tuple(counts))
