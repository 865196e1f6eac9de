"""
What a plan does to the running jobs: kept, shrunk, moved or preempted, and at what price.

``kept``: the placement is the one that runs. ``shrunk``: the same option with fewer workers, each of them a former one
on its former GPUs, the chief (rank 0) still the chief and the others in their former order. ``moved``: any other
placement in any option of the job, with any number of workers that it allows: a checkpoint and a restart, so an elastic
job may grow as well, or restart on a part of its own GPUs. ``preempted``: not placed. Other shares above the request
(``grants``) are no change.

Only a moved job must be where work may start: selectors, taints and drained nodes do not drive out what runs. Policy
and job must both allow a change. Its price is the policy's: ``move_price``, ``preemption_price``,
``shrink_price_per_worker`` x workers taken. Every kind has a limit in jobs. With ``last_submitted_first`` a job is
shrunk or preempted only if those of its queue that arrived later, and could be, are as well (SODA V-D).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Literal

import numpy as np

from placeopt.problem.arrays import Allocation, Placement
from placeopt.problem.problem import Problem
from placeopt.problem.state import Move, State, holdings

ChangeKind = Literal["kept", "shrunk", "moved", "preempted"]


def change_of(problem: Problem, job: int, placement: Placement | None) -> ChangeKind:
    """Return what ``placement`` does to a running job."""
    if placement is None:
        return "preempted"
    running = problem.running[job]
    if placement is running or same_place(problem, placement, running):
        return "kept"
    if not placement.restarts and is_part(problem, placement, running):
        return "shrunk"
    return "moved"


def price_of(problem: Problem, job: int, placement: Placement | None) -> int:
    """Price, in value, of what ``placement`` does to a running job."""
    changes, change = problem.policy.changes, change_of(problem, job, placement)
    if change == "shrunk" and placement is not None:
        return changes.shrink_price_per_worker * (len(problem.running[job].nodes) - len(placement.nodes))
    return {"moved": changes.move_price, "preempted": changes.preemption_price}.get(change, 0)


def may_become(problem: Problem, job: int, placement: Placement | None) -> bool:
    """Return whether policy and job allow this change of a running job, apart from limits on their number."""
    change = change_of(problem, job, placement)
    return change == "kept" or job in _allowed(problem)[change]


def keeps_limits(problem: Problem, allocation: Allocation) -> bool:
    """Return whether a whole allocation changes running jobs only as policy and jobs allow, within the limits."""
    running = problem.running
    changes = {job: change_of(problem, job, allocation[job]) for job in running if allocation[job] is not running[job]}
    allowed = _allowed(problem)
    if any(change != "kept" and job not in allowed[change] for job, change in changes.items()):
        return False
    count, most = Counter(changes.values()), change_limits(problem)
    if any(count[change] > most[change] for change in most):
        return False
    taken = {job for job, change in changes.items() if change in ("shrunk", "preempted")}
    return all(
        taken.isdisjoint(earlier) or taken.issuperset(later)
        for queue in submission_order(problem)
        for earlier, later in pairwise(queue)
    )


def change_limits(problem: Problem) -> dict[ChangeKind, int]:
    """Most jobs of each kind of change."""
    changes = problem.policy.changes
    return {"moved": changes.moves_max, "shrunk": changes.shrinks_max, "preempted": changes.preemptions_max}


def submission_order(problem: Problem) -> list[list[list[int]]]:
    """Running jobs that may be shrunk or preempted: by queue, those that arrived together, in order of arrival."""
    # Workers may be taken from one group only if they are from all of the next. Jobs without a queue count as one
    # queue. Empty unless the policy sets ``last_submitted_first``.
    if not problem.policy.changes.last_submitted_first:
        return []
    queues: dict[str | None, dict[int, list[int]]] = {}
    for job in sorted(problem.may_shrink | problem.may_preempt):
        record = problem.instance.jobs[job]
        queues.setdefault(record.queue, {}).setdefault(record.arrival_ms, []).append(job)
    return [[together for _, together in sorted(groups.items())] for groups in queues.values()]


def open_state(problem: Problem) -> State:
    """Return a state with only those running jobs in place that must stay as they are."""
    state = State(problem)
    for job in sorted(problem.changeable):
        state.apply(Move(job, None))
    return state


def part_of(problem: Problem, job: int, option: int, ranks: tuple[int, ...]) -> Placement:
    """Return the running job shrunk to the workers ``ranks``, ascending, in ``option``: its own with that many."""
    running = problem.running[job]
    gpus = int(problem.options.gpus[option])
    held = [i for rank in ranks for i in range(rank * gpus, (rank + 1) * gpus)]
    nodes = tuple(running.nodes[rank] for rank in ranks)
    starts = tuple(running.starts[i] for i in held if running.starts)
    return Placement(option, nodes, tuple(running.gpus[i] for i in held), starts=starts)


def restarted(problem: Problem, job: int, placement: Placement) -> Placement:
    """Return ``placement`` of a running job as a move, marked where it could be taken for a shrink."""
    running = problem.running[job]
    if same_place(problem, placement, running):
        return running
    return replace(placement, restarts=is_part(problem, placement, running))


def same_place(problem: Problem, one: Placement, other: Placement) -> bool:
    """Return whether two placements of a job are equal, in whatever order the GPUs of a worker are written."""
    return one.option == other.option and _workers(problem, one) == _workers(problem, other)


def is_part(problem: Problem, part: Placement, whole: Placement) -> bool:
    """Return whether ``part`` is ``whole`` shrunk: its chief and some of its other workers, as they are."""
    if problem.options.kinds[part.option] != problem.options.kinds[whole.option]:
        return False
    now, then = _workers(problem, part), _workers(problem, whole)
    if len(now) >= len(then) or now[0] != then[0]:
        return False
    rest = iter(then)  # a subsequence: taking the first match each time finds one if there is one
    return all(any(worker == former for former in rest) for worker in now)


def _allowed(problem: Problem) -> dict[ChangeKind, frozenset[int]]:
    return {"moved": problem.may_move, "shrunk": problem.may_shrink, "preempted": problem.may_preempt}


def _workers(problem: Problem, placement: Placement) -> list[tuple[int, frozenset[int]]]:
    """Node and GPUs of every worker."""
    gpus = int(problem.options.gpus[placement.option])
    return [
        (node, frozenset(placement.gpus[rank * gpus : (rank + 1) * gpus])) for rank, node in enumerate(placement.nodes)
    ]


def without_fixed(problem: Problem) -> Problem:
    """Return the problem in which running jobs whose placement no option allows may not be changed."""
    # These are jobs of single-node options on several nodes, and jobs on GPUs that more jobs hold than the policy lets
    # share one: the linear models have no form for leaving such a place, and what they would leave takes nothing new.
    if not problem.changeable:
        return problem
    fixed = frozenset(
        job
        for job, held in problem.running.items()
        if problem.options.bundles[held.option] == 1 and len(set(held.nodes)) > 1
    ) | _on_crowded_gpus(problem)
    if not fixed & problem.changeable:
        return problem
    may = {name: getattr(problem, name) - fixed for name in ("may_move", "may_shrink", "may_preempt")}
    return replace(problem, **may)


def _on_crowded_gpus(problem: Problem) -> frozenset[int]:
    """Running jobs with a GPU that more of them hold than may share one."""
    most = problem.jobs_per_gpu
    if most is None:
        return frozenset()
    held = holdings(problem, problem.running.items())
    crowded = np.bincount(held.gpu, minlength=problem.num_gpus) > most
    return frozenset(held.job[crowded[held.gpu]].tolist())
