"""Rounds in which something changed under what runs: limits lowered, nodes and GPUs gone, options edited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.random import Generator
from pydantic import ValidationError

from helpers.small_rounds import Dice, random_round
from placeopt.model import Instance, Job, Machine, Node


def odd_round(rng: Generator) -> Instance:
    """Return a small random round after one to three edits that what runs was not asked about."""
    instance = random_round(rng, changes=True, minima=False)
    dice = Dice(rng)
    for _ in range(dice.number(1, 3)):
        edited = dice.pick(EDITS)(dice, instance)
        try:
            instance = Instance.model_validate(edited.model_dump(by_alias=True))
        except ValidationError:  # an edit that makes the file contradict itself is not made
            continue
    return instance


def _cluster(instance: Instance, **update: Any) -> Instance:
    return instance.model_copy(update={"cluster": instance.cluster.model_copy(update=update)})


def _machine(dice: Dice, instance: Instance, **update: int | None) -> Instance:
    chosen = dice.number(0, len(instance.cluster.machines) - 1)
    machines = tuple(
        machine.model_copy(update=update) if m == chosen else machine
        for m, machine in enumerate(instance.cluster.machines)
    )
    return _cluster(instance, machines=machines)


def less_cpu(dice: Dice, instance: Instance) -> Instance:
    """Every node of a type has few cores."""
    return _machine(dice, instance, cpu_millicores=dice.number(0, 8000, 500))


def less_memory(dice: Dice, instance: Instance) -> Instance:
    """Every node of a type has little memory."""
    return _machine(dice, instance, memory_mib=dice.number(0, 40_000, 1000))


def slower_machines(dice: Dice, instance: Instance) -> Instance:
    """Bandwidths inside a machine type are low."""
    return _machine(
        dice, instance, memory_bandwidth_mbps=dice.number(0, 4000, 500), pcie_bandwidth_mbps=dice.number(0, 4000, 500)
    )


def slower_links(dice: Dice, instance: Instance) -> Instance:
    """Uplinks of nodes and domains are slow."""
    domains = tuple(
        domain.model_copy(update={"uplink_mbps": dice.number(0, 3000, 500)}) for domain in instance.cluster.domains
    )
    return _cluster(_machine(dice, instance, network_bandwidth_mbps=dice.number(0, 3000, 500)), domains=domains)


def smaller_gpus(dice: Dice, instance: Instance) -> Instance:
    """GPUs of a machine type have little memory, or are another model."""
    update = {"memory_mib": dice.number(0, 20_000, 2000)} if dice.chance(0.6) else {"model": "other"}

    def changed(machine: Machine) -> Machine:
        gpus = tuple(gpu.model_copy(update=update) for gpu in machine.gpus)
        return machine.model_copy(update={"gpus": gpus})

    return _cluster(instance, machines=tuple(changed(machine) for machine in instance.cluster.machines))


def lost_gpu(dice: Dice, instance: Instance) -> Instance:
    """The last GPU of one node is no longer listed."""
    n = dice.number(0, len(instance.cluster.nodes) - 1)
    node = instance.cluster.nodes[n]
    machine = next(candidate for candidate in instance.cluster.machines if candidate.id == node.machine)
    if not machine.gpus:
        return instance
    left = len(machine.gpus) - 1
    matrix = machine.gpu_distance_matrix
    smaller = machine.model_copy(
        update={
            "id": f"{machine.id}-less",
            "gpus": machine.gpus[:left],
            "links": tuple(link for link in machine.links if max(link.gpus) < left),
            "gpu_distance_matrix": None if matrix is None else tuple(row[:left] for row in matrix[:left]),
        }
    )
    nodes = list(instance.cluster.nodes)
    nodes[n] = node.model_copy(update={"machine": smaller.id})
    return _cluster(instance, machines=(*instance.cluster.machines, smaller), nodes=tuple(nodes))


def lost_node(dice: Dice, instance: Instance) -> Instance:
    """A node is no longer listed."""
    nodes = instance.cluster.nodes
    if len(nodes) == 1:
        return instance
    gone = dice.pick(nodes).id

    def without(job: Job) -> Job:
        allowed = job.nodes_allowed
        return job.model_copy(
            update={"nodes_allowed": None if allowed is None else tuple(name for name in allowed if name != gone)}
        )

    return _cluster(instance, nodes=tuple(node for node in nodes if node.id != gone)).model_copy(
        update={"jobs": tuple(without(job) for job in instance.jobs)}
    )


def lower_quota(dice: Dice, instance: Instance) -> Instance:
    """Queues may hold little."""
    policy = instance.policy
    queues = []
    for queue in policy.queues:
        update: dict[str, Any] = {"quota": queue.quota.model_copy(update={"gpu_milli": dice.number(0, 3000, 250)})}
        if dice.chance(0.5):
            update = {"dominant_share_percent": dice.number(0, 60, 10), "borrow_percent": 0}
        queues.append(queue.model_copy(update=update))
    return instance.model_copy(update={"policy": policy.model_copy(update={"queues": tuple(queues)})})


def fewer_to_share(dice: Dice, instance: Instance) -> Instance:
    """GPUs go to fewer jobs at once."""
    update: dict[str, Any] = {"jobs_per_gpu_max": dice.number(1, 2)}
    if instance.policy.share_mode == "fraction" and dice.chance(0.4):
        update = {"share_mode": "exclusive", "jobs_per_gpu_max": None}
    return instance.model_copy(update={"policy": instance.policy.model_copy(update=update)})


def other_shape(dice: Dice, instance: Instance) -> Instance:
    """Options of running jobs ask for another shape than the one that runs."""
    runs = {running.job for running in instance.running}
    update = dice.pick(({"single_node": True, "splits": ()}, {"workers_per_node_max": 1}))

    def edited(job: Job) -> Job:
        if job.id not in runs or not dice.chance(0.5):
            return job
        return job.model_copy(update={"options": tuple(option.model_copy(update=update) for option in job.options)})

    return instance.model_copy(update={"jobs": tuple(edited(job) for job in instance.jobs)})


def drained(dice: Dice, instance: Instance) -> Instance:
    """A node takes no new work, a job asks for a label that its node lacks."""
    n = dice.number(0, len(instance.cluster.nodes) - 1)
    nodes: list[Node] = list(instance.cluster.nodes)
    nodes[n] = nodes[n].model_copy(update={"drained": True})
    return _cluster(instance, nodes=tuple(nodes))


EDITS: tuple[Callable[[Dice, Instance], Instance], ...] = (
    less_cpu,
    less_memory,
    slower_machines,
    slower_links,
    smaller_gpus,
    lost_gpu,
    lost_node,
    lower_quota,
    fewer_to_share,
    other_shape,
    drained,
)
