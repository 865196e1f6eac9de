"""
What Kueue's topology-aware scheduling finds in the situations of its own tests, told anew as rounds.

A network is written as a tree: ``[[1], [2, 2]]`` are two racks, of one node with one GPU, and of two with two GPUs
each. A place is a path in it: ``1/0`` is the first node of the second rack. Where a path ends at a domain, its nodes
are filled in order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from helpers.plans import plan_for
from placeopt import Instance, build, violations
from placeopt.explain import explain
from placeopt.live_cluster import Engine
from placeopt.model import (
    Demand,
    Domain,
    Group,
    Job,
    LabelExpression,
    NodeConditions,
    Plan,
    Policy,
    Split,
    Spread,
    Taint,
    Toleration,
    Weights,
)

Network = list[Any]
Places = Mapping[str, int]
"""Path -> workers."""


@dataclass(frozen=True)
class Host:
    """A node: what it has, what another job holds of it, and further fields of `Node`."""

    gpus: int = 0
    cores: int = 64_000
    memory: int = 65_536
    slots: int = 100
    held: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """A situation, and the workers of each group where Kueue places them; None: it places nothing."""

    name: str
    network: Network
    groups: tuple[Group, ...]
    found: Mapping[str, Places] | None
    levels: tuple[str, ...]
    splits: tuple[Split, ...]
    prefer: tuple[str, ...]
    runs: Mapping[str, Places]
    conditions: Mapping[str, Any]

    @property
    def hosts(self) -> dict[str, Host]:
        """Nodes by path."""
        return dict(_hosts(self.network, ()))


def _hosts(part: Network | Host | int, path: tuple[int, ...]) -> Iterator[tuple[str, Host]]:
    if isinstance(part, list):
        for i, below in enumerate(part):
            yield from _hosts(below, (*path, i))
    else:
        yield "/".join(map(str, path)), part if isinstance(part, Host) else Host(gpus=part)


def row(
    name: str,
    network: Network,
    asked: Group | tuple[Group, ...],
    found: Mapping[str, Any] | None,
    *,
    levels: tuple[str, ...] = ("zone", "rack"),
    together: str | None = None,
    prefer: tuple[str, ...] = (),
    runs: Mapping[str, Any] | None = None,
    **conditions: Any,
) -> Row:
    """``together``, ``prefer``: of all groups. The places of a single group are given without its name."""
    groups = asked if isinstance(asked, tuple) else (asked,)
    by_group = [{groups[0].id: one} if one and len(groups) == 1 else one for one in (found, runs)]
    return Row(name, network, groups, by_group[0], levels, in_one(together), prefer, by_group[1] or {}, conditions)


def in_one(level: str | None) -> tuple[Split, ...]:
    """Return the split that keeps workers in one domain of a level."""
    return () if level is None else (Split(level=level, domains=1),)


def work(
    workers: int,
    gpus: int = 1,
    *,
    name: str = "work",
    slices: Mapping[str, int] | None = None,
    together: str | None = None,
    prefer: tuple[str, ...] = (),
    **demand: Any,
) -> Group:
    """Return alike workers; ``slices``: level -> number of workers that share a domain of it."""
    spread = tuple(Spread(level=level, segment=size) for level, size in (slices or {}).items())
    each = Demand(gpus=gpus, **demand)
    return Group(id=name, workers=workers, demand=each, spread=spread, splits=in_one(together), prefer=prefer)


def lead(gpus: int = 1, **demand: Any) -> Group:
    """Return the one worker that leads."""
    return work(1, gpus, name="lead", **demand)


def cpu(workers: int, cores: int, **options: Any) -> Group:
    """Return alike workers without GPUs."""
    return work(workers, 0, cpu_millicores=cores, **options)


def job_of(row: Row, *, tree: bool) -> Job:
    """Return the job that is asked for; ``tree``: groups below its option even where one says it all."""
    if tree or len(row.groups) > 1 or row.runs:
        return build.job("asked", groups=row.groups, splits=row.splits, prefer=row.prefer, **row.conditions)
    only = {name: getattr(row.groups[0], name) for name in ("workers", "demand", "spread")}
    splits = row.splits + row.groups[0].splits
    return build.job("asked", **only, splits=splits, prefer=row.prefer + row.groups[0].prefer, **row.conditions)


def round_of(row: Row, job: Job) -> Instance:
    """Return the round: the job waits or runs in part, and other jobs hold what they hold."""
    hosts = row.hosts
    above = sorted({path[:cut] for path in (tuple(path.split("/")) for path in hosts) for cut in range(1, len(path))})
    domains = [
        Domain(id=_name(path), level=row.levels[len(path) - 1], parent=_name(path[:-1]) if len(path) > 1 else None)
        for path in sorted(above, key=len)
    ]
    machines, nodes, others = {}, [], []
    for path, host in hosts.items():
        kind = f"m-{host.gpus}-{host.cores}-{host.memory}-{host.slots}"
        has = {"cpu_millicores": host.cores, "memory_mib": host.memory, "resources": {"slots": host.slots}}
        machines[kind] = build.machine(kind, gpus=host.gpus, **has)
        parent = tuple(path.split("/"))[:-1]
        nodes.append(build.node(path, kind, domain=_name(parent) if parent else None, **host.fields))
        if host.held:
            others.append(build.job(f"other-{path}", demand=Demand(**{"gpus": 0, **host.held})))
    running = [build.running(other, [(other.id[6:], range(other.options[0].demand.gpus))]) for other in others]
    if row.runs:
        running.append(build.running(job, _where(row, job, row.runs)))
    policy = Policy(weights=Weights(communication=0, interference=0, fragmentation=0))
    jobs = [*others, job]
    return build.instance(nodes, jobs, machines=machines.values(), domains=domains, running=running, policy=policy)


def _name(path: tuple[str, ...]) -> str:
    return "/".join(path)


def _where(row: Row, job: Job, places: Mapping[str, Places]) -> build.Where:
    """Return the node and GPUs of each worker, those that run already first in their group."""
    free = {path: list(range(host.held.get("gpus", 0), host.gpus)) for path, host in row.hosts.items()}
    cores = {path: host.cores - host.held.get("cpu_millicores", 0) for path, host in row.hosts.items()}
    memory = {path: host.memory - host.held.get("memory_mib", 0) for path, host in row.hosts.items()}
    workers: dict[str, list[Any]] = {group.id: [] for group in row.groups}
    more = {name: Counter(dict(at)) - Counter(dict(row.runs.get(name, {}))) for name, at in places.items()}
    for part in (row.runs, more):
        for group in row.groups:
            need = group.demand
            for at in (at for at, count in part.get(group.id, {}).items() for _ in range(count)):
                node = next(
                    path
                    for path in free
                    if f"{path}/".startswith(f"{at}/")
                    and len(free[path]) >= need.gpus
                    and cores[path] >= need.cpu_millicores
                    and memory[path] >= need.memory_mib
                )
                gpus = [free[node].pop(0) for _ in range(need.gpus)]
                cores[node] -= need.cpu_millicores
                memory[node] -= need.memory_mib
                workers[group.id].append((node, gpus, group.id))
    every = [worker for group in row.groups for worker in workers[group.id]]
    return every if job.options[0].groups else [(node, gpus) for node, gpus, _ in every]


def preferred(row: Row, places: Mapping[str, Places]) -> int:
    """Return what the preferences cost at places of Kueue: the levels that are tried before one domain holds all."""
    groups = [(row.prefer, [at for where in places.values() for at in where])]
    groups += [(group.prefer, list(places.get(group.id, ()))) for group in row.groups]
    total = 0
    for levels, paths in groups:
        depth = {level: i + 1 for i, level in enumerate(row.levels)} | {"node": len(row.levels) + 1}
        shared = [len({tuple(path.split("/"))[: depth[level]] for path in paths}) == 1 for level in levels]
        total += shared.index(True) if True in shared else len(levels)
    return total


SMALL: Network = [[[1], [1, 1, 1]], [[1], [2]]]
WIDE: Network = [[[4, 1, 1]], [[2, 1]]]
PAIRS: Network = [[[1, 1], [1, 1]], [[1, 1], [1, 1]]]
TENS: Network = [[[Host(10)], [Host(10)] * 3], [[Host(10)], [Host(20)]]]
UNEVEN: Network = [[[Host(cores=2800, held={"cpu_millicores": 2500}), Host(cores=2800)], [Host(cores=6000)]]]
FULL = Host(1, held={"gpus": 1})
BUSY = Host(cores=1000, held={"cpu_millicores": 600})
TAINTED = Host(1, fields={"taints": (Taint(key="gpu", value="yes"),), "labels": {"pool": "a"}})
DRAINED = {"drained": True}
SLOT = {"resources": {"slots": 1}}
IN_RACK, IN_ZONE, ON_NODE = ({"prefer": levels} for levels in (("rack", "zone"), ("zone",), ("node", "rack", "zone")))
FLAT = {"levels": ()}
IN_B = NodeConditions(node_selector={"pool": "b"})
RACKS = {"levels": ("rack",)}
HALLS = {"levels": ("zone", "hall", "rack"), "prefer": ("hall", "zone")}
HALL = [[[[18], [8]], [[15], [9, 7]]]]
C1 = {"cpu_millicores": 1000}
SWITCHED = {f"0/{path}": 2 for path in ("0/0/0", "0/0/1", "0/1/1", "1/0/0", "1/0/1", "1/1/0", "1/1/1")}
TEAM = (lead(0, **C1), work(4, 1, **C1))


def zones(*hosts: Host) -> Network:
    """Return zones of one rack with one node each."""
    return [[[host]] for host in hosts]


def pool(value: str) -> dict[str, Any]:
    """Return the labels of a pool of nodes."""
    return {"labels": {"pool": value}}


def chosen(value: str) -> tuple[tuple[LabelExpression, ...], ...]:
    """Return the condition that a node is of a pool."""
    return ((LabelExpression(key="pool", operator="In", values=(value,)),),)


# fmt: off
ROWS = [
    # one group, at a level that it must or should not leave
    row("fewest racks before fewest nodes", [[[2], [2], [1] * 4]], work(4), {"0/2": 4}, together="zone"),
    row("one node that holds all", [[[2, 1, 1]]], work(2), {"0/0/0": 2}, together="zone"),
    row("anywhere, though one rack would do", WIDE, work(6), {"0/0": 3, "1/0/0": 2, "1/0/1": 1}),
    row("anywhere, one worker", SMALL, work(1), {"0/0/0": 1}),
    row("a worker a node in one zone", PAIRS, work(4), {"0": 4}, together="zone"),
    row("one worker on one node", SMALL, work(1), {"0/0/0": 1}, together="node"),
    row("one worker in one rack", SMALL, work(1), {"0/0": 1}, together="rack"),
    row("a rack filled", SMALL, work(3), {"0/1": 3}, together="rack"),
    row("the rack with least to spare", SMALL, work(2), {"1/1": 2}, together="rack"),
    row("no rack has four", SMALL, work(4), None, together="rack"),
    row("one worker in one zone", SMALL, work(1), {"1/0": 1}, together="zone"),
    row("a zone filled over two racks", SMALL, work(4), {"0/0": 1, "0/1": 3}, together="zone"),
    row("a worker larger than each node", SMALL, work(1, 4), None, together="zone"),
    row("no zone has five", SMALL, work(5), None, together="zone"),
    row("memory alone", [[[Host(memory=1024)], [Host(memory=1024)] * 3]], work(4, 0, memory_mib=256), {"0/0": 4},
        together="rack"),
    row("two of three zones", [[2], [1], [4]], work(5), {"1": 1, "2": 4}, levels=("zone",), **IN_ZONE),
    row("a zone where no rack will do", SMALL, work(4), {"0/0": 1, "0/1": 3}, **IN_RACK),
    row("zones where no rack will do", SMALL, work(6), {"0/0": 1, "0/1": 3, "1/1": 2}, **IN_RACK),
    row("zones where no zone will do", SMALL, work(6), {"0/0": 1, "0/1": 3, "1/1": 2}, **IN_ZONE),
    row("more than there is", SMALL, work(10), None, **IN_ZONE),
    row("two alike nodes", [[[1, 1]]], work(1), {"0/0/0": 1}, together="node"),
    # nodes that do not do, or are in use
    row("no node of the pool", [Host(1, fields=pool("a"))], work(1), None, **FLAT, node_affinity=chosen("b")),
    row("a node of the pool", [Host(1, fields=pool("a"))], work(1), {"0": 1}, **FLAT, node_affinity=chosen("a")),
    row("a node without a label of the topology", [[[1]]], work(1), None, together="rack",
        node_affinity=((LabelExpression(key="host", operator="Exists"),),)),
    row("a node in use", [BUSY], cpu(1, 600), None, **FLAT),
    row("a node in use, another free", [BUSY, Host(cores=1000)], cpu(1, 600), {"1": 1}, together="node", **FLAT),
    row("a node in use in full", [Host(cores=1000, slots=1, held={"cpu_millicores": 1000, **SLOT})],
        cpu(1, 100, **SLOT), None, **FLAT),
    row("nine slots of eight", [Host(slots=10, held={"resources": {"slots": 2}})], work(9, 0, **SLOT), None,
        together="node", **FLAT),
    row("no slot left", [Host(cores=1000, slots=1, held={"cpu_millicores": 300, **SLOT})], cpu(1, 300, **SLOT), None,
        **FLAT),
    row("a slot for one of two groups", [Host(cores=2000, slots=1)],
        (cpu(1, 1000, name="one", **SLOT), cpu(1, 1000, name="two", **SLOT)), None, **FLAT),
    row("a node that takes no work", [Host(1, fields=DRAINED)], work(1), None, together="node", **FLAT),
    row("a taint", [TAINTED], work(1), None, **FLAT),
    row("a taint that is tolerated", [TAINTED], work(1), {"0": 1}, **FLAT,
        tolerations=(Toleration(key="gpu", value="yes"),)),
    row("each node for a reason of its own",
        [TAINTED, Host(1, fields=pool("b")), Host(2, fields=pool("b")), Host(0, fields=pool("a"))], work(1), None,
        **FLAT, node_affinity=chosen("a")),
    row("short of two amounts", [Host(cores=500)], work(1, 1, cpu_millicores=1000), None, **FLAT),
    row("a label that no node has", [Host(1)], work(1), None, **FLAT, node_affinity=chosen("a")),
    row("a label with another value", [Host(1, fields=pool("b"))], work(1), None, **FLAT, node_affinity=chosen("a")),
    row("the node with the label", [Host(1, fields=pool("b")), Host(1, fields=pool("a"))], work(1), {"1": 1}, **FLAT,
        together="node", node_affinity=chosen("a")),
    row("a node in use by another flavour", [[FULL, Host(1)]], work(1), {"0/1": 1}, levels=("zone",), together="node"),
    row("two racks in use", [[[FULL], [FULL]], [[1], [1]]], work(1), {"1/0": 1}, together="rack"),
    # slices
    row("pairs on nodes", [[[3, 3, 3]]], work(6, slices={"node": 2}), {"0/0/0": 2, "0/0/1": 2, "0/0/2": 2},
        together="zone"),
    row("pairs where most fit", [[[6, 5, 4, 2]]], work(12, slices={"node": 2}), {"0/0/0": 6, "0/0/2": 4, "0/0/3": 2},
        together="zone"),
    row("pairs with none to spare", [[[3, 2, 2]]], work(4, slices={"node": 2}), {"0/0/1": 2, "0/0/2": 2},
        together="zone"),
    row("pairs in racks", [[[1, 1], [1, 1, 1]], [[1, 1]]], work(4, slices={"rack": 2}), {"0/0": 2, "0/1": 2},
        together="zone"),
    row("pairs in racks of two zones", SMALL, work(4, slices={"rack": 2}), {"0/1": 2, "1/1": 2}, **IN_ZONE),
    row("the last pair where it fits best", [[[4, 3, 2]]], work(6, slices={"node": 2}), {"0/0/0": 4, "0/0/2": 2},
        together="zone"),
    row("threes on nodes of two zones", [[[3, 3, 3]], [[6]]], work(12, slices={"node": 3}),
        {"0/0/0": 3, "0/0/1": 3, "1/0/0": 6}, **IN_ZONE),
    row("threes in racks of two", [[[2], [2], [2]]], work(6, slices={"rack": 3}), None, together="zone"),
    row("room for one of two slices", [[[3], [1], [1], [1]]], work(6, slices={"rack": 3}), None, together="zone"),
    row("slices fit one zone, workers both", [[[2], [2], [2]], [[3], [3]]], work(6, slices={"rack": 3}),
        {"1/0": 3, "1/1": 3}, together="zone"),
    row("pairs on nodes anywhere in a rack", [[[3, 3, 3]]], work(6, slices={"node": 2}),
        {"0/0/0": 2, "0/0/1": 2, "0/0/2": 2}),
    row("pairs on nodes anywhere", WIDE, work(6, slices={"node": 2}), {"0/0/0": 4, "1/0/0": 2}),
    row("pairs in racks anywhere", SMALL, work(4, slices={"rack": 2}), {"0/1": 2, "1/1": 2}),
    # slices in slices
    row("fours in racks of pairs on nodes", [[[1, 4], [3, 4]]], work(8, slices={"rack": 4, "node": 2}),
        {"0/0/1": 4, "0/1/0": 2, "0/1/1": 2}, together="zone"),
    row("fours in racks alone", [[[1, 4], [3, 4]]], work(8, slices={"rack": 4}),
        {"0/0/0": 1, "0/0/1": 3, "0/1/0": 3, "0/1/1": 1}, together="zone"),
    row("racks of eighteen nodes", [[[[[2] * 18] * 2] * 2] * 2], work(96, 2, slices={"zone": 48, "rack": 16}),
        {"0/0/0/0": 16, "0/0/0/1": 16, "0/0/1/0": 16, "0/1/0/0": 16, "0/1/0/1": 16, "0/1/1/0": 16},
        levels=("site", "zone", "hall", "rack"), together="site"),
    row("pairs leave too little of a rack", [[[3, 3, 0]]], work(6, slices={"rack": 6, "node": 2}), None,
        together="zone"),
    row("a small node leaves too little of a rack", [[[7, 4], [7, 3]]], work(16, slices={"rack": 8, "node": 4}), None,
        together="zone"),
    row("pairs enough, sixes none", [[[4], [4], [4]]], work(12, slices={"rack": 6, "node": 2}), None, together="zone"),
    row("three levels of slices", [[[[4, 4], [4, 4]], [[4, 4], [1, 1]]]],
        work(24, slices={"zone": 12, "rack": 6, "node": 3}), None, levels=("site", "zone", "rack"), together="site"),
    # balanced
    row("two racks, evenly", [[[15], [15]]], work(25), {"0/0": 13, "0/1": 12}, **IN_RACK),
    row("two of three nodes, evenly", [[[15, 13, 10]]], work(23), {"0/0/0": 12, "0/0/1": 11}, **IN_RACK),
    row("fives on two of three nodes", [[[20, 15, 10]]], work(25, slices={"node": 5}), {"0/0/1": 15, "0/0/2": 10},
        **IN_RACK),
    row("the zone that is even", [[[20, 10]], [[15, 15]]], work(22), {"1/0/0": 11, "1/0/1": 11}, **IN_RACK),
    row("one zone, not the largest nodes of both", [[[14, 11]], [[15, 10]]], work(25), {"0/0/0": 14, "0/0/1": 11},
        **IN_RACK),
    row("fives in the rack that holds all", [[[15], [15], [15, 15]]], work(25, slices={"node": 5}),
        {"0/2/0": 15, "0/2/1": 10}, **IN_RACK),
    row("pairs on nodes of a hall", HALL, work(20, slices={"node": 2}), {"0/1/0/0": 10, "0/1/1/0": 8, "0/1/1/1": 2},
        **HALLS),
    row("pairs in racks of a hall", HALL, work(20, slices={"rack": 2}), {"0/1/0/0": 10, "0/1/1/0": 3, "0/1/1/1": 7},
        **HALLS),
    row("pairs in two racks of a hall", [[[[18], [8]], [[15], [15]]]], work(20, slices={"rack": 2}),
        {"0/1/0": 10, "0/1/1": 10}, **HALLS),
    row("pairs on nodes, one at best", [[[15, 13, 10], [20, 8]]], work(22, slices={"node": 2}),
        {"0/0/1": 12, "0/0/2": 10}, **ON_NODE),
    row("two nodes of the second rack", [[[20, 8], [15, 13, 10]]], work(22), {"0/1/0": 11, "0/1/1": 11}, **ON_NODE),
    row("three even nodes of five", [[[10, 5], [5, 5, 5]]], work(15), {"0/1/0": 5, "0/1/1": 5, "0/1/2": 5}, **IN_RACK),
    row("three even nodes of the first rack", [[[8, 8, 8], [16, 8]]], work(24), {"0/0/0": 8, "0/0/1": 8, "0/0/2": 8},
        **IN_RACK),
    row("nodes of two racks", [[21, 9], [11, 10, 10]], work(23), {"0/0": 12, "1/0": 11}, **RACKS, prefer=("rack",)),
    row("four even nodes of one zone", [[[5, 5], [5, 5]], [[10, 4, 4, 4], [5], [5]]], work(20), {"0": 20}, **IN_RACK),
    # a leader and workers, in one domain
    row("a leader beside fives", [[[20, 15, 12]]], (lead(), work(25, slices={"node": 5})),
        {"lead": {"0/0/2": 1}, "work": {"0/0/1": 15, "0/0/2": 10}}, **IN_RACK),
    row("a leader fills a node", [[[6, 5]]], (lead(), work(10)),
        {"lead": {"0/0/0": 1}, "work": {"0/0/0": 5, "0/0/1": 5}}, **IN_RACK),
    row("a leader leaves one GPU", [[[7, 5]]], (lead(), work(10)),
        {"lead": {"0/0/0": 1}, "work": {"0/0/0": 5, "0/0/1": 5}}, **IN_RACK),
    row("a leader of five", [[[3], [3], [8]], [[11]]], (lead(5), work(7)),
        {"lead": {"0/2/0": 1}, "work": {"0/0/0": 3, "0/1/0": 1, "0/2/0": 3}}, **IN_ZONE),
    row("the zone with room for all", zones(Host(2, 2000), Host(4, 5000), Host(2, 2000)), TEAM,
        {"lead": {"1": 1}, "work": {"1": 4}}, together="zone"),
    row("a leader where workers lose least", [[2, 4, 3]], (lead(), work(4, 2)),
        {"lead": {"0/2": 1}, "work": {"0/0": 1, "0/1": 2, "0/2": 1}}, **RACKS, together="rack"),
    row("a leader where pairs lose least", [[2, 4, 3]], (lead(), work(8, slices={"node": 2})),
        {"lead": {"0/2": 1}, "work": {"0/0": 2, "0/1": 4, "0/2": 2}}, **RACKS, together="rack"),
    row("a leader on the smaller node", [8, 3], (lead(), work(5, 2)), {"lead": {"1": 1}, "work": {"0": 4, "1": 1}},
        **FLAT, prefer=("node",)),
    row("a leader of cores beside a worker of GPUs", [Host(0, 1000), Host(1, 0)], (lead(0, **C1), work(1)),
        {"lead": {"0": 1}, "work": {"1": 1}}, **FLAT),
    row("both in a rack of slices", [[Host(0, 1000), Host(1, 0)]], (lead(0, **C1), work(1, slices={"rack": 1})),
        {"lead": {"0/0": 1}, "work": {"0/1": 1}}, **RACKS, together="rack"),
    row("workers of two GPUs", zones(Host(2, 2000), Host(8, 8000), Host(2, 2000)), (lead(0, **C1), work(4, 2, **C1)),
        {"lead": {"1": 1}, "work": {"1": 4}}, together="zone"),
    row("workers would fit the small rack alone", UNEVEN, (cpu(1, 2500, name="lead"), cpu(1, 2500)),
        {"lead": {"0/1/0": 1}, "work": {"0/1/0": 1}}, together="rack"),
    row("small workers would fit the small rack alone", UNEVEN, (cpu(1, 2500, name="lead"), cpu(2, 500)),
        {"lead": {"0/1/0": 1}, "work": {"0/1/0": 2}}, together="rack"),
    row("both fit the small rack", UNEVEN, (cpu(1, 1000, name="lead"), cpu(1, 1000)),
        {"lead": {"0/0/1": 1}, "work": {"0/0/1": 1}}, together="rack"),
    row("workers fit, their leader does not", zones(Host(0, 1000), Host(4, 4000)), TEAM, None, together="zone"),
    row("a leader that no node holds", zones(Host(4, 4000), Host(4, 4000)),
        (lead(0, cpu_millicores=10_000), work(4, 1, **C1)), None, together="zone"),
    row("the zone with room to spare", zones(Host(8, 11_000), Host(4, 4000)), TEAM,
        {"lead": {"0": 1}, "work": {"0": 4}}, together="zone"),
    row("pairs over nodes, with a leader", [[[Host(gpus, 20_000) for gpus in (4, 2, 2, 2)]]],
        (lead(0, **C1), work(6, slices={"node": 2}, **C1)), {"lead": {"0/0/0": 1}, "work": {"0/0/0": 4, "0/0/1": 2}},
        **IN_ZONE),
    row("a leader as large as a node", [[[Host(1, 2000)] * 3], [[Host(1, 1000)], [Host(1, 2000)], [Host(1, 2000)]]],
        (lead(0, cpu_millicores=2000), work(2, 1, **C1)), {"lead": {"0/0/2": 1}, "work": {"0/0/0": 1, "0/0/1": 1}},
        together="zone"),
    row("a leader like its workers", PAIRS, (lead(), work(2)),
        {"lead": {"0/0/0": 1}, "work": {"0/0/1": 1, "0/1/0": 1}}, together="zone"),
    row("the smaller zone that holds all", zones(Host(10), Host(6)), (lead(), work(5, slices={"rack": 1})),
        {"lead": {"1": 1}, "work": {"1": 5}}, together="zone"),
    row("a leader in another zone", [[Host(8, 8000, 32_768)] * 2, [Host(0, 32_000, 131_072)]],
        (lead(0, cpu_millicores=16_000, memory_mib=65_536), work(2, 8, cpu_millicores=4000, memory_mib=32_768)),
        {"lead": {"1/0": 1}, "work": {"0/0": 1, "0/1": 1}}, levels=("zone",), **IN_ZONE),
    # groups of one job, each in a domain of its own
    row("two groups that share a zone", [[2], [2], [2]],
        (work(3, name="one", prefer=("zone",)), work(3, name="two", prefer=("zone",))),
        {"one": {"0": 2, "1": 1}, "two": {"1": 1, "2": 2}}, levels=("zone",)),
    row("two groups of unlike demands", TENS,
        (work(2, name="one", together="rack"), work(1, 0, memory_mib=256, name="two", together="rack")),
        {"one": {"0/0": 2}, "two": {"0/0": 1}}),
    row("a group in a zone and one anywhere", TENS, (work(8, name="one", together="zone"), work(2, name="two")),
        {"one": {"1/0": 8}, "two": {"1/0": 2}}),
    row("two groups, one of which chooses a pool", [[Host(2, fields=pool("a"))], [Host(2, fields=pool("b"))]],
        (work(1, name="one"), work(2, name="two").model_copy(update={"conditions": IN_B})),
        {"one": {"0": 1}, "two": {"1": 2}}, levels=("zone",)),
    # what Kueue adds to this by preferred labels is no part of the round
    row("the pool besides the preferred label",
        [[Host(1, fields=pool("a"))], [Host(1, fields=pool("a"))], [Host(1, fields=pool("b"))]], work(1), {"0": 1},
        **RACKS, prefer=("rack",), node_affinity=chosen("a")),
    row("the preferred node, not the best fit", [8, 2], work(1), {"1": 1}, **FLAT, prefer=("node",)),
    row("the preferred rack is too small", [[2], [4, 4]], work(4), {"1/0": 4}, **RACKS, together="rack"),
    row("over two switches for a preferred one", [[[2], [4]]], work(4), {"0/0": 2, "0/1": 2}, levels=("rack", "leaf"),
        prefer=("leaf", "rack")),
    row("preferred nodes first", [2, 1, 2, 1], work(5), {"0": 2, "1": 1, "2": 2}, **FLAT, prefer=("node",)),
    row("preferred nodes first, then small ones", [2, 1, 2, 1, 1], work(5), {"0": 2, "1": 1, "3": 1, "4": 1}, **FLAT),
    row("pairs on preferred nodes first", [2, 1, 2, 2, 1], work(4, slices={"node": 2}), {"0": 2, "2": 2}, **FLAT,
        prefer=("node",)),
    # it runs in part
    row("two more", [2, 2, 2], work(4), {"0": 2, "1": 2}, **FLAT, runs={"0": 2}),
    row("two more, elsewhere", [2, 2, 2], work(4), {"0": 1, "1": 1, "2": 2}, **FLAT, runs={"0": 1, "1": 1}),
    row("as many as run", [4, 4], work(3), {"0": 2, "1": 1}, **FLAT, runs={"0": 2, "1": 1}),
    row("as many as run, with a leader", [4, 4], (lead(), work(3)), {"lead": {"1": 1}, "work": {"0": 2, "1": 1}},
        **FLAT, runs={"lead": {"1": 1}, "work": {"0": 2, "1": 1}}),
    row("two more, with a leader", [2, 1, 2], (lead(), work(4)), {"lead": {"1": 1}, "work": {"0": 2, "2": 2}}, **FLAT,
        runs={"lead": {"1": 1}, "work": {"0": 2}}),
    row("all anew, as the leader's node is gone", [2, 3, 3], (lead(), work(4)),
        {"lead": {"0": 1}, "work": {"0": 1, "1": 3}}, **FLAT),
    row("it stays on a node that takes no work", [Host(1, fields=DRAINED), 1], work(1), {"0": 1}, **FLAT,
        together="node", runs={"0": 1}),
    row("it starts on another node", [Host(1, fields=DRAINED), 1], work(1), {"1": 1}, **FLAT, together="node"),
    row("its rack is full", [[[Host(1, fields=DRAINED), 1], [1]]], work(2), None, together="rack", runs={"0/0/1": 1}),
    row("the rack of the broken slice", [[[2, 2], [Host(1, fields=DRAINED), 2, 2]]], work(4, slices={"rack": 2}),
        {"0/0/0": 1, "0/0/1": 1, "0/1/1": 2}, together="zone", runs={"0/0/0": 1, "0/0/1": 1, "0/1/1": 1}),
    row("the rack of the broken slice is full", [[[2, 2], [Host(1, fields=DRAINED), 1]]], work(4, slices={"rack": 2}),
        None, together="zone", runs={"0/0/0": 1, "0/0/1": 1, "0/1/1": 1}),
    row("another job fills the rack of the broken slice",
        [[[2, 2], [Host(1, fields=DRAINED), Host(2, held={"gpus": 1})]]], work(4, slices={"rack": 2}), None,
        together="zone", runs={"0/0/0": 1, "0/0/1": 1, "0/1/1": 1}),
    row("the switch of the broken slice", [[[[6, 6], [Host(6, fields=DRAINED), 10]], [[6, 6], [6, 6]]]],
        work(16, slices={"rack": 8, "leaf": 4, "node": 2}), SWITCHED | {"0/0/1/1": 4},
        levels=("zone", "rack", "leaf"), together="zone", runs=SWITCHED),
    row("no node for the broken pair", [[[4, 4], [Host(4, fields=DRAINED), 3, 1]]],
        work(8, slices={"rack": 4, "node": 2}), None, together="zone", runs={"0/0/0": 2, "0/0/1": 2, "0/1/1": 2}),
]
# fmt: on

BEYOND = [
    row("slices of a level above the required one", SMALL, work(1, slices={"zone": 1}), {"0/0/0": 1}, together="node"),
]
"""Where Kueue finds none, and one is proven here; why stands in ``tests/reports/README.md``."""


def forms(rows: list[Row]) -> list[Any]:
    """Return rows as parameters: a single group as the job's option, and as a tree of one group."""
    return [
        pytest.param(one, tree, id=one.name + (", as a tree" if tree and len(one.groups) == 1 else ""))
        for one in rows
        for tree in ([True] if len(one.groups) > 1 or one.runs else [False, True])
    ]


