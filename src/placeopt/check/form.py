"""Does the plan belong to this instance, does every job stand in it once, and is each placement well formed?"""

from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise

from placeopt.check.case import CheckCase
from placeopt.check.directory import PlacedJob, gpu_number, option_of
from placeopt.model import Assignment, Group, Option, Placement


def check_reference(case: CheckCase) -> None:
    """
    The plan names the instance, its content and revision, and the policy whose values it carries.

    A plan for some jobs has null as digest: reading the whole content would cost more than the plan.
    """
    instance, ref, policy = case.instance, case.plan.instance, case.plan.policy
    for field, stated, true in (
        ("instance.name", ref.name, instance.name),
        ("instance.revision", ref.revision, instance.revision),
        ("instance.digest", ref.digest, instance.digest if case.plan.asked is None else None),
        ("policy.name", policy.name, policy.values.name),
        ("policy.digest", policy.digest, policy.values.digest),
    ):
        if stated != true:
            case.add("reference", field, f"the plan says {stated!r}, expected {true!r}")


def check_account(case: CheckCase) -> None:
    """
    Every job stands exactly once, in ``placements`` or in ``unplaced``, and an unplaced one has a reason.

    A plan for some jobs has those jobs and no others, and they are waiting ones.
    """
    plan = case.plan
    placed = [placement.job for placement in plan.placements]
    waiting = [unplaced.job for unplaced in plan.unplaced]
    stands = {*placed, *waiting}
    asked = None if plan.asked is None else dict.fromkeys(plan.asked).keys()
    wanted: Collection[str] = case.jobs.keys() if asked is None else asked
    wait = asked is None or (asked <= case.jobs.keys() and asked.isdisjoint(case.directory.running.keys()))
    for job in plan.asked or () if not wait else ():
        if job in case.directory.running:
            case.add("account", f"job {job!r}", "was asked for, but runs already")
        elif job not in case.jobs:
            case.add("account", f"job {job!r}", "was asked for, but the instance has no such job")
    if len(stands) != len(placed) + len(waiting) or stands != wanted:
        _tell_faults(case, placed, waiting, wanted)
    for i, unplaced in enumerate(plan.unplaced):
        if not unplaced.reason.strip():
            case.add("account", f"unplaced[{i}]", f"job {unplaced.job!r} has no reason")


def _tell_faults(case: CheckCase, placed: list[str], waiting: list[str], wanted: Collection[str]) -> None:
    """Record which jobs are unknown, not requested, listed twice or missing."""
    stands: dict[str, str] = {}
    for group, ids in (("placements", placed), ("unplaced", waiting)):
        for i, job in enumerate(ids):
            where = f"{group}[{i}]"
            if job not in case.jobs:
                case.add("account", where, f"the instance has no job {job!r}")
            elif job not in wanted:
                case.add("account", where, f"the plan is for {len(wanted)} jobs, and job {job!r} is none of them")
            elif job in stands:
                case.add("account", where, f"job {job!r} stands in {stands[job]} already")
            else:
                stands[job] = where
    for job in wanted:
        if job not in stands:
            case.add("account", f"job {job!r}", "neither in placements nor in unplaced")


def check_form(case: CheckCase) -> None:
    """Every placement is one of the job's options, with the workers, GPUs and amounts that the option states."""
    for placement in case.placements if len(case.known) < len(case.placements) else ():
        job = case.jobs.get(placement.job)
        if job is not None and option_of(job, placement.option) is None:
            known = ", ".join(repr(option.id) for option in job.options)
            case.of_job("option", job.id, f"has no option {placement.option!r}; it has {known}")
    for job, option, _ in case.fresh:
        if job.is_below_minimum(option):
            what = f"utility {option.utility_thousandths} of at least {job.utility_min_thousandths} thousandths"
            case.of_job("option", job.id, f"option {option.id!r} has {what}", held=True)
    for _, option, placement in case.fresh:
        _check_workers(case, option, placement)
    right: set[tuple[int, ...]] = set()  # what was found right, by the records that alike assignments share
    for held in case.fresh_held:
        for at in held.placement.assignments:
            of = (held.option, at.gpus, at.workers, case.machine_of.get(at.node))
            alike = (*map(id, of), at.cpu_millicores, at.memory_mib)
            if alike not in right and _check_assignment(case, held, at):
                right.add(alike)


