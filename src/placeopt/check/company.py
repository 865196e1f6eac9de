"""By how much a job is slowed by those beside it, from the records."""

from placeopt.check.case import CheckCase, PlacedJob, gpu_number
from placeopt.model import Machine

CURVES = {"gtx-1080": (1.32198, -0.00728, 6e-5), "rtx-2080": (1.16664, -0.00302, 4e-5)}
LEVELS = ("gpu", "switch", "socket", "node")
"""Domains inside a node, the closest first."""


def excesses(case: CheckCase, held: PlacedJob) -> dict[str, int]:
    """Excess in thousandths that each other job with a GPU on one of the job's nodes causes it by itself."""
    others = {
        other.job.id: other
        for mine in held.placement.assignments
        for other, theirs in case.on_node.get(mine.node, ())
        if mine.gpus and theirs.gpus and other.job.id != held.job.id
    }
    excess_of = _by_curve if case.policy.interference.model == "curve" else _by_profile
    return {name: excess_of(case, held, other) for name, other in others.items()}


def _by_curve(case: CheckCase, held: PlacedJob, other: PlacedJob) -> int:
    """Excess by how full the GPUs are that the two share; 0 if they share none."""
    curve = case.policy.interference.curve
    if isinstance(curve, str):
        a, b, c = CURVES[curve]
    else:
        a, b, c = (n / 1e6 for n in (curve.square_millionths, curve.linear_millionths, curve.constant_millionths))
    found = 0
    for node, gpu in _around(case, held, "gpu") & _around(case, other, "gpu"):
        percent = sum(
            one.option.demand.gpu_utilisation_percent for one, there in case.on_node[node] if str(gpu) in there.gpus
        )
        x = percent / 100
        excess = (a + b + c - 1) * percent / 100 if percent <= 100 else a * x * x + b * x + c - 1
        found = max(found, round(1000 * excess))
    return found


def _by_profile(case: CheckCase, held: PlacedJob, other: PlacedJob) -> int:
    """Excess that the instance states for the two profiles at the closest domain that they share."""
    stated = case.directory.slowdowns.get((held.job.profile, other.job.profile))
    if stated is None:
        return 0
    for level in LEVELS:
        if _around(case, held, level) & _around(case, other, level):
            return int(getattr(stated, f"{level}_thousandths"))
    return 0


def _around(case: CheckCase, held: PlacedJob, level: str) -> set[tuple[str, object]]:
    """Return the domains of a level that the job has a GPU in, as (node, name in it); of known nodes."""
    return {
        (assignment.node, name)
        for assignment in held.placement.assignments
        if assignment.node in case.machine_of
        for gpu in map(gpu_number, assignment.gpus)
        if (name := _domain(case.machine_of[assignment.node], gpu, level)) is not None
    }


def _domain(machine: Machine, gpu: int, level: str) -> object:
    if level in ("gpu", "node"):
        return gpu if level == "gpu" else machine.id
    return part_of(machine, gpu, level)


def part_of(machine: Machine, gpu: int, level: str) -> str | None:
    """Return the id of the closest part of a level above a GPU; None without, or where there is no such GPU."""
    parts = {part.id: part for part in machine.parts}
    at = machine.gpus[gpu].part if 0 <= gpu < len(machine.gpus) else None
    while at is not None and parts[at].level != level:
        at = parts[at].parent
    return at
