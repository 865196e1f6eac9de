"""Where priorities are strict: who may change what runs, and does no job wait in favour of a lower priority?"""

from placeopt.check.amounts import Amounts, Resource, on_node
from placeopt.check.case import CheckCase
from placeopt.check.directory import PlacedJob, option_of
from placeopt.check.place import barriers
from placeopt.model import Assignment, Job, Node, Option, Placement, WorkerGpus

MAX_EACH = 1 << 40
"""More than one worker takes of anything: what there is of a resource without a limit."""


def check_priorities(case: CheckCase) -> None:
    """
    Under ``priorities`` strict, no job gains by the loss of one of the same or a higher priority.

    - What runs is moved, shrunk or stopped only where it finds no room any more beside the jobs that may do that: those
      of higher priority that preempt and start. Jobs of its own priority, or a lower one, may use what is left over.
    - No job waits that would find room if those that start at a lower priority did not, and what runs and it may not
      change had not been changed. A witness is sought for options of alike workers without splits and spread; of others
      nothing is said.
    """
    if case.policy.priorities != "strict":
        return
    starts = [held for held in case.held if held.job.id not in case.running or not case.stays(held.job.id)]
    for name in sorted(_changed(case)):
        _check_loss(case, case.jobs[name], [held for held in starts if held.job.id != name])
    waiting: dict[int, list[Job]] = {}
    for unplaced in case.plan.unplaced:
        job = case.jobs.get(unplaced.job)
        if job is not None and job.id not in case.directory.running:
            waiting.setdefault(job.priority, []).append(job)
    for priority, jobs in sorted(waiting.items(), reverse=True):
        below = [held for held in starts if held.job.priority < priority]
        for preempts in (True, False) if below else ():
            kept = [name for name in _changed(case) if not preempts or case.jobs[name].priority >= priority]
            _check_waits(case, [job for job in jobs if _preempts(case, job) == preempts], below, kept)


def _preempts(case: CheckCase, job: Job) -> bool:
    return job.may_preempt(case.directory.now_ms, case.policy.changes.wait_min_ms)


def _changed(case: CheckCase) -> set[str]:
    listed = {entry.job for entries in (case.plan.moved, case.plan.shrunk, case.plan.preempted) for entry in entries}
    return listed & case.running.keys()


def _check_loss(case: CheckCase, job: Job, starts: list[PlacedJob]) -> None:
    used = _used(case)
    for held in starts:
        if not (_preempts(case, held.job) and held.job.priority > job.priority):
            case.limits.add(used, held, -1)
    before = _put_back(case, used, job)
    if _keeps(case, used, before):
        what = "was changed, although the jobs of higher priority that may do so leave it its room"
        case.of_job("priority", job.id, what)


def _check_waits(case: CheckCase, jobs: list[Job], below: list[PlacedJob], kept: list[str]) -> None:
    """Report jobs that wait and would find room without those ``below`` them; running ones ``kept`` are as they ran."""
    used = _used(case)
    for name in kept:
        _put_back(case, used, case.jobs[name])
    for held in below:
        case.limits.add(used, held, -1)
    gained = dict.fromkeys(assignment.node for held in below for assignment in held.placement.assignments)
    names = [*gained, *(name for name in case.nodes if name not in gained)]
    failed: set[tuple[object, ...]] = set()
    for job in jobs:
        key = (id(job.options), job.conditions, job.queue, job.utility_min_thousandths)
        if key in failed:
            continue
        known = [case.nodes[name] for name in names if name in case.nodes]
        if any(_finds_room(case, job, option, used, known) for option in job.options):
            what = f"of priority {job.priority} waits, but would find room without {below[0].job.id!r} and others below"
            case.of_job("priority", job.id, what)
        else:
            failed.add(key)


def _put_back(case: CheckCase, used: Amounts, job: Job) -> Amounts:
    """Count a running job where it ran, in place of what the plan makes of it, and return what it took there."""
    for held in case.held:
        if held.job.id == job.id:
            case.limits.add(used, held, -1)
    running = case.running[job.id]
    option = option_of(job, running.option)
    before = {} if option is None else case.limits.of_placement(job, option, running)
    for resource, amount in before.items():
        used[resource] = used.get(resource, 0) + amount
    return before


def _used(case: CheckCase) -> Amounts:
    used: Amounts = dict(case.elsewhere)
    for held in case.held:
        case.limits.add(used, held)
    return used


def _keeps(case: CheckCase, used: Amounts, taken: Amounts) -> bool:
    """Return whether no resource of which something is ``taken`` has more in use than its limit."""
    limits = ((resource, case.limits.limit(resource)) for resource in taken)
    return all(most is None or used[resource] <= most for resource, most in limits)


def _finds_room(case: CheckCase, job: Job, option: Option, used: Amounts, nodes: list[Node]) -> bool:
    """Return whether a placement is found beside ``used``: on each node as many workers as it takes, in turn."""
    judged = job.utility_min_thousandths is not None and case.policy.postpone.rule == "utility"  # not by the referee
    if judged or job.is_below_minimum(option) or option.groups or option.spread or case.directory.splits_of(option):
        return False
    assignments: list[Assignment] = []
    rank, demand = 0, option.demand
    for node in nodes:
        if any(barriers(case.directory, node, job.conditions, option.conditions)):
            continue
        gpus, count = _room(case, option, used, node, option.fewest - rank)
        if option.single_node and count < option.fewest:
            continue
        if count:
            held = [tuple(gpus[i * demand.gpus : (i + 1) * demand.gpus]) for i in range(count)]
            workers = tuple(WorkerGpus(rank=rank + i, gpus=of_worker) for i, of_worker in enumerate(held))
            shares = {str(gpu): demand.gpu_milli for of_worker in held for gpu in of_worker}
            assignments.append(Assignment(node=node.id, gpus=shares, workers=workers))
            rank += count
        if rank == option.fewest:
            placement = Placement(job=job.id, option=option.id, assignments=tuple(assignments))
            taken = case.limits.of_placement(job, option, placement)
            return _keeps(case, {key: used.get(key, 0) + amount for key, amount in taken.items()}, taken)
    return False


def _room(case: CheckCase, option: Option, used: Amounts, node: Node, most: int) -> tuple[list[int], int]:
    """Return the GPUs of a node that take a worker's share, and how many workers, up to ``most``, find room there."""
    demand, limits = option.demand, case.limits

    def left(resource: Resource) -> int:
        limit = limits.limit(resource)
        return most * MAX_EACH if limit is None else limit - used.get(resource, 0)

    most = min(most, option.workers_per_node_max or most)
    for rule, each in limits.of_node(demand):
        most = min(most, left(on_node(rule, node.id)) // each)
    of_gpu = limits.of_gpu(demand)
    gpus = [
        gpu
        for gpu, record in enumerate(case.machine_of[node.id].gpus if demand.gpus else ())
        if (not demand.gpu_models or record.model in demand.gpu_models)
        and all(left((rule, node.id, str(gpu))) >= each for rule, each in of_gpu)
    ]
    return gpus, max(0, min(most, len(gpus) // demand.gpus) if demand.gpus else most)