def _check_workers(case: CheckCase, option: Option, placement: Placement) -> None:
    """Each leaf has a number of workers that it may have, ranks run over the leaves, and each node stands once."""
    if not option.groups and option.fewest == 1 and len(placement.assignments) == 1:
        (alone,) = placement.assignments
        if alone.group is None and len(alone.workers) == 1 and alone.workers[0].rank == 0:
            return  # most jobs are one worker

    def fault(what: str) -> None:
        case.of_job("workers", placement.job, what)

    ranks: dict[str | None, list[int]] = {leaf.id if option.groups else None: [] for leaf in option.leaves}
    for assignment in placement.assignments:
        if assignment.group in ranks:
            ranks[assignment.group] += [worker.rank for worker in assignment.workers]
        else:
            fault(f"option {option.id!r} has no leaf {assignment.group!r}")
    if not option.groups or case.relation.get(placement.job) != "same":  # a tree that runs in part may stay as it is
        for what in _missing(option, {name: len(workers) for name, workers in ranks.items()}):
            fault(what)
    first = 0
    for name, mine in ranks.items():
        count = len(mine)
        if sorted(mine) != list(range(first, first + count)):
            whose = f"of its {count} workers" if name is None else f"of the {count} workers of {name!r}"
            fault(f"ranks {whose} must be {first} to {first + count - 1}, each once")
        first += count
    places = {(assignment.node, assignment.group) for assignment in placement.assignments}
    if len(places) != len(placement.assignments):
        fault("a node stands in two assignments")


def _missing(group: Group, counts: Mapping[str | None, int]) -> Iterator[str]:
    """Tell which groups lack workers, or have too many; an optional one may have none at all."""
    if not group.groups:
        kind, count = ("option", counts[None]) if None in counts else ("group", counts[group.id])
        if not group.fewest <= count <= group.workers:
            wanted = f"{group.workers}" if group.fewest == group.workers else f"{group.fewest} to {group.workers}"
            yield f"{count} workers of {kind} {group.id!r}, which has {wanted}"
    for part in group.groups:
        if not part.optional or any(counts[leaf.id] for leaf in part.leaves):
            yield from _missing(part, counts)


def _check_assignment(case: CheckCase, held: PlacedJob, assignment: Assignment) -> bool:
    """Return whether nothing is wrong with an assignment."""
    before = len(case.found) + len(case.standing)
    demand, workers, shares = held.option.demand, assignment.workers, assignment.gpus

    def fault(rule: str, what: str, *, stands: bool = False) -> None:
        case.of_job(rule, held.job.id, what, assignment.node, held=stands, leaf=assignment.group)

    if not workers:
        fault("workers", "no workers there")
    taken: list[int] = []
    for worker in workers:
        taken += worker.gpus
        if len(worker.gpus) != demand.gpus:
            fault("gpu_indexes", f"worker {worker.rank} has {len(worker.gpus)} GPUs, needs {demand.gpus}")
    taken.sort()
    listed = sorted(map(gpu_number, shares))  # different by themselves, so a GPU taken twice makes the two differ
    if taken != listed:
        twice = [gpu for gpu, after in pairwise(taken) if gpu == after]
        if twice:
            fault("gpu_indexes", f"GPU {twice[0]} is held twice by this job")
        if set(taken) != set(listed):
            fault("gpu_indexes", f"'gpus' lists {listed}, its workers hold {taken}")
    machine = case.machine_of.get(assignment.node)
    if machine is None:
        fault("unknown_node", "no such node in the cluster", stands=True)
    elif min(taken[:1] + listed[:1], default=0) < 0:
        fault("gpu_indexes", f"GPU {min(taken[:1] + listed[:1])}: indexes begin with 0")
    elif max(taken[-1:] + listed[-1:], default=-1) >= len(machine.gpus):
        what = f"no GPU {max(taken[-1:] + listed[-1:])}; the node has {len(machine.gpus)}"
        fault("gpu_indexes", what, stands=True)
    low, high = demand.gpu_milli, demand.gpu_milli_limit or demand.gpu_milli
    for gpu, milli in shares.items():
        if not low <= milli <= high:
            fault("gpu_milli", f"{milli} milli of GPU {gpu}, expected {low if low == high else f'{low} to {high}'}")
    for field, stated, each in (
        ("cpu_millicores", assignment.cpu_millicores, demand.cpu_millicores),
        ("memory_mib", assignment.memory_mib, demand.memory_mib),
    ):
        if stated != len(workers) * each:
            fault("amounts", f"{field} is {stated}, expected {len(workers)} workers x {each} = {len(workers) * each}")
    return before == len(case.found) + len(case.standing)
