"""Random rounds, so small that every allocation can be tried, with every rule and cost switched on and off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar

from numpy.random import Generator

from helpers.brute_force import placements, space
from helpers.plan_records import assignments_of, plan_of
from placeopt.check import judge
from placeopt.model import (
    Cluster,
    Communication,
    Demand,
    Domain,
    Edge,
    Gpu,
    Instance,
    Job,
    Link,
    Machine,
    Node,
    Option,
    Part,
    Policy,
    Running,
    Slowdown,
    Split,
)
from placeopt.model.policy import (
    Changes,
    Fragmentation,
    Horus,
    Interference,
    Postpone,
    Queue,
    Quota,
    SlowdownCurve,
    TargetWorker,
    Usable,
    Weights,
)
from placeopt.problem import Move, Placement, Problem, State, compile_problem
from placeopt.terms.rules.registry import fits

MOST_COMBINATIONS = 20_000
MOST_PLACEMENTS = 80
GPU_MODELS = ("A", "B")
PROFILES = ("p0", "p1", "p2")
TAINTS = ("old", "loud")
FITTED = SlowdownCurve(square_millionths=777_777, linear_millionths=250_001, constant_millionths=3)

T = TypeVar("T")


class Dice:
    """Random choices, each in one word."""

    def __init__(self, rng: Generator) -> None:
        self.rng = rng

    def chance(self, p: float) -> bool:
        """Return True with probability ``p``."""
        return bool(self.rng.random() < p)

    def number(self, low: int, high: int, step: int = 1) -> int:
        """Return a multiple of ``step`` above ``low``, at most ``high``."""
        return low + step * int(self.rng.integers(0, (high - low) // step + 1))

    def pick(self, among: Sequence[T]) -> T:
        """Return one of ``among``."""
        return among[int(self.rng.integers(len(among)))]

    def some(self, among: Sequence[T]) -> list[T]:
        """Return a random, maybe empty part of ``among``, in order."""
        return [one for one in among if self.chance(0.5)]

    def maybe(self, p: float, one: T) -> T | None:
        """Return ``one`` with probability ``p``, else None."""
        return one if self.chance(p) else None


def random_round(rng: Generator, *, changes: bool = False, minima: bool = True) -> Instance:
    """
    Make a round of at most 6 jobs, 3 nodes and 4 GPUs a node, whose running jobs stand lawfully.

    Jobs that would make more than ``MOST_COMBINATIONS`` combinations of placements are left out. With ``changes`` many
    jobs run, most are elastic, and the policy always lets some of what runs be changed. Without ``minima`` no job waits
    for the sake of its utility; all else is the same.
    """
    dice = Dice(rng)
    machines = [_machine(dice, f"m{i}") for i in range(dice.pick((1, 1, 2)))]
    domains = _domains(dice)
    levels = ["node", *dict.fromkeys(domain.level for domain in domains)]
    nodes = [_node(dice, f"n{i}", machines, domains) for i in range(dice.pick((1, 2, 3)))]
    policy = _policy(dice)
    style = _Style(dice, policy, levels)
    style.elastic = 0.8 if changes else 0.4
    style.gangs |= changes
    cluster = Cluster(machines=tuple(machines), domains=domains, nodes=tuple(nodes))
    jobs = _jobs(dice, style, Instance(cluster=cluster, policy=policy), dice.number(2, 6))
    slowdowns = tuple(
        Slowdown(
            profile=one,
            beside=other,
            gpu_thousandths=dice.number(0, 900, 100),
            switch_thousandths=dice.number(0, 600, 100),
            socket_thousandths=dice.number(0, 400, 100),
            node_thousandths=dice.number(0, 200, 50),
        )
        for one in PROFILES
        for other in PROFILES
        if dice.chance(0.6)
    )
    instance = Instance(
        name="round",
        now_ms=1_000_000,
        cluster=cluster,
        jobs=jobs,
        slowdowns=slowdowns if dice.chance(0.7) else (),
        policy=policy,
    )
    if changes or dice.chance(0.45):
        instance = _with_running(dice, instance, 0.7 if changes else 0.35)
    instance = _with_barriers(dice, instance)
    instance = _with_changes(dice, instance) if changes or dice.chance(0.67) else instance
    return _with_minima(dice, instance) if minima and dice.chance(0.25) else instance


class _Style:
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


def _machine(dice: Dice, name: str) -> Machine:
    gpus, parts, links, matrix = _gpus(dice)
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


def _gpus(dice: Dice) -> tuple[tuple[Gpu, ...], tuple[Part, ...], tuple[Link, ...], Any]:
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


def _domains(dice: Dice) -> tuple[Domain, ...]:
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


def _node(dice: Dice, name: str, machines: list[Machine], domains: tuple[Domain, ...]) -> Node:
    return Node(
        id=name,
        machine=dice.pick(machines).id,
        domain=dice.pick([*(domain.id for domain in domains), None]) if domains else None,
        labels={"disk": dice.pick(("ssd", "tape"))} if dice.chance(0.5) else {},
    )


def _policy(dice: Dice) -> Policy:
    mode = dice.pick(("exclusive", "fraction", "fraction", "overcommit"))
    most = (
        dice.number(2, 3)
        if mode == "overcommit"
        else dice.maybe(0.3, dice.number(1, 3))
        if mode == "fraction"
        else None
    )
    levels = ("node", "rack", "zone", "socket", "switch")
    return Policy(
        share_mode=mode,
        jobs_per_gpu_max=most,
        usable=Usable(
            memory_bandwidth_percent=dice.pick((75, 100, 33)),
            pcie_bandwidth_percent=dice.pick((100, 66)),
            network_gpu_jobs_percent=dice.pick((75, 100, 50)),
            network_cpu_jobs_percent=dice.pick((25, 100, 0)),
        ),
        weights=_weights(dice),
        interference=Interference(
            model=dice.pick(("pairwise", "worst", "curve")), curve=dice.pick(("gtx-1080", "rtx-2080", FITTED))
        ),
        fragmentation=Fragmentation(
            form=dice.pick(("partial", "fgd")),
            level_weights={level: dice.number(0, 3) for level in levels if dice.chance(0.6)},
            target=_target(dice) if dice.chance(0.4) else (),
        ),
        horus=Horus(
            memory_thousandths=dice.pick((500, 0, 1000, 123_457)), utilisation_thousandths=dice.pick((500, 0, 77_777))
        ),
        queues=_queues(dice) if dice.chance(0.3) else (),
    )


def _target(dice: Dice) -> tuple[TargetWorker, ...]:
    gpus = [dice.pick((0, 1, 1, 1, 2, 3)) for _ in range(dice.number(1, 4))]
    return tuple(
        TargetWorker(
            gpus=number,
            gpu_milli=dice.number(50, 1000, 50) if number == 1 else 1000,
            gpu_models=tuple(dice.some(GPU_MODELS)) if dice.chance(0.4) else (),
            cpu_millicores=dice.number(0, 8000, 500) if dice.chance(0.6) else 0,
            count=dice.number(1, 9),
        )
        for number in gpus
    )


def _weights(dice: Dice) -> Weights:
    names = ("communication", "interference", "fragmentation", "horus", "resource")
    active = dice.some(names)
    if not active:
        return Weights(**dict.fromkeys(names, 0))
    parts = {name: dice.number(1, 9) for name in active}
    shares = {name: 1000 * part // sum(parts.values()) for name, part in parts.items()}
    shares[active[0]] += 1000 - sum(shares.values())
    return Weights(**{**dict.fromkeys(names, 0), **shares})


def _queues(dice: Dice) -> tuple[Queue, ...]:
    def quota(p: float, step: int) -> Quota:
        return Quota(
            gpu_milli=dice.maybe(p, dice.number(0, 4000, 250) // step),
            cpu_millicores=dice.maybe(p / 2, dice.number(2000, 16_000, 1000) // step),
            memory_mib=dice.maybe(p / 2, dice.number(8000, 64_000, 4000) // step),
        )

    return tuple(
        Queue(
            id=name,
            quota=quota(0.6, 1),
            borrow=quota(0.4, 2),
            dominant_share_percent=dice.maybe(0.4, dice.number(10, 90)),
            borrow_percent=dice.pick((0, 0, 10)),
        )
        for name in ("q0", "q1")
    )


def _job(dice: Dice, name: str, style: _Style, nodes: list[str]) -> Job:
    if style.alike and style.made and dice.chance(0.7):
        one = {
            "profile": dice.pick((*PROFILES, None)),
            "tolerations": tuple(dice.some(TAINTS)),
            "queue": dice.pick([*style.queues, None]),
            "communication": Communication(weight=dice.number(0, 4)),
            "utility_min_thousandths": dice.pick((None, 400)),
        }
        field = dice.pick(list(one))
        other = {field: one[field]} if dice.chance(0.6) else {}
        return dice.pick(style.made).model_copy(update={"id": name, **other})
    count = dice.pick((1, 1, 1, 2, 3))
    options = tuple(_option(dice, f"o{i}", style, cpu_only=i > 0 and dice.chance(0.4)) for i in range(count))
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


def _option(dice: Dice, name: str, style: _Style, *, cpu_only: bool) -> Option:
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
        splits=_splits(dice, style, workers, fewest) if dice.chance(0.3 if workers > 1 else 0.05) else (),
        value=dice.pick((0, 1, 1, 2, 3, 5, 7)),
        value_per_extra_worker=dice.number(0, 3) if fewest is not None else 0,
        utility_thousandths=dice.maybe(0.7, dice.pick((300, 400, 500))) if style.utility else None,
        cost_milli=dice.number(0, 3000, 100) if dice.chance(0.5) else 0,
    )


def _splits(dice: Dice, style: _Style, workers: int, fewest: int | None) -> tuple[Split, ...]:
    splits = []
    for level in dice.some(style.levels):
        domains = dice.number(1, workers)
        exact = workers % domains == 0 and fewest in (None, workers) and dice.chance(0.6)
        splits.append(Split(level=level, domains=domains, workers=workers // domains if exact else None))
    return tuple(splits)


def _jobs(dice: Dice, style: _Style, empty: Instance, most: int) -> tuple[Job, ...]:
    """Draw jobs; leave out most of those that fit nowhere, and those that would make the round too large."""
    kept: list[Job] = []
    room = MOST_COMBINATIONS
    nodes = [node.id for node in empty.cluster.nodes]
    for _ in range(3 * most):
        job = _job(dice, f"j{len(kept)}", style, nodes)
        size = space(compile_problem(empty.model_copy(update={"jobs": (job,)})), MOST_PLACEMENTS)
        if size <= min(room, MOST_PLACEMENTS) and (size > 1 or dice.chance(0.1)):
            kept.append(job)
            room //= size
        if len(kept) == most:
            break
    return tuple(kept)


def _with_running(dice: Dice, instance: Instance, chance: float) -> Instance:
    """Let some jobs run, each somewhere it fits, now and then with more than the share it asked for."""
    problem = compile_problem(instance)
    state = State(problem)
    for job in range(problem.num_jobs):
        open_to = [p for p in placements(problem, job) if fits(state, job, p)] if dice.chance(chance) else []
        if open_to:
            largest = max(len(p.nodes) for p in open_to)
            if dice.chance(0.5):
                open_to = [p for p in open_to if len(p.nodes) == largest]  # so that there is something to shrink
            state.apply(Move(job, dice.pick(open_to)))
    running = _running(problem, state.placements)
    out = instance.model_copy(update={"running": _generous(dice, instance, running)})
    now = compile_problem(out)
    if any(judge(out, plan_of(now, tuple(now.running.get(j) for j in range(now.num_jobs))))):
        raise AssertionError("running jobs that fit are refused by the referee")
    return out


def _generous(dice: Dice, instance: Instance, running: tuple[Running, ...]) -> tuple[Running, ...]:
    """Let jobs hold more than their requests, as far as limits and GPUs allow: any file may say so."""
    demands = {(job.id, option.id): option.demand for job in instance.jobs for option in job.options}
    held: Counter[tuple[str, str]] = Counter()
    for one in running:
        for a in one.assignments:
            held.update({(a.node, gpu): milli for gpu, milli in a.gpus.items()})
    out = []
    for one in running:
        demand, assignments = demands[one.job, one.option], []
        for a in one.assignments:
            gpus = {}
            for gpu, milli in a.gpus.items():
                gpus[gpu] = milli
                if demand.gpu_milli_limit is not None:
                    free = max(0, 1000 - held[a.node, gpu])
                    gpus[gpu] = dice.number(milli, min(demand.gpu_milli_limit, milli + free))
                    held[a.node, gpu] += gpus[gpu] - milli
            assignments.append(a.model_copy(update={"gpus": gpus}))
        out.append(one.model_copy(update={"assignments": tuple(assignments)}))
    return tuple(out)


def _running(problem: Problem, held: Sequence[Placement | None]) -> tuple[Running, ...]:
    return tuple(
        Running(
            job=problem.job_ids[j],
            option=problem.options.name[placement.option],
            assignments=assignments_of(problem, placement),
        )
        for j, placement in enumerate(held)
        if placement is not None
    )


def _with_barriers(dice: Dice, instance: Instance) -> Instance:
    """Drain and taint nodes; what runs there stays."""
    nodes = tuple(
        node.model_copy(
            update={
                "drained": dice.chance(0.1 if node.id != "n0" else 0.03),
                "taints": tuple(dice.some(TAINTS)) if dice.chance(0.15) else (),
            }
        )
        for node in instance.cluster.nodes
    )
    return instance.model_copy(update={"cluster": instance.cluster.model_copy(update={"nodes": nodes})})


def _with_changes(dice: Dice, instance: Instance) -> Instance:
    """Allow the running jobs to be changed, each in some of the ways."""
    most = (0, 1, 1, 2, 5)
    prices = [dice.pick((0, 0, 1, 2, 4)) for _ in range(3)]
    changes = Changes(
        moves_max=dice.pick(most),
        preemptions_max=dice.pick(most),
        shrinks_max=dice.pick(most),
        move_price=prices[0],
        preemption_price=prices[1],
        shrink_price_per_worker=prices[2],
        last_submitted_first=dice.chance(0.3),
    )
    running = tuple(
        one.model_copy(
            update={"movable": dice.chance(0.6), "shrinkable": dice.chance(0.8), "preemptible": dice.chance(0.6)}
        )
        for one in instance.running
    )
    policy = instance.policy.model_copy(update={"changes": changes})
    return instance.model_copy(update={"running": running, "policy": policy})


def _with_minima(dice: Dice, instance: Instance) -> Instance:
    """Let jobs wait below a minimal utility; those whose options state a utility of their own keep what they have."""
    postpone = Postpone(rule="utility", utility=dice.pick(("sum", "sc17")))
    jobs = tuple(
        job
        if any(option.utility_thousandths is not None for option in job.options)
        else job.model_copy(update={"utility_min_thousandths": dice.pick((None, 100, 253, 300, 500, 683, 800, 1000))})
        for job in instance.jobs
    )
    return instance.model_copy(
        update={"jobs": jobs, "policy": instance.policy.model_copy(update={"postpone": postpone})}
    )


def features(instance: Instance) -> set[str]:
    """Name what a round has, for a campaign to count."""
    policy, options = instance.policy, [option for job in instance.jobs for option in job.options]
    machines = {machine.id: machine for machine in instance.cluster.machines}
    used = [machines[node.machine] for node in instance.cluster.nodes]
    demands = [option.demand for option in options]
    weights = policy.weights.model_dump()
    found = {
        f"share mode {policy.share_mode}": True,
        "jobs_per_gpu_max stated": policy.jobs_per_gpu_max is not None,
        "fractions": any(d.gpu_milli < 1000 for d in demands),
        "request below limit": any(d.gpu_milli_limit not in (None, d.gpu_milli) for d in demands),
        "several GPU types": len({(gpu.model, gpu.memory_mib) for machine in used for gpu in machine.gpus}) > 1,
        "GPU models asked for": any(d.gpu_models for d in demands),
        "GPU memory asked for": any(d.gpu_memory_mib for d in demands),
        "CPU asked for": any(d.cpu_millicores for d in demands),
        "memory bandwidth limited": any(d.memory_bandwidth_mbps for d in demands)
        and any(machine.memory_bandwidth_mbps is not None for machine in used),
        "PCIe bandwidth limited": any(d.pcie_bandwidth_mbps for d in demands)
        and any(machine.pcie_bandwidth_mbps is not None for machine in used),
        "network limited": any(o.workers > 1 and not o.single_node and o.demand.network_bandwidth_mbps for o in options)
        and any(machine.network_bandwidth_mbps is not None for machine in used),
        "domains": bool(instance.cluster.domains),
        "several options": any(len(job.options) > 1 for job in instance.jobs),
        "options with and without GPUs": any(
            len({option.demand.gpus > 0 for option in job.options}) > 1 for job in instance.jobs
        ),
        "elastic": any(o.workers_min not in (None, o.workers) for o in options),
        "gang of several workers": any(o.workers > 1 for o in options),
        "single node gang": any(o.workers > 1 and o.single_node for o in options),
        "workers per node limited": any(o.workers > 1 and o.workers_per_node_max for o in options),
        "split": any(o.splits for o in options),
        "exact split": any(split.workers for o in options for split in o.splits),
        "selector": any(job.node_selector for job in instance.jobs),
        "nodes allowed": any(job.nodes_allowed is not None for job in instance.jobs),
        "taint": any(node.taints for node in instance.cluster.nodes),
        "drained": any(node.drained for node in instance.cluster.nodes),
        "queues": bool(policy.queues),
        "dominant share": any(queue.dominant_share_percent is not None for queue in policy.queues),
        "minimal utility": any(job.utility_min_thousandths is not None for job in instance.jobs),
        f"postponed by utility, {policy.postpone.utility}": policy.postpone.rule == "utility",
        "running": bool(instance.running),
        "running with more than the request": any(
            share != option.demand.gpu_milli
            for running in instance.running
            for job in instance.jobs
            for option in job.options
            if (job.id, option.id) == (running.job, running.option)
            for assignment in running.assignments
            for share in assignment.gpus.values()
        ),
        "may be moved": bool(policy.changes.moves_max) and any(running.movable for running in instance.running),
        "may be shrunk": bool(policy.changes.shrinks_max)
        and any(
            running.shrinkable and option.workers_min not in (None, sum(len(a.workers) for a in running.assignments))
            for running in instance.running
            for job in instance.jobs
            for option in job.options
            if (job.id, option.id) == (running.job, running.option)
        ),
        "may be preempted": bool(policy.changes.preemptions_max)
        and any(running.preemptible for running in instance.running),
        "last submitted first": policy.changes.last_submitted_first,
        "traffic": any(job.communication.weight for job in instance.jobs),
        "traffic edges": any(job.communication.edges for job in instance.jobs),
        "traffic edges between workers of several GPUs": any(
            job.communication.edges and any(o.workers > 1 and o.demand.gpus > 1 for o in job.options)
            for job in instance.jobs
        ),
        "GPUs unequally far from the network": any(len({gpu.part for gpu in machine.gpus}) > 1 for machine in used)
        and any(gpu.part is None for machine in used for gpu in machine.gpus),
        "closer domain disturbs less": any(
            s.gpu_thousandths < s.switch_thousandths
            or s.switch_thousandths < s.socket_thousandths
            or s.socket_thousandths < s.node_thousandths
            for s in instance.slowdowns
        ),
        "stated distances": any(machine.gpu_distance_matrix is not None for machine in used),
        "direct links": any(machine.links for machine in used),
        "sockets or switches": any(machine.parts for machine in used),
        f"interference {policy.interference.model}": bool(weights["interference"]),
        f"fragmentation {policy.fragmentation.form}": bool(weights["fragmentation"]),
        "stated target workload": policy.fragmentation.form == "fgd" and bool(policy.fragmentation.target),
        **{f"cost {name}": weight > 0 for name, weight in weights.items()},
    }
    return {name for name, here in found.items() if here}
