"""Jobs of all kinds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from placeopt import build
from placeopt.model import Communication, Edge, Job, NodeConditions, Split
from strategies.choice import Choice
from strategies.clusters import GPU_MODELS, RESOURCES
from strategies.conditions import make_affinity, make_tolerations

PROFILES = ("p0", "p1", "p2")


MISSING = "dongle"
"""A named resource that jobs ask for now and then, and that no machine has."""


@dataclass
class Style:
    """
    Which kinds of demands the jobs of a round have at all, so that each rule also stands alone.

    Attributes
    ----------
    levels, queues, nodes
        What jobs may name: levels of the network, queues of the policy, nodes of the cluster.
    switches
        Name of a kind of demand -> whether jobs have it.
    elastic
        Probability that a gang is elastic.
    simple
        What fillings count in full: shares that divide a GPU, no traffic between ranks, hardly a gang over nodes.
    made
        Jobs drawn so far: where jobs are alike, one of them is drawn again with a field changed.
    demands
        Named resources by option id, so that options of equal jobs stay equal.
    """

    levels: Sequence[str] = ("node",)
    queues: Sequence[str] = ()
    nodes: Sequence[str] = ()
    switches: dict[str, bool] = field(default_factory=dict)
    elastic: float = 0.4
    simple: bool = False
    made: list[Job] = field(default_factory=list)

    def has(self, switch: str) -> bool:
        """Return whether jobs have a kind of demand."""
        return self.switches.get(switch, False)


ODDS = {
    "fractions": 0.6,
    "models": 0.3,
    "gpu_memory": 0.4,
    "utilisation": 0.5,
    "cpu": 0.5,
    "bandwidth": 0.3,
    "network": 0.5,
    "gangs": 0.7,
    "traffic": 0.6,
    "edges": 0.4,
    "alike": 0.5,
    "utility": 0.15,
}
"""Probability of each kind of demand in a round."""


def make_job(choice: Choice, id: str = "j", style: Style | None = None) -> Job:  # noqa: A002
    """Jobs of one to three options: whole GPUs, shares, CPU, gangs, elastic, split, picky; by default of all kinds."""
    style = style or Style(switches=dict.fromkeys(ODDS, True))
    if style.has("alike") and style.made and choice.chance(0.7):
        other: dict[str, Any] = {
            "profile": choice.pick((*PROFILES, None)),
            "conditions": NodeConditions(tolerations=make_tolerations(choice)),
            "queue": choice.pick([None, *style.queues]),
            "communication": Communication(weight=choice.number(0, 4)),
            "utility_min_thousandths": choice.pick((None, 400)),
        }
        changed = choice.pick((None, None, *other))
        update = {} if changed is None else {changed: other[changed]}
        return choice.pick(style.made).model_copy(update={"id": id, **update})
    count = choice.pick((1, 1, 1, 2, 3))
    ways = [_option(choice, f"o{i}", style, cpu_only=i > 0 and choice.chance(0.4)) for i in range(count)]
    most = max(way.workers for way in ways)
    edges: tuple[Edge, ...] = ()
    if style.has("edges") and most > 1 and choice.chance(0.7):
        pairs = choice.some([(a, b) for b in range(most) for a in range(b)])
        edges = tuple(Edge(ranks=pair, weight=choice.number(0, 4)) for pair in pairs)
    made = build.job(
        id,
        queue=choice.pick([None, *style.queues]),
        priority=choice.number(0, 3),
        arrival_ms=choice.number(0, 1000),
        options=tuple(ways),
        communication=Communication(weight=choice.number(0, 4) if style.has("traffic") else 0, edges=edges),
        profile=choice.pick((None, *PROFILES)),
        utility_min_thousandths=400 if style.has("utility") and choice.chance(0.7) else None,
        node_selector=choice.pick(({"disk": "ssd"}, {"rack": "r0"})) if choice.chance(0.1) else {},
        node_affinity=make_affinity(choice) if choice.chance(0.1) else (),
        nodes_allowed=tuple(choice.some(style.nodes)) if style.nodes and choice.chance(0.1) else None,
        nodes_excluded=tuple(choice.some(style.nodes)) if style.nodes and choice.chance(0.05) else (),
        tolerations=make_tolerations(choice) if choice.chance(0.4) else (),
    )
    style.made.append(made)
    return made


def _option(choice: Choice, name: str, style: Style, *, cpu_only: bool) -> Any:
    """Draw a way to run a job: workers, the demand of each, where they may lie, value, cost."""
    gpus = 0 if cpu_only else choice.pick((1, 1, 1, 1, 1, 2, 2, 3, 1 if style.simple else 0))
    demand: dict[str, Any] = {"gpus": gpus}
    if style.has("fractions") and gpus == 1 and choice.chance(0.7):
        milli = choice.pick((500, 250, 125) if style.simple else (200, 250, 300, 400, 500, 600))
        demand |= {"gpu_milli": milli, "gpu_milli_limit": choice.maybe(0.7, milli, 1000, 50)}
    if style.has("models") and choice.chance(0.5):
        demand["gpu_models"] = tuple(choice.some(GPU_MODELS))
    if style.has("utilisation"):
        demand["gpu_utilisation_percent"] = choice.number(0, 100)
    amounts = not style.simple or choice.chance(0.3)
    if style.has("gpu_memory") and amounts:
        demand["gpu_memory_mib"] = choice.pick((0, 3000, 5000, 9000))
    if (style.has("cpu") and amounts) or cpu_only:
        demand["cpu_millicores"] = choice.number(0, 5000, 500)
    if style.has("cpu") and amounts:
        demand["memory_mib"] = choice.number(0, 20_000, 2000)
    if style.has("bandwidth"):
        demand |= {f"{of}_bandwidth_mbps": choice.number(0, 3000, 250) for of in ("memory", "pcie")}
    if style.has("network"):
        demand["network_bandwidth_mbps"] = choice.number(0, 1500, 125)
    if style.has("resources"):
        demand["resources"] = {one: choice.pick((0, 1, 1, 2, 3)) for one in RESOURCES if choice.chance(0.6)}
        if choice.chance(0.03):
            demand["resources"][MISSING] = choice.number(0, 1)
    workers, fewest = 1, None
    if style.has("gangs") and choice.chance(0.6):
        workers = choice.number(2, 3 if gpus < 2 else 2)
        fewest = choice.maybe(style.elastic, 1, workers)
    spread = choice.chance(0.3 if workers > 1 else 0.05) and not style.simple
    worth, each = choice.pick((1, 0, 1, 2, 3, 5, 7)), choice.number(0, 3) if fewest is not None else 0
    return build.option(
        name,
        workers=workers,
        workers_min=fewest,
        **demand,
        single_node=choice.chance(0.75 if style.simple else 0.2),
        workers_per_node_max=choice.maybe(0.2, 1, 2),
        splits=make_splits(choice, style.levels, workers, fixed=fewest in (None, workers)) if spread else (),
        value=worth + each * (workers - (fewest or workers)),
        value_per_worker=each,
        utility_thousandths=choice.pick((None, 300, 400, 500)) if style.has("utility") else None,
        cost_milli=choice.number(0, 3000, 100) if choice.chance(0.5) else 0,
    )


def make_splits(choice: Choice, levels: Iterable[str], workers: int, *, fixed: bool) -> tuple[Split, ...]:
    """Draw splits over some levels, some of them exact."""
    made = []
    for level in choice.some(list(levels)):
        domains = choice.number(1, workers)
        exact = fixed and workers % domains == 0 and choice.chance(0.6)
        made.append(Split(level=level, domains=domains, workers=workers // domains if exact else None))
    return tuple(made)
