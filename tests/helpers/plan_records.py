"""Allocations in indices -> the records of the model, for the referee to read."""

from typing import Any, TypeVar

from helpers.granted_shares import with_due
from placeopt.check import judge
from placeopt.model import (
    Assignment,
    Instance,
    InstanceRef,
    Level,
    Moved,
    Placement,
    Plan,
    PolicyRef,
    Preempted,
    Shrunk,
    Unplaced,
    WorkerGpus,
)
from placeopt.problem import Allocation, Problem, change_of, compile_problem
from placeopt.problem import Placement as Indices
from placeopt.terms import value

AnyPlacement = TypeVar("AnyPlacement", bound=Placement)


def assignments_of(problem: Problem, placement: Indices) -> tuple[Assignment, ...]:
    """Write a placement node by node, as the option states the amounts: of GPUs the request."""
    options, topology, o = problem.options, problem.topology, placement.option
    per_worker = int(options.gpus[o])
    workers: dict[int, list[WorkerGpus]] = {}
    shares: dict[int, dict[str, int]] = {}
    for rank, node in enumerate(placement.nodes):
        held = range(rank * per_worker, (rank + 1) * per_worker)
        lost_index = {here: index for index, here in problem.lost_gpu.get(node, {}).items()}
        here = [int(topology.gpu_index[placement.gpus[i]]) for i in held]
        indices = [lost_index.get(index, index) for index in here]
        workers.setdefault(node, []).append(WorkerGpus(rank=rank, gpus=tuple(indices)))
        for index in indices:
            shares.setdefault(node, {})[str(index)] = int(options.milli[o])
    return tuple(
        Assignment(
            node=problem.node_ids[node],
            gpus=shares.get(node, {}),
            cpu_millicores=len(those) * int(options.demand[o, 0]),
            memory_mib=len(those) * int(options.demand[o, 1]),
            workers=tuple(those),
        )
        for node, those in workers.items()
    )


def plan_of(problem: Problem, allocation: Allocation) -> Plan:
    """Write an allocation as a plan that claims nothing but its value."""
    instance, policy = problem.given, problem.policy
    return Plan(
        instance=InstanceRef(name=instance.name, digest=instance.digest, revision=instance.revision),
        policy=PolicyRef(name=policy.name, digest=policy.digest, values=policy),
        status="feasible",
        limit="none",
        levels=(Level(name="value", sense="max", objective=value(problem, allocation), bound=None),),
        gap=None,
        placements=with_due(
            instance,
            (
                Placement(
                    job=problem.job_ids[j],
                    option=problem.options.name[placement.option],
                    assignments=assignments_of(problem, placement),
                )
                for j, placement in enumerate(allocation)
                if placement is not None
            ),
            policy,
        ),
        unplaced=tuple(
            Unplaced(job=problem.job_ids[j], reason="outvoted", detail="left out by the test")
            for j, placement in enumerate(allocation)
            if placement is None
        ),
        **changes_of(problem, allocation),
    )


def changes_of(problem: Problem, allocation: Allocation) -> dict[str, Any]:
    """List what becomes of the running jobs."""
    out: dict[str, list[Any]] = {"moved": [], "shrunk": [], "preempted": []}
    for running in problem.instance.running:
        job = problem.job_ids.index(running.job)
        now = allocation[job]
        change = change_of(problem, job, now)
        if now is None:
            freed = int(problem.options.total_milli[problem.running[job].option])
            out["preempted"].append(Preempted(job=running.job, freed_gpu_milli=freed))
        elif change == "moved":
            ends = {
                "from": tuple(assignment.node for assignment in running.assignments),
                "to": tuple(assignment.node for assignment in assignments_of(problem, now)),
            }
            out["moved"].append(Moved.model_validate({"job": running.job, **ends}))
        elif change == "shrunk":
            out["shrunk"].append(Shrunk(job=running.job, workers=len(now.nodes)))
    return {field: tuple(entries) for field, entries in out.items()}


def keeping(instance: Instance) -> Plan:
    """Return the plan that keeps all that runs and starts nothing."""
    runs = {held.job for held in instance.running}
    policy = instance.policy
    options = {(job.id, option.id): option.value for job in instance.jobs for option in job.options}
    return Plan(
        instance=InstanceRef(name=instance.name, digest=instance.digest, revision=instance.revision),
        policy=PolicyRef(name=policy.name, digest=policy.digest, values=policy),
        status="feasible",
        limit="none",
        levels=(
            Level(
                name="value", sense="max", objective=sum(options[h.job, h.option] for h in instance.running), bound=None
            ),
        ),
        gap=None,
        placements=tuple(Placement(job=h.job, option=h.option, assignments=h.assignments) for h in instance.running),
        unplaced=tuple(
            Unplaced(job=job.id, reason="not_reached", detail="kept waiting")
            for job in instance.jobs
            if job.id not in runs
        ),
    )


def standing(instance: Instance) -> set[tuple[str | None, str, str | None]]:
    """Return the limits that what runs breaks; the referee finds nothing else wrong."""
    problem = compile_problem(instance)
    judged = judge(instance, plan_of(problem, tuple(problem.running.get(job) for job in range(problem.num_jobs))))
    assert judged.violations == []
    return {(entry.job, entry.rule, entry.node) for entry in judged.standing}


def at_request(instance: Instance, held: AnyPlacement) -> AnyPlacement:
    """Return a placement with the shares that its option requests: grants above give way to whatever starts beside."""
    record = next(job for job in instance.jobs if job.id == held.job)
    share = next(option.demand.gpu_milli for option in record.options if option.id == held.option)
    assignments = tuple(at.model_copy(update={"gpus": dict.fromkeys(at.gpus, share)}) for at in held.assignments)
    return held.model_copy(update={"assignments": assignments})
