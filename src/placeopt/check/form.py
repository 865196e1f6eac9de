"""Is each placement well formed: option, workers, ranks, GPUs, shares, amounts?"""

from placeopt.check.case import Case, Held, option_of
from placeopt.model import Assignment, Demand


def check_form(case: Case) -> None:
    """Every placement is one of the job's options, with the workers, GPUs and amounts that the option states."""
    for placement in case.plan.placements:
        job = case.jobs.get(placement.job)
        if job is not None and option_of(job, placement.option) is None:
            known = ", ".join(repr(option.id) for option in job.options)
            case.add("option", f"job {job.id!r}", f"has no option {placement.option!r}; it has {known}")
    for held in case.held:
        least, utility = held.job.utility_min_thousandths, held.option.utility_thousandths
        if least is not None and utility is not None and utility < least:
            case.add(
                "option",
                f"job {held.job.id!r}",
                f"option {held.option.id!r} has utility {utility} of at least {least} thousandths",
            )
        _check_workers(case, held)
        for assignment in held.placement.assignments:
            _check_assignment(case, held, assignment)


def _check_workers(case: Case, held: Held) -> None:
    assignments, option = held.placement.assignments, held.option
    if len(assignments) > 1 and len({assignment.node for assignment in assignments}) != len(assignments):
        case.add("workers", f"job {held.job.id!r}", "a node stands in two assignments")
    ranks = [worker.rank for assignment in assignments for worker in assignment.workers]
    count = len(ranks)
    least = option.workers if option.workers_min is None else option.workers_min
    if not least <= count <= option.workers:
        wanted = f"{option.workers}" if least == option.workers else f"{least} to {option.workers}"
        case.add("workers", f"job {held.job.id!r}", f"{count} workers, option {option.id!r} has {wanted}")
    if count == 1:
        if ranks[0] != 0:
            case.add("workers", f"job {held.job.id!r}", f"its only worker has rank {ranks[0]}, expected 0")
    elif len(set(ranks)) != count or max(ranks) != count - 1:
        case.add("workers", f"job {held.job.id!r}", f"ranks of {count} workers must be 0 to {count - 1}, each once")


def _check_assignment(case: Case, held: Held, assignment: Assignment) -> None:
    where, demand = f"job {held.job.id!r} on node {assignment.node!r}", held.option.demand
    machine = case.machine_of.get(assignment.node)
    if machine is None:
        case.add("unknown_node", where, "no such node in the cluster")
    taken: list[int] = []
    for worker in assignment.workers:
        taken.extend(worker.gpus)
        if len(worker.gpus) != demand.gpus:
            case.add("gpu_indexes", where, f"worker {worker.rank} has {len(worker.gpus)} GPUs, needs {demand.gpus}")
    distinct = set(taken)
    if len(distinct) != len(taken):
        twice = min(gpu for gpu in distinct if taken.count(gpu) > 1)
        case.add("gpu_indexes", where, f"GPU {twice} is held twice by this job")
    if distinct != {int(gpu) for gpu in assignment.gpus}:
        case.add(
            "gpu_indexes",
            where,
            f"'gpus' lists {sorted(int(gpu) for gpu in assignment.gpus)}, its workers hold {sorted(distinct)}",
        )
    if machine is not None:
        for gpu in sorted(distinct.union(int(gpu) for gpu in assignment.gpus)):
            if gpu >= len(machine.gpus):
                case.add("gpu_indexes", where, f"no GPU {gpu}; the node has {len(machine.gpus)}")
    _check_amounts(case, where, assignment, demand)


def _check_amounts(case: Case, where: str, assignment: Assignment, demand: Demand) -> None:
    low, high = demand.gpu_milli, demand.gpu_milli_limit or demand.gpu_milli
    for gpu, milli in assignment.gpus.items():
        if not low <= milli <= high:
            wanted = f"{low}" if low == high else f"{low} to {high}"
            case.add("gpu_milli", where, f"{milli} milli of GPU {gpu}, expected {wanted}")
    workers = len(assignment.workers)
    for field, stated, each in (
        ("cpu_millicores", assignment.cpu_millicores, demand.cpu_millicores),
        ("memory_mib", assignment.memory_mib, demand.memory_mib),
    ):
        if stated != workers * each:
            case.add("amounts", where, f"{field} is {stated}, expected {workers} workers x {each} = {workers * each}")
