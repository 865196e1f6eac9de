"""Single changes of a cluster or its policy that could let waiting jobs start, each as an edit of the round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from placeopt.explain.words import constraint_name
from placeopt.feasibility.requirement import NAMED, RESOURCE_GROUPS
from placeopt.model import Instance, Machine, Node, Plan, Policy, Taint
from placeopt.model.base import Amounts
from placeopt.model.policy import Quota

Edited = tuple[Instance, Policy]
PLENTY: dict[str, dict[str, int | None]] = {
    "cpu": {"cpu_millicores": 100_000_000},
    "memory": {"memory_mib": 1_000_000_000},
    "memory_bandwidth": {"memory_bandwidth_mbps": None},
    "pcie_bandwidth": {"pcie_bandwidth_mbps": None},
}
"""Group of a resource -> fields of a machine type that never runs short of it."""
PLENTY_NAMED = 1_000_000_000


@dataclass(frozen=True)
class QueueChange:
    """
    One change, in words, and the edit that makes it.

    ``group``: The only group of constraints that it loosens; None where it adds hardware.
    """

    said: str
    group: str | None
    edit: Callable[[Instance, Policy], Edited]


def single_changes(instance: Instance, plan: Plan) -> Iterator[QueueChange]:
    """
    Yield the changes that are possible.

    Nodes drained are no more; one taint is removed everywhere; one queue has no limits; one hold is released; no
    place runs short of one resource; there is one more node of a machine type.
    """
    cluster = instance.cluster
    drained = sum(node.drained for node in cluster.nodes)
    if drained:
        yield QueueChange(f"undrain all drained nodes ({drained:,})", "drained", _undrained)
    for taint in dict.fromkeys(taint for node in cluster.nodes for taint in node.taints):
        yield QueueChange(f"remove taint {taint.text!r}", "taints", _without_taint(taint))
    for queue in plan.policy.values.queues:
        yield QueueChange(f"lift the limits of queue {queue.id!r}", "queue", _without_limits(queue.id))
    for hold in instance.holds_now:
        yield QueueChange(f"release hold {hold.id!r}", "hold", _without_hold(hold.id))
    waiting = {unplaced.job for unplaced in plan.unplaced}
    demands = [option.demand for job in instance.jobs if job.id in waiting for option in job.options]
    beyond = {*cluster.resources, *(name for domain in cluster.domains for name in domain.resources)}
    named = sorted({NAMED + name for demand in demands for name in demand.resources})
    for group in (*RESOURCE_GROUPS, *named):
        where = "everywhere" if group.removeprefix(NAMED) in beyond else "on every node"
        yield QueueChange(f"enough {constraint_name(group)} {where}", group, _with_plenty(group))
    for machine in dict.fromkeys(node.machine for node in cluster.nodes):
        yield QueueChange(f"one more node of type {machine!r}", None, _with_one_more(machine))


def _with_nodes(instance: Instance, nodes: tuple[Node, ...]) -> Instance:
    return instance.model_copy(update={"cluster": instance.cluster.model_copy(update={"nodes": nodes})})


def _undrained(instance: Instance, policy: Policy) -> Edited:
    nodes = tuple(
        node.model_copy(update={"drained": False}) if node.drained else node for node in instance.cluster.nodes
    )
    return _with_nodes(instance, nodes), policy


def _without_taint(taint: Taint) -> Callable[[Instance, Policy], Edited]:
    def edit(instance: Instance, policy: Policy) -> Edited:
        nodes = tuple(
            node.model_copy(update={"taints": tuple(other for other in node.taints if other != taint)})
            if taint in node.taints
            else node
            for node in instance.cluster.nodes
        )
        return _with_nodes(instance, nodes), policy

    return edit


def _without_limits(queue: str) -> Callable[[Instance, Policy], Edited]:
    def edit(instance: Instance, policy: Policy) -> Edited:
        free = {"quota": Quota(), "borrow": Quota(), "dominant_share_percent": None}
        queues = tuple(one.model_copy(update=free) if one.id == queue else one for one in policy.queues)
        return instance, policy.model_copy(update={"queues": queues})

    return edit


def _with_plenty(group: str) -> Callable[[Instance, Policy], Edited]:
    def of(machine: Machine) -> Machine:
        if group in PLENTY:
            return machine.model_copy(update=PLENTY[group])
        resources = Amounts({**machine.resources, group.removeprefix(NAMED): PLENTY_NAMED})
        return machine.model_copy(update={"resources": resources})

    def edit(instance: Instance, policy: Policy) -> Edited:
        whole, name = instance.cluster, group.removeprefix(NAMED)
        domains = tuple(
            domain.model_copy(update={"resources": _without(domain.resources, name)}) if domain.resources else domain
            for domain in whole.domains
        )
        changed = {"domains": domains, "resources": _without(whole.resources, name)} if group not in PLENTY else {}
        cluster = whole.model_copy(update={"machines": tuple(of(machine) for machine in whole.machines), **changed})
        return instance.model_copy(update={"cluster": cluster}), policy

    return edit


def _without(resources: Mapping[str, int], name: str) -> Amounts:
    return Amounts({other: amount for other, amount in resources.items() if other != name})


def _without_hold(name: str) -> Callable[[Instance, Policy], Edited]:
    def edit(instance: Instance, policy: Policy) -> Edited:
        holds = tuple(hold for hold in instance.holds if hold.id != name)
        return instance.model_copy(update={"holds": holds}), policy

    return edit


def _with_one_more(machine: str) -> Callable[[Instance, Policy], Edited]:
    def edit(instance: Instance, policy: Policy) -> Edited:
        taken, name = {other.id for other in instance.cluster.nodes}, f"{machine}-one-more"[-253:]
        while name in taken:
            name = f"{name[-252:]}'"
        more = instance.cluster.node_of_type(machine, name)
        return _with_nodes(instance, (*instance.cluster.nodes, more)), policy

    return edit
