"""
Random rounds with valid plans, for campaigns: a placer that tries places at random and keeps what fits.

Nothing here knows the referee. `Loads` counts once more, as naively as possible, what a set of placements holds.
"""

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from helpers.granted_shares import with_due
from helpers.plans import plan_for
from placeopt.build import instance, job, machine, node, option, placement
from placeopt.model import (
    Changes,
    Domain,
    Gpu,
    Instance,
    Job,
    Option,
    Placement,
    Plan,
    Policy,
    Queue,
    Quota,
    Running,
    Split,
)

Placements = dict[str, Placement]


@dataclass
class Loads:
    """What placements hold: of each GPU, node, uplink and queue. Of shares the requests count."""

    gpu_jobs: Counter[tuple[str, int]] = field(default_factory=Counter)
    gpu_milli: Counter[tuple[str, int]] = field(default_factory=Counter)
    gpu_memory: Counter[tuple[str, int]] = field(default_factory=Counter)
    node: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(node, field of the machine) -> amount."""
    uplink: Counter[tuple[str, bool]] = field(default_factory=Counter)
    """(domain or node, whether of GPU jobs) -> MB/s."""
    queue: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(queue, field of its quota) -> amount."""


def option_of(round_: Instance, held: Placement) -> Option:
    """Return the option that a placement takes."""
    return next(o for j in round_.jobs if j.id == held.job for o in j.options if o.id == held.option)


def above(round_: Instance, name: str) -> list[tuple[str, str]]:
    """List (level, id) of the domains above a node."""
    domains = {domain.id: domain for domain in round_.cluster.domains}
    at = next(n.domain for n in round_.cluster.nodes if n.id == name)
    path = []
    while at is not None:
        path.append((domains[at].level, at))
        at = domains[at].parent
    return path


def count_loads(round_: Instance, placements: Iterable[Placement]) -> Loads:
    """Count from scratch what ``placements`` hold."""
    loads = Loads()
    queues = {j.id: j.queue for j in round_.jobs}
    for held in placements:
        demand = option_of(round_, held).demand
        stands = [a.node for a in held.assignments for _ in a.workers]
        for a in held.assignments:
            for _ in a.workers:
                loads.node[a.node, "cpu_millicores"] += demand.cpu_millicores
                loads.node[a.node, "memory_mib"] += demand.memory_mib
                loads.node[a.node, "memory_bandwidth_mbps"] += demand.memory_bandwidth_mbps
                loads.node[a.node, "pcie_bandwidth_mbps"] += demand.pcie_bandwidth_mbps
            for gpu in a.gpus:
                loads.gpu_jobs[a.node, int(gpu)] += 1
                loads.gpu_milli[a.node, int(gpu)] += demand.gpu_milli
                loads.gpu_memory[a.node, int(gpu)] += demand.gpu_memory_mib
            queue = queues[held.job]
            if queue is not None:
                loads.queue[queue, "gpu_milli"] += len(a.gpus) * demand.gpu_milli
                loads.queue[queue, "cpu_millicores"] += a.cpu_millicores
                loads.queue[queue, "memory_mib"] += a.memory_mib
        places = {name: {name, *(domain for _, domain in above(round_, name))} for name in set(stands)}
        for place in set().union(*places.values()):
            inside = sum(place in places[name] for name in stands)
            crossing = min(inside, len(stands) - inside)
            loads.uplink[place, demand.gpus > 0] += crossing * demand.network_bandwidth_mbps
    return loads


def fits(round_: Instance, policy: Policy, placements: Iterable[Placement]) -> bool:
    """Tell whether the placements fit together; says nothing about where a job may stand."""
    loads = count_loads(round_, placements)
    machines = {m.id: m for m in round_.cluster.machines}
    of = {n.id: machines[n.machine] for n in round_.cluster.nodes}
    usable = policy.usable
    parts = {
        "cpu_millicores": 100,
        "memory_mib": 100,
        "memory_bandwidth_mbps": usable.memory_bandwidth_percent,
        "pcie_bandwidth_mbps": usable.pcie_bandwidth_percent,
    }
    for (name, resource), load in loads.node.items():
        capacity = getattr(of[name], resource)
        if capacity is not None and 100 * load > parts[resource] * capacity:
            return False
    for (name, gpu), memory in loads.gpu_memory.items():
        if memory > of[name].gpus[gpu].memory_mib:
            return False
    if policy.share_mode != "overcommit" and max(loads.gpu_milli.values(), default=0) > 1000:
        return False
    most = 1 if policy.share_mode == "exclusive" else policy.jobs_per_gpu_max
    if most is not None and max(loads.gpu_jobs.values(), default=0) > most:
        return False
    uplinks = {d.id: d.uplink_mbps for d in round_.cluster.domains}
    uplinks.update({name: m.network_bandwidth_mbps for name, m in of.items()})
    for (place, has_gpus), load in loads.uplink.items():
        part = usable.network_gpu_jobs_percent if has_gpus else usable.network_cpu_jobs_percent
        capacity = uplinks[place]
        if capacity is not None and 100 * load > part * capacity:
            return False
    for queue in policy.queues:
        for resource in ("gpu_milli", "cpu_millicores", "memory_mib"):
            quota = getattr(queue.quota, resource)
            if quota is not None and loads.queue[queue.id, resource] > quota + (getattr(queue.borrow, resource) or 0):
                return False
    return True


