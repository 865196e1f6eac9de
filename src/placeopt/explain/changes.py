"""Single changes of a cluster or its policy that could let waiting jobs start, each as steps over the round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from placeopt.edits import AnyStep, ChangeQueue, Drain, RemoveHolds, SetAmount, TaintNodes, more_nodes
from placeopt.explain.records import SingleChange
from placeopt.explain.words import constraint_name
from placeopt.feasibility.requirement import NAMED, RESOURCE_GROUPS
from placeopt.model import Instance, Plan
from placeopt.model.machine import NODE_AMOUNTS

PLENTY = {amount.group: (amount.field, amount.most) for amount in NODE_AMOUNTS}
"""Group of a resource -> field of machine types, and an amount of which they never run short."""
PLENTY_NAMED = 1_000_000_000
UNLIMITED: dict[str, Any] = dict.fromkeys(("quota", "borrow", "lend", "dominant_share_percent", "flavors"))


def single_changes(instance: Instance, plan: Plan) -> Iterator[SingleChange]:
    """
    Yield the changes that are possible.

    Nodes drained are no more; one taint is removed everywhere; one queue has no limits; one hold is released; no
    place runs short of one resource; there is one more node of a machine type.
    """
    cluster = instance.cluster
    drained = tuple(node.id for node in cluster.nodes if node.drained)
    if drained:
        undrain = Drain(do="undrain", nodes=drained)
        yield by_steps(f"undrain all drained nodes ({len(drained):,})", "drained", undrain)
    for taint in dict.fromkeys(taint for node in cluster.nodes for taint in node.taints):
        yield by_steps(f"remove taint {taint.text!r}", "taints", TaintNodes(do="untaint", taint=taint))
    for queue in plan.policy.values.queues:
        lift = ChangeQueue(do="change_queue", queue=queue.id, fields=UNLIMITED)
        yield by_steps(f"lift the limits of queue {queue.id!r}", "queue", lift)
    for hold in instance.holds_now:
        yield by_steps(f"release hold {hold.id!r}", "hold", RemoveHolds(do="remove_holds", holds=(hold.id,)))
    waiting = {unplaced.job for unplaced in plan.unplaced}
    demands = [option.demand for job in instance.jobs if job.id in waiting for option in job.options]
    beyond = {*cluster.resources, *(name for domain in cluster.domains for name in domain.resources)}
    named = sorted({NAMED + name for demand in demands for name in demand.resources})
    for group in (*RESOURCE_GROUPS, *named):
        name = group.removeprefix(NAMED)
        where = "everywhere" if name in beyond else "on every node"
        yield by_steps(f"enough {constraint_name(group)} {where}", group, *_plenty(group, name in beyond))
    for machine in dict.fromkeys(node.machine for node in cluster.nodes):
        yield by_steps(f"one more node of type {machine!r}", None, more_nodes(instance, machine))


def by_steps(change: str, group: str | None, *steps: AnyStep) -> SingleChange:
    """Return a change of so many steps."""
    return SingleChange(change=change, group=group, steps=steps)


def _plenty(group: str, beyond: bool) -> tuple[AnyStep, ...]:
    """Return the steps after which no place runs short; ``beyond``: domains or the cluster have limits, too."""
    resource, amount = PLENTY.get(group, (group.removeprefix(NAMED), PLENTY_NAMED))
    on_nodes = SetAmount(do="set_amount", resource=resource, amount=amount, at="machine")
    if not beyond:
        return (on_nodes,)
    on_domains, on_cluster = (on_nodes.model_copy(update={"amount": None, "at": at}) for at in ("domain", "cluster"))
    return (on_nodes, on_domains, on_cluster)
