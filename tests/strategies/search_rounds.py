"""Rounds with all that the local search has differences of, in larger clusters than brute force takes."""

from __future__ import annotations

from typing import Any

from placeopt import build
from placeopt.model import (
    Communication,
    Domain,
    Flavor,
    FlavorAllowance,
    Fragmentation,
    Gpu,
    Hold,
    Instance,
    Interference,
    Part,
    Policy,
    Queue,
    Quota,
    Split,
    Weights,
)
from strategies.choice import Choice
from strategies.clusters import RESOURCES, make_machine
from strategies.jobs import ODDS, PROFILES, Style, make_job
from strategies.policies import COSTS as ALL_COSTS
from strategies.policies import make_cost_weights, make_policy
from strategies.rounds import make_running, make_slowdowns, with_changes

COSTS = ("communication", "interference", "fragmentation", "resource")
ALL = Weights(communication=300, interference=300, fragmentation=300, horus=0, resource=100)
LEVELS = ("node", "rack", "zone", "socket", "switch")


def make_search_round(choice: Choice, *, running: float = 0.2) -> Instance:
    """Draw up to 6 nodes below racks of two zones with limits, holds, queues, some of what runs there, and 9 jobs."""
    machines = [make_machine(choice, f"m{i}", resources=True) for i in range(2)]

    def domain(name: str, level: str, parent: str | None = None) -> Domain:
        weight, mbps = choice.number(0, 60), choice.maybe(0.6, 400, 4000, 200)
        room = _amounts(choice, 6) if level == "rack" else {}
        return Domain(id=name, level=level, parent=parent, uplink_weight=weight, uplink_mbps=mbps, resources=room)

    zones = [domain("z0", "zone"), domain("z1", "zone")]
    racks = [domain(f"r{i}", "rack", choice.pick(("z0", "z0", "z1", None))) for i in range(3)]
    places = [*(one.id for one in racks), "z1", None]
    nodes = [
        build.node(f"n{i}", choice.pick(machines).id, domain=choice.pick(places)) for i in range(choice.number(3, 6))
    ]
    policy = make_policy(
        choice,
        weights=choice.pick((ALL, ALL, make_cost_weights(choice, COSTS, some=True))),
        interference=Interference(model="pairwise"),
        fragmentation=Fragmentation(level_weights={level: choice.number(1, 3) for level in choice.some(LEVELS, 0.7)}),
        queues=make_queues(choice) if choice.chance(0.6) else (),
        flavors=(Flavor(id="A", gpu_models=("A",)), Flavor(id="B", gpu_models=("B",))),
    )
    switches = {name: choice.chance(max(p, 0.5)) for name, p in ODDS.items()} | {"gangs": choice.chance(0.9)}
    switches |= {"edges": False, "utility": False, "resources": choice.chance(0.3)}
    style = Style(
        queues=[queue.id for queue in policy.queues if queue.parent],
        levels=[choice.pick(LEVELS[:3])],
        nodes=[node.id for node in nodes],
        switches=switches,
    )
    jobs = [make_job(choice, f"j{i}", style) for i in range(9)]
    cluster = build.cluster(nodes, machines=machines, domains=[*zones, *racks])
    cluster = cluster.model_copy(update={"resources": _amounts(choice, 9)})
    bare = build.instance(cluster, jobs, policy=policy)
    holds = [
        Hold(id=f"h{i}", node=choice.pick(nodes).id, gpus=(), cpu_millicores=2000, **choice.pick(KINDS))
        for i in range(choice.pick((0, 0, 2, 4)))
    ]
    held, slowdowns = make_running(choice, bare, running), make_slowdowns(choice, PROFILES)
    return bare.model_copy(update={"running": held, "slowdowns": slowdowns, "holds": tuple(holds)})


def make_changing_round(choice: Choice) -> Instance:
    """Draw such a round in which half of the jobs run, most of which may be moved, shrunk or preempted."""
    round_ = make_search_round(choice, running=0.6)
    policy, held = with_changes(choice, round_.policy, round_.running)
    return round_.model_copy(update={"running": held, "policy": policy})


def make_gangs_round(choice: Choice) -> Instance:
    """Draw gangs that communicate, in racks and zones, with hardly a limit; in half of them jobs disturb each other."""
    count = choice.pick((2, 3, 4, 9))
    domains = [Domain(id=f"z{i}", level="zone", uplink_weight=choice.number(1, 60)) for i in range(2)]
    domains += [
        Domain(id=f"r{i}", parent=choice.pick(("z0", "z1", None)), uplink_weight=choice.number(0, 60)) for i in range(3)
    ]
    gpus = [Gpu(model="x", part=f"s{i % 2}") for i in range(count)]
    parts = tuple(Part(id=f"s{i}", level="socket") for i in range(2))
    machine = build.machine(gpus=gpus, parts=parts, uplink_weight=choice.number(0, 50))
    nodes = [build.node(f"n{i}", "m", domain=choice.pick([one.id for one in domains])) for i in range(5)]
    splits = [(Split(level="rack", domains=n, workers=each),) for n, each in ((2, None), (2, 2), (1, None), (1, 4))]
    jobs = [
        build.job(
            f"j{i}",
            workers=choice.pick((2, 3, 4)) if i else 4,
            gpus=choice.number(1, max(2, count // 2)),
            gpu_milli=1000,
            profile=choice.pick((None, *PROFILES)),
            communication=Communication(weight=choice.number(1, 4)),
            cpu_millicores=choice.number(0, 1000, 500),
            workers_per_node_max=choice.maybe(0.5, 1, 2) if i else None,
            splits=choice.pick(splits) if i == 0 else (),
            value=choice.number(1, 5),
        )
        for i in range(8)
    ]
    disturbed = choice.pick((0, 500))
    weights = Weights(**{**dict.fromkeys(ALL_COSTS, 0), "communication": 1000 - disturbed, "interference": disturbed})
    policy = Policy(share_mode="exclusive", weights=weights, interference=Interference(model="pairwise"))
    slowdowns = make_slowdowns(choice, PROFILES)
    return build.instance(nodes, jobs, machines=[machine], domains=domains, policy=policy, slowdowns=slowdowns)


KINDS: tuple[dict[str, Any], ...] = ({"priority": 1}, {"for": ("j1", "j2")}, {"priority": 2, "for": ("j3",)}, {})
"""What holds count against."""


def _amounts(choice: Choice, most: int) -> dict[str, int]:
    """Draw how much of some named resources there is in a place."""
    return {name: choice.number(1, most) for name in RESOURCES if choice.chance(0.5)}


def make_queues(choice: Choice) -> tuple[Queue, ...]:
    """Draw two queues below one, which keep some of what they have."""

    def queue(name: str, parent: str | None, most: int) -> Queue:
        quota = Quota(
            gpu_milli=choice.maybe(0.8, 500, most, 250), cpu_millicores=choice.maybe(0.3, 4000, 8 * most, 500)
        )
        lend = (
            Quota(gpu_milli=choice.number(0, quota.gpu_milli, 250))
            if quota.gpu_milli and choice.chance(0.5)
            else Quota()
        )
        of = [FlavorAllowance(flavor=name, quota=Quota(gpu_milli=choice.number(0, most, 500))) for name in ("A", "B")]
        return Queue(id=name, parent=parent, quota=quota, lend=lend, flavors=tuple(of) if choice.chance(0.3) else ())

    return queue("all", None, 3000), queue("q0", "all", 4000), queue("q1", "all", 4000)
