"""What changes of a live cluster may say: each is refused in words before anything changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from placeopt.check.case import names
from placeopt.errors import BadInput
from placeopt.live_cluster.changes import ClusterChanges
from placeopt.live_cluster.cluster_record import ClusterRecord, refuse_groups
from placeopt.model import Hold, Job, Node
from placeopt.model import Placement as PlacementRecord
from placeopt.model.base import MAX_JOBS, MAX_NODES
from placeopt.model.cluster import node_fault
from placeopt.model.instance import job_fault, running_fault


def check_jobs(record: ClusterRecord, add: Collection[Job], remove: Collection[str], ending: Collection[str]) -> None:
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
        refuse_groups(job)
        for queues in record.queues:
            if fault := job_fault(job, queues, record.levels):
                raise BadInput(f"add_jobs: job {job.id!r}: {fault}")


def new_priorities(record: ClusterRecord, priority: Mapping[str, int], leaving: Collection[str]) -> dict[str, int]:
    """Return the priorities that change, or raise ``BadInput`` unless all are of jobs that stay."""
    for job_id in priority:
        if job_id not in record.jobs or job_id in leaving:
            raise BadInput(f"priorities: no job {job_id!r}")
    return {job: number for job, number in priority.items() if record.jobs[job].priority != number}


def new_fields(record: ClusterRecord, changes: ClusterChanges, halted: Collection[str]) -> dict[str, dict[str, object]]:
    """Return the ends and flags that change, by job, or raise ``BadInput`` unless all are of jobs that run on."""
    changed: dict[str, dict[str, object]] = {}
    ends = {job: {"expected_end_ms": end} for job, end in changes.expected_end_ms.items()}
    for stated in (ends, changes.flags):
        for job_id, fields in stated.items():
            if job_id not in record.running or job_id in halted:
                raise BadInput(f"{'expected_end_ms' if stated is ends else 'flags'}: job {job_id!r} does not run")
            before = vars(record.running[job_id])
            if other := {name: value for name, value in fields.items() if before[name] != value}:
                changed.setdefault(job_id, {}).update(other)
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


def check_places(record: ClusterRecord, running: Collection[PlacementRecord]) -> None:
    """Raise ``BadInput`` unless these waiting jobs can be said to run where they do."""
    begun: set[str] = set()
    for placement in running:
        if placement.job in record.running or placement.job in begun:
            raise BadInput(f"placement: job {placement.job!r} runs already")
        if placement.job not in record.jobs:
            raise BadInput(f"placement: no job {placement.job!r}; add it first")
        begun.add(placement.job)
        if fault := running_fault(record.jobs[placement.job], placement):
            raise BadInput(f"placement: {fault}")
        for a, assignment in enumerate(placement.assignments):
            where = f"placement: assignments[{a}]"
            if assignment.node not in record.nodes:
                raise BadInput(f"{where}.node: no node {assignment.node!r}")
            size = len(record.ledger.directory.machine_of[assignment.node].gpus)
            beyond = [gpu for gpu in assignment.gpus if int(gpu) >= size]
            if beyond:
                raise BadInput(f"{where}.gpus: node {assignment.node!r} has {size} GPUs, but no GPU {beyond[0]}")


def check_nodes(record: ClusterRecord, nodes: Mapping[str, Node | None], stopping: Collection[str]) -> None:
    """Raise ``BadInput`` unless nodes can come, change and go (None)."""
    directory = record.ledger.directory
    for name, node in nodes.items():
        if node is None:
            if name not in record.nodes:
                raise BadInput(f"nodes: no node {name!r}")
            if held := [job for job in record.ledger.on_node(name) if job not in stopping]:
                raise BadInput(f"nodes: {name!r} cannot go; release what runs there first: {names(held)}")
        elif node.id != name:
            raise BadInput(f"nodes: {name!r} is given a node {node.id!r}; keys are ids")
        elif fault := node_fault(node, directory.machines, directory.domains_above):
            raise BadInput(f"nodes: {name!r}: {fault}")
    left = len(record.nodes) + sum((node is not None) - (name in record.nodes) for name, node in nodes.items())
    if not left or left > MAX_NODES:
        raise BadInput(f"nodes: {left} nodes would be left, expected 1 to {MAX_NODES}")
