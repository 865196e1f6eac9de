"""How far GPUs are apart, from the records: what the referee needs to judge a job's path."""

from collections import Counter
from functools import cached_property

from placeopt.check.case import Directory
from placeopt.model import Machine

DEFAULT_UPLINK = {"gpu": 1, "switch": 10, "numa": 10, "socket": 20, "machine": 100}
RACK_UPLINK, MAX_UPLINK = 200, 1_000_000

Place = tuple[str, int]
"""Node id and index of the GPU."""


class Distances:
    """Shortest paths inside machines and across the tree of domains; tables are made when they are asked for."""

    def __init__(self, directory: Directory) -> None:
        self._nodes, self._machines, self._domains = directory.nodes, directory.machines, directory.domains
        self._tables: dict[str, list[list[int]]] = {}

    def between(self, a: Place, b: Place) -> int:
        """Path weight between two GPUs."""
        if a[0] == b[0]:
            return self.table(self._nodes[a[0]].machine)[a[1]][b[1]]
        ends: list[dict[str | None, int]] = [self._climb(*place) for place in (a, b)]
        return min(ends[0][domain] + ends[1][domain] for domain in ends[0].keys() & ends[1].keys())

    def pairs(self, places: list[Place]) -> int:
        """Sum over all pairs, each once."""
        return sum(self.between(a, b) for i, a in enumerate(places) for b in places[:i])

    def table(self, machine_id: str) -> list[list[int]]:
        """All distances inside a machine: as stated, or the shortest over tree and links, through GPUs as well."""
        if machine_id not in self._tables:
            machine = self._machines[machine_id]
            stated = machine.gpu_distance_matrix
            self._tables[machine_id] = _closed(machine) if stated is None else [list(row) for row in stated]
        return self._tables[machine_id]

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


def _closed(machine: Machine) -> list[list[int]]:
    size = len(machine.gpus)
    up = [_ascent(machine, gpu) for gpu in range(size)]
    table = [
        [0 if a == b else min(up[a][v] + up[b][v] for v in up[a].keys() & up[b].keys()) for b in range(size)]
        for a in range(size)
    ]
    for link in machine.links:
        a, b = link.gpus
        table[a][b] = table[b][a] = min(table[a][b], link.weight)
    for via in {gpu for link in machine.links for gpu in link.gpus}:
        for a in range(size):
            for b in range(size):
                table[a][b] = min(table[a][b], table[a][via] + table[via][b])
    return table
