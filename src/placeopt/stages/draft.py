"""Allocation -> Plan: placements, waiting jobs and changes to running ones in the file's terms."""

from __future__ import annotations

from placeopt.model import Assignment, Instance, Placement, Plan, WorkerGpus
from placeopt.model.plan import InstanceRef, Level, Moved, PolicyRef, Preempted, Shrunk, Unplaced
from placeopt.problem import RESOURCES, Allocation, Problem, change_of
from placeopt.problem import Placement as Indexed
from placeopt.problem.changes import shares_of

CPU, MEMORY = RESOURCES.index("cpu_millicores"), RESOURCES.index("memory_mib")


def draft_plan(instance: Instance, problem: Problem, allocation: Allocation) -> Plan:
    """
    Return a plan with placements, waiting jobs and changes; reasons, objective and the rest are the engine's to add.

    Every record is built from compiled integers, so it is not validated again field by field.
    """
    placements, unplaced = [], []
    for job, placement in enumerate(allocation):
        if placement is not None:
            placements.append(placement_record(problem, job, placement))
        else:
            unplaced.append(Unplaced.model_construct(job=problem.job_ids[job], reason="outvoted", detail=""))
    policy = problem.policy
    moved, shrunk, preempted = _changes(problem, allocation)
    return Plan.model_construct(
        format_version=1,
        instance=InstanceRef(name=instance.name, digest=instance.digest, revision=instance.revision),
        policy=PolicyRef(name=policy.name, digest=policy.digest, values=policy),
        status="feasible",
        limit="none",
        levels=(Level(name="value", sense="max", objective=0, bound=None),),
        gap=None,
        placements=tuple(placements),
        unplaced=tuple(unplaced),
        moved=tuple(moved),
        shrunk=tuple(shrunk),
        preempted=tuple(preempted),
    )


def _changes(problem: Problem, allocation: Allocation) -> tuple[list[Moved], list[Shrunk], list[Preempted]]:
    """Return the running jobs that are moved, shrunk and preempted, in the order of the file."""
    moved, shrunk, preempted = [], [], []
    for job in sorted(problem.changeable):
        now, before, name = allocation[job], problem.running[job], problem.job_ids[job]
        change = change_of(problem, job, now)
        if now is None:
            freed = sum(shares_of(problem, before))
            preempted.append(Preempted.model_construct(job=name, freed_gpu_milli=freed))
        elif change == "shrunk":
            shrunk.append(Shrunk.model_construct(job=name, workers=len(now.nodes)))
        elif change == "moved":
            start, end = _nodes(problem, before), _nodes(problem, now)
            moved.append(Moved.model_construct(job=name, from_nodes=start, to_nodes=end))
    return moved, shrunk, preempted


def _nodes(problem: Problem, placement: Indexed) -> tuple[str, ...]:
    return tuple(problem.node_ids[node] for node in dict.fromkeys(placement.nodes))


def placement_record(problem: Problem, job: int, placement: Indexed) -> Placement:
    """Return the file's form of a placement: one assignment per node, in order of first use."""
    options, o = problem.options, placement.option
    gpus_each, milli = int(options.gpus[o]), int(options.milli[o])
    ranks: dict[int, list[int]] = {}
    for rank, node in enumerate(placement.nodes):
        ranks.setdefault(node, []).append(rank)
    assignments = []
    for node, here in ranks.items():
        start = int(problem.node_gpu_start[node])
        held: dict[str, int] = {}
        workers = []
        for rank in here:
            positions = range(rank * gpus_each, (rank + 1) * gpus_each)
            indexes = tuple(placement.gpus[i] - start for i in positions)
            for i, index in zip(positions, indexes, strict=True):
                held[str(index)] = milli if placement.shares is None else placement.shares[i]
            workers.append(WorkerGpus.model_construct(rank=rank, gpus=indexes))
        assignments.append(
            Assignment.model_construct(
                node=problem.node_ids[node],
                gpus=dict(sorted(held.items(), key=lambda item: int(item[0]))),
                cpu_millicores=len(here) * int(options.demand[o, CPU]),
                memory_mib=len(here) * int(options.demand[o, MEMORY]),
                workers=tuple(workers),
            )
        )
    return Placement.model_construct(job=problem.job_ids[job], option=options.name[o], assignments=tuple(assignments))
