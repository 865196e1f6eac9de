"""Does each GPU, node, uplink and queue hold no more than it can, and has each job the shares of GPUs that it may?"""

from placeopt.check.amounts import NEVER_EXCEEDED, RULES, Amounts, Resource
from placeopt.check.case import CheckCase, names
from placeopt.check.directory import PlacedJob, gpu_number, option_of
from placeopt.model import Assignment, Demand
from placeopt.model.machine import Profile


def check_amounts(case: CheckCase) -> None:
    """
    What all jobs together take of each limited resource is at most its limit.

    Of a plan for some jobs the resources of which these take something are judged.
    """
    (used, raised), limits, elsewhere = case.amounts, case.limits, case.elsewhere

    def taken(resource: Resource) -> int:
        return used.get(resource, 0) + elsewhere.get(resource, 0)

    over: Amounts = {}
    for resource in raised:
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
            stands=resource[0] not in NEVER_EXCEEDED
            and all(_takes_no_more(case, resource, job, node, amount) for job, amount in holders[resource].items()),
        )


def _takes_no_more(case: CheckCase, resource: Resource, job: str, node: str | None, amount: int) -> bool:
    """Return whether a job stays, or workers were added that take nothing of a resource."""
    if case.stays(job, node):
        return True
    running = case.kept(job)
    option = None if running is None else option_of(case.jobs[job], running.option)
    if running is None or option is None:
        return False
    return case.limits.of_placement(case.jobs[job], option, running).get(resource, 0) == amount


def check_slots(case: CheckCase) -> None:
    """
    A share of a GPU with profiles is one of these, at one of its starts; running jobs that stay keep their starts.

    That no two shares take one slot is a limit on amounts. GPUs that the cluster does not list have no profiles.
    """
    machines = case.directory.machines.values()
    with_profiles = {machine.id for machine in machines if any(gpu.profiles for gpu in machine.gpus)}
    for held in case.fresh_held:
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
    before = case.kept(held.job.id)
    if before is not None:
        former = [one.starts.get(gpu) for one in before.assignments if one.node == assignment.node and gpu in one.gpus]
        if former and former != [start]:
            return f"its share begins at slot {start}; a job that stays keeps slot {former[0]}"
    return None


Range = tuple[int, int]
"""Request and limit of a job, in thousandths of a GPU."""


def check_grants(case: CheckCase) -> None:
    """
    Under ``fraction`` the jobs on a GPU are granted above their requests, up to their limits, what no job requests.

    In the other modes a job is granted its request; one that runs and stays may keep what it holds. Only jobs that the
    plan places are judged, with all jobs on the GPU taken into account. Shares beyond request and limit are judged by
    rule ``gpu_milli``; GPUs of unknown nodes by ``unknown_node``.
    """
    more = case.policy.share_mode == "fraction"
    flexible = [held for held in case.held if held.option.demand.gpu_milli_limit is not None]
    placed = {placement.job for placement in case.plan.placements} if flexible else set()
    nodes = {assignment.node for held in flexible for assignment in held.placement.assignments}
    on_gpu: dict[tuple[str, str], dict[str, Range]] = {}  # node and GPU -> job -> range
    for node in nodes & case.on_node.keys() if flexible else ():
        for held, assignment in case.on_node[node]:
            for gpu in assignment.gpus:
                on_gpu.setdefault((node, gpu), {})[held.job.id] = _range(held.option.demand)
    for held in flexible:
        name, (low, high) = held.job.id, _range(held.option.demand)
        for assignment in held.placement.assignments if name in placed else ():
            node, runs = assignment.node, case.kept(name)
            for gpu, milli in assignment.gpus.items() if node in case.on_node else ():
                due = _granted(on_gpu[node, gpu])[name] if more else low
                before = () if more or runs is None else (one for one in runs.assignments if one.node == node)
                now = [one.gpus[gpu] for one in before if gpu in one.gpus]
                if low <= milli <= high and milli != due and milli not in now:
                    where = f"job {name!r} on node {node!r}"
                    case.add("gpu_grant", where, f"{milli} milli of GPU {gpu}, expected {due} of {low} to {high}")


def _range(demand: Demand) -> Range:
    return demand.gpu_milli, demand.gpu_milli if demand.gpu_milli_limit is None else demand.gpu_milli_limit


def _granted(ranges: dict[str, Range]) -> dict[str, int]:
    """
    Divide a GPU: the requests, and the rest in proportion to limit - request, rounded down and capped by it.

    Then one thousandth each, in order of the ids, to jobs below their limits, until the rest is used up.
    """
    rest = 1000 - sum(low for low, _ in ranges.values())
    wanted = sum(high - low for low, high in ranges.values())
    out: dict[str, int] = {}
    for job, (low, high) in ranges.items():
        part = 0 if rest <= 0 or wanted == 0 else (high - low) * rest // wanted
        out[job] = min(high, low + part)
    over = max(0, rest) - sum(out[job] - low for job, (low, _) in ranges.items())
    for job in sorted(ranges):
        if over > 0 and out[job] < ranges[job][1]:
            out[job] += 1
            over -= 1
    return out
