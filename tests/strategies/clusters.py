"""Machine types, nodes and domains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from placeopt import build
from placeopt.model import Cluster, Domain, Gpu, Link, Machine, Part
from strategies.choice import Choice
from strategies.conditions import make_labels
from strategies.matrices import matrix

GPU_MODELS = ("A", "B")


RESOURCES = ("licence", "nic/port")


def make_machine(choice: Choice, id: str = "m", *, most_gpus: int = 4, resources: bool = False) -> Machine:  # noqa: A002
    """Machine types: CPU, memory, bandwidths that may be unstated, GPUs flat, in parts, linked or with distances."""
    count = min(most_gpus, choice.pick((1, 2, 2, 2, 3, 3, 4, 4, 4, 0)))
    shape = choice.pick(("flat", "sockets", "switches", "ring", "levels", "matrix", "unequal"))
    parts: list[Part] = []
    place: list[str | None] = [None] * count
    if shape in ("sockets", "ring", "levels"):
        weights = [choice.maybe(0.3, 0, 30) for _ in range(2)]
        weights[1] = weights[1] if choice.chance(0.3) else weights[0]
        parts = [Part(id=f"s{i}", level="socket", uplink_weight=weight) for i, weight in enumerate(weights)]
        place = [f"s{gpu * 2 // count}" for gpu in range(count)]
    elif shape == "switches":
        parts = [Part(id="s0", level="socket"), *(Part(id=w, level="switch", parent="s0") for w in ("w0", "w1"))]
        place = [f"w{gpu * 2 // count}" for gpu in range(count)]
    elif shape == "unequal":
        parts = [Part(id="s0", level="socket")]
        place = ["s0" if gpu else None for gpu in range(count)]
    ring = range(count if count > 2 else count - 1) if shape == "ring" else ()
    fields: dict[str, Any] = {}
    if shape == "levels":
        fields["gpu_distance_matrix"] = tuple(
            tuple(0 if a == b else 1 if place[a] == place[b] else 20 for b in range(count)) for a in range(count)
        )
    elif shape == "matrix":
        fields["gpu_distance_matrix"] = matrix(choice, count, 0, 9)
    if resources:
        fields["resources"] = {name: choice.pick((0, 1, 2, 2, 3, 5)) for name in RESOURCES if choice.chance(0.85)}
    mixed, memory, model = choice.chance(0.3), choice.pick((8000, 16_000)), choice.pick(GPU_MODELS)
    return build.machine(
        id,
        [
            Gpu(
                model=choice.pick(GPU_MODELS) if mixed else model,
                memory_mib=choice.pick((0, 8000, 16_000)) if mixed else memory,
                part=at,
            )
            for at in place
        ],
        cpu_millicores=choice.number(4000, 16_000, 2000),
        memory_mib=choice.number(16_000, 64_000, 8000),
        memory_bandwidth_mbps=choice.maybe(0.4, 1000, 8000, 500),
        pcie_bandwidth_mbps=choice.maybe(0.4, 1000, 8000, 500),
        network_bandwidth_mbps=choice.maybe(0.5, 400, 4000, 200),
        parts=tuple(parts),
        links=tuple(Link(gpus=(gpu, (gpu + 1) % count)) for gpu in ring),
        uplink_weight=choice.maybe(0.3, 0, 50),
        **fields,
    )


def make_wired_machine(choice: Choice, *, most_gpus: int = 6) -> Machine:
    """Machine types whose GPUs hang anywhere in an uneven tree of switches, with any number of direct links."""
    parts: list[Part] = []
    for p in range(choice.number(0, 5)):
        parent = choice.pick([None, *(part.id for part in parts)])
        parts.append(Part(id=f"p{p}", level="switch", parent=parent, uplink_weight=choice.maybe(0.5, 0, 30)))
    at = [None, *(part.id for part in parts)]
    gpus = [Gpu(model="x", part=choice.pick(at)) for _ in range(choice.number(1, most_gpus))]
    density = choice.pick((0.0, 0.1, 0.3, 1.0))
    links = tuple(
        Link(gpus=(a, b), weight=choice.number(0, 40))
        for a in range(len(gpus))
        for b in range(a)
        if choice.chance(density)
    )
    return build.machine(gpus=gpus, parts=tuple(parts), links=links)


def make_cluster(choice: Choice, *, resources: bool = False) -> Cluster:
    """At most 3 nodes of 2 machine types, in no domains, in two racks, or in a zone of two racks beside a third."""
    types = [make_machine(choice, f"m{i}", resources=resources) for i in range(choice.pick((1, 1, 2)))]

    def domain(name: str, level: str = "rack", parent: str | None = None) -> Domain:
        weight, mbps = choice.maybe(0.5, 0, 60), choice.maybe(0.5, 400, 4000, 200)
        return Domain(id=name, level=level, parent=parent, uplink_weight=weight, uplink_mbps=mbps)

    domains = choice.pick(
        (
            list,
            lambda: [domain("r0"), domain("r1")],
            lambda: [domain("r0"), domain("r1")],
            lambda: [domain("z0", "zone"), domain("r0", parent="z0"), domain("r1", parent="z0"), domain("r2")],
        )
    )()
    nodes = [
        build.node(
            f"n{i}",
            choice.pick(types).id,
            domain=choice.pick([*(domain.id for domain in domains), None]),
            labels=make_labels(choice),
        )
        for i in range(choice.pick((1, 2, 3)))
    ]
    return build.cluster(nodes, machines=types, domains=domains)


def make_tree(choice: Choice, *, machines: Sequence[Machine], most_nodes: int = 6) -> Cluster:
    """Nodes of the given machine types anywhere in domains of any depth and number."""
    domains: list[Domain] = []
    for d in range(choice.number(0, 7)):
        parent = choice.pick([None, *(domain.id for domain in domains)])
        domains.append(Domain(id=f"d{d}", level=f"l{d}", parent=parent, uplink_weight=choice.maybe(0.5, 0, 500)))
    at = [None, *(domain.id for domain in domains)]
    nodes = [
        build.node(f"n{n}", choice.pick(machines).id, domain=choice.pick(at))
        for n in range(choice.number(1, most_nodes))
    ]
    return build.cluster(nodes, machines=machines, domains=domains)
