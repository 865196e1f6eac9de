"""Does each share of a GPU with profiles begin where its profile may?"""

from placeopt.check.case import CheckCase
from placeopt.check.directory import PlacedJob, gpu_number
from placeopt.model import Assignment
from placeopt.model.machine import Profile


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
