"""Does every job that starts have the utility that it asks for at least? Slowdown by other jobs, from the records."""

from fractions import Fraction
from math import inf

from placeopt.check.case import CheckCase
from placeopt.check.directory import PlacedJob, gpu_number
from placeopt.check.distances import Distances, Place
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
    worst = 0
    for node, gpu in _around(case, held, "gpu") & _around(case, other, "gpu"):
        percent = sum(
            tenant.option.demand.gpu_utilisation_percent
            for tenant, there in case.on_node[node]
            if str(gpu) in there.gpus
        )
        x = percent / 100
        excess = (a + b + c - 1) * percent / 100 if percent <= 100 else a * x * x + b * x + c - 1
        worst = max(worst, round(1000 * excess))
    return worst


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
    """Return the id of the closest part of a level above a GPU; None if there is no such part or GPU."""
    parts = {part.id: part for part in machine.parts}
    at = machine.gpus[gpu].part if 0 <= gpu < len(machine.gpus) else None
    while at is not None and parts[at].level != level:
        at = parts[at].parent
    return at


def check_utility(case: CheckCase) -> None:
    """
    Under ``postpone.rule = "utility"``, jobs that start, or are moved, have their minimal utility in the plan.

    A running job that stays or shrinks is exempt.
    """
    if case.policy.postpone.rule != "utility":
        return
    moved = {move.job for move in case.plan.moved}
    distances: Distances | None = None
    for held in case.held:
        least = held.job.utility_min_thousandths
        if least is None or (held.job.id in case.running and held.job.id not in moved) or not _exists(case, held):
            continue
        distances = distances or Distances(case.directory)
        if not _reaches(case, distances, held, least):
            case.add(
                "minimal_utility",
                f"job {held.job.id!r}",
                f"its utility ({case.policy.postpone.utility}) is below its minimum of {least} thousandths",
            )


def _exists(case: CheckCase, held: PlacedJob) -> bool:
    """Return whether all nodes and GPUs exist; if not, other rules report it."""
    return all(
        assignment.node in case.nodes
        and all(0 <= gpu_number(g) < len(case.machine_of[assignment.node].gpus) for g in assignment.gpus)
        for assignment in held.placement.assignments
    )


def _reaches(case: CheckCase, distances: Distances, held: PlacedJob, least: int) -> bool:
    places = [
        (assignment.node, gpu_number(gpu)) for assignment in held.placement.assignments for gpu in assignment.gpus
    ]
    if not places:
        return least <= 1000
    beside = list(excesses(case, held).values())
    traffic, n = held.job.communication, len(places)
    apart, best = 0, 0
    if n > 1 and (traffic.weight or traffic.edges):
        apart, best = distances.pairs(places), _best_path(distances, held)
    if case.policy.postpone.utility == "sc17":
        # 0.2 / (sqrt t + sqrt i) >= least / 1000, squared twice
        t = Fraction(max(0, apart - best), max(1, distances.longest_in_a_machine) * max(n, n * (n - 1) // 2))
        i = sum((1 / (1 + Fraction(e, 1000)) for e in beside if e), start=Fraction(0)) / max(1, len(beside))
        t, i = max(t, Fraction(1, 100)), max(i, Fraction(1, 100))
        if least == 0:
            return True
        cross = Fraction(200, least) ** 2 - t - i
        return cross >= 0 and cross**2 >= 4 * t * i
    weights = case.policy.weights
    parts = (weights.communication, weights.interference, weights.fragmentation)
    a, b, d = parts if sum(parts) else (1, 1, 1)
    slow = max(beside, default=0) if case.policy.interference.model != "pairwise" else sum(beside)
    nearness = Fraction(best, apart) if 0 < best < apart else Fraction(1)
    total = a * nearness + b / (1 + Fraction(slow, 1000)) + d * _evenness(case, places)
    return total / (a + b + d) >= Fraction(least, 1000)


def _evenness(case: CheckCase, places: list[Place]) -> Fraction:
    """Best mean free part of the sockets of the job's nodes over the actual one."""
    actual = best = Fraction(0)
    for node in dict.fromkeys(node for node, _ in places):
        machine = case.machine_of[node]
        held = [gpu for _, assignment in case.on_node[node] for gpu in map(gpu_number, assignment.gpus)]
        alone = [gpu for at, gpu in places if at == node and held.count(gpu) == 1]
        sockets: dict[str | None, list[int]] = {}
        for gpu in range(len(machine.gpus)):
            sockets.setdefault(part_of(machine, gpu, "socket"), []).append(gpu)
        free = {name: [gpu for gpu in gpus if gpu not in held] for name, gpus in sockets.items()}
        actual += sum(Fraction(len(free[name]), len(gpus)) for name, gpus in sockets.items())
        open_ = {name: len(free[name]) + sum(gpu in alone for gpu in gpus) for name, gpus in sockets.items()}
        for _ in alone:  # each takes a place in the smallest socket that has one
            open_[min((name for name in open_ if open_[name]), key=lambda name: len(sockets[name]))] -= 1
        best += sum(Fraction(open_[name], len(gpus)) for name, gpus in sockets.items())
    return best / actual if 0 < best < actual else Fraction(1)


def _best_path(distances: Distances, held: PlacedJob) -> int:
    """Return the path of the job's pairs on the closest GPUs that it may hold."""
    demand, option = held.option.demand, held.option
    if not demand.gpus:
        return 0  # the plan gives GPUs to who asks for none: told by rule `gpu_indexes`
    workers = sum(len(assignment.workers) for assignment in held.placement.assignments)
    inside: dict[int, int] = {0: 0}  # workers on one node -> their path, at best
    for machine in distances.used_machines:
        gpus = tuple(
            g
            for g, gpu in enumerate(machine.gpus)
            if (not demand.gpu_models or gpu.model in demand.gpu_models) and gpu.memory_mib >= demand.gpu_memory_mib
        )
        most = workers if option.single_node else min(workers, option.workers_per_node_max or workers)
        most = min(most, len(gpus) // demand.gpus)
        grown = distances.grown(machine.id, gpus, most * demand.gpus) if most else [0]
        for k in range(1, most + 1):
            path = grown[k * demand.gpus]
            inside[k] = min(inside.get(k, path), path)
    if option.single_node or workers == 1 or distances.nearest_nodes is None:
        return inside.get(workers, 0)
    best: list[float] = [0]
    across = distances.nearest_nodes * demand.gpus**2
    for w in range(1, workers + 1):
        ways = [best[w - k] + path + across * k * (w - k) for k, path in inside.items() if 0 < k <= w]
        best.append(min(ways, default=inf))
    return 0 if best[workers] == inf else int(best[workers])
