"""Are running jobs left alone where policy and job do not allow otherwise, and is what the plan says of them true?"""

from collections import Counter
from typing import TypeVar

from placeopt.check.case import CheckCase, workers_by_rank
from placeopt.check.directory import option_of
from placeopt.model import Placement, Running
from placeopt.model.plan import Moved, Preempted, Shrunk

Entry = TypeVar("Entry", Moved, Shrunk, Preempted)


def check_changes(case: CheckCase) -> None:
    """
    Running jobs stay as they are unless moved, shrunk or preempted; the plan lists just those that were.

    A move is a checkpoint and a restart: anywhere, in any option, with any number of workers that it allows, be it on a
    part of the job's own GPUs. A shrink keeps the chief and some other workers just where they are. A job that both
    loses workers and changes place was moved.
    """
    moved = _listed(case, "moved", case.plan.moved, case.policy.changes.moves_max)
    shrunk = _listed(case, "shrunk", case.plan.shrunk, case.policy.changes.shrinks_max)
    preempted = _listed(case, "preempted", case.plan.preempted, case.policy.changes.preemptions_max)
    listed = {*moved, *shrunk, *preempted}
    placed: dict[str, Placement] = {}
    for placement in case.placements if listed else ():
        if placement.job in listed:
            placed.setdefault(placement.job, placement)
    unplaced = {unplaced.job for unplaced in case.plan.unplaced} if preempted else set()
    relation = case.relation
    for job in case.running:
        now = relation.get(job)
        if now is None:
            if job not in preempted:
                case.add("running", f"job {job!r}", "was stopped, but is not listed in 'preempted'")
        elif now == "other" and job not in moved and job not in shrunk:
            case.add("running", f"job {job!r}", "was changed, but is not listed in 'moved' or 'shrunk'")
        elif now == "shrunk" and job not in shrunk and job not in moved:
            case.add("running", f"job {job!r}", "lost workers, but is not listed in 'shrunk' or 'moved'")
        elif job in moved and job in shrunk:
            case.add("running", f"job {job!r}", "is listed both in 'moved' and in 'shrunk'; it can be only one of them")
    for job in sorted(listed):
        if case.running[job].is_protected(case.directory.now_ms, case.policy.changes.run_time_min_ms):
            case.add("protected", f"job {job!r}", "was changed, but is protected at this time")
    for job, move in moved.items():
        _check_move(case, case.running[job], move, placed.get(job))
    for job, shrink in shrunk.items():
        _check_shrink(case, case.running[job], shrink, placed.get(job))
    for job, stop in preempted.items():
        _check_stop(case, case.running[job], stop, job in placed, job in unplaced)
    _check_fixed(case, listed)
    if case.policy.changes.last_submitted_first:
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
    where = f"job {move.job!r}"
    if now is None or case.relation[move.job] == "same":
        case.add("moved", where, "is listed as moved, but did not move")
        return
    if not running.movable:
        case.add("moved", where, "was moved, but is not movable")
    for field, stated, placement in (("from", move.from_nodes, running), ("to", move.to_nodes, now)):
        true = sorted(assignment.node for assignment in placement.assignments)
        if sorted(stated) != true:
            case.add("moved", where, f"{field!r} says nodes {sorted(stated)}, true are {true}")


def _check_shrink(case: CheckCase, running: Running, shrink: Shrunk, now: Placement | None) -> None:
    where = f"job {shrink.job!r}"
    relation = case.relation.get(shrink.job)
    if now is None or relation == "same":
        case.add("shrunk", where, "is listed as shrunk, but did not shrink")
        return
    if relation == "other":
        case.add("shrunk", where, "its workers are not its chief and some of its former ones on their former GPUs")
        return
    if not running.shrinkable:
        case.add("shrunk", where, "was shrunk, but is not shrinkable")
    option = option_of(case.jobs[shrink.job], running.option)
    kept = len(workers_by_rank(now))
    if option is None or option.workers_min is None:
        case.add("shrunk", where, f"option {running.option!r} is not elastic")
    elif kept < option.workers_min:
        case.add("shrunk", where, f"kept {kept} workers, needs at least {option.workers_min}")
    if kept != shrink.workers:
        case.add("shrunk", where, f"says that {shrink.workers} workers are kept, true are {kept}")


