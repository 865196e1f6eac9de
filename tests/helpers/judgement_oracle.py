"""
The oracle of judgements: every allocation of a small round, and every statement that follows from them.

Regret: the best numbers of jobs by priority, then of GPUs, among all allocations under the same rules. Waiting jobs:
the fewest changes among all allocations of a round of the one job in which it is placed. Stranded GPUs: those idle ones
that no placement of a waiting job holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from helpers.brute_force import Enumeration, optimum, placements
from placeopt.judge import Judgement, Regret, WaitingJobs
from placeopt.model import Changes, Instance, Job, Placement, Plan, Policy, Postpone, Weights
from placeopt.problem import IntArray, Problem, compile_problem, open_state
from placeopt.terms.rules import fits
from placeopt.whatif import after_plan

LARGE = 1_000
"""Value of a job that is to start, above all changes."""
NO_COSTS = Weights(communication=0, interference=0, fragmentation=0)
Order = tuple[Counter[int], int]
"""Jobs placed of each priority, and thousandths of GPUs."""


def faults(round_: Instance, plan: Plan, found: Judgement) -> list[str]:
    """
    Return what is wrong in a judgement of a valid plan.

    It is to have proven everything; with minimal utilities, of which the bounds of rounds know little, what it proves.
    """
    judged = plan.policy.values.postpone.rule == "utility"
    wrong = [] if found.proven or judged else [f"not proven: {found.open}"]
    for regret in found.regrets:
        wrong += _of_regret(round_, plan, regret)
    after = after_plan(round_, plan)
    runs = {held.job for held in after.running}
    waiting = {job.id: job for job in after.jobs if job.id not in runs}
    if Counter(name for kind in found.waiting for name in kind.jobs) != Counter(list(waiting)):
        wrong.append(f"judged are {[kind.jobs for kind in found.waiting]}, but {list(waiting)} wait")
    for kind in found.waiting:
        for name in kind.jobs:
            wrong += _of_waiting(after, waiting[name], kind)
    return wrong + list(_of_stranded(after, list(waiting.values()), found))


def _of_regret(round_: Instance, plan: Plan, regret: Regret) -> Iterator[str]:
    policy, free = plan.policy.values, {"move_price": 0, "preemption_price": 0, "shrink_price_per_worker": 0}
    changes = Changes() if regret.rules == "fixed" else policy.changes.model_copy(update=free)
    problem = compile_problem(_plain(round_, policy, changes))
    every, priorities = Enumeration(problem), sorted({job.priority for job in round_.jobs}, reverse=True)
    orders = [_order_of(problem, every, row) for row in every.rows()[0]]
    best = max(orders, key=lambda order: ([order[0][one] for one in priorities], order[1]))
    if regret.gpu_milli is None:
        given, said = _order(round_, round_.running), ([0] * len(regret.bands), 0)
        if not (plan.moved or plan.shrunk or plan.preempted):
            yield "the plan changes nothing that runs, but has no regret"
    else:
        given = _order(round_, plan.placements)
        said = [band.given or 0 for band in regret.bands], regret.gpu_milli
    true = (
        [best[0][band.highest] - given[0][band.highest] + n for band, n in zip(regret.bands, said[0], strict=True)],
        best[1] - given[1] + said[1],
    )
    found = [band.best for band in regret.bands], regret.best_gpu_milli
    bound = [band.bound for band in regret.bands], regret.bound_gpu_milli
    if not found <= true <= bound or (regret.proven and found != true):
        yield f"{regret.rules}: {found}, at most {bound}, of all allocations {true}"


def _plain(round_: Instance, policy: Policy, changes: Changes) -> Instance:
    """Return the round without costs, under other rules about changes."""
    plain = policy.model_copy(update={"weights": NO_COSTS, "changes": changes})
    return round_.model_copy(update={"policy": plain})


def _order(round_: Instance, held: Iterable[Placement]) -> Order:
    jobs = {job.id: job for job in round_.jobs}
    count: Counter[int] = Counter()
    gpu_milli = 0
    for one in held:
        demand = jobs[one.job].option(one.option).demand
        count[jobs[one.job].priority] += 1
        gpu_milli += demand.gpus * demand.gpu_milli * sum(len(part.workers) for part in one.assignments)
    return count, gpu_milli


def _order_of(problem: Problem, every: Enumeration, row: IntArray) -> Order:
    count: Counter[int] = Counter()
    gpu_milli = 0
    for job, placement in enumerate(every.allocation(row)):
        if placement is not None:
            count[problem.instance.jobs[job].priority] += 1
            gpu_milli += len(placement.gpus) * int(problem.options.milli[placement.option])
    return count, gpu_milli


def _of_waiting(after: Instance, job: Job, kind: WaitingJobs) -> Iterator[str]:
    """Compare with the round of one job, in which a change costs 1."""
    ones = {"move_price": 1, "preemption_price": 1, "shrink_price_per_worker": 1}
    changes = after.policy.changes.model_copy(update=ones)
    runs = {held.job for held in after.running}
    jobs = [_worth(one, LARGE if one.id == job.id else 0) for one in after.jobs if one.id in {*runs, job.id}]
    alone = _plain(after, after.policy, changes).model_copy(update={"jobs": tuple(jobs)})
    value, _, _ = optimum(compile_problem(alone))
    least = LARGE - value if value > 0 else None
    verdict = "never" if least is None else "changes" if least else "fits"
    if kind.verdict == "unknown":
        if kind.proven or (least is not None and (kind.least or 0) > least):
            yield f"{job.id}: not known, but at least {kind.least}; of all allocations {least}"
    elif kind.verdict != verdict:
        yield f"{job.id} {kind.verdict}, but of all allocations: {verdict}"
    elif least is not None:
        size, at_least = kind.size or 0, kind.least or 0
        changed = len(kind.moved) + len(kind.stopped)
        if not at_least <= least <= size or (kind.proven and size > at_least) or (not kind.shrunk and changed != size):
            yield f"{job.id}: {kind.size} changes, at least {kind.least}; of all allocations {least}"
        if kind.place is None or kind.place.job not in kind.jobs:
            yield f"{job.id}: no place"


def _worth(job: Job, value: int) -> Job:
    return job.model_copy(update={"options": tuple(option.valued(value) for option in job.options)})


def _of_stranded(after: Instance, waiting: list[Job], found: Judgement) -> Iterator[str]:
    """Compare with the GPUs that no placement of a waiting job holds; minimal utilities do not count here."""
    plain = after.policy.model_copy(update={"postpone": Postpone(), "changes": Changes()})
    problem = compile_problem(after, plain)
    state = open_state(problem)
    idle = {int(gpu) for gpu in (state.gpu_jobs == 0).nonzero()[0] if not problem.type_lost[problem.gpu_type[gpu]]}
    usable: set[int] = set()
    for job in waiting:
        number = problem.job_ids.index(job.id)
        usable |= {gpu for one in placements(problem, number) if fits(state, number, one) for gpu in one.gpus}
    stranded, said = len(idle - usable), sum(one.gpus for one in found.stranded)
    if found.idle_gpus != len(idle):
        yield f"{found.idle_gpus} idle GPUs, expected {len(idle)}"
    gangs = any(option.workers > 1 for job in waiting for option in job.options)
    if said > stranded or (said < stranded and not gangs):
        yield f"{said} GPUs stranded, of all placements {stranded}"
