"""The hardware of a cluster as read-only arrays: where every GPU is, and how far GPUs are apart."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from placeopt.errors import Unsupported
from placeopt.model import Cluster, Machine
from placeopt.topology.machine_distances import (
    LEVEL_WEIGHTS,
    IntArray,
    MachineLevels,
    domain_weights,
    gpu_distances,
    machine_levels,
    root_distances,
)

MAX_TABLE_CELLS = 1 << 24
"""
Pairs of GPUs inside machines, over all machine types that differ in their distances: tables of 128 MiB, and some
seconds where each of 1,024 GPUs has 65,536 links.
"""

FEW, MOST_PATHS = 64, 100_000
"""GPUs up to which the path between them is kept, and how many paths are."""


class ClusterTopology:
    """
    A cluster's hardware, compiled once: machines per type, nodes and domains as read-only arrays.

    No table is nodes x nodes.

    GPUs are numbered through the cluster: node by node, and inside a node by the machine's index. ``N`` nodes, ``G``
    GPUs, ``D`` domains, ``g`` GPUs of a machine type.

    Across nodes d(a, b) = root[a] + node_uplink[a] + path between the domains + node_uplink[b] + root[b] (Amaral et
    al., SC'17, fig. 7, at any depth). The machine of a node is one vertex, so two nodes of one domain meet in that
    domain.
    """

    def __init__(self, cluster: Cluster, before: "ClusterTopology | None" = None) -> None:
        """
        Compile ``cluster``, whose references hold already (the model checks them).

        Machine types that differ in name only, or in what distances do not depend on, share one table. The tables of
        ``before``, an earlier state of the cluster, are taken over where the machine types are the same objects. Raises
        ``Unsupported`` with more than ``MAX_TABLE_CELLS`` pairs of GPUs inside machine types that differ.
        """
        position = {domain.id: d for d, domain in enumerate(cluster.domains)}
        machine_position = {machine.id: m for m, machine in enumerate(cluster.machines)}
        self._machines = cluster.machines
        self._paths: dict[tuple[int, ...], int] = {}
        if before is None or before._machines is not cluster.machines:
            # by machine type: (g, g) between its GPUs, (g,) from GPU to the machine's vertex
            self.distance = _machine_tables(cluster.machines)
            self.root = [root_distances(machine) for machine in cluster.machines]
        else:
            self.distance, self.root = before.distance, before.root
        self.domain_level = [  # (D,) names
            domain.level for domain in cluster.domains
        ]
        self.domain_parent = _frozen(  # (D,) -1 is the network
            [-1 if domain.parent is None else position[domain.parent] for domain in cluster.domains]
        )
        self.domain_uplink = _frozen(domain_weights(cluster.domains))  # (D,) path weight to the parent
        self.node_machine = _frozen([machine_position[node.machine] for node in cluster.nodes])  # (N,)
        self.node_domain = _frozen(  # (N,) -1 hangs on the network itself
            [-1 if node.domain is None else position[node.domain] for node in cluster.nodes]
        )
        uplinks = _frozen(
            [
                LEVEL_WEIGHTS["machine"] if machine.uplink_weight is None else machine.uplink_weight
                for machine in cluster.machines
            ]
        )
        self.node_uplink = _frozen(uplinks[self.node_machine])  # (N,) from the machine's vertex to the node's domain
        gpus = np.array([len(machine.gpus) for machine in cluster.machines], np.int64)[self.node_machine]  # (N,)
        self.node_gpu_start = _frozen(np.concatenate([np.zeros(1, np.int64), np.cumsum(gpus)]))  # (N + 1,)
        self.gpu_node = _frozen(np.repeat(np.arange(len(gpus)), gpus))  # (G,)
        self.gpu_index = _frozen(np.arange(self.num_gpus) - self.node_gpu_start[self.gpu_node])  # (G,) in its node
        self._domain_to_network, self._domain_levels = self._domain_paths()
        root = np.concatenate([np.zeros(0, np.int64), *(self.root[m] for m in self.node_machine)])
        self._gpu_to_domain = _frozen(root + self.node_uplink[self.gpu_node])  # (G,)

    @property
    def num_gpus(self) -> int:
        """Number of GPUs of the cluster, ``G``."""
        return int(self.node_gpu_start[-1])

    def domain_distances(self, a: IntArray, b: IntArray) -> IntArray:
        """Path weight between the domains ``a[i]`` and ``b[i]``, of any shapes that broadcast together; -1: network."""
        out: IntArray = self._domain_to_network[a] + self._domain_to_network[b]
        for domain, weight in self._domain_levels:  # up to the network and down again, but for what they share
            shared = domain[a] == domain[b]
            if not shared.any():
                break
            out -= 2 * shared * weight[a]
        return out

    def node_ancestors(self, n: int) -> list[int]:
        """Domains above node ``n``, the nearest first; empty if it hangs on the network."""
        ancestors = []
        d = int(self.node_domain[n])
        while d >= 0:
            ancestors.append(d)
            d = int(self.domain_parent[d])
        return ancestors

    def node_links(self, n: int) -> list[int]:
        """Uplinks above node ``n``, its own first: that of node i is number i, and that of domain d is N + d."""
        return [n, *(len(self.node_domain) + domain for domain in self.node_ancestors(n))]

    def distances(self, a: IntArray, b: IntArray) -> IntArray:
        """Distances of the GPUs ``a[i]`` and ``b[i]``, of any shapes that broadcast together, in link-cost units."""
        a, b = np.broadcast_arrays(a, b)
        on_a, on_b = self.gpu_node[a], self.gpu_node[b]
        between = self.domain_distances(self.node_domain[on_a], self.node_domain[on_b])
        out: IntArray = self._gpu_to_domain[a] + between + self._gpu_to_domain[b]
        machine = np.where(on_a == on_b, self.node_machine[on_a], -1)
        for m in np.unique(machine[machine >= 0]).tolist():
            here = machine == m
            out[here] = self.distance[m][self.gpu_index[a[here]], self.gpu_index[b[here]]]
        return out

    def pair_distances(self, gpus: IntArray) -> IntArray:
        """Shape ``(k, k)``: distances between all pairs of GPUs, ``(k,)``, any order, repeats allowed."""
        return self.distances(gpus[:, None], gpus[None, :])

    def path(self, gpus: tuple[int, ...]) -> int:
        """Path length between all pairs of GPUs, each pair once; searches ask for the same ones again and again."""
        if len(gpus) < 2:
            return 0
        path = self._paths.get(gpus)
        if path is None:
            path = int(self.pair_distances(np.array(gpus, dtype=np.int64)).sum()) // 2
            if len(self._paths) >= MOST_PATHS:
                self._paths.clear()
            if len(gpus) <= FEW:
                self._paths[gpus] = path
        return path

    def node_distances(self, gpus: IntArray) -> IntArray:
        """Shape (k, k): ``pair_distances`` of GPUs that are all of one node, at least one."""
        table = self.distance[self.node_machine[self.gpu_node[gpus[0]]]]
        index = self.gpu_index[gpus]
        pairs: IntArray = table[index[:, None], index]
        return pairs

    @cached_property
    def max_machine_distance(self) -> int:
        """Largest distance of two GPUs of one machine; 0 where no machine has two."""
        return max(int(self.distance[m].max(initial=0)) for m in np.unique(self.node_machine))

    @cached_property
    def min_node_distance(self) -> int | None:
        """Least distance of GPUs on two nodes; None with fewer than two such nodes."""
        return self._between_nodes(min)

    @cached_property
    def machine_span(self) -> int:
        """By how much the farthest pair of GPUs of a machine is farther apart than the nearest; at least 1."""
        distances = [self.distance[m] for m in np.unique(self.node_machine)]
        pairs = [d[np.triu_indices(len(d), 1)] for d in distances]
        nearest, farthest = min((int(d.min()) for d in pairs if len(d)), default=0), self.max_machine_distance
        return max(1, farthest - nearest or farthest)

    @cached_property
    def machine_levels(self) -> list[MachineLevels]:
        """By machine type: the levels of its GPUs."""
        tables = {id(table): table for table in self.distance}
        levels = {key: machine_levels(table) for key, table in tables.items()}
        return [levels[id(table)] for table in self.distance]

    @cached_property
    def max_distance(self) -> int:
        """Largest distance of any two GPUs of the cluster; 0 with fewer than two."""
        return max(self.max_machine_distance, self._between_nodes(max) or 0)

    def _between_nodes(self, best: Callable[..., Any]) -> int | None:
        """The least (``min``) or largest (``max``) distance of GPUs on two nodes, found bottom-up, without pairs."""
        root = [best(values.tolist(), default=None) for values in self.root]
        ways: list[list[int]] = [[] for _ in range(len(self.domain_parent) + 1)]  # up to a domain; the network is last
        for m, d, uplink in zip(
            *(a.tolist() for a in (self.node_machine, self.node_domain, self.node_uplink)), strict=True
        ):
            if root[m] is not None:
                ways[d].append(root[m] + uplink)
        found: list[int] = []
        for d in range(len(self.domain_parent) - 1, -2, -1):
            two = sorted(ways[d], reverse=best is max)[:2]
            if len(two) == 2:
                found.append(sum(two))
            if d >= 0 and two:
                ways[self.domain_parent[d]].append(two[0] + int(self.domain_uplink[d]))
        distance: int | None = best(found, default=None)
        return distance

    def _domain_paths(self) -> tuple[IntArray, list[tuple[IntArray, IntArray]]]:
        """
        Path weight of each domain up to the network; and from the network down, a level at a time, the domain above.

        Shapes ``(D + 1,)``; the network, last, has 0. With each domain above comes the weight of its uplink; below its
        own level a domain has marks that no other has, of weight 0.
        """
        size = len(self.domain_parent)
        depth, weight = [0] * (size + 1), [0] * (size + 1)
        parents, uplinks = self.domain_parent.tolist(), self.domain_uplink.tolist()
        for d in range(size):  # parents come first; parent -1 reads the last entry
            depth[d] = depth[parents[d]] + 1
            weight[d] = weight[parents[d]] + uplinks[d]
        path = np.tile(-2 - np.arange(size + 1), (max(depth), 1))
        for d in range(size):
            path[: depth[d], d] = path[: depth[d], parents[d]]
            path[depth[d] - 1, d] = d
        uplink = np.append(self.domain_uplink, 0)  # -1: of a mark
        return _frozen(weight), [(_frozen(row), _frozen(uplink[np.maximum(row, -1)])) for row in path]


def _machine_tables(machines: tuple[Machine, ...]) -> list[IntArray]:
    """Distances inside each machine type; one table for all that have the same tree, weights, links and matrix."""
    shapes = [
        (
            machine.gpu_distance_matrix,
            tuple((part.id, part.parent, part.level, part.uplink_weight) for part in machine.parts),
            tuple((gpu.part, gpu.uplink_weight) for gpu in machine.gpus),
            tuple((link.gpus, link.weight) for link in machine.links),
        )
        for machine in machines
    ]
    cells = sum(len(shape[2]) ** 2 for shape in dict.fromkeys(shapes))
    if cells > MAX_TABLE_CELLS:
        raise Unsupported(
            f"cluster.machines: {cells} pairs of GPUs inside machine types that differ in their distances "
            f"(limit {MAX_TABLE_CELLS}); describe the machines with fewer GPUs or fewer types"
        )
    tables: dict[object, IntArray] = {}
    for shape, machine in zip(shapes, machines, strict=True):
        if shape not in tables:
            tables[shape] = gpu_distances(machine)
    return [tables[shape] for shape in shapes]


def _frozen(values: list[int] | IntArray) -> IntArray:
    """Return the values as a read-only int64 array."""
    array = np.array(values, dtype=np.int64)
    array.setflags(write=False)
    return array
