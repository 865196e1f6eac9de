"""Random machines, domains and nodes of a small round."""

from __future__ import annotations

from typing import Any

from helpers.small_rounds.dice import Dice
from placeopt.model import Domain, Gpu, Link, Machine, Node, Part

GPU_MODELS = ("A", "B")


def random_machine(dice: Dice, name: str) -> Machine:
    """Draw a machine type: CPU, memory, bandwidths that may be unstated, GPUs."""
    gpus, parts, links, matrix = _random_gpus(dice)
    return Machine(
        id=name,
        cpu_millicores=dice.number(4000, 16000, 2000),
        memory_mib=dice.number(16_000, 64_000, 8000),
        memory_bandwidth_mbps=dice.maybe(0.4, dice.number(1000, 8000, 500)),
        pcie_bandwidth_mbps=dice.maybe(0.4, dice.number(1000, 8000, 500)),
        network_bandwidth_mbps=dice.maybe(0.5, dice.number(400, 4000, 200)),
        parts=parts,
        gpus=gpus,
        links=links,
        gpu_distance_matrix=matrix,
        uplink_weight=dice.maybe(0.3, dice.number(0, 50)),
    )


def _random_gpus(dice: Dice) -> tuple[tuple[Gpu, ...], tuple[Part, ...], tuple[Link, ...], Any]:
    """GPUs and how they hang together: flat, sockets, switches, a ring of links, stated matrices, unequal roots."""
    count = dice.pick((0, 1, 2, 2, 2, 3, 3, 4, 4, 4))
    shape = dice.pick(("flat", "sockets", "switches", "ring", "levels", "matrix", "unequal"))
    parts: tuple[Part, ...] = ()
    place: list[str | None] = [None] * count
    links: tuple[Link, ...] = ()
    matrix = None
    if shape in ("sockets", "ring", "levels"):
        parts = tuple(
            Part(id=f"s{i}", level="socket", uplink_weight=dice.maybe(0.3, dice.number(0, 30))) for i in (0, 1)
        )
        if dice.chance(0.7) and parts[0].uplink_weight != parts[1].uplink_weight:
            parts = (parts[0], parts[1].model_copy(update={"uplink_weight": parts[0].uplink_weight}))
        place = [f"s{gpu * 2 // count}" for gpu in range(count)]
    if shape == "switches":
        parts = (
            Part(id="s0", level="socket"),
            Part(id="w0", level="switch", parent="s0"),
            Part(id="w1", level="switch", parent="s0"),
        )
        place = [f"w{gpu * 2 // count}" for gpu in range(count)]
    if shape == "unequal":
        parts = (Part(id="s0", level="socket"),)
        place = ["s0" if gpu else None for gpu in range(count)]
    if shape == "ring":
        links = tuple(Link(gpus=(gpu, (gpu + 1) % count)) for gpu in range(count if count > 2 else count - 1))
    if shape == "levels":
        matrix = tuple(
            tuple(0 if a == b else 1 if place[a] == place[b] else 20 for b in range(count)) for a in range(count)
        )
    if shape == "matrix":
        upper = {(a, b): dice.number(0, 9) for b in range(count) for a in range(b)}
        matrix = tuple(tuple(0 if a == b else upper[min(a, b), max(a, b)] for b in range(count)) for a in range(count))
    mixed, memory = dice.chance(0.3), dice.pick((8000, 16_000))
    model = dice.pick(GPU_MODELS)
    gpus = tuple(
        Gpu(
            model=dice.pick(GPU_MODELS) if mixed else model,
            memory_mib=dice.pick((0, 8000, 16_000)) if mixed else memory,
            part=at,
        )
        for at in place
    )
    return gpus, parts, links, matrix


def random_domains(dice: Dice) -> tuple[Domain, ...]:
    """Draw no domains, two racks, or a zone of two racks beside a third."""

    def domain(name: str, level: str, parent: str | None = None) -> Domain:
        return Domain(
            id=name,
            level=level,
            parent=parent,
            uplink_weight=dice.maybe(0.5, dice.number(0, 60)),
            uplink_mbps=dice.maybe(0.5, dice.number(400, 4000, 200)),
        )

    kind = dice.pick(("none", "racks", "racks", "zones"))
    if kind == "none":
        return ()
    if kind == "racks":
        return domain("r0", "rack"), domain("r1", "rack")
    return domain("z0", "zone"), domain("r0", "rack", "z0"), domain("r1", "rack", "z0"), domain("r2", "rack")


def random_node(dice: Dice, name: str, machines: list[Machine], domains: tuple[Domain, ...]) -> Node:
    """Draw a node: its machine type, its domain, a label."""
    return Node(
        id=name,
        machine=dice.pick(machines).id,
        domain=dice.pick([*(domain.id for domain in domains), None]) if domains else None,
        labels={"disk": dice.pick(("ssd", "tape"))} if dice.chance(0.5) else {},
    )
