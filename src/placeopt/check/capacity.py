"""Does each GPU, node, uplink and queue hold no more than it can?"""

from placeopt.check.amounts import NEVER_EXCEEDED, RULES, Amounts
from placeopt.check.case import CheckCase, names
from placeopt.check.queues import Resource


def check_amounts(case: CheckCase) -> None:
    """
    What all jobs together take of each limited resource is at most its limit.

    Of a plan for some jobs the resources of which these take something are judged.
    """
    used: Amounts = {}
    limits, elsewhere = case.limits, case.elsewhere

    def taken(resource: Resource) -> int:
        return used.get(resource, 0) + elsewhere.get(resource, 0)

    for held in case.held:
        limits.add(used, held)
    over: Amounts = {}
    for resource in used:
        most, amount = limits.limit(resource), taken(resource)
        if most is not None and amount + limits.queues.kept(resource, taken) > most:
            over[resource] = amount
    if over:
        _report(case, over, {resource: limits.queues.kept(resource, taken) for resource in over})


def _report(case: CheckCase, over: Amounts, kept: Amounts) -> None:
    """Record the resources of which too much is taken, in the order of the rules, with the jobs that take of them."""
    holders: dict[Resource, dict[str, int]] = {resource: {} for resource in over}
    known = {id(held): held for held in case.held}
    known |= {id(held): held for entries in case.on_node.values() for held, _ in entries}
    for held in known.values():
        for resource, amount in case.limits.taken(held).items():
            if resource in over:
                holders[resource][held.job.id] = holders[resource].get(held.job.id, 0) + amount
    for resource in sorted(over, key=lambda resource: RULES.index(resource[0])):
        jobs = list(holders[resource])
        others = over[resource] - sum(holders[resource].values())
        by = " and ".join([*([names(jobs)] if jobs else []), *([f"others ({others})"] if others else [])])
        by += f", and {kept[resource]} kept by queues below it" if kept[resource] else ""
        where, limit, node = case.limits.describe(resource)
        case.add(
            resource[0],
            where,
            f"{over[resource]} of {limit} held by {by}",
            by=None if resource[0] in NEVER_EXCEEDED else jobs,
            node=node,
        )
