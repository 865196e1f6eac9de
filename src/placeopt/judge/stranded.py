"""GPUs that are idle and usable by no waiting job, by the rules that keep the jobs off them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from placeopt.explain.kinds import JobKind
from placeopt.explain.question import ExplainRound, Question
from placeopt.explain.rules import conflicting, fits, rules_in_order
from placeopt.explain.words import constraint_name
from placeopt.feasibility.free_capacity import FreeCapacity
from placeopt.feasibility.requirement import Requirement
from placeopt.judge.records import Stranded
from placeopt.problem import BoolArray

NO_JOB = "no waiting job asks for GPUs"


def idle_gpus(round_: ExplainRound) -> BoolArray:
    """Shape (G,): GPUs of the cluster without a job, beside the plan."""
    state, problem = round_.states["plan"], round_.problem
    idle: BoolArray = (state.gpu_jobs == 0) & ~problem.type_lost[problem.gpu_type]
    return idle


def stranded(round_: ExplainRound, kinds: list[JobKind], questions: Mapping[str, Question]) -> list[Stranded]:
    """
    Return the idle GPUs on which no waiting job can start beside the plan, each counted once, by cause.

    Each is proven: of a job that fits, all GPUs count as usable on which one of its workers has room, and all idle ones
    of a job with groups or relations. Raises ``OutOfTime``.
    """
    left = idle_gpus(round_)
    asks: list[tuple[JobKind, Question, Requirement]] = []
    for kind in kinds:
        q = questions[kind.first.id]
        mine = [one for one in q.requirements if one.gpus]
        if not mine:
            continue
        if fits(q, "plan"):
            for requirement in mine:
                left &= ~(np.ones_like(left) if q.is_joint else takes_worker(q.room("plan"), requirement))
        if not q.is_joint:
            smallest = min(mine, key=lambda one: one.fewest * one.gpus * one.milli)
            asks.append((kind, q, smallest))
    keeps_off: dict[int, Counter[str]] = defaultdict(Counter)
    for kind, q, requirement in asks:
        for cause, gpus in causes(q, requirement, left):
            for gpu in np.flatnonzero(gpus).tolist():
                keeps_off[gpu][cause] += len(kind.jobs)
    return _by_cause(round_, np.flatnonzero(left).tolist(), keeps_off)


def takes_worker(room: FreeCapacity, requirement: Requirement) -> BoolArray:
    """Shape (G,): GPUs of which a worker can have one."""
    takes = room.queue_takes(requirement) > 0 and room.takes(requirement, None) > 0 and requirement.useful
    nodes = room.workers(requirement) > 0
    usable: BoolArray = room.usable(requirement) & nodes[room.problem.gpu_node] & takes
    return usable


def causes(q: Question, requirement: Requirement, gpus: BoolArray) -> Iterator[tuple[str, BoolArray]]:
    """
    Yield rules that cannot hold together for one worker, and the GPUs, shape (G,), that they keep it off.

    Found by deletion, as a conflict of a job is, for all GPUs at once: of each part of them one rule after the other is
    dropped for good where the worker still has no room. Where it has room, the rules are those of its whole job.
    """
    room = q.room("plan")
    alone = replace(requirement.resized(1), splits=(), spread=())
    has_room = gpus & takes_worker(room, alone)
    if has_room.any():
        yield _joined(conflicting(room, q.requirements, q.deadline)), has_room
    parts: list[tuple[Requirement, tuple[str, ...], BoolArray]] = [(alone, (), gpus & ~has_room)]
    for rule in rules_in_order([alone]):
        after = []
        for asked, kept, where in parts:
            freer = asked.without(rule)
            needed = where & takes_worker(room, freer)
            after += [(freer, kept, where & ~needed), (asked, (*kept, rule), needed)]
        parts = [part for part in after if part[2].any()]
    for _, kept, where in parts:
        yield _joined(kept), where


def _joined(rules: Iterable[str]) -> str:
    return " + ".join(sorted(map(constraint_name, rules)))


def _by_cause(round_: ExplainRound, gpus: list[int], keeps_off: dict[int, Counter[str]]) -> list[Stranded]:
    found: dict[str, list[int]] = defaultdict(list)
    jobs: Counter[str] = Counter()
    for gpu in gpus:
        most = min(keeps_off[gpu].items(), key=lambda one: (-one[1], one[0]), default=(NO_JOB, 0))
        found[most[0]].append(gpu)
        jobs[most[0]] = max(jobs[most[0]], most[1])
    node = round_.problem.gpu_node
    counts = [
        Stranded(cause=cause, gpus=len(some), nodes=len({int(node[gpu]) for gpu in some}), jobs=jobs[cause])
        for cause, some in found.items()
    ]
    return sorted(counts, key=lambda one: (-one.gpus, one.cause))
