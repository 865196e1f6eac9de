"""Do the shares of a GPU with profiles lie in slots of their own, at starts that their profiles allow?"""

from placeopt.check.case import CheckCase, names
from placeopt.check.directory import PlacedJob, gpu_number
from placeopt.model import Assignment
from placeopt.model.machine import Profile


def check_slots(case: CheckCase) -> None:
    """
    A share of a GPU with profiles is one of these, at one of its starts; no two shares take one slot.

    Running jobs that stay keep their slots. GPUs that the cluster does not list have no profiles.
    """
    for node, entries in case.on_node.items():
        gpus = case.machine_of[node].gpus
        if not any(gpu.profiles for gpu in gpus) and all(held.option.demand.gpu_profile is None for held, _ in entries):
            continue
        holders: dict[tuple[str, int], list[str]] = {}
        for held, assignment in entries:
            for gpu in assignment.gpus:
                if not 0 <= gpu_number(gpu) < len(gpus):
                    continue
                profile = _profile(case, held, assignment, gpu, gpus[gpu_number(gpu)].profiles)
                for slot in range(profile.width) if profile is not None else ():
                    holders.setdefault((gpu, assignment.starts[gpu] + slot), []).append(held.job.id)
        for (gpu, slot), jobs in holders.items():
            if len(jobs) > 1:
                case.add("gpu_slots", f"node {node!r} gpu {gpu}", f"slot {slot} held by {names(jobs)}", node=node)


def _profile(
    case: CheckCase, held: PlacedJob, assignment: Assignment, gpu: str, profiles: tuple[Profile, ...]
) -> Profile | None:
    """Return the profile of a share that has a legal start; record what is wrong with any other."""
    name, start = held.option.demand.gpu_profile, assignment.starts.get(gpu)
    where = f"job {held.job.id!r} on node {assignment.node!r} gpu {gpu}"

    def add(what: str) -> None:
        case.add("gpu_slots", where, what, node=assignment.node)

    profile = next((profile for profile in profiles if profile.id == name), None)
    if profile is None:
        if profiles or name is not None or start is not None:
            there = ", ".join(repr(profile.id) for profile in profiles) or "none"
            add(f"the share is of profile {name!r}, the GPU has {there}")
        return None
    if start not in profile.starts:
        add(f"profile {name!r} begins at slot {start}, expected one of {list(profile.starts)}")
        return None
    before = case.directory.running.get(held.job.id)
    if before is not None and case.stays(held.job.id, assignment.node):
        former = [one.starts.get(gpu) for one in before.assignments if one.node == assignment.node and gpu in one.gpus]
        if former and former != [start]:
            add(f"its share begins at slot {start}; a job that stays keeps slot {former[0]}")
    return profile
