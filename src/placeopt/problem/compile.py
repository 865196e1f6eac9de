"""Instance -> Problem: classes of jobs and nodes, option rows, masks, levels; the one reader of the model's records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from placeopt.errors import BadInput, Unsupported
from placeopt.model import Cluster, Instance, Job, Option, Policy
from placeopt.model.machine import PART_LEVELS
from placeopt.problem.arrays import IntArray, Options, Placement, resource_demand, unknown_resources
from placeopt.problem.changes import without_fixed
from placeopt.problem.classes import allowed_nodes, exempt_of, job_classes, node_classes
from placeopt.problem.gpu_slots import has_profile
from placeopt.problem.grants import refuse_overfull
from placeopt.problem.hardware import Hardware, compile_hardware, find_lost, node_domains, with_lost
from placeopt.problem.problem import Classes, Jobs, Problem
from placeopt.problem.queues import flavors_of_queue
from placeopt.problem.running import running_placement
from placeopt.problem.target import target_workload
from placeopt.problem.tree import Tree, levels_of
from placeopt.problem.trees import with_members

MAX_ELASTIC_ROWS = 200_000
"""Options that elastic ranges add to those that jobs state, of which an instance may have any number."""
MAX_VALUE = 2**53
SLOWDOWN_LEVELS = ("gpu", "switch", "socket", "node")

MAX_PER_NODE = 1 << 30


def compile_problem(
    instance: Instance,
    policy: Policy | None = None,
    hardware: Hardware | None = None,
    lost: Cluster | None = None,
) -> Problem:
    """
    Compile a round to arrays.

    Parameters
    ----------
    instance
        The round.
    policy
        Instead of the instance's own.
    hardware
        Hardware of a problem of the same cluster under the same policy, to be reused.
    lost
        The cluster with stand-ins for what it does not list (`find_lost`), where the instance is a part of another.

    Returns
    -------
    Problem
        Read-only integer arrays; indices follow the order of the records.

    Raises
    ------
    BadInput
        If a running placement does not fit its job or machine, running ones are said to hold more than all of a GPU, or
        a job's queue is unknown to the policy.
    Unsupported
        If values and prices of all jobs together can exceed 2^53, beyond which sums are not exact, or distances inside
        machines take more than 128 MiB.
    """
    policy = policy or instance.policy
    given = instance
    instance, trees = with_members(instance)
    instance = with_lost(instance, lost or find_lost(instance))
    hardware = hardware or compile_hardware(instance, policy)
    members, job_class = job_classes(instance.jobs, policy, instance.hold_kinds.values(), instance.now_ms)
    seen = node_classes(instance, members, hardware.node_flavor.tolist())
    classes = compile_classes(instance, policy, hardware, members, *seen)
    counts = np.bincount(job_class, minlength=len(members))
    refuse_huge_values(classes.options, counts, policy, len(instance.running))
    number = {job.id: j for j, job in enumerate(instance.jobs)}
    jobs = Jobs(
        job_ids=tuple(number),
        job_class=job_class,
        job_arrival_ms=_ints([job.arrival_ms for job in instance.jobs]),
        job_priority=_ints([job.priority for job in instance.jobs]),
        **may_change(instance, policy, number),
    )
    more = {level: node_domains(instance, level) for level in levels_of(trees)}
    classes = replace(classes, split_domain={**classes.split_domain, **more})
    problem = assemble(instance, policy, hardware, classes, jobs, {}, given=given, trees=trees)
    nodes = {node_id: n for n, node_id in enumerate(problem.node_ids)}
    for running in instance.running:
        job = number[running.job]
        problem.running[job] = running_placement(running, problem, job, nodes)
    if problem.has_limits:
        refuse_overfull(instance.running)
    return without_fixed(problem)


def assemble(
    instance: Instance,
    policy: Policy,
    hardware: Hardware,
    classes: Classes,
    jobs: Jobs,
    running: dict[int, Placement],
    *,
    given: Instance | None = None,
    trees: tuple[Tree, ...] = (),
) -> Problem:
    """Compose a problem from its parts; ``instance`` is ``given`` with stand-ins and members."""
    kinds = ((Hardware, hardware), (Classes, classes), (Jobs, jobs))
    parts = {field.name: getattr(part, field.name) for kind, part in kinds for field in fields(kind)}
    schedulable = np.array([not node.drained for node in instance.cluster.nodes], dtype=bool)
    return Problem(
        instance=instance,
        given=given or instance,
        policy=policy,
        node_schedulable=schedulable,
        target=target_workload(instance, policy, hardware.type_model),
        running=running,
        trees=trees,
        **parts,
    )


def compile_classes(
    instance: Instance,
    policy: Policy,
    hardware: Hardware,
    members: list[Job],
    node_class: IntArray,
    class_nodes: list[int],
) -> Classes:
    """
    Compile the requests of job classes: one member of each, the class of every node, and a node of each class.

    Raises ``BadInput`` if a job's queue is unknown to the policy, or an elastic range makes too many options.
    """
    flavors = [flavors_of_queue(policy, job.queue) for job in members]
    options = _options(instance, _option_rows(members, flavors), members, hardware, class_nodes)
    named = dict.fromkeys(name for one in instance.slowdowns for name in (one.profile, one.beside))
    profiles = {name: i for i, name in enumerate(named)}
    queues = {queue.id: i for i, queue in enumerate(policy.queues)}
    levels = dict.fromkeys(split.level for splits in options.lies for split in splits)
    return Classes(
        node_class=node_class,
        class_option_start=np.searchsorted(options.job_class, np.arange(len(members) + 1)),
        class_communication=tuple(job.communication for job in members),
        class_profile=_ints([profiles.get(job.profile, -1) if job.profile else -1 for job in members]),
        class_queue=_ints([_queue_of(job, queues) for job in members]),
        class_utility_min=_ints(
            [-1 if job.utility_min_thousandths is None else job.utility_min_thousandths for job in members]
        ),
        class_exempt=tuple(exempt_of(job, instance.hold_kinds.values(), instance.now_ms) for job in members),
        class_member=tuple(members),
        options=options,
        slowdown=_slowdowns(instance, profiles),
        split_domain={level: node_domains(instance, level) for level in levels},
    )


def options_among(classes: Classes, chosen: IntArray) -> IntArray:
    """Return the options of the classes of jobs ``chosen``, class by class."""
    start = classes.class_option_start
    length = np.diff(start)[chosen]
    before = np.cumsum(length) - length
    rows: IntArray = np.arange(int(length.sum())) + np.repeat(start[:-1][chosen] - before, length)
    return rows


def classes_among(classes: Classes, chosen: IntArray) -> Classes:
    """Return the classes of jobs ``chosen`` of compiled ones, in that order; classes of nodes stay as they are."""
    options, row, length = classes.options, options_among(classes, chosen), np.diff(classes.class_option_start)[chosen]
    columns = {
        field.name: _chosen(getattr(options, field.name), row) for field in fields(options) if field.name != "job_class"
    }
    names = [field.name for field in fields(classes) if field.name.startswith("class_")]
    own = {name: _chosen(getattr(classes, name), chosen) for name in names}
    own["class_option_start"] = np.concatenate(([0], np.cumsum(length)))
    options = Options(job_class=np.repeat(np.arange(len(chosen)), length), **columns)
    return replace(classes, options=options, **own)


def _chosen(column: Any, rows: IntArray) -> Any:
    """Return rows of an array, or entries of a tuple."""
    return column[rows] if isinstance(column, np.ndarray) else tuple(column[row] for row in rows.tolist())


def _ints(values: Sequence[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


def may_change(instance: Instance, policy: Policy, number: dict[str, int]) -> dict[str, frozenset[int]]:
    """Return the fields ``may_move``, ``may_shrink`` and ``may_preempt`` of ``Jobs``; ``number`` of every job by id."""
    changes, kept = policy.changes, instance.kept_unread
    may: dict[str, set[int]] = {"may_move": set(), "may_shrink": set(), "may_preempt": set()}
    anything = changes.moves_max or changes.shrinks_max or changes.preemptions_max
    for running in instance.running if anything else ():
        if running.is_protected(instance.now_ms, changes.run_time_min_ms):
            continue
        j = number[running.job]
        if changes.preemptions_max and running.preemptible:
            may["may_preempt"].add(j)
        if running.job in kept:
            continue
        if changes.moves_max and running.movable:
            may["may_move"].add(j)
        if changes.shrinks_max and running.shrinkable:
            least = instance.jobs[j].option(running.option).workers_min
            if least is not None and sum(len(assignment.workers) for assignment in running.assignments) > least:
                may["may_shrink"].add(j)
    return {name: frozenset(jobs) for name, jobs in may.items()}


@dataclass(frozen=True, slots=True)
class _Row:
    job_class: int
    option: Option
    workers: int
    value: int
    flavor: int
    starts: bool = True
    """False: only for jobs that run on nodes of no flavor of their queue."""


def _option_rows(members: list[Job], flavors: list[list[int]]) -> list[_Row]:
    """Return the rows of options, those below the job's utility left out; ``flavors`` of the queue of each class."""
    rows: list[_Row] = []
    added = 0
    for k, job in enumerate(members):
        for option in job.options:
            if job.is_below_minimum(option):
                continue
            fewest = option.fewest
            added += option.workers - fewest
            if added > MAX_ELASTIC_ROWS:
                raise BadInput(
                    f"job {job.id!r}: elastic range {fewest}..{option.workers} makes more than {MAX_ELASTIC_ROWS} "
                    "options of such ranges in this instance; narrow 'workers_min'..'workers'"
                )
            for workers in range(fewest, option.workers + 1):
                worth = option.worth(workers)
                rows.append(_Row(k, option, workers, worth, -1, starts=not flavors[k]))
                rows.extend(_Row(k, option, workers, worth, flavor) for flavor in flavors[k])
    return rows


