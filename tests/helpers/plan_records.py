"""Allocations in indices -> the records of the model, for the referee to read."""

from typing import TypeVar

from helpers.granted_shares import with_due
from helpers.plans import plan_for
from placeopt.check import judge
from placeopt.model import Assignment, Instance, Level, Placement, Plan, Unplaced, WorkerGpus
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
        indices = [int(topology.gpu_index[placement.gpus[i]]) for i in held]
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
    """Write an allocation as a plan that claims nothing but its value; what becomes of running jobs is listed."""
    held = {
        problem.job_ids[j]: Placement(
            job=problem.job_ids[j],
            option=problem.options.name[placement.option],
            assignments=assignments_of(problem, placement),
        )
        for j, placement in enumerate(allocation)
        if placement is not None
    }
    changed: dict[str, list[str]] = {"moved": [], "shrunk": [], "preempted": []}
    for running in problem.instance.running:
        j = problem.job_ids.index(running.job)
        change = "preempted" if allocation[j] is None else change_of(problem, j, allocation[j])
        if change in changed:
            changed[change].append(running.job)
    return plan_for(
        problem.given,
        {placed.job: placed for placed in with_due(problem.given, held.values(), problem.policy)},
        policy=problem.policy,
        levels=(Level(name="value", sense="max", objective=value(problem, allocation), bound=None),),
        **changed,
    )


def keeping(instance: Instance) -> Plan:
    """Return the plan that keeps all that runs and starts nothing."""
    options = {(job.id, option.id): option.value for job in instance.jobs for option in job.options}
    worth, runs = sum(options[h.job, h.option] for h in instance.running), {h.job for h in instance.running}
    waiting = [job.id for job in instance.jobs if job.id not in runs]
    return plan_for(
        instance,
        {h.job: Placement(job=h.job, option=h.option, assignments=h.assignments) for h in instance.running},
        levels=(Level(name="value", sense="max", objective=worth, bound=None),),
        unplaced=tuple(Unplaced(job=name, reason="not_reached", detail="kept waiting") for name in waiting),
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
