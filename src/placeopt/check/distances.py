"""How far GPUs are apart, from the records: what the referee needs to judge a job's path."""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property, lru_cache
from heapq import heapify, heappop, heappush
from operator import add

from placeopt.check.directory import Directory
from placeopt.model import Machine
from placeopt.model.machine import Part

DEFAULT_UPLINK = {"gpu": 1, "switch": 10, "numa": 10, "socket": 20, "machine": 100}
RACK_UPLINK, MAX_UPLINK = 200, 1_000_000

STEPS, FAR = 1 << 24, 1 << 60
FEW = 8
"""Neighbours up to which a vertex is taken out of a machine's graph."""

Place = tuple[str, int]
"""Node id and index of the GPU."""

Table = Sequence[Sequence[int]]

Tree = tuple[tuple[Part, ...], tuple[tuple[str | None, int | None], ...], tuple[tuple[tuple[int, int], int], ...]]
"""What distances in a machine depend on: parts; part and uplink weight of each GPU; ends and weight of each link."""


class Distances:
    """Shortest paths inside machines and across the tree of domains; tables are made on first use."""

    def __init__(self, directory: Directory) -> None:
        self._nodes, self._machines, self._domains = directory.nodes, directory.machines, directory.domains
        self._tables: dict[str, Table] = {}
        self._climbs: dict[Place, dict[str | None, int]] = {}
        self._grown: dict[tuple[int, tuple[int, ...], int], list[int]] = {}

    def between(self, a: Place, b: Place) -> int:
        """Path weight between two GPUs."""
        if a[0] == b[0]:
            return self.table(self._nodes[a[0]].machine)[a[1]][b[1]]
        for place in (a, b):
            if place not in self._climbs:
                self._climbs[place] = self._climb(*place)
        from_a, from_b = self._climbs[a], self._climbs[b]
        return min(from_a[domain] + from_b[domain] for domain in from_a.keys() & from_b.keys())

    def pairs(self, places: list[Place]) -> int:
        """Sum over all pairs, each once."""
        return sum(self.between(a, b) for i, a in enumerate(places) for b in places[:i])

    def table(self, machine_id: str) -> Table:
        """All distances inside a machine: as stated, or the shortest over tree and links, through GPUs as well."""
        if machine_id not in self._tables:
            machine = self._machines[machine_id]
            stated = machine.gpu_distance_matrix
            gpus = tuple((gpu.part, gpu.uplink_weight) for gpu in machine.gpus)
            links = tuple((link.gpus, link.weight) for link in machine.links)
            self._tables[machine_id] = _closed((machine.parts, gpus, links)) if stated is None else stated
        return self._tables[machine_id]

    def grown(self, machine_id: str, gpus: tuple[int, ...], most: int) -> list[int]:
        """
        By size, 0 .. ``most``: path of this number of ``gpus``, each the nearest to those before, from the best start.

        Of equally near GPUs the first in the machine is taken. Every GPU is a start where there are up to 256; of
        more, evenly spaced ones are, so that all of them together take ``STEPS`` steps.
        """
        table = self.table(machine_id)
        key = (id(table), gpus, most)
        if key not in self._grown:
            rows = [[table[a][b] for b in gpus] for a in gpus]
            size = len(gpus)
            count = max(1, min(size, STEPS // max(1, size**2)))
            paths = [_path(rows, i * size // count, most) for i in range(count)]
            self._grown[key] = [min(of_size) for of_size in zip(*paths, strict=True)]
        return self._grown[key]

    @cached_property
    def used_machines(self) -> list[Machine]:
        """Machine types that some node is of."""
        return [self._machines[name] for name in dict.fromkeys(node.machine for node in self._nodes.values())]

    @cached_property
    def longest_in_a_machine(self) -> int:
        """Largest distance of two GPUs of one machine."""
        return max((d for machine in self.used_machines for row in self.table(machine.id) for d in row), default=0)

    @cached_property
    def nearest_nodes(self) -> int | None:
        """Least distance of two GPUs on different nodes; None if only one node has any."""
        best: dict[str | None, list[int]] = {}
        number = Counter((node.machine, node.domain) for node in self._nodes.values())
        one_of = {(node.machine, node.domain): node.id for node in self._nodes.values()}
        for kind, name in one_of.items():
            ways = [self._climb(name, gpu) for gpu in range(len(self._machines[kind[0]].gpus))]
            for domain in ways[0] if ways else ():
                best.setdefault(domain, []).extend([min(way[domain] for way in ways)] * min(number[kind], 2))
        return min((sum(sorted(ways)[:2]) for ways in best.values() if len(ways) > 1), default=None)

    def _climb(self, node_id: str, gpu: int) -> dict[str | None, int]:
        """Path weight from a GPU up to each domain above it, and to the network (None)."""
        node = self._nodes[node_id]
        machine = self._machines[node.machine]
        uplink = DEFAULT_UPLINK["machine"] if machine.uplink_weight is None else machine.uplink_weight
        total = _ascent(machine, gpu)[None] + uplink
        out: dict[str | None, int] = {}
        at = node.domain
        while at is not None:
            out[at] = total
            weight, above = self._domain[at]
            total += weight
            at = above
        out[None] = total
        return out

    @cached_property
    def _domain(self) -> dict[str, tuple[int, str | None]]:
        """Uplink weight and parent of each domain; one that states no weight weighs more the higher it stands."""
        height: dict[str, int] = {}
        for domain in reversed(self._domains):
            mine = height.setdefault(domain.id, 0)
            if domain.parent is not None:
                height[domain.parent] = max(height.get(domain.parent, 0), mine + 1)
        return {
            domain.id: (
                min(RACK_UPLINK * (1 + height[domain.id]), MAX_UPLINK)
                if domain.uplink_weight is None
                else domain.uplink_weight,
                domain.parent,
            )
            for domain in self._domains
        }


def _ascent(machine: Machine, gpu: int) -> dict[str | None, int]:
    """Path weight from a GPU up to each part above it, and to the machine itself (None)."""
    parts = {part.id: part for part in machine.parts}
    own = machine.gpus[gpu]
    total = DEFAULT_UPLINK["gpu"] if own.uplink_weight is None else own.uplink_weight
    at, out = own.part, dict[str | None, int]()
    while at is not None:
        out[at] = total
        part = parts[at]
        total += DEFAULT_UPLINK[part.level] if part.uplink_weight is None else part.uplink_weight
        at = part.parent
    out[None] = total
    return out


def _path(rows: Table, first: int, most: int) -> list[int]:
    """By size, 0 .. ``most``: path of a set that begins with ``first`` and takes the nearest one each time."""
    out, reach = [0, 0][: most + 1], list(rows[first])
    reach[first] = FAR  # and more from then on: taken
    while len(out) <= most:
        least = min(reach)
        near = reach.index(least)
        out.append(out[-1] + least)
        reach = list(map(add, reach, rows[near]))
        reach[near] = FAR
    return out


@lru_cache(maxsize=16)
def _closed(tree: Tree) -> Table:
    """
    Shortest paths between all GPUs.

    Vertices with few neighbours are taken out of the graph first, with edges between the neighbours instead; Dijkstra's
    algorithm runs from each of the others; then the former are put back, in reverse, each with its paths through the
    neighbours that it had. Most machines of many GPUs, such as a ring under a switch, are empty before Dijkstra begins.
    """
    edges = _edges(tree)
    taken: dict[int, dict[int, int]] = {}
    heap = [(len(near), v) for v, near in enumerate(edges)]
    heapify(heap)
    while heap and heap[0][0] <= FEW:
        degree, v = heappop(heap)
        near = edges[v]
        if v in taken or degree != len(near):  # it has got another degree since, and stands in the heap again
            continue
        taken[v] = near
        for a, to_a in near.items():
            ways = edges[a]
            del ways[v]
            for b, to_b in near.items():
                if b != a and to_a + to_b < ways.get(b, FAR):
                    ways[b] = to_a + to_b
            heappush(heap, (len(ways), a))
    left = [v for v in range(len(edges)) if v not in taken]
    place = {v: at for at, v in enumerate(left)}
    rows = [[distances[b] for b in left] for distances in (_from(v, edges) for v in left)]
    for v, near in reversed(taken.items()):
        through = [[way + d for d in rows[place[u]]] for u, way in near.items()]
        row = list(map(min, *through)) if len(through) > 1 else through[0] if through else [FAR] * len(rows)
        for above, d in zip(rows, row, strict=True):
            above.append(d)
        place[v] = len(rows)
        rows.append([*row, 0])
    at = [place[v] for v in range(1 + len(tree[0]), len(edges))]
    return [[rows[a][b] for b in at] for a in at]


def _from(first: int, edges: list[dict[int, int]]) -> list[int]:
    """Shortest path from one vertex to every other (Dijkstra); `FAR` to those that were taken out."""
    distance, heap = [FAR] * len(edges), [(0, first)]
    distance[first] = 0
    while heap:
        path, v = heappop(heap)
        if path > distance[v]:
            continue
        for other, way in edges[v].items():
            if path + way < distance[other]:
                distance[other] = path + way
                heappush(heap, (path + way, other))
    return distance


def _edges(tree: Tree) -> list[dict[int, int]]:
    """Neighbours of each vertex with the weights of the edges: the machine, its parts, its GPUs."""
    parts, gpus, links = tree
    first = 1 + len(parts)
    number: dict[str | None, int] = {part.id: 1 + p for p, part in enumerate(parts)}
    number[None] = 0
    edges: list[dict[int, int]] = [{} for _ in range(first + len(gpus))]
    ways = [
        (1 + p, number[part.parent], DEFAULT_UPLINK[part.level] if part.uplink_weight is None else part.uplink_weight)
        for p, part in enumerate(parts)
    ]
    ways += [
        (first + g, number[part], DEFAULT_UPLINK["gpu"] if weight is None else weight)
        for g, (part, weight) in enumerate(gpus)
    ]
    ways += [(first + a, first + b, weight) for (a, b), weight in links]
    for a, b, weight in ways:
        edges[a][b] = edges[b][a] = weight
    return edges
