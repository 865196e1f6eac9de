"""Are running jobs left alone where policy and job do not allow otherwise, and is what the plan says of them true?"""

from collections import Counter
from typing import TypeVar

from placeopt.check.case import CheckCase, workers_by_rank
from placeopt.check.directory import option_of
from placeopt.model import Placement, Running
from placeopt.model.plan import Moved, Preempted, Shrunk

Entry = TypeVar("Entry", Moved, Shrunk, Preempted)

UNSAID: dict[str | None, tuple[tuple[str, ...], str]] = {
    None: (("preempted",), "was stopped, but is not listed in 'preempted'"),
    "other": (("moved", "shrunk"), "was changed, but is not listed in 'moved' or 'shrunk'"),
    "shrunk": (("moved", "shrunk"), "lost workers, but is not listed in 'shrunk' or 'moved'"),
}
"""Where a job must be listed whose placement compares so with the running one, and what is wrong if it is not."""


def check_changes(case: CheckCase) -> None:
    """
    Running jobs stay as they are unless moved, shrunk or preempted; the plan lists just those that were.

    A move is a checkpoint and a restart: anywhere, in any option, with any number of workers that it allows, be it on a
    part of the job's own GPUs. A shrink keeps the chief and some other workers just where they are. A job that both
    loses workers and changes place was moved.
    """
    changes = case.policy.changes
    moved = _listed(case, "moved", case.plan.moved, changes.moves_max)
    shrunk = _listed(case, "shrunk", case.plan.shrunk, changes.shrinks_max)
    preempted = _listed(case, "preempted", case.plan.preempted, changes.preemptions_max)
    listed_as = {"moved": {*moved}, "shrunk": {*shrunk}, "preempted": {*preempted}}
    listed = {*moved, *shrunk, *preempted}
    for job in case.running:
        kinds, what = UNSAID.get(case.relation.get(job), ((), ""))
        if kinds and not any(job in listed_as[kind] for kind in kinds):
            case.of_job("running", job, what)
        elif job in moved and job in shrunk and job in case.relation:
            case.of_job("running", job, "is listed both in 'moved' and in 'shrunk'; it can be only one of them")
    for job in sorted(listed):
        if case.running[job].is_protected(case.directory.now_ms, changes.run_time_min_ms):
            case.of_job("protected", job, "was changed, but is protected at this time")
    placed: dict[str, Placement] = {}
    for placement in case.placements if listed else ():
        placed.setdefault(placement.job, placement)
    for job, move in moved.items():
        _check_move(case, case.running[job], move, placed.get(job))
    for job, shrink in shrunk.items():
        _check_shrink(case, case.running[job], shrink, placed.get(job))
    unplaced = {unplaced.job for unplaced in case.plan.unplaced} if preempted else set()
    for job, stop in preempted.items():
        _check_stop(case, case.running[job], stop, alone=job in unplaced and job not in placed)
    _check_fixed(case, listed)
    if changes.last_submitted_first:
        _check_order(case, set(shrunk) | set(preempted))


def _listed(case: CheckCase, rule: str, entries: tuple[Entry, ...], most: int) -> dict[str, Entry]:
    """Return the entries that name a running job, each job's first; the others are faults."""
    listed: dict[str, Entry] = {}
    for i, entry in enumerate(entries):
        if entry.job not in case.running:
            case.add(rule, f"{rule}[{i}]", f"job {entry.job!r} does not run, so nothing was done to it")
        elif entry.job in listed:
            case.add(rule, f"{rule}[{i}]", f"job {entry.job!r} is listed twice")
        else:
            listed[entry.job] = entry
    if len(listed) > most:
        case.add(rule, rule, f"{len(listed)} running jobs, the policy allows {most}")
    return listed


def _check_move(case: CheckCase, running: Running, move: Moved, now: Placement | None) -> None:
    if now is None or case.relation[move.job] == "same":
        case.of_job("moved", move.job, "is listed as moved, but did not move")
        return
    if not running.movable:
        case.of_job("moved", move.job, "was moved, but is not movable")
    for field, stated, placement in (("from", move.from_nodes, running), ("to", move.to_nodes, now)):
        true = sorted(assignment.node for assignment in placement.assignments)
        if sorted(stated) != true:
            case.of_job("moved", move.job, f"{field!r} says nodes {sorted(stated)}, true are {true}")


