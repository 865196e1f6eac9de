"""Place or wait: a schedule of the jobs that wait, by the expected ends of those that run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.greedy_pass import place, stop_at
from placeopt.heuristics.scores.registry import score_named
from placeopt.heuristics.timeline import Start, Timeline
from placeopt.problem import IntArray, Placement, Problem, State

SCHEDULED = 12
"""Jobs that are scheduled together, the first of the order."""
SCHEDULES = 24
"""Orders of them that are tried."""
SCALE = 1 << 20
"""Keeps the digits of a value per GPU-milli."""


_Choices = dict[tuple[int, frozenset[tuple[tuple[int, Start], int]]], Start | None]
"""Class of a job, how often each start was given to jobs of each class -> the start that it has beside them."""


@dataclass(frozen=True)
class LookaheadDecision:
    """What look-ahead decided, by job."""

    waits: dict[int, Start]  # jobs that could start now and should wait
    needed: dict[int, int]  # GPU -> the first time at which a job that starts later needs it
    starts: dict[int, Placement]  # all other jobs that start now
    scheduled: frozenset[int]  # those of them whose place was compared in several orders and is meant to be kept


def look_ahead(
    problem: Problem,
    order: IntArray,
    score: str = "best_fit",
    *,
    reorder: bool = True,
    deadline: float = float("inf"),
    cancelled: Callable[[], bool] | None = None,
) -> LookaheadDecision:
    """
    Decide which jobs of ``order`` should wait, what is reserved for them, and where others start.

    ``score`` selects the nodes that are tried, ``reorder`` allows jobs to be scheduled before others that stand before
    them in the order. ``deadline`` and ``cancelled`` as in ``greedy``: jobs not reached by then neither wait nor start.

    The first ``SCHEDULED`` jobs are scheduled one after the other, each at its best start, now or later, beside what
    runs and those before it (``Timeline``). Orders of them are tried: the given one, the shortest job first, then one
    job moved at a time as long as that helps. The schedule counts in which the ends, weighted by value per GPU or
    alike (``postpone.delays``), come earliest. All other jobs follow in their order: they start now, or wait if they
    could and end earlier by that, and never hold a GPU longer than until a job before them needs it. Where running
    jobs may be changed, no job without room now is given a later start: room may be made for it.
    """
    line, choices, stopped = Timeline(problem, score), _Choices(), stop_at(deadline, cancelled)
    jobs = order.tolist()
    head, tail = jobs[:SCHEDULED], jobs[SCHEDULED:]
    several = len(set(_classes(problem, head))) > 1
    _schedule(line, _best_order(line, head, choices, stopped) if reorder and several else head, choices)
    scheduled = frozenset(job for job, start in line.started.items() if start.end_ms is not None)
    failed_classes: set[int] = set()
    for job in tail:
        if stopped():
            break
        k = int(problem.job_class[job])
        if k in failed_classes:
            continue
        start = line.best_start(job, if_room_now=True)
        if start is None:
            failed_classes.add(k)
        else:
            line.give(job, start)
    return _decided(line, scheduled, score)


def _best_order(line: Timeline, jobs: list[int], choices: _Choices, stopped: Callable[[], bool]) -> list[int]:
    """Return the order, of those tried, whose schedule ends earliest; orders of alike jobs are tried once."""
    best, least = jobs, None
    tried: set[tuple[int, ...]] = set()
    while len(tried) < SCHEDULES and not (tried and stopped()):
        order = next((one for one in _orders(line, best) if _classes(line.problem, one) not in tried), None)
        if order is None:
            break
        total = _schedule(line, order, choices, least)
        is_free = not tried and not line.reserved and len(line.started) == len(jobs)
        line.clear()
        if is_free:  # no job delays another
            break
        tried.add(_classes(line.problem, order))
        if least is None or total < least:
            best, least = order, total
    return best


def _orders(line: Timeline, best: list[int]) -> Iterator[list[int]]:
    """Yield the best order so far, the shortest job first, then the best one with one job moved."""
    yield best
    yield sorted(best, key=line.shortest_ms)
    for i, job in enumerate(best):
        others = best[:i] + best[i + 1 :]
        for k in range(len(best)):
            yield [*others[:k], job, *others[k:]]


def _classes(problem: Problem, jobs: Sequence[int]) -> tuple[int, ...]:
    return tuple(problem.job_class[jobs].tolist())


def _schedule(line: Timeline, jobs: Sequence[int], choices: _Choices, least: int | None = None) -> int:
    """Give the jobs starts in this order; return the sum of their ends, weighted by their value per GPU."""
    # Stops once the sum cannot be below ``least`` any more; what is returned is then too large as well.
    problem, if_room_now = line.problem, bool(line.problem.changeable)
    weights, shortest = [_weight(problem, job) for job in jobs], [line.shortest_ms(job) for job in jobs]
    total = sum(weight * length for weight, length in zip(weights, shortest, strict=True))
    given: Counter[tuple[int, Start]] = Counter()
    for job, k, weight, length in zip(jobs, _classes(problem, jobs), weights, shortest, strict=True):
        key = k, frozenset(given.items())
        if key not in choices:  # orders of the same jobs often give the same starts
            choices[key] = line.best_start(job, if_room_now=if_room_now)
        start = choices[key]
        if start is not None:
            line.give(job, start)
            given[k, start] += 1
        end = line.latest + length if start is None else start.end_ms or line.now + length
        total += weight * (end - line.now - length)
        if least is not None and total >= least:
            break
    return total


def _weight(problem: Problem, job: int) -> int:
    """Return the value of a GPU of the job, at least 1; by the policy the same for every job."""
    if problem.policy.postpone.delays == "jobs":
        return 1
    options, rows = problem.options, list(problem.options_of(job))
    return max((SCALE * int(options.value[o]) // max(1000, int(options.total_milli[o])) for o in rows), default=0) or 1


def _decided(line: Timeline, scheduled: frozenset[int], score: str) -> LookaheadDecision:
    problem = line.problem
    needed: dict[int, int] = {}
    for start in line.reserved.values():
        for gpu in start.placement.gpus:
            needed[gpu] = min(start.start_ms, needed.get(gpu, start.start_ms))
    waits = {}
    if line.reserved:
        idle = Candidates(State(problem), score_named(score, problem))
        waits = {job: start for job, start in line.reserved.items() if place(idle, job) is not None}
    return LookaheadDecision(waits, needed, {job: start.placement for job, start in line.started.items()}, scheduled)
