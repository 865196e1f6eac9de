"""What changes of a live cluster may say: each is refused in words before anything changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from placeopt.check.case import names
from placeopt.errors import BadInput
from placeopt.live_cluster.changes import FLAGS
from placeopt.live_cluster.cluster_record import ClusterRecord, refuse_groups
from placeopt.model import Hold, Job, Node
from placeopt.model import Placement as PlacementRecord
from placeopt.model.base import MAX_JOBS, MAX_MS, MAX_NODES
from placeopt.model.instance import job_fault, running_fault
from placeopt.model.job import MAX_PRIORITY


def check_jobs(
    record: ClusterRecord, add: tuple[Job, ...], remove: tuple[str, ...], ending: Collection[str] = ()
) -> None:
    """Raise ``BadInput`` unless these jobs can come and go; those in ``ending`` run until then."""
    leaving = set(remove)
    if len(leaving) < len(remove):
        raise BadInput("remove_jobs: a job appears twice")
    for job_id in remove:
        if job_id not in record.jobs:
            raise BadInput(f"remove_jobs: no job {job_id!r}")
        if job_id in record.running and job_id not in ending:
            raise BadInput(f"remove_jobs: job {job_id!r} runs; release it")
    if len(record.jobs) - len(remove) + len(add) > MAX_JOBS:
        raise BadInput(f"add_jobs: more than {MAX_JOBS} jobs would be left")
    coming: set[str] = set()
    for job in add:
        if job.id in coming or (job.id in record.jobs and job.id not in leaving):
            raise BadInput(f"add_jobs: job {job.id!r} is there already; remove it first, or choose another id")
        coming.add(job.id)
        for queues in record.queues:
            refuse_groups(job)
            fault = job_fault(job, queues, record.levels)
            if fault is not None:
                raise BadInput(f"add_jobs: job {job.id!r}: {fault}")


def new_priorities(record: ClusterRecord, priority: Mapping[str, int], leaving: Collection[str]) -> dict[str, int]:
    """Return the priorities that change, or raise ``BadInput`` unless all are of jobs that stay."""
    for job_id, number in priority.items():
        if job_id not in record.jobs or job_id in leaving:
            raise BadInput(f"priority: no job {job_id!r}")
        if type(number) is not int or abs(number) > MAX_PRIORITY:
            raise BadInput(
                f"priority: {number!r} for job {job_id!r}, expected an integer of at most {MAX_PRIORITY} either way"
            )
    return {job: number for job, number in priority.items() if record.jobs[job].priority != number}


def new_ends(record: ClusterRecord, ends: Mapping[str, int], halted: Collection[str]) -> dict[str, int]:
    """Return the ends that change, or raise ``BadInput`` unless all are times of jobs that run on."""
    for job_id, end in ends.items():
        if job_id not in record.running or job_id in halted:
            raise BadInput(f"expected_end_ms: job {job_id!r} does not run")
        if type(end) is not int or not 0 <= end <= MAX_MS:
            raise BadInput(f"expected_end_ms: {end!r} for job {job_id!r}, expected ms from 0 to {MAX_MS}")
    return {job: end for job, end in ends.items() if record.running[job].expected_end_ms != end}


def new_flags(
    record: ClusterRecord, flags: Mapping[str, Mapping[str, bool]], halted: Collection[str]
) -> dict[str, dict[str, bool]]:
    """Return the flags that change, or raise ``BadInput`` unless all are flags of jobs that run on."""
    changed: dict[str, dict[str, bool]] = {}
    for job_id, values in flags.items():
        if job_id not in record.running or job_id in halted:
            raise BadInput(f"flags: job {job_id!r} does not run")
        if not isinstance(values, Mapping):
            raise BadInput(f"flags: {values!r} for job {job_id!r}, expected flags by name")
        for flag, value in values.items():
            if flag not in FLAGS or not isinstance(value, bool):
                raise BadInput(
                    f"flags: {flag!r}: {value!r} for job {job_id!r}, expected {', '.join(FLAGS)} with true or false"
                )
            if getattr(record.running[job_id], flag) != value:
                changed.setdefault(job_id, {})[flag] = value
    return changed


def new_holds(record: ClusterRecord, holds: Collection[Hold] | None) -> tuple[dict[str, Hold], dict[str, Hold | None]]:
    """Return the holds by id, and those that change (None: it goes); raise ``BadInput`` for a repeated id."""
    if holds is None:
        return {}, {}
    before, after = ({hold.id: hold for hold in those} for those in (record.holds, holds))
    if len(after) < len(holds):
        raise BadInput("holds: a hold appears twice")
    changes = {name: after.get(name) for name in {**before, **after} if before.get(name) != after.get(name)}
    return before, changes


def check_place(record: ClusterRecord, placement: PlacementRecord) -> None:
    """Raise ``BadInput`` unless the waiting job of that id can be said to run there."""
    if placement.job in record.running:
        raise BadInput(f"placement: job {placement.job!r} runs already")
    if placement.job not in record.jobs:
        raise BadInput(f"placement: no job {placement.job!r}; add it first")
    fault = running_fault(record.jobs[placement.job], placement)
    if fault is not None:
        raise BadInput(f"placement: {fault}")
    for a, assignment in enumerate(placement.assignments):
        where = f"placement: assignments[{a}]"
        if assignment.node not in record.nodes:
            raise BadInput(f"{where}.node: no node {assignment.node!r}")
        size = len(record.ledger.directory.machine_of[assignment.node].gpus)
        beyond = [gpu for gpu in assignment.gpus if int(gpu) >= size]
        if beyond:
            raise BadInput(f"{where}.gpus: node {assignment.node!r} has {size} GPUs, but no GPU {beyond[0]}")


def check_nodes(
    record: ClusterRecord, nodes: Mapping[str, Node | None], stopping: Collection[str]
) -> dict[str, Node | None]:
    """Return the new records by node id, or raise ``BadInput`` unless they can come, go and change."""
    records = dict(nodes)
    for name, change in records.items():
        if isinstance(change, Node):
            _check_node(record, name, change)
        elif change is not None:
            raise BadInput(f"nodes: {name!r}: {change!r}, expected a record of placeopt.model.Node or None")
        elif name not in record.nodes:
            raise BadInput(f"nodes: no node {name!r}")
        elif held := [job for job in record.ledger.on_node(name) if job not in stopping]:
            raise BadInput(f"nodes: {name!r} cannot go; release what runs there first: {names(held)}")
    left = len(record.nodes) + sum((node is not None) - (name in record.nodes) for name, node in records.items())
    if not left or left > MAX_NODES:
        raise BadInput(f"nodes: {left} nodes would be left, expected 1 to {MAX_NODES}")
    return records


def _check_node(record: ClusterRecord, name: str, node: Node) -> None:
    """Refuse a node that the cluster cannot hold."""
    directory = record.ledger.directory
    if node.id != name:
        raise BadInput(f"nodes: {name!r} is given a node {node.id!r}; keys are ids")
    if node.machine not in directory.machines:
        raise BadInput(f"nodes: {name!r}: no machine type {node.machine!r}; a step add_machines brings new ones")
    if node.domain is not None:
        if node.domain not in directory.uplinks:
            raise BadInput(f"nodes: {name!r}: no domain {node.domain!r}; a step add_domains brings new ones")
        clash = directory.domains_above[node.domain].keys() & node.labels.keys()
        if clash:
            raise BadInput(f"nodes: {name!r}: label {min(clash)!r} is set by the node's domain already")
