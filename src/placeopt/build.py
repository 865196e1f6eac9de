"""
Machines, nodes, jobs, rounds and scenarios in one line each.

Every function returns a record of `placeopt.model` and fills in what the caller leaves out; any further field of the
record can be given by its name. What is wrong raises ``pydantic.ValidationError`` (a ``ValueError``), which names the
field and what was expected, as it does for a file.

>>> from placeopt import build, solve
>>> dgx = build.machine("dgx", gpus=8, model="A100", gpu_memory_mib=81_920)
>>> jobs = [build.job("bert", gpus=4), build.gang("llama", workers=2, gpus=8), build.job("notebook", gpu_milli=250)]
>>> len(solve(build.instance(nodes=3, machines=[dgx], jobs=jobs)).placements)
3
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from placeopt.model.cluster import Cluster, Domain, Node
from placeopt.model.conditions import NodeConditions
from placeopt.model.group import Demand, Split
from placeopt.model.instance import Instance
from placeopt.model.job import Job, Option
from placeopt.model.machine import Gpu, Machine
from placeopt.model.placement import Assignment, Placement, Running, WorkerGpus
from placeopt.model.policy import Policy
from placeopt.simulation.records.scenario import Arrival, Scenario

Where = Sequence[tuple[str, Sequence[int]] | tuple[str, Sequence[int], str]]
"""
Places of a job's workers: the node of each, the indices of its GPUs there, and its leaf where the option has groups.

