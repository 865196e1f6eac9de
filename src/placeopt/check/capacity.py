"""Does each GPU, node, uplink and queue hold no more than it can, and each share of a GPU begin where it may?"""

from placeopt.check.amounts import NEVER_EXCEEDED, RULES, Amounts
from placeopt.check.case import CheckCase, names
from placeopt.check.directory import PlacedJob, gpu_number
from placeopt.check.queues import Resource
from placeopt.model import Assignment
from placeopt.model.machine import Profile


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
        for resource, amount in case.limits.add({}, held).items():
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


def check_slots(case: CheckCase) -> None:
    """
    A share of a GPU with profiles is one of these, at one of its starts; running jobs that stay keep their starts.

    That no two shares take one slot is a limit on amounts. GPUs that the cluster does not list have no profiles.
    """
    machines = case.directory.machines.values()
    with_profiles = {machine.id for machine in machines if any(gpu.profiles for gpu in machine.gpus)}
    for held in case.held:
        for assignment in held.placement.assignments:
            node = case.nodes.get(assignment.node)
            plain = held.option.demand.gpu_profile is None and not assignment.starts
            if node is None or (plain and node.machine not in with_profiles):
                continue
            gpus = case.machine_of[node.id].gpus
            for gpu in assignment.gpus:
                number = gpu_number(gpu)
                what = _fault(case, held, assignment, gpu, gpus[number].profiles) if 0 <= number < len(gpus) else None
                if what is not None:
                    case.add("gpu_slots", f"job {held.job.id!r} on node {node.id!r} gpu {gpu}", what, node=node.id)


def _fault(
    case: CheckCase, held: PlacedJob, assignment: Assignment, gpu: str, profiles: tuple[Profile, ...]
) -> str | None:
    """Return what is wrong with a share, None if nothing is."""
    name, start = held.option.demand.gpu_profile, assignment.starts.get(gpu)
    if not profiles and name is None and start is None:
        return None
    profile = next((profile for profile in profiles if profile.id == name), None)
    if profile is None:
        there = ", ".join(repr(profile.id) for profile in profiles) or "none"
        return f"the share is of profile {name!r}, the GPU has {there}"
    if start not in profile.starts:
        return f"profile {name!r} begins at slot {start}, expected one of {list(profile.starts)}"
    before = case.directory.running.get(held.job.id)
    if before is not None and case.stays(held.job.id, assignment.node):
        former = [one.starts.get(gpu) for one in before.assignments if one.node == assignment.node and gpu in one.gpus]
        if former and former != [start]:
            return f"its share begins at slot {start}; a job that stays keeps slot {former[0]}"
    return None
