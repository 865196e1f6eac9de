"""Random jobs of a small round, so few and so small that every allocation can be tried."""

from __future__ import annotations

from helpers.brute_force import combinations_up_to
from helpers.small_rounds.cluster import GPU_MODELS
from helpers.small_rounds.dice import Dice
from placeopt.model import Communication, Demand, Edge, Instance, Job, Option, Policy, Split
from placeopt.problem import compile_problem

MOST_COMBINATIONS = 20_000
MOST_PLACEMENTS = 80
PROFILES = ("p0", "p1", "p2")
TAINTS = ("old", "loud")


class JobStyle:
    """Which kinds of demands the jobs of a round have at all: so every rule also stands alone."""

    def __init__(self, dice: Dice, policy: Policy, levels: list[str]) -> None:
        self.mode = policy.share_mode
        self.queues = [queue.id for queue in policy.queues]
        self.levels = levels
        self.fractions = dice.chance(0.6)
        self.models = dice.chance(0.3)
        self.gpu_memory = dice.chance(0.4)
        self.utilisation = dice.chance(0.5)
        self.cpu = dice.chance(0.5)
        self.bandwidth = dice.chance(0.3)
        self.network = dice.chance(0.5)
        self.gangs = dice.chance(0.7)
        self.elastic = 0.4
        self.traffic = dice.chance(0.6)
        self.edges = dice.chance(0.4)
        self.alike = dice.chance(0.5)
        self.utility = dice.chance(0.15)
        self.made: list[Job] = []


def _random_job(dice: Dice, name: str, style: JobStyle, nodes: list[str]) -> Job:
    """Draw a job; where jobs are to be alike, most often one made before with a field changed."""
    if style.alike and style.made and dice.chance(0.7):
        fields = {
            "profile": dice.pick((*PROFILES, None)),
            "tolerations": tuple(dice.some(TAINTS)),
            "queue": dice.pick([*style.queues, None]),
            "communication": Communication(weight=dice.number(0, 4)),
            "utility_min_thousandths": dice.pick((None, 400)),
        }
        field = dice.pick(list(fields))
        other = {field: fields[field]} if dice.chance(0.6) else {}
        return dice.pick(style.made).model_copy(update={"id": name, **other})
    count = dice.pick((1, 1, 1, 2, 3))
    options = tuple(_random_option(dice, f"o{i}", style, cpu_only=i > 0 and dice.chance(0.4)) for i in range(count))
    most = max(option.workers for option in options)
    edges = ()
    if style.edges and most > 1 and dice.chance(0.7):
        pairs = dice.some([(a, b) for b in range(most) for a in range(b)])
        edges = tuple(Edge(ranks=pair, weight=dice.number(0, 4)) for pair in pairs)
    job = Job(
        id=name,
        queue=dice.pick([*style.queues, None]) if style.queues else None,
        priority=dice.number(0, 3),
        arrival_ms=dice.number(0, 1000),
        options=options,
        communication=Communication(weight=dice.number(0, 4) if style.traffic else 0, edges=edges),
        profile=dice.pick((*PROFILES, None)),
        utility_min_thousandths=dice.maybe(0.7, 400) if style.utility else None,
        node_selector=dice.pick(({"disk": "ssd"}, {"rack": "r0"})) if dice.chance(0.1) else {},
        nodes_allowed=tuple(dice.some(nodes)) if dice.chance(0.1) else None,
        tolerations=tuple(dice.some(TAINTS)) if dice.chance(0.4) else (),
    )
    style.made.append(job)
    return job


def _random_option(dice: Dice, name: str, style: JobStyle, *, cpu_only: bool) -> Option:
    """Draw an option: workers, demand of each, where they may lie, value, cost."""
    gpus = 0 if cpu_only else dice.pick((0, 1, 1, 1, 1, 1, 2, 2, 3))
    milli, limit = 1000, None
    if style.fractions and gpus == 1 and dice.chance(0.7):
        milli = dice.pick((200, 250, 300, 400, 500, 600))
        limit = dice.maybe(0.7, dice.number(milli, 1000, 50))
    workers, fewest = 1, None
    if style.gangs and dice.chance(0.6):
        workers = dice.number(2, 3 if gpus < 2 else 2)
        fewest = dice.maybe(style.elastic, dice.number(1, workers))
    return Option(
        id=name,
        workers=workers,
        workers_min=fewest,
        demand=Demand(
            gpus=gpus,
            gpu_milli=milli,
            gpu_milli_limit=limit,
            gpu_models=tuple(dice.some(GPU_MODELS)) if style.models and dice.chance(0.5) else (),
            gpu_memory_mib=dice.pick((0, 3000, 5000, 9000)) if style.gpu_memory else 0,
            gpu_utilisation_percent=dice.number(0, 100) if style.utilisation else 0,
            cpu_millicores=dice.number(0, 5000, 500) if style.cpu or cpu_only else 0,
            memory_mib=dice.number(0, 20_000, 2000) if style.cpu else 0,
            memory_bandwidth_mbps=dice.number(0, 3000, 250) if style.bandwidth else 0,
            pcie_bandwidth_mbps=dice.number(0, 3000, 250) if style.bandwidth else 0,
            network_bandwidth_mbps=dice.number(0, 1500, 125) if style.network else 0,
        ),
        single_node=dice.chance(0.2),
        workers_per_node_max=dice.maybe(0.2, dice.number(1, 2)),
        splits=_random_splits(dice, style, workers, fewest) if dice.chance(0.3 if workers > 1 else 0.05) else (),
        value=dice.pick((0, 1, 1, 2, 3, 5, 7)),
        value_per_extra_worker=dice.number(0, 3) if fewest is not None else 0,
        utility_thousandths=dice.maybe(0.7, dice.pick((300, 400, 500))) if style.utility else None,
        cost_milli=dice.number(0, 3000, 100) if dice.chance(0.5) else 0,
    )


def _random_splits(dice: Dice, style: JobStyle, workers: int, fewest: int | None) -> tuple[Split, ...]:
    """Draw splits over some levels, some of them exact."""
    splits = []
    for level in dice.some(style.levels):
        domains = dice.number(1, workers)
        exact = workers % domains == 0 and fewest in (None, workers) and dice.chance(0.6)
        splits.append(Split(level=level, domains=domains, workers=workers // domains if exact else None))
    return tuple(splits)


def random_jobs(dice: Dice, style: JobStyle, empty: Instance, most: int) -> tuple[Job, ...]:
    """Draw jobs; leave out most of those that fit nowhere, and those that would make the round too large."""
    kept: list[Job] = []
    room = MOST_COMBINATIONS
    nodes = [node.id for node in empty.cluster.nodes]
    for _ in range(3 * most):
        job = _random_job(dice, f"j{len(kept)}", style, nodes)
        size = combinations_up_to(compile_problem(empty.model_copy(update={"jobs": (job,)})), MOST_PLACEMENTS)
        if size <= min(room, MOST_PLACEMENTS) and (size > 1 or dice.chance(0.1)):
            kept.append(job)
            room //= size
        if len(kept) == most:
            break
    return tuple(kept)