def refuse_huge_values(options: Options, counts: IntArray, policy: Policy, running: int) -> None:
    """Raise ``Unsupported`` if the jobs of each class, ``counts`` (K,), and changes of them can be worth 2^53."""
    best = np.zeros(len(counts), dtype=np.int64)
    np.maximum.at(best, options.job_class, options.value)
    total = sum(value * count for value, count in zip(best.tolist(), counts.tolist(), strict=True))
    changes, most = policy.changes, int(options.workers.max(initial=0))
    dearest = max(changes.move_price, changes.preemption_price, changes.shrink_price_per_worker * most)
    if total + 2 * running * dearest > MAX_VALUE:  # twice: the linear form adds a price and takes another off
        raise Unsupported(
            f"the jobs are worth {total} together, and changes of the {running} running ones cost up to {dearest} "
            "each: more than 2**53; use coarser values and prices"
        )


def _options(
    instance: Instance,
    rows: list[_Row],
    members: list[Job],
    hardware: Hardware,
    class_nodes: list[int],
) -> Options:
    gpu_type, capacity, start = hardware.gpu_type, hardware.node_capacity, hardware.topology.node_gpu_start
    chosen = [row.option for row in rows]
    demands = [option.demand for option in chosen]
    workers = _ints([row.workers for row in rows])
    part_level = tuple(option.part_level for option in chosen)
    single = np.array([option.single_node or option.part_level is not None for option in chosen], dtype=bool)
    bundles = np.where(single, 1, workers)
    named = hardware.named_resources
    demand = np.array([resource_demand(d, named) for d in demands], dtype=np.int64)
    demand = demand.reshape(len(rows), capacity.shape[1])
    gpus, memory = _ints([d.gpus for d in demands]), _ints([d.gpu_memory_mib for d in demands])
    models = np.array(hardware.type_model)
    type_ok = hardware.type_memory_mib[None, :] >= memory[:, None]  # (O, T)
    for o, d in enumerate(demands):
        if d.gpu_models:
            type_ok[o] &= np.isin(models, d.gpu_models)
    type_ok &= ~hardware.type_lost[None, :]
    for t, geometry in enumerate(hardware.type_geometry):
        type_ok[:, t] &= np.array([has_profile(geometry, d.gpu_profile) for d in demands], dtype=bool)
    exempt = [exempt_of(job, instance.hold_kinds.values(), instance.now_ms) for job in members]
    for t, holds in enumerate(hardware.type_holds):
        if holds:
            type_ok[:, t] &= np.array([holds <= exempt[row.job_class] for row in rows], dtype=bool)
    counts = np.array(  # (C, T) GPUs of each type on a node of the class
        [np.bincount(gpu_type[start[n] : start[n + 1]], minlength=len(hardware.type_model)) for n in class_nodes],
        dtype=np.int64,
    ).reshape(len(class_nodes), len(hardware.type_model))
    per_bundle = workers // np.maximum(bundles, 1)
    limit = _ints([option.workers_per_node_max or MAX_PER_NODE for option in chosen])
    node_ok = type_ok.astype(np.int64) @ counts.T >= (gpus * per_bundle)[:, None]  # (O, C)
    node_ok &= (capacity[class_nodes][None, :, :] >= (demand * per_bundle[:, None])[:, None, :]).all(axis=2)
    node_ok &= (per_bundle <= limit)[:, None]
    node_ok[[bool(unknown_resources(d, named)) for d in demands]] = False
    job_class, flavor = _ints([row.job_class for row in rows]), _ints([row.flavor for row in rows])
    node_ok &= (flavor[:, None] < 0) | (flavor[:, None] == hardware.node_flavor[class_nodes])
    node_ok[[not row.starts for row in rows]] = False
    if rows:
        node_ok &= allowed_nodes(instance, members, class_nodes)[job_class]
    return Options(
        job_class=job_class,
        name=tuple(option.id for option in chosen),
        flavor=flavor,
        value=_ints([row.value for row in rows]),
        cost_milli=_ints([option.cost_milli for option in chosen]),
        workers=workers,
        bundles=bundles,
        gpus=gpus,
        milli=_ints([d.gpu_milli for d in demands]),
        gpu_profile=tuple(d.gpu_profile for d in demands),
        gpu_memory_mib=memory,
        utilisation=_ints([d.gpu_utilisation_percent for d in demands]),
        demand=demand,
        network_mbps=_ints([d.network_bandwidth_mbps for d in demands]),
        workers_per_node=np.minimum(limit, workers),
        splits=tuple(
            tuple(split for split in instance.cluster.splits_of(option) if split.level not in PART_LEVELS)
            for option in chosen
        ),
        part_level=part_level,
        spread=tuple(option.spread for option in chosen),
        gpu_type_ok=type_ok,
        node_class_ok=node_ok,
    )


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