@pytest.mark.parametrize(("row", "tree"), forms([one for one in ROWS + BEYOND if one.found is not None]))
def test_what_kueue_finds_is_lawful(engine: Engine, row: Row, tree: bool) -> None:
    """Its places pass the referee; the job is placed, and no farther down its preferred levels."""
    job = job_of(row, tree=tree)
    round_ = round_of(row, job)
    held = build.placement(job, _where(row, job, row.found))
    assert violations(round_, plan_for(round_, {"asked": held})) == []
    plan = engine.solve(round_, method="counts", time_limit_s=20)
    assert (plan.status, workers_in(plan)) == ("optimal", job.options[0].most_workers)
    assert sum(cost.raw for cost in plan.costs.values()) <= preferred(row, row.found)


@pytest.mark.parametrize(("row", "tree"), forms([one for one in ROWS if one.found is None]))
def test_where_kueue_finds_none_there_is_none(engine: Engine, row: Row, tree: bool) -> None:
    """No worker starts, and that is proven, also where it is explained: each rule in words."""
    job = job_of(row, tree=tree)
    round_ = round_of(row, job)
    plan = engine.solve(round_, method="counts", time_limit_s=20)
    assert (plan.status, workers_in(plan)) == ("optimal", sum(sum(at.values()) for at in row.runs.values()))
    found = explain(round_, plan, "asked", isolation="thread")
    assert (found.reason, found.proven, "" in [one.asks for one in found.conflict]) == ("conflict", True, False)


def workers_in(plan: Plan) -> int:
    """Return the workers of the job that run."""
    return sum(len(at.workers) for held in plan.placements if held.job == "asked" for at in held.assignments)


def test_slices_without_a_size_or_a_level_are_refused() -> None:
    """As by Kueue, with the field and what was expected."""
    with pytest.raises(ValueError, match="states none of 'segment'"):
        Spread(level="node")
    with pytest.raises(ValueError, match="level: no level 'shelf'"):
        build.instance(2, [build.job("asked", spread=(Spread(level="shelf", segment=1),))])