def may_stand(round_: Instance, j: Job, name: str) -> bool:
    """Tell whether a job may start on a node at all."""
    n = next(n for n in round_.cluster.nodes if n.id == name)
    labels = {**n.labels, **dict(above(round_, name))}
    return (
        not n.drained
        and set(n.taints) <= set(j.tolerations)
        and (j.nodes_allowed is None or name in j.nodes_allowed)
        and all(labels.get(key) == value for key, value in j.node_selector.items())
    )


def shape_holds(round_: Instance, o: Option, stands: list[str]) -> bool:
    """Tell whether the nodes of an option's workers keep single node, workers per node and splits."""
    per_node = Counter(stands)
    if (o.single_node and len(per_node) > 1) or max(per_node.values()) > (o.workers_per_node_max or 10**9):
        return False
    for split in o.splits:
        domains = [name if split.level == "node" else dict(above(round_, name)).get(split.level) for name in stands]
        counts = Counter(domains)
        if None in counts or len(counts) != split.domains:
            return False
        if split.workers is not None and set(counts.values()) != {split.workers}:
            return False
    return True


def try_place(
    rng: random.Random, round_: Instance, j: Job, placed: Mapping[str, Placement], *, anywhere: bool = False
) -> Placement | None:
    """Try some random places for a job beside what is ``placed``; None if none of them fits."""
    machines = {m.id: m for m in round_.cluster.machines}
    of = {n.id: machines[n.machine] for n in round_.cluster.nodes}
    allowed = [name for name in of if anywhere or may_stand(round_, j, name)]
    milli = count_loads(round_, placed.values()).gpu_milli
    if not allowed:
        return None
    for _ in range(8):
        o = rng.choice(j.options)
        if (o.utility_thousandths or 10**6) < (j.utility_min_thousandths or 0):
            continue
        d = o.demand
        workers = rng.randint(o.workers_min or o.workers, o.workers)
        few = rng.sample(allowed, min(len(allowed), rng.choice((1, 2, 4))))
        where: list[tuple[str, list[int]]] = []
        taken: set[tuple[str, int]] = set()
        for _ in range(workers):
            name = rng.choice(few)
            free = [
                gpu
                for gpu, made in enumerate(of[name].gpus)
                if (name, gpu) not in taken
                and milli[name, gpu] + d.gpu_milli <= 1000
                and (not d.gpu_models or made.model in d.gpu_models)
            ]
            if len(free) < d.gpus:
                break
            gpus = rng.sample(free, d.gpus)
            taken |= {(name, gpu) for gpu in gpus}
            where.append((name, gpus))
        if len(where) < workers or not shape_holds(round_, o, [name for name, _ in where]):
            continue
        held = placement(j, where, option=o.id)
        if fits(round_, round_.policy, [*placed.values(), held]):
            return held
    return None


def random_job(rng: random.Random, name: str) -> Job:
    """Make a job of any kind: fraction, whole, gang, elastic, split, CPU, picky."""
    common = {
        "queue": rng.choice((None, "q0", "q1")),
        "arrival_ms": rng.randrange(1000),
        "tolerations": ("t",) if rng.random() < 0.5 else (),
        "node_selector": rng.choice(({}, {}, {}, {"disk": "ssd"}, {"zone": "z"})),
        "cpu_millicores": rng.randrange(500, 2000),
        "memory_mib": rng.randrange(500, 4000),
        "memory_bandwidth_mbps": rng.randrange(300),
        "pcie_bandwidth_mbps": rng.randrange(300),
    }
    share = rng.randrange(100, 700)
    kind = rng.choice(("elastic", "fraction", "fraction", "whole", "gang", "elastic", "split", "cpu", "choice"))
    network = rng.randrange(1, 60)
    if kind == "fraction":
        return job(name, gpu_milli=share, gpu_milli_limit=share + 100, gpu_memory_mib=rng.randrange(4000), **common)
    if kind == "whole":
        return job(name, gpus=rng.choice((1, 2)), gpu_models=rng.choice(((), ("V100",))), **common)
    if kind == "gang":
        return job(name, workers=rng.choice((2, 3, 4)), gpu_milli=share, network_bandwidth_mbps=network, **common)
    if kind == "elastic":
        return job(name, workers=4, workers_min=2, gpu_milli=300, network_bandwidth_mbps=network, **common)
    if kind == "split":
        splits = (Split(level="rack", domains=2, workers=1),)
        return job(name, workers=2, splits=splits, gpu_memory_mib=2000, network_bandwidth_mbps=network, **common)
    if kind == "cpu":
        return job(name, workers=rng.choice((1, 3)), gpus=0, kind="cpu", network_bandwidth_mbps=network, **common)
    demand = {key: common.pop(key) for key in list(common) if key.endswith(("millicores", "mib", "mbps"))}
    options = (
        option("pair", gpus=2, single_node=True, utility_thousandths=800, **demand),
        option("half", gpu_milli=500, utility_thousandths=500, **demand),
    )
    return job(name, options=options, utility_min_thousandths=400, **common)


