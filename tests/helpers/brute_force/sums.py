"""
The rules about several jobs at once, each as a limit on a sum over jobs; restated from the records of the instance.

A sum has a key: what is limited, and where. Rules of docs/formulas.md and their keys:

==================  ==========================================================================================
gpu_share           ``("milli", gpu)``: requests on a GPU sum to at most 1000, under share mode ``fraction``
jobs_per_gpu        ``("jobs", gpu)``: 1 under ``exclusive``, else the policy's number, if it has one
gpu_memory          ``("gpu_memory", gpu)``: MiB of the jobs on a GPU
node_capacity       ``(resource, node)``: CPU, memory, usable bandwidths, named resources of a node
queue_share         ``("queue", queue, amount)``: quota and borrow; dominant share of what the cluster lists
queue_share         ``("queue", queue, amount, flavor)``: the same of a flavor: the one of the first worker's node
uplink              ``("link", "node" or "domain", number, GPU job?)``: hose model, usable part of the link
changes             ``("changes", change)``: how many jobs may be moved, shrunk and preempted
==================  ==========================================================================================
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from helpers.brute_force.candidates import RunningOutcome
from placeopt.problem import IntArray, Placement, Problem

Key = tuple[object, ...]
NODE_RESOURCES = ("cpu_millicores", "memory_mib", "memory_bandwidth_mbps", "pcie_bandwidth_mbps")
QUEUE_AMOUNTS = ("gpu_milli", "cpu_millicores", "memory_mib")


@dataclass(frozen=True)
class Sums:
    """
    What every candidate adds to every limited sum.

    Attributes
    ----------
    limits
        Shape ``(R,)``, only limits that the candidates could exceed together.
    use
        Per job, shape ``(candidates, R)``: what each candidate adds to each sum.
    new_use
        The same without what stays of running jobs. A sum may exceed its limit where no job adds ``new_use`` to it.
    """

    limits: IntArray
    use: list[IntArray]
    new_use: list[IntArray]


def sums_of(
    problem: Problem,
    candidates: Sequence[Sequence[Placement | None]],
    outcomes: dict[int, list[RunningOutcome]],
) -> Sums:
    """Return the limits and what the candidates add; ``outcomes`` are those of the running jobs, in the same order."""
    limit_of = limits(problem)
    column = {key: r for r, key in enumerate(limit_of)}
    counts_changes = np.array([key[0] == "changes" for key in column], dtype=bool)
    use, new_use = [], []
    for job, of_job in enumerate(candidates):
        amounts = np.zeros((len(of_job), len(column)), dtype=np.int64)
        stays = np.zeros(len(of_job), dtype=bool)
        for c, placement in enumerate(of_job):
            for key, amount in () if placement is None else amounts_of(problem, job, placement):
                if key in column:
                    amounts[c, column[key]] += amount
            if job in outcomes:
                change = outcomes[job][c].change
                stays[c] = change in ("kept", "shrunk")
                if change != "kept":
                    amounts[c, column["changes", change]] = 1
        use.append(amounts)
        new_use.append(np.where(stays[:, None] & ~counts_changes[None, :], 0, amounts))
    capacity = np.array(list(limit_of.values()), dtype=np.int64)
    most = sum((amounts.max(axis=0) for amounts in use), start=np.zeros(len(capacity), dtype=np.int64))
    binding = np.flatnonzero(most > capacity)
    return Sums(capacity[binding], [a[:, binding] for a in use], [a[:, binding] for a in new_use])


def amounts_of(problem: Problem, job: int, placement: Placement) -> Iterator[tuple[Key, int]]:
    """Yield what a placement adds to which sum."""
    record = problem.instance.jobs[job]
    demand = next(o for o in record.options if o.id == problem.options.name[placement.option]).demand
    workers = len(placement.nodes)
    for gpu in placement.gpus:
        yield ("milli", gpu), demand.gpu_milli
        yield ("jobs", gpu), 1
        yield ("gpu_memory", gpu), demand.gpu_memory_mib
    for node in placement.nodes:
        for resource in NODE_RESOURCES:
            yield (resource, node), getattr(demand, resource)
        for name, amount in demand.resources.items():
            yield ("named", name, node), amount
    held = demand.gpu_milli * len(placement.gpus), workers * demand.cpu_millicores, workers * demand.memory_mib
    for name, amount in zip(QUEUE_AMOUNTS, held, strict=True):
        yield ("queue", record.queue, name), amount
        yield ("queue", record.queue, name, _flavor(problem, placement.nodes[0])), amount
    workers_below: dict[tuple[str, int], int] = {}
    for node in placement.nodes:
        for link in [("node", node), *(("domain", d) for d in problem.topology.node_ancestors(node))]:
            workers_below[link] = workers_below.get(link, 0) + 1
    for link, count in workers_below.items():  # hose model: the smaller side bounds the traffic across the link
        yield ("link", *link, demand.gpus > 0), min(count, workers - count) * demand.network_bandwidth_mbps


def _flavor(problem: Problem, node: int) -> str | None:
    """Return the first flavor whose models the node has one of; of rounds whose flavors state nothing else."""
    cluster = problem.instance.cluster
    machine = next(machine for machine in cluster.machines if machine.id == cluster.nodes[node].machine)
    models = {gpu.model for gpu in machine.gpus}
    assert not any(flavor.node_selector for flavor in problem.policy.flavors)
    return next((flavor.id for flavor in problem.policy.flavors if models & set(flavor.gpu_models)), None)


def limits(problem: Problem) -> dict[Key, int]:
    """Return the limit of every sum that has one."""
    changes = problem.policy.changes
    return {
        ("changes", "moved"): changes.moves_max,
        ("changes", "shrunk"): changes.shrinks_max,
        ("changes", "preempted"): changes.preemptions_max,
        **dict(_gpu_limits(problem)),
        **dict(_node_limits(problem)),
        **dict(_domain_limits(problem)),
        **dict(_queue_limits(problem)),
    }


def _gpu_limits(problem: Problem) -> Iterator[tuple[Key, int]]:
    policy = problem.policy
    for gpu in range(problem.num_gpus):
        if policy.share_mode == "fraction":
            yield ("milli", gpu), 1000
        if policy.share_mode == "exclusive" or policy.jobs_per_gpu_max:
            yield ("jobs", gpu), policy.jobs_per_gpu_max or 1
        yield ("gpu_memory", gpu), int(problem.gpu_memory_mib[gpu])


def _node_limits(problem: Problem) -> Iterator[tuple[Key, int]]:
    usable, cluster = problem.policy.usable, problem.instance.cluster
    machines = {machine.id: machine for machine in cluster.machines}
    names = {name for job in problem.instance.jobs for option in job.options for name in option.demand.resources}
    for n, node in enumerate(cluster.nodes):
        machine = machines[node.machine]
        for name in sorted(names):
            yield ("named", name, n), machine.resources.get(name, 0)
        yield ("cpu_millicores", n), machine.cpu_millicores
        yield ("memory_mib", n), machine.memory_mib
        if machine.memory_bandwidth_mbps is not None:
            yield ("memory_bandwidth_mbps", n), machine.memory_bandwidth_mbps * usable.memory_bandwidth_percent // 100
        if machine.pcie_bandwidth_mbps is not None:
            yield ("pcie_bandwidth_mbps", n), machine.pcie_bandwidth_mbps * usable.pcie_bandwidth_percent // 100
        yield from _uplink_limits(problem, ("node", n), machine.network_bandwidth_mbps)


def _domain_limits(problem: Problem) -> Iterator[tuple[Key, int]]:
    for d, domain in enumerate(problem.instance.cluster.domains):
        yield from _uplink_limits(problem, ("domain", d), domain.uplink_mbps)


def _uplink_limits(problem: Problem, link: tuple[str, int], mbps: int | None) -> Iterator[tuple[Key, int]]:
    """Yield the usable part of a link for GPU jobs and for CPU jobs; a link without a stated bandwidth has no limit."""
    if mbps is not None:
        yield ("link", *link, True), mbps * problem.policy.usable.network_gpu_jobs_percent // 100
        yield ("link", *link, False), mbps * problem.policy.usable.network_cpu_jobs_percent // 100


def _queue_limits(problem: Problem) -> Iterator[tuple[Key, int]]:
    """Yield a queue's ceilings: quota + borrow, and dominant share + borrow of what the cluster lists."""
    machines = {machine.id: machine for machine in problem.instance.cluster.machines}
    listed = [machines[node.machine] for node in problem.given.cluster.nodes]
    cluster_has = {
        "gpu_milli": 1000 * sum(len(machine.gpus) for machine in listed),
        "cpu_millicores": sum(machine.cpu_millicores for machine in listed),
        "memory_mib": sum(machine.memory_mib for machine in listed),
    }
    for queue in problem.policy.queues:
        for amount in QUEUE_AMOUNTS:
            ceilings = []
            quota, share = getattr(queue.quota, amount), queue.dominant_share_percent
            if quota is not None:
                ceilings.append(quota + (getattr(queue.borrow, amount) or 0))
            if share is not None:
                ceilings.append(cluster_has[amount] * (share + queue.borrow_percent) // 100)
            if ceilings:
                yield ("queue", queue.id, amount), min(ceilings)
            for of in queue.flavors:
                if (quota := getattr(of.quota, amount)) is not None:
                    yield ("queue", queue.id, amount, of.flavor), quota + (getattr(of.borrow, amount) or 0)