def _check_stop(case: CheckCase, running: Running, stop: Preempted, is_placed: bool, is_unplaced: bool) -> None:
    where = f"job {stop.job!r}"
    if is_placed or not is_unplaced:
        case.add("preempted", where, "is listed as preempted, but does not stand in 'unplaced' alone")
        return
    if not running.preemptible:
        case.add("preempted", where, "was preempted, but is not preemptible")
    option = option_of(case.jobs[stop.job], running.option)
    each = 0 if option is None else option.demand.gpu_milli  # what was granted above it was free before
    freed = each * sum(len(assignment.gpus) for assignment in running.assignments)
    if stop.freed_gpu_milli != freed:
        case.add("preempted", where, f"says that {stop.freed_gpu_milli} gpu milli are freed, true are {freed}")


def _check_order(case: CheckCase, taken: set[str]) -> None:
    """
    Nothing is taken from a job while one of its queue that arrived later could have given and gave nothing.

    Jobs without a queue count as one queue. A moved job gave nothing. Of jobs that arrived together any may be first.
    """
    changes = case.policy.changes
    latest: dict[str | None, tuple[int, str]] = {}
    for name, running in case.running.items():
        job = case.jobs[name]
        option = option_of(job, running.option)
        may_shrink = (
            changes.shrinks_max > 0
            and running.shrinkable
            and option is not None
            and option.workers_min is not None
            and len(workers_by_rank(running)) > option.workers_min
        )
        may_stop = changes.preemptions_max > 0 and running.preemptible
        protected = running.is_protected(case.directory.now_ms, changes.run_time_min_ms)
        if name not in taken and (may_shrink or may_stop) and not protected:
            latest[job.queue] = max(latest.get(job.queue, (-1, "")), (job.arrival_ms, name))
    for name in sorted(taken):
        job = case.jobs[name]
        arrival, untouched = latest.get(job.queue, (-1, ""))
        if arrival > job.arrival_ms:
            case.add(
                "last_submitted_first",
                f"job {name!r}",
                f"was shrunk or stopped, while {untouched!r} of its queue arrived later ({arrival} > "
                f"{job.arrival_ms} ms) and was not",
            )


def _check_fixed(case: CheckCase, changed: set[str]) -> None:
    """
    Jobs that run in a way which no plan may start stay as they are.

    These are jobs of a single-node option on several nodes, and those on a GPU with more jobs than may share one: the
    GPU, or the other nodes, take no new job in this round anyway.
    """
    exclusive = case.policy.share_mode == "exclusive"
    most = 1 if exclusive else case.policy.jobs_per_gpu_max
    crowd: Counter[tuple[str, str]] = Counter()
    if most is not None and changed:
        crowd.update(
            (assignment.node, gpu)
            for held in case.running.values()
            for assignment in held.assignments
            for gpu in assignment.gpus
        )
    for name in sorted(changed):
        held = case.running[name]
        option = option_of(case.jobs[name], held.option)
        if option is not None and option.single_node and len(held.assignments) > 1:
            what = f"lies on {len(held.assignments)} nodes, of an option for one node; it stays as it is"
            case.add("running", f"job {name!r}", what)
        crowded = [
            (assignment.node, gpu)
            for assignment in held.assignments
            for gpu in assignment.gpus
            if crowd[assignment.node, gpu] > (most or 0)
        ]
        if crowded:
            node, gpu = crowded[0]
            what = f"shares GPU {gpu} of node {node!r} with more jobs than may; it stays as it is"
            case.add("running", f"job {name!r}", what)


def check_standing(case: CheckCase) -> None:
    """
    Every entry of ``standing`` is a limit that running jobs broke and still break; the last rule: it reads the others.

    A plan need not list them: another scheduler that writes plans cannot always compute them.
    """
    if not case.plan.standing:
        return
    broken = {(entry.job, entry.rule, entry.node) for entry in case.standing}
    for i, entry in enumerate(case.plan.standing):
        if (entry.job, entry.rule, entry.node) not in broken:
            case.add("standing", f"standing[{i}]", f"no running job breaks {entry.rule!r} there")