def random_round(rng: random.Random) -> tuple[Instance, Plan]:
    """Make a cluster with running and waiting jobs, and a valid plan that moves, shrinks and stops some."""
    machines = [
        machine(
            "big",
            gpus=4,
            cpu_millicores=12_000,
            memory_mib=32_000,
            memory_bandwidth_mbps=4_000,
            pcie_bandwidth_mbps=3_000,
            network_bandwidth_mbps=1_000,
        ),
        machine("mixed", gpus=[Gpu(model="T4", memory_mib=15_000), Gpu(model="V100", memory_mib=16_000)]),
    ]
    domains = [Domain(id="z", level="zone")]
    domains += [Domain(id=f"r{i}", parent="z", uplink_mbps=rng.choice((300, 1000, None))) for i in range(3)]
    nodes = [
        node(
            f"n{i}",
            rng.choice(("big", "big", "mixed")),
            domain=rng.choice((f"r{i % 3}", f"r{i % 3}", f"r{i % 3}", None)),
            labels={"disk": "ssd"} if rng.random() < 0.6 else {},
            taints=("t",) if rng.random() < 0.2 else (),
            drained=i > 1 and rng.random() < 0.15,
        )
        for i in range(rng.randint(5, 8))
    ]
    policy = Policy(
        queues=(
            Queue(id="q0", quota=Quota(gpu_milli=9_000), borrow=Quota(gpu_milli=500)),
            Queue(id="q1", quota=Quota(cpu_millicores=30_000, memory_mib=90_000)),
        ),
        changes=Changes(moves_max=2, shrinks_max=2, preemptions_max=2),
    )
    jobs = [random_job(rng, f"j{i}") for i in range(rng.randint(14, 22))]
    bare = instance(nodes, jobs, machines=machines, domains=domains, policy=policy)
    placed: Placements = {}
    for j in jobs[:8]:
        held = try_place(rng, bare, j, placed, anywhere=True)
        if held is not None:
            placed[j.id] = held
    runs = [
        Running(
            job=name,
            option=held.option,
            assignments=held.assignments,
            movable=rng.random() < 0.5,
            shrinkable=rng.random() < 0.7,
            preemptible=rng.random() < 0.5,
        )
        for name, held in ((held.job, held) for held in with_due(bare, placed.values(), policy))
    ]
    round_ = instance(nodes, jobs, machines=machines, domains=domains, policy=policy, running=runs)
    moved, shrunk, preempted = _change_some(rng, round_, placed)
    for j in jobs:
        if j.id not in placed and j.id not in preempted:
            held = try_place(rng, round_, j, placed)
            if held is not None:
                placed[j.id] = held
    plan = plan_for(round_, placed, moved=moved, shrunk=shrunk, preempted=preempted)
    return round_, plan.model_copy(update={"placements": with_due(round_, plan.placements, policy)})


def stands(held: Placement) -> list[tuple[str, int, frozenset[int]]]:
    """Write down where a placement stands, however it is spelled."""
    return sorted((a.node, worker.rank, frozenset(worker.gpus)) for a in held.assignments for worker in a.workers)


def _change_some(rng: random.Random, round_: Instance, placed: Placements) -> tuple[list[str], list[str], list[str]]:
    moved: list[str] = []
    shrunk: list[str] = []
    preempted: list[str] = []
    jobs = {j.id: j for j in round_.jobs}
    for run in round_.running:
        o = option_of(round_, run)
        workers = [(a.node, w.gpus) for a in run.assignments for w in a.workers]
        ordered = sorted((w.rank, a.node, w.gpus) for a in run.assignments for w in a.workers)
        choice = rng.random()
        if choice < 0.2 and run.preemptible and len(preempted) < 2:
            del placed[run.job]
            preempted.append(run.job)
        elif run.shrinkable and o.workers_min and len(workers) > o.workers_min and len(shrunk) < 2:
            kept = [ordered[0], *sorted(rng.sample(ordered[1:], o.workers_min - 1))]
            placed[run.job] = placement(jobs[run.job], [(name, gpus) for _, name, gpus in kept], option=o.id)
            shrunk.append(run.job)
        elif choice < 0.8 and run.movable and len(moved) < 2:
            others = {name: held for name, held in placed.items() if name != run.job}
            single = jobs[run.job].model_copy(
                update={"options": (o.model_copy(update={"workers": len(workers), "workers_min": None}),)}
            )
            there = try_place(rng, round_, single, others)
            if there is not None and stands(there) != stands(run):
                placed[run.job] = there
                moved.append(run.job)
    return moved, shrunk, preempted
