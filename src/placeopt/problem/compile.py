"""Instance -> Problem: classes of jobs and nodes, option rows, masks, levels; the one reader of the model's records."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.errors import BadInput, Unsupported
from placeopt.model import Instance, Job, Option, Policy
from placeopt.problem.arrays import RESOURCES, UNLIMITED, IntArray, Options, Problem
from placeopt.problem.classes import allowed_nodes, job_classes, node_classes
from placeopt.problem.domains import fragmentation_levels, gpu_parts, node_domains
from placeopt.problem.indexing import running_placement
from placeopt.problem.placement import Placement
from placeopt.topology.cluster_topology import ClusterTopology

MAX_OPTION_ROWS = 200_000
MAX_VALUE = 2**53
SLOWDOWN_LEVELS = ("gpu", "switch", "socket", "node")


def compile_problem(instance: Instance, policy: Policy | None = None) -> Problem:
    """
    Compile ``instance`` under ``policy`` (the instance's own by default).

    Raises
    ------
    BadInput
        If a running placement does not fit its job or machine, or a job's queue is unknown to the policy.
    Unsupported
        If values and prices of all jobs together can exceed 2^53, beyond which sums are not exact.
    """
    policy = policy or instance.policy
    topology = ClusterTopology(instance.cluster)
    members, job_class = job_classes(instance, policy)
    types, gpu_type = _gpu_types(instance, topology)
    rows = _option_rows(members)
    _refuse_huge_values(rows, job_class, policy, len(instance.running))
    node_class, class_nodes = node_classes(instance, members)
    capacity = _node_capacity(instance, policy)
    options = _options(instance, rows, members, types, gpu_type, topology, class_nodes, capacity)
    profiles = _profiles(instance)
    queues = {queue.id: i for i, queue in enumerate(policy.queues)}
    switch, socket = gpu_parts(instance, topology, "switch"), gpu_parts(instance, topology, "socket")
    problem = Problem(
        instance=instance,
        policy=policy,
        topology=topology,
        node_ids=tuple(node.id for node in instance.cluster.nodes),
        node_class=node_class,
        node_capacity=capacity,
        node_schedulable=np.array([not node.drained for node in instance.cluster.nodes], dtype=bool),
        gpu_type=gpu_type,
        gpu_memory_mib=_ints([types[t][1] for t in gpu_type]),
        type_model=tuple(model for model, _ in types),
        type_memory_mib=_ints([memory for _, memory in types]),
        gpu_switch=switch,
        gpu_socket=socket,
        levels=fragmentation_levels(instance, policy, topology),
        job_ids=tuple(job.id for job in instance.jobs),
        job_class=job_class,
        job_arrival_ms=_ints([job.arrival_ms for job in instance.jobs]),
        job_priority=_ints([job.priority for job in instance.jobs]),
        class_option_start=np.searchsorted(options.job_class, np.arange(len(members) + 1)),
        class_communication=tuple(job.communication for job in members),
        class_profile=_ints([profiles.get(job.profile, -1) if job.profile else -1 for job in members]),
        class_queue=_ints([_queue_of(job, queues) for job in members]),
        options=options,
        slowdown=_slowdowns(instance, profiles),
        machine_link_mbps=_ints(
            [_limit(instance.cluster.machines[m].network_bandwidth_mbps) for m in topology.node_machine]
        ),
        domain_link_mbps=_ints([_limit(domain.uplink_mbps) for domain in instance.cluster.domains]),
        split_domain={
            level: node_domains(instance, level)
            for level in dict.fromkeys(split.level for splits in options.splits for split in splits)
        },
        running={},
        **_may_change(instance, policy),
    )
    problem.running.update(_running(instance, problem))
    return problem


def _ints(values: Sequence[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


def _limit(capacity: int | None) -> int:
    return UNLIMITED if capacity is None else capacity


def _may_change(instance: Instance, policy: Policy) -> dict[str, frozenset[int]]:
    """Return the fields ``may_move``, ``may_shrink`` and ``may_preempt`` of the problem."""
    changes, number = policy.changes, {job.id: j for j, job in enumerate(instance.jobs)}
    move, shrink, preempt = set(), set(), set()
    for running in instance.running:
        j = number[running.job]
        if changes.moves_max and running.movable:
            move.add(j)
        if changes.preemptions_max and running.preemptible:
            preempt.add(j)
        if changes.shrinks_max and running.shrinkable:
            option = next(option for option in instance.jobs[j].options if option.id == running.option)
            workers = sum(len(assignment.workers) for assignment in running.assignments)
            if option.workers_min is not None and workers > option.workers_min:
                shrink.add(j)
    return {"may_move": frozenset(move), "may_shrink": frozenset(shrink), "may_preempt": frozenset(preempt)}


def _option_rows(members: list[Job]) -> list[tuple[int, Option, int, int]]:
    """Return (class, option, number of workers, value) rows; options below the job's utility are left out."""
    rows: list[tuple[int, Option, int, int]] = []
    for k, job in enumerate(members):
        for option in job.options:
            utility, least = option.utility_thousandths, job.utility_min_thousandths
            if utility is not None and least is not None and utility < least:
                continue
            fewest = option.workers if option.workers_min is None else option.workers_min
            if len(rows) + option.workers - fewest > MAX_OPTION_ROWS:
                raise BadInput(
                    f"job {job.id!r}: elastic range {fewest}..{option.workers} makes more than {MAX_OPTION_ROWS} "
                    "options in this instance; narrow 'workers_min'..'workers'"
                )
            rows.extend(
                (k, option, workers, option.value + (workers - fewest) * option.value_per_extra_worker)
                for workers in range(fewest, option.workers + 1)
            )
    return rows


def _refuse_huge_values(
    rows: list[tuple[int, Option, int, int]], job_class: IntArray, policy: Policy, running: int
) -> None:
    best: dict[int, int] = {}
    for k, _, _, value in rows:
        best[k] = max(best.get(k, 0), value)
    total = sum(best.get(k, 0) * count for k, count in enumerate(np.bincount(job_class).tolist()))
    changes, most = policy.changes, max((workers for _, _, workers, _ in rows), default=0)
    dearest = max(changes.move_price, changes.preemption_price, changes.shrink_price_per_worker * most)
    if total + 2 * running * dearest > MAX_VALUE:  # twice: the linear form adds a price and takes another off
        raise Unsupported(
            f"the jobs are worth {total} together, and changes of the {running} running ones cost up to {dearest} "
            "each: more than 2**53; use coarser values and prices"
        )


def _gpu_types(instance: Instance, topology: ClusterTopology) -> tuple[list[tuple[str, int]], IntArray]:
    types: dict[tuple[str, int], int] = {}
    per_machine = [
        _ints([types.setdefault((gpu.model, gpu.memory_mib), len(types)) for gpu in machine.gpus])
        for machine in instance.cluster.machines
    ]
    gpu_type = [per_machine[m] for m in topology.node_machine]
    return list(types), np.concatenate(gpu_type) if gpu_type else _ints([])


def _node_capacity(instance: Instance, policy: Policy) -> IntArray:
    usable = policy.usable

    def part(capacity: int | None, percent: int) -> int:
        # load * 100 <= percent * capacity, in integers
        return UNLIMITED if capacity is None else capacity * percent // 100

    per_machine = {
        machine.id: (
            machine.cpu_millicores,
            machine.memory_mib,
            part(machine.memory_bandwidth_mbps, usable.memory_bandwidth_percent),
            part(machine.pcie_bandwidth_mbps, usable.pcie_bandwidth_percent),
        )
        for machine in instance.cluster.machines
    }
    rows = [per_machine[node.machine] for node in instance.cluster.nodes]
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(RESOURCES))