In order of rank, leaf by leaf.
"""


def machine(
    id: str = "m",  # noqa: A002
    gpus: int | Iterable[Gpu] = 4,
    *,
    model: str = "V100",
    gpu_memory_mib: int = 16_384,
    **fields: Any,
) -> Machine:
    """
    Return a machine type; ``fields`` are further ones of `Machine`.

    ``gpus``: Number of GPUs, each of ``model`` with ``gpu_memory_mib``, or the GPUs themselves. 32 cores and 256 GiB of
    memory where they are left out. Machine types of vendors, with links and switches: ``placeopt.topology.MACHINES``.
    """
    if isinstance(gpus, int):
        gpus = [Gpu(model=model, memory_mib=gpu_memory_mib)] * gpus
    return Machine(**{"id": id, "gpus": tuple(gpus), "cpu_millicores": 32_000, "memory_mib": 262_144, **fields})


def node(id: str, machine: str = "m", **fields: Any) -> Node:  # noqa: A002
    """Return a node of a machine type; ``fields`` are further fields of `Node`."""
    return Node(id=id, machine=machine, **fields)


def nodes(count: int, machine: str = "m", *, prefix: str = "n", first: int = 0, **fields: Any) -> list[Node]:
    """Return alike nodes ``PREFIX0``, ``PREFIX1``, ..., from the number ``first`` on; ``fields``: of `Node`."""
    return [node(f"{prefix}{first + i}", machine, **fields) for i in range(count)]


def cluster(
    nodes: int | Iterable[Node] | Cluster = 2,
    *,
    machines: Iterable[Machine] | None = None,
    racks: int = 0,
    domains: Iterable[Domain] = (),
) -> Cluster:
    """
    Return a cluster.

    ``nodes``: The nodes, or a number: that many nodes ``n0``, ``n1``, ... of the first machine type; a cluster is
    returned as it is. ``machines``: Left out, the one of ``machine()``. ``racks``: Number of racks ``r0``, ``r1``, ...
    over which the nodes are spread evenly, in order; 0: none, and ``domains``, parents first, are given, or the nodes
    share one network. Raises `ValueError` if both are given, or a record is wrong.
    """
    if isinstance(nodes, Cluster):
        return nodes
    types = (machine(),) if machines is None else tuple(machines)
    if isinstance(nodes, int):
        nodes = [node(f"n{i}", types[0].id if types else "m") for i in range(nodes)]
    nodes, domains = tuple(nodes), tuple(domains)
    if racks:
        if domains:
            raise ValueError("racks: goes without 'domains'; name the racks in 'domains' and in each node's 'domain'")
        domains = tuple(Domain(id=f"r{i}") for i in range(racks))
        nodes = tuple(
            one.model_copy(update={"domain": domains[i * racks // len(nodes)].id}) for i, one in enumerate(nodes)
        )
    return Cluster(machines=types, domains=domains, nodes=nodes)


def option(id: str = "default", *, workers: int = 1, gpus: int = 1, **fields: Any) -> Option:  # noqa: A002
    """
    Return one way to run a job: a number of workers with so many GPUs each.

    ``id`` is unique in the job. ``fields`` are further ones of `Option`, and of `Demand`: what each worker requests, or
    the whole ``demand``.
    """
    if "demand" not in fields:
        demand = {name: fields.pop(name) for name in list(fields) if name in Demand.model_fields}
        fields["demand"] = Demand(gpus=gpus, **demand)
    return Option(id=id, workers=workers, **fields)


def job(id: str, *, workers: int = 1, gpus: int = 1, **fields: Any) -> Job:  # noqa: A002
    """
    Return a job whose workers, of so many GPUs each, start together.

    ``fields`` are further ones of `Job`, of its ``conditions``, of its one `Option` and of what each worker requests
    (`Demand`); or ``options``: several ways to run it.
    """
    asks = {name: fields.pop(name) for name in list(fields) if name in NodeConditions.model_fields}
    own = {name: fields.pop(name) for name in list(fields) if name in Job.model_fields}
    if asks:
        own["conditions"] = NodeConditions(**asks)
    own.setdefault("options", (option(workers=workers, gpus=gpus, **fields),))
    return Job(id=id, **own)


def gang(
    id: str,  # noqa: A002
    *,
    workers: int,
    gpus: int = 1,
    together: str | None = None,
    **fields: Any,
) -> Job:
    """
    Return a job whose workers start together or not at all, each on the GPUs of one node; ``fields`` as of `job`.

    ``together``: Level of the network whose one domain holds all workers, such as ``rack``; None: any places.
    """
    if together is not None:
        fields["splits"] = (*fields.get("splits", ()), Split(level=together, domains=1))
    return job(id, workers=workers, gpus=gpus, **fields)


def placement(job: Job, where: Where, *, option: str | None = None, milli: int | None = None) -> Placement:
    """
    Return a job's place: its workers at ``where``, with the amounts that its option (None: the first) requests.

    ``where``: Node, GPU indices and leaf of each worker, in order of rank. ``milli``: Thousandths of each GPU; None: as
    the option requests.
    """
    chosen = job.options[0] if option is None else job.option(option)
    leaves = {leaf.id if chosen.groups else None: leaf.demand for leaf in chosen.leaves}
    held: dict[tuple[str, str | None], list[WorkerGpus]] = {}
    for rank, (name, gpus, *leaf) in enumerate(where):
        held.setdefault((name, leaf[0] if leaf else None), []).append(WorkerGpus(rank=rank, gpus=tuple(gpus)))
    return Placement(
        job=job.id,
        option=chosen.id,
        assignments=tuple(
            Assignment(
                node=name,
                group=leaf,
                gpus={
                    str(gpu): leaves[leaf].gpu_milli if milli is None else milli
                    for worker in workers
                    for gpu in worker.gpus
                },
                cpu_millicores=len(workers) * leaves[leaf].cpu_millicores,
                memory_mib=len(workers) * leaves[leaf].memory_mib,
                workers=tuple(workers),
            )
            for (name, leaf), workers in held.items()
        ),
    )


def running(job: Job, where: Where, *, option: str | None = None, milli: int | None = None, **fields: Any) -> Running:
    """Return a job that runs at ``where``, as of `placement`; ``fields`` are those of `Running`, as ``movable``."""
    held = placement(job, where, option=option, milli=milli)
    return Running(job=held.job, option=held.option, assignments=held.assignments, **fields)


def instance(
    nodes: int | Iterable[Node] | Cluster = 2,
    jobs: Iterable[Job] = (),
    *,
    machines: Iterable[Machine] | None = None,
    racks: int = 0,
    domains: Iterable[Domain] = (),
    running: Iterable[Running] = (),
    policy: Policy | None = None,
    **fields: Any,
) -> Instance:
    """
    Return a round: a cluster (as of `cluster`, or itself as ``nodes``), what runs on it, and jobs that wait.

    ``jobs``: All jobs, those that run included. ``policy``: None: the default. ``fields``: Further ones of `Instance`.
    """
    made = cluster(nodes, machines=machines, racks=racks, domains=domains)
    return Instance(cluster=made, jobs=tuple(jobs), running=tuple(running), policy=policy or Policy(), **fields)


def scenario(
    nodes: int | Iterable[Node] | Cluster = 2,
    jobs: Iterable[Job | Arrival] = (),
    *,
    machines: Iterable[Machine] | None = None,
    racks: int = 0,
    domains: Iterable[Domain] = (),
    run_time_ms: Mapping[str, int] | None = None,
    **fields: Any,
) -> Scenario:
    """
    Return a scenario: a cluster (as of `cluster`, or itself as ``nodes``), and jobs that arrive over time.

    ``jobs``: Jobs with ``arrival_ms`` and an expected ``run_time_ms``, or whole `Arrival` records. ``run_time_ms``: Job
    id -> actual run time, where it is not the expected one. ``fields``: Further ones of `Scenario`, as ``physics``.
    """
    made, actual = cluster(nodes, machines=machines, racks=racks, domains=domains), run_time_ms or {}
    return Scenario(
        cluster=made,
        arrivals=tuple(
            one if isinstance(one, Arrival) else Arrival(job=one, actual_run_time_ms=actual.get(one.id)) for one in jobs
        ),
        **fields,
    )
