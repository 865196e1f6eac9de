"""The shortest path between a job's GPUs that the hardware offers: what an actual one is compared with."""

from __future__ import annotations

import numpy as np

from placeopt.problem.arrays import IntArray
from placeopt.problem.options import Options
from placeopt.topology.cluster_topology import ClusterTopology

FAR = 1 << 60


def best_paths(topology: ClusterTopology, options: Options, gpu_type: IntArray) -> IntArray:
    """
    Shape (O,): path length between all pairs of an option's GPUs, each pair once, where nothing else runs.

    On one machine: grown from each GPU in turn by always taking the one nearest to those taken, the best of these; it
    is the least where distances form levels. Over several nodes: the least over ways to deal the workers out to nodes,
    each part as good as any machine can have it, all pairs across as near as two nodes are anywhere. Only GPUs that
    the option may hold count; node selectors, splits and what else may keep it off do not.
    """
    known: dict[tuple[object, ...], int] = {}
    out = np.zeros(len(options), dtype=np.int64)
    machines = np.unique(topology.node_machine, return_index=True)
    firsts = [topology.node_gpu_start[n] for n in machines[1]]
    for o in range(len(options)):
        workers, gpus = int(options.workers[o]), int(options.gpus[o])
        if workers * gpus < 2:
            continue
        allowed = options.gpu_type_ok[o]
        most = workers if options.bundles[o] == 1 else int(options.workers_per_node[o])
        key = (workers, gpus, most, int(options.bundles[o]) == 1, allowed.tobytes())
        if key not in known:
            tables = []
            for m, first in zip(machines[0].tolist(), firsts, strict=True):
                here = allowed[gpu_type[first : first + len(topology.distance[m])]]
                tables.append(topology.distance[m][np.ix_(here, here)])
            known[key] = _best(topology, tables, workers, gpus, most, together=key[3] is True)
        out[o] = known[key]
    return out


def _best(
    topology: ClusterTopology, tables: list[IntArray], workers: int, gpus: int, most: int, *, together: bool
) -> int:
    roomy = min(most, workers, max((len(table) // gpus for table in tables), default=0))
    inside = [0] + [min(grown_path(table, k * gpus) for table in tables) for k in range(1, roomy + 1)]
    if workers <= roomy and inside[workers] == 0:
        return 0
    across = None if together else topology.min_node_distance()
    if across is None or not roomy:  # all on one node, or nowhere
        return inside[workers] if workers <= roomy else 0
    best = np.full(workers + 1, FAR, dtype=np.int64)
    best[0] = 0
    for w in range(1, workers + 1):
        k = np.arange(1, min(roomy, w) + 1)
        best[w] = (best[w - k] + np.array(inside)[k] + across * (k * gpus) * ((w - k) * gpus)).min()
    return int(best[workers])


def grown_path(distance: IntArray, size: int) -> int:
    """Path length of ``size`` GPUs taken nearest first, from the best GPU to begin with; ``FAR`` if there are fewer."""
    if size > len(distance):
        return FAR
    if size < 2:
        return 0
    each = np.arange(len(distance))
    reach, taken = distance.copy(), np.eye(len(distance), dtype=bool)
    total = np.zeros(len(distance), dtype=np.int64)
    for _ in range(size - 1):
        near = np.where(taken, FAR, reach).argmin(axis=1)
        total += reach[each, near]
        taken[each, near] = True
        reach = reach + distance[near]
    return int(total.min())