def _options(
    instance: Instance,
    rows: list[tuple[int, Option, int, int]],
    members: list[Job],
    types: list[tuple[str, int]],
    gpu_type: IntArray,
    topology: ClusterTopology,
    class_nodes: list[int],
    capacity: IntArray,
) -> Options:
    demands = [option.demand for _, option, _, _ in rows]
    workers = _ints([count for _, _, count, _ in rows])
    single = np.array([option.single_node for _, option, _, _ in rows], dtype=bool)
    bundles = np.where(single, 1, workers)
    demand = np.array([[getattr(d, name) for name in RESOURCES] for d in demands], dtype=np.int64)
    demand = demand.reshape(len(rows), len(RESOURCES))
    gpus, memory = _ints([d.gpus for d in demands]), _ints([d.gpu_memory_mib for d in demands])
    models = np.array([model for model, _ in types])
    type_memory = _ints([size for _, size in types])
    type_ok = type_memory[None, :] >= memory[:, None]  # (O, T)
    for o, d in enumerate(demands):
        if d.gpu_models:
            type_ok[o] &= np.isin(models, d.gpu_models)
    counts = np.array(  # (C, T) GPUs of each type on a node of the class
        [
            np.bincount(gpu_type[topology.node_gpu_start[n] : topology.node_gpu_start[n + 1]], minlength=len(types))
            for n in class_nodes
        ],
        dtype=np.int64,
    ).reshape(len(class_nodes), len(types))
    per_bundle = workers // np.maximum(bundles, 1)
    limit = _ints([option.workers_per_node_max or MAX_PER_NODE for _, option, _, _ in rows])
    node_ok = type_ok.astype(np.int64) @ counts.T >= (gpus * per_bundle)[:, None]  # (O, C)
    node_ok &= (capacity[class_nodes][None, :, :] >= (demand * per_bundle[:, None])[:, None, :]).all(axis=2)
    node_ok &= (per_bundle <= limit)[:, None]
    job_class = _ints([k for k, _, _, _ in rows])
    if rows:
        node_ok &= allowed_nodes(instance, members, class_nodes)[job_class]
    return Options(
        job_class=job_class,
        name=tuple(option.id for _, option, _, _ in rows),
        value=_ints([value for _, _, _, value in rows]),
        cost_milli=_ints([option.cost_milli for _, option, _, _ in rows]),
        workers=workers,
        bundles=bundles,
        gpus=gpus,
        milli=_ints([d.gpu_milli for d in demands]),
        gpu_memory_mib=memory,
        utilisation=_ints([d.gpu_utilisation_percent for d in demands]),
        demand=demand,
        network_mbps=_ints([d.network_bandwidth_mbps for d in demands]),
        workers_per_node=np.minimum(limit, workers),
        splits=tuple(option.splits for _, option, _, _ in rows),
        gpu_type_ok=type_ok,
        node_class_ok=node_ok,
    )


