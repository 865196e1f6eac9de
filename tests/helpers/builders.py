"""Tiny instances and plans in code: every helper fills in what a test does not care about."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from helpers.granted_shares import with_due
from placeopt.model import (
    Assignment,
    Cluster,
    Demand,
    Domain,
    Gpu,
    Instance,
    Job,
    Machine,
    Node,
    Option,
    Placement,
    Plan,
    Policy,
    Running,
    WorkerGpus,
)
from placeopt.model.plan import InstanceRef, Level, Moved, PolicyRef, Preempted, Shrunk, Unplaced

Where = Sequence[tuple[str, Sequence[int]]]
"""Where a job's workers stand, in order of rank: (node, GPU indexes)."""


def machine(id: str = "m", gpus: int | Iterable[Gpu] = 4, **fields: Any) -> Machine:  # noqa: A002
    """Build a machine type with ``gpus`` GPUs of model V100 and 16 GiB, 32 cores and 256 GiB."""
    if isinstance(gpus, int):
        gpus = [Gpu(model="V100", memory_mib=16_384)] * gpus
    return Machine(**{"id": id, "gpus": tuple(gpus), "cpu_millicores": 32_000, "memory_mib": 262_144, **fields})


def node(id: str, machine: str = "m", **fields: Any) -> Node:  # noqa: A002
    """Build a node of machine type ``m``."""
    return Node(id=id, machine=machine, **fields)


def option(id: str = "default", *, workers: int = 1, gpus: int = 1, **fields: Any) -> Option:  # noqa: A002
    """Build an option; fields of `Demand` and of `Option` may be mixed."""
    demand = {name: fields.pop(name) for name in list(fields) if name in Demand.model_fields}
    return Option(id=id, workers=workers, demand=Demand(gpus=gpus, **demand), **fields)


def job(id: str, *, workers: int = 1, gpus: int = 1, **fields: Any) -> Job:  # noqa: A002
    """Build a job of one option; fields of `Demand`, `Option` and `Job` may be mixed, or ``options`` given."""
    own = {name: fields.pop(name) for name in list(fields) if name in Job.model_fields}
    own.setdefault("options", (option(workers=workers, gpus=gpus, **fields),))
    return Job(id=id, **own)


def instance(
    nodes: int | Iterable[Node] = 2,
    jobs: Iterable[Job] = (),
    *,
    machines: Iterable[Machine] | None = None,
    domains: Iterable[Domain] = (),
    running: Iterable[Running] = (),
    policy: Policy | None = None,
    **fields: Any,
) -> Instance:
    """Build an instance; ``nodes=2`` are ``n0`` and ``n1`` of machine type ``m``."""
    if isinstance(nodes, int):
        nodes = [node(f"n{i}") for i in range(nodes)]
    cluster = Cluster(
        machines=tuple([machine()] if machines is None else machines), domains=tuple(domains), nodes=tuple(nodes)
    )
    return Instance(
        cluster=cluster, jobs=tuple(jobs), running=tuple(running), policy=policy if policy else Policy(), **fields
    )


def placement(job: Job, where: Where, *, option: str | None = None, milli: int | None = None) -> Placement:
    """Place the workers of ``job`` at ``where``, with the amounts its option asks for and ``milli`` of each GPU."""
    chosen = job.options[0] if option is None else next(o for o in job.options if o.id == option)
    demand = chosen.demand
    share = demand.gpu_milli if milli is None else milli
    on_node: dict[str, list[WorkerGpus]] = {}
    for rank, (name, gpus) in enumerate(where):
        on_node.setdefault(name, []).append(WorkerGpus(rank=rank, gpus=tuple(gpus)))
    return Placement(
        job=job.id,
        option=chosen.id,
        assignments=tuple(
            Assignment(
                node=name,
                gpus={str(gpu): share for worker in workers for gpu in worker.gpus},
                cpu_millicores=len(workers) * demand.cpu_millicores,
                memory_mib=len(workers) * demand.memory_mib,
                workers=tuple(workers),
            )
            for name, workers in on_node.items()
        ),
    )


def running(job: Job, where: Where, *, option: str | None = None, milli: int | None = None, **fields: Any) -> Running:
    """Let ``job`` run at ``where``; ``movable``, ``shrinkable`` and ``preemptible`` as stated."""
    held = placement(job, where, option=option, milli=milli)
    return Running(job=held.job, option=held.option, assignments=held.assignments, **fields)


def plan_for(
    instance: Instance,
    placed: Mapping[str, Where | Placement],
    *,
    policy: Policy | None = None,
    moved: Iterable[str] = (),
    shrunk: Iterable[str] = (),
    preempted: Iterable[str] = (),
    **fields: Any,
) -> Plan:
    """
    Build the plan that places the jobs of ``placed`` and leaves the others unplaced.

    Running jobs that are neither in ``placed`` nor in ``preempted`` stay where they are. All hold what is granted to
    them, but for jobs whose ``Placement`` is given: these hold what it says. Jobs in ``moved``, ``shrunk`` and
    ``preempted`` get true entries; to make false ones, give whole entries through ``fields`` of a copy.
    """
    jobs = {job.id: job for job in instance.jobs}
    runs = {running.job: running for running in instance.running}
    preempted = tuple(preempted)
    placements = {
        name: Placement(job=name, option=held.option, assignments=held.assignments)
        for name, held in runs.items()
        if name not in preempted
    }
    for name, where in placed.items():
        placements[name] = where if isinstance(where, Placement) else placement(jobs[name], where)
    policy = instance.policy if policy is None else policy
    given = {name: where for name, where in placed.items() if isinstance(where, Placement)}
    placements = {held.job: given.get(held.job, held) for held in with_due(instance, placements.values(), policy)}
    return Plan(
        **{
            "instance": InstanceRef(name=instance.name, digest=instance.digest, revision=instance.revision),
            "policy": PolicyRef(name=policy.name, digest=policy.digest, values=policy),
            "status": "feasible",
            "limit": "none",
            "levels": (Level(name="value", sense="max", objective=0, bound=None),),
            "gap": None,
            "placements": tuple(placements.values()),
            "unplaced": tuple(
                Unplaced(job=name, reason="outvoted", detail="no room") for name in jobs if name not in placements
            ),
            "moved": tuple(
                Moved.model_validate({"job": name, "from": _nodes(runs[name]), "to": _nodes(placements[name])})
                for name in moved
            ),
            "shrunk": tuple(
                Shrunk(job=name, workers=sum(len(a.workers) for a in placements[name].assignments)) for name in shrunk
            ),
            "preempted": tuple(
                Preempted(job=name, freed_gpu_milli=_requested(jobs[name], runs[name])) for name in preempted
            ),
            **fields,
        }
    )


def _requested(job: Job, held: Placement) -> int:
    """Return the thousandths of GPUs that a placed job requests."""
    demand = next(option.demand for option in job.options if option.id == held.option)
    return demand.gpu_milli * sum(len(assignment.gpus) for assignment in held.assignments)


def _nodes(placement: Placement) -> tuple[str, ...]:
    return tuple(assignment.node for assignment in placement.assignments)