def _check_shrink(case: CheckCase, running: Running, shrink: Shrunk, now: Placement | None) -> None:
    def fault(what: str) -> None:
        case.of_job("shrunk", shrink.job, what)

    relation = case.relation.get(shrink.job)
    if now is None or relation == "same":
        return fault("is listed as shrunk, but did not shrink")
    if relation == "other":
        return fault("its workers are not its chief and some of its former ones on their former GPUs")
    if not running.shrinkable:
        fault("was shrunk, but is not shrinkable")
    option = option_of(case.jobs[shrink.job], running.option)
    kept = len(workers_by_rank(now))
    if option is None or option.workers_min is None:
        fault(f"option {running.option!r} is not elastic")
    elif kept < option.workers_min:
        fault(f"kept {kept} workers, needs at least {option.workers_min}")
    if kept != shrink.workers:
        fault(f"says that {shrink.workers} workers are kept, true are {kept}")
    return None


def _check_stop(case: CheckCase, running: Running, stop: Preempted, *, alone: bool) -> None:
    """``alone``: whether it stands in ``unplaced`` and nowhere else."""
    if not alone:
        case.of_job("preempted", stop.job, "is listed as preempted, but does not stand in 'unplaced' alone")
        return
    if not running.preemptible:
        case.of_job("preempted", stop.job, "was preempted, but is not preemptible")
    option = option_of(case.jobs[stop.job], running.option)
    each = 0 if option is None else option.demand.gpu_milli  # what was granted above it was free before
    freed = each * sum(len(assignment.gpus) for assignment in running.assignments)
    if stop.freed_gpu_milli != freed:
        case.of_job("preempted", stop.job, f"says that {stop.freed_gpu_milli} gpu milli are freed, true are {freed}")


def _check_order(case: CheckCase, taken: set[str]) -> None:
    """
    Nothing is taken from a job while one of its queue that arrived later could have given and gave nothing.

    Jobs without a queue count as one queue. A moved job gave nothing. Of jobs that arrived together any may be first.
    """
    latest: dict[str | None, tuple[int, str]] = {}
    for name, running in case.running.items():
        if name not in taken and _may_give(case, running):
            job = case.jobs[name]
            latest[job.queue] = max(latest.get(job.queue, (-1, "")), (job.arrival_ms, name))
    for name in sorted(taken):
        job = case.jobs[name]
        arrival, untouched = latest.get(job.queue, (-1, ""))
        if arrival > job.arrival_ms:
            later = f"{untouched!r} of its queue arrived later ({arrival} > {job.arrival_ms} ms) and was not"
            case.of_job("last_submitted_first", name, f"was shrunk or stopped, while {later}")


def _may_give(case: CheckCase, running: Running) -> bool:
    """Return whether a running job may be shrunk or stopped."""
    changes, option = case.policy.changes, option_of(case.jobs[running.job], running.option)
    if running.is_protected(case.directory.now_ms, changes.run_time_min_ms):
        return False
    if changes.preemptions_max and running.preemptible:
        return True
    if not changes.shrinks_max or not running.shrinkable or option is None or option.workers_min is None:
        return False
    return len(workers_by_rank(running)) > option.workers_min


def _check_fixed(case: CheckCase, changed: set[str]) -> None:
    """
    Jobs that run in a way which no plan may start stay as they are.

    These are jobs of a single-node option on several nodes, and those on a GPU with more jobs than may share one: the
    GPU, or the other nodes, take no new job in this round anyway.
    """
    most = 1 if case.policy.share_mode == "exclusive" else case.policy.jobs_per_gpu_max
    crowd: Counter[tuple[str, str]] = Counter()
    for running in case.running.values() if most is not None and changed else ():
        crowd.update(_gpus(running))
    for name in sorted(changed):
        held = case.running[name]
        option = option_of(case.jobs[name], held.option)
        if option is not None and option.single_node and len(held.assignments) > 1:
            what = f"lies on {len(held.assignments)} nodes, of an option for one node; it stays as it is"
            case.of_job("running", name, what)
        for node, gpu in [place for place in _gpus(held) if crowd[place] > (most or 0)][:1]:
            what = f"shares GPU {gpu} of node {node!r} with more jobs than may; it stays as it is"
            case.of_job("running", name, what)


def _gpus(placement: Placement) -> list[tuple[str, str]]:
    return [(assignment.node, gpu) for assignment in placement.assignments for gpu in assignment.gpus]


def check_standing(case: CheckCase) -> None:
    """
    Every entry of ``standing`` is a limit that running jobs broke and still break; the last rule: it reads the others.

    A plan need not list them: another scheduler that writes plans cannot always compute them.
    """
    broken = {(entry.job, entry.rule, entry.node) for entry in case.standing}
    for i, entry in enumerate(case.plan.standing):
        if (entry.job, entry.rule, entry.node) not in broken:
            case.add("standing", f"standing[{i}]", f"no running job breaks {entry.rule!r} there")