MAX_PER_NODE = 1 << 30


def _profiles(instance: Instance) -> dict[str, int]:
    names = dict.fromkeys(name for s in instance.slowdowns for name in (s.profile, s.beside))
    return {name: i for i, name in enumerate(names)}


def _slowdowns(instance: Instance, profiles: dict[str, int]) -> IntArray:
    table = np.zeros((len(SLOWDOWN_LEVELS), len(profiles), len(profiles)), dtype=np.int64)
    for slowdown in instance.slowdowns:
        for i, level in enumerate(SLOWDOWN_LEVELS):
            table[i, profiles[slowdown.profile], profiles[slowdown.beside]] = getattr(slowdown, f"{level}_thousandths")
    return table


def _queue_of(job: Job, queues: dict[str, int]) -> int:
    if job.queue is None or not queues:
        return -1
    if job.queue not in queues:
        raise BadInput(f"job {job.id!r}: its queue {job.queue!r} is unknown to the policy; add it to policy.queues")
    return queues[job.queue]


def _running(instance: Instance, problem: Problem) -> dict[int, Placement]:
    jobs = {job_id: j for j, job_id in enumerate(problem.job_ids)}
    nodes = {node_id: n for n, node_id in enumerate(problem.node_ids)}
    return {
        jobs[running.job]: running_placement(running, problem, jobs[running.job], nodes) for running in instance.running
    }
