"""Random rounds of one gang that spreads, beside a few running jobs: rare in `small_rounds.random_round`."""

from __future__ import annotations

from helpers.small_rounds import Dice
from placeopt import Instance, Policy, solve
from placeopt.build import instance, job, machine, node
from placeopt.model import Changes, Domain, Job, Option, Queue, Quota, Running, Split


def gang_round(dice: Dice) -> Instance:
    """
    Make up to 5 nodes of up to 2 GPUs under zones and racks with narrow links, up to 5 running jobs, and a gang ``j``.

    The gang may fit; two in three do not.
    """
    domains = [Domain(id=f"z{i}", level="zone", uplink_mbps=_narrow(dice)) for i in range(dice.number(0, 2))]
    zones = [domain.id for domain in domains]
    domains += [
        Domain(id=f"r{i}", parent=dice.pick([None, *zones]), uplink_mbps=_narrow(dice))
        for i in range(dice.number(1, 3))
    ]
    boxes = [
        machine(
            f"m{gpus}",
            gpus=gpus,
            cpu_millicores=dice.number(2000, 6000, 1000),
            memory_mib=dice.number(4000, 8000, 1000),
            network_bandwidth_mbps=_narrow(dice),
        )
        for gpus in (1, 2)
    ]
    nodes = [
        node(f"n{i}", dice.pick(boxes).id, domain=dice.pick([None, *(d.id for d in domains)]))
        for i in range(dice.number(2, 5))
    ]
    queues = (Queue(id="q", quota=Quota(gpu_milli=dice.number(1000, 5000, 1000))),) if dice.chance(0.3) else ()
    policy = Policy(
        share_mode=dice.pick(("fraction", "fraction", "exclusive")),
        queues=queues,
        changes=Changes(preemption_price=dice.number(0, 3), last_submitted_first=False),
    )
    queue = dice.maybe(0.6, "q") if queues else None
    held = [_held(dice, i, queue) for i in range(dice.number(1, 5))]
    before = instance(nodes, held, machines=boxes, domains=domains, policy=policy)
    placed = solve(before, method="fcfs", isolation="thread").placements
    runs = tuple(
        Running(job=p.job, option=p.option, assignments=p.assignments, preemptible=dice.chance(0.8)) for p in placed
    )
    running = {run.job for run in runs}
    gang = Job(id="j", queue=queue, options=(_gang(dice, [d.level for d in domains]),))
    jobs = (*(record for record in held if record.id in running), gang)
    return before.model_copy(update={"jobs": jobs, "running": runs})


def _narrow(dice: Dice) -> int | None:
    return dice.maybe(0.5, dice.number(200, 800, 100))


def _held(dice: Dice, i: int, queue: str | None) -> Job:
    return job(
        f"held{i}",
        queue=dice.maybe(0.6, queue),
        workers=dice.pick((1, 1, 2)),
        gpus=(gpus := dice.pick((0, 1, 1))),
        gpu_milli=dice.pick((300, 600, 1000)) if gpus else 1000,
        gpu_memory_mib=dice.pick((0, 6000)) if gpus else 0,
        cpu_millicores=dice.number(0, 2000, 500),
        memory_mib=dice.number(0, 2000, 500),
        network_bandwidth_mbps=dice.pick((0, 0, 100, 200)),
        value=dice.number(0, 6),
    )


def _gang(dice: Dice, levels: list[str]) -> Option:
    gpus, workers = dice.pick((0, 1, 1, 1, 2)), dice.number(2, 4)
    splits = []
    for level in sorted({*levels, "node"}):
        if dice.chance(0.3):
            count = dice.number(1, 3)
            equal = workers // count if workers % count == 0 and dice.chance(0.4) else None
            splits.append(Split(level=level, domains=count, workers=equal))
    fixed = any(split.workers is not None for split in splits)
    asked = job(
        "j",
        workers=workers,
        workers_min=None if fixed else dice.maybe(0.3, dice.number(1, workers)),
        gpus=gpus,
        gpu_milli=dice.pick((400, 1000)) if gpus == 1 else 1000,
        gpu_memory_mib=dice.pick((0, 0, 12_000)) if gpus else 0,
        cpu_millicores=dice.number(0, 2000, 500),
        memory_mib=dice.number(0, 2000, 500),
        network_bandwidth_mbps=dice.pick((0, 0, 100, 150)),
        single_node=dice.chance(0.15),
        workers_per_node_max=dice.maybe(0.3, dice.number(1, 2)),
        splits=tuple(splits),
        value=5,
    )
    return asked.options[0]
