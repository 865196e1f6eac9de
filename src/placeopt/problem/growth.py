"""Sets of GPUs that are near each other, and the shortest paths between a job's GPUs that the hardware offers."""

from __future__ import annotations

import numpy as np

from placeopt.problem.arrays import UNLIMITED, IntArray, Options
from placeopt.topology.cluster_topology import ClusterTopology

FAR = 1 << 60

STEPS = 1 << 24
"""Steps of growing sets of GPUs in one machine; 256 GPUs from each of 256 take as many."""


def starts(num_gpus: int, size: int, steps: int) -> IntArray:
    """GPUs to grow sets of ``size`` from: all, where ``num_gpus^2 * size <= steps``, else evenly spaced ones."""
    # Growing one set looks at every GPU for every member, so this many starts take about ``steps`` steps together; at
    # least one start is left.
    count = max(1, min(num_gpus, steps // max(1, num_gpus * size)))
    return np.arange(count) * num_gpus // count


def grown_sets(distance: IntArray, size: int, first: IntArray) -> tuple[IntArray, IntArray]:
    """
    Grow sets of GPUs, each by the GPU whose distances to those in it sum to least; of equals the one listed first.

    ``distance``, (g, g), is symmetric, in link-cost units; ``first``, (s,), are the GPUs that the sets begin with.
    Returns, both of shape (s, size): the members in the order in which they were taken, and the path length between all
    pairs of the first 1, 2, ... members. Cost ``O(s g size)``.
    """
    each = np.arange(len(first))
    members, path = np.empty((2, len(first), size), dtype=np.int64)
    members[:, 0], path[:, 0] = first, 0
    reach = distance[first].copy()
    reach[each, first] = FAR  # and more from then on: taken
    for k in range(1, size):
        near = reach.argmin(axis=1)
        members[:, k] = near
        path[:, k] = path[:, k - 1] + reach[each, near]
        reach += distance[near]
        reach[each, near] = FAR
    return members, path


def best_paths(topology: ClusterTopology, options: Options, gpu_type: IntArray) -> IntArray:
    """
    Shape (O,): path length between all pairs of an option's GPUs, each pair once, where nothing else runs.

    On one machine: grown from each GPU in turn (of more than 256, from evenly spaced ones: `grown_paths`) by always
    taking the nearest one, the best of these; it is the least where distances form levels and each GPU is tried. Over
    several nodes: the least over ways to divide the workers over nodes, each part as good as any machine can have it,
    all pairs across as near as two nodes are anywhere. Only GPUs that the option may hold count; node selectors, splits
    and other constraints do not.
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
            tables: dict[tuple[int, bytes], IntArray] = {}  # machine types that share distances and GPUs count once
            for m, first in zip(machines[0].tolist(), firsts, strict=True):
                here = allowed[gpu_type[first : first + len(topology.distance[m])]]
                alike = (id(topology.distance[m]), here.tobytes())
                if alike not in tables:
                    tables[alike] = topology.distance[m][np.ix_(here, here)]
            known[key] = _best(topology, list(tables.values()), workers, gpus, most, together=key[3] is True)
        out[o] = known[key]
    return out


def _best(
    topology: ClusterTopology, tables: list[IntArray], workers: int, gpus: int, most: int, *, together: bool
) -> int:
    roomy = min(most, workers, max((len(table) // gpus for table in tables), default=0))
    inside = np.full(roomy + 1, FAR, dtype=np.int64)  # by number of workers on one node
    inside[0] = 0
    for table in tables:
        here = min(roomy, len(table) // gpus)
        path = grown_paths(table, here * gpus)[::gpus]
        inside[: here + 1] = np.minimum(inside[: here + 1], path)
    if workers <= roomy and inside[workers] == 0:
        return 0
    across = None if together else topology.min_node_distance
    if across is None or not roomy:  # all on one node, or nowhere
        return int(inside[workers]) if workers <= roomy else 0
    best = np.full(workers + 1, FAR, dtype=np.int64)
    best[0] = 0
    for w in range(1, workers + 1):
        k = np.arange(1, min(roomy, w) + 1)
        best[w] = (best[w - k] + inside[k] + across * (k * gpus) * ((w - k) * gpus)).min()
    return int(best[workers])


def grown_paths(distance: IntArray, most: int) -> IntArray:
    """
    Shape (most + 1,): path length of 0 .. ``most`` GPUs taken nearest first, from the best GPU to begin with.

    ``most`` is at most the number of GPUs. Every GPU is a beginning where there are up to 256; of more, evenly spaced
    ones are, so that all of them together take ``STEPS`` steps.
    """
    out = np.zeros(most + 1, dtype=np.int64)
    if most > 1:
        out[1:] = grown_sets(distance, most, starts(len(distance), len(distance), STEPS))[1].min(axis=0)
    return out


def paths_inside(topology: ClusterTopology) -> IntArray:
    """Shape (machine types, 1 + most GPUs of one): `grown_paths` of each type of machine, 0 beyond its GPUs."""
    most = max((len(table) for table in topology.distance), default=0)
    inside = np.zeros((len(topology.distance), most + 1), dtype=np.int64)
    tables = {id(table): table for table in topology.distance}  # machine types share them
    paths = {name: grown_paths(table, len(table)) for name, table in tables.items()}
    for m, table in enumerate(topology.distance):
        inside[m, : len(table) + 1] = paths[id(table)]
    return inside


def ways_out(topology: ClusterTopology) -> IntArray:
    """Shape (N,): distance from the GPU of a node that is nearest to its network, to beyond its uplink."""
    root = np.array([int(root.min(initial=UNLIMITED)) for root in topology.root], dtype=np.int64)
    ways: IntArray = root[topology.node_machine] + topology.node_uplink
    return ways
