"""Why each waiting job waits, in one sentence; ``explain`` says more."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from placeopt.deadline import Deadline
from placeopt.errors import OutOfTime
from placeopt.feasibility.fit import best_fit
from placeopt.feasibility.free_capacity import free_capacity_of
from placeopt.feasibility.minimal_utility import without_minima
from placeopt.feasibility.requirement import requirements_of
from placeopt.heuristics import Answered, Candidates, Refused, Requests, place, places, score_named
from placeopt.heuristics.timeline import Start
from placeopt.model import Job
from placeopt.model.base import trusted
from placeopt.model.plan import Unplaced, UnplacedReason
from placeopt.problem import RESOURCES, UNLIMITED, Move, Problem, State, open_state
from placeopt.problem.tree import Tree
from placeopt.solving.context import SolveContext
from placeopt.solving.stages.lookahead import renumbered
from placeopt.solving.tree_fit import is_related, reason_by_model
from placeopt.terms.costs.utility import utility_at
from placeopt.terms.rules import fits
from placeopt.terms.rules.minimal_utility import applies

SHARE_OF_TIME = 0.5
"""Of what is left of the time limit; the final check and the audit come after."""


NOT_EXPLAINED: tuple[UnplacedReason, str] = ("not_reached", "no reason was requested")


def reasons(context: SolveContext, final: State, *, explain: bool = True) -> tuple[Unplaced, ...]:
    """
    Return every job that waits in the best plan with a reason, found once per class of jobs.

    ``final`` is the cluster under that plan. Without ``explain``, all but those that were preempted or postponed by
    look-ahead are ``not_reached``, which costs nothing.

    ``conflict``: it does not fit beside the running jobs that must stay even alone; that is exact. ``policy``: its
    queue may hold no more, or is blocked by an earlier job. ``postponed``: there is room, but only below its minimal
    utility. ``not_reached``: it fits beside the plan, but time ended first; or time ended before that was found.
    ``outvoted``: it fits alone, but not beside the plan; or it ran and is preempted.
    """
    problem = context.problem
    finder = _ReasonFinder(context, final) if explain else None
    of_class: dict[int, tuple[UnplacedReason, str]] = {}
    entries: list[Unplaced] = []
    waiting = [job for job, placement in enumerate(context.incumbent.allocation) if placement is None]
    ran, waits, ids = problem.running, context.waits, problem.job_ids
    trees = problem.tree_of
    waiting = [job for job in waiting if job not in trees or _waits_whole(trees[job], job, context)]
    for job, k in zip(waiting, problem.job_class[waiting].tolist() if waiting else (), strict=True):
        if job in trees:
            reason, detail = NOT_EXPLAINED if finder is None else finder.reason_by_model(job, trees[job], final)
        elif job in ran:
            price = problem.policy.changes.preemption_price
            what = f"preempted at a price of {price}: the plan is worth no less than with the job left where it ran"
            reason, detail = "outvoted", what
        elif job in waits:
            reason, detail = "postponed", _better_later(problem, waits[job])
        else:
            if k not in of_class:
                if finder is None:
                    of_class[k] = NOT_EXPLAINED
                elif is_related(problem, job):
                    of_class[k] = finder.reason_by_model(job, None, final)
                else:
                    of_class[k] = finder.reason(job)
            reason, detail = of_class[k]
        name = trees[job].job if job in trees else ids[job]
        entries.append(trusted(Unplaced, {"job": name, "reason": reason, "detail": detail}))
    return tuple(entries)


def _waits_whole(tree: Tree, job: int, context: SolveContext) -> bool:
    """Return whether a member stands for its tree, none of which runs or starts."""
    return job == tree.members[0] and all(context.incumbent.allocation[member] is None for member in tree.members)


class _ReasonFinder:
    """Finds why jobs wait, from what is free beside the plan, beside what runs, and beside what must stay of it."""

    def __init__(self, context: SolveContext, final: State) -> None:
        problem, whole = context.problem, context.whole
        # look-ahead may have closed GPUs: without the plan, they are there
        states = (final, State(whole), open_state(whole)) if context.narrowed else (final, context.base, context.open)
        self._context = context
        now = time.monotonic()
        deadline = self._deadline = now + SHARE_OF_TIME * (context.budget.ends - now)
        requests = {of: Requests(of) for of in (problem, whole)}
        self._beside, self._alone, self._opened = (
            _Ways(Candidates(state, score_named("first_fit", problem)), requests[state.problem], deadline)
            for state in states
        )

    def reason(self, job: int) -> tuple[UnplacedReason, str]:
        """Return reason and detail; without time left, that."""
        try:
            return self._found(job)
        except OutOfTime:
            return "not_reached", "no time was left to tell whether there is a place for it"

    def reason_by_model(self, job: int, tree: Tree | None, final: State) -> tuple[UnplacedReason, str]:
        """Return reason and detail of a tree, or of a job with relations."""
        return reason_by_model(self._context, job, tree, final, self._deadline)

    def _found(self, job: int) -> tuple[UnplacedReason, str]:
        context, problem = self._context, self._context.problem
        record = problem.instance.jobs[job]
        if context.narrowed and (kept := _is_kept(context, self._beside.candidates, job)) is not None:
            return "postponed", kept
        forbidden = why_forbidden(self._beside.candidates, job, record)
        if forbidden is not None:
            return forbidden
        way = self._beside.way(job)
        if way is not None:
            more = f" and {len(way.nodes) - 1} more" if len(way.nodes) > 1 else ""
            where = f"fits on node {problem.node_ids[way.nodes[0]]!r}{more}"
            if way.counted and applies(problem):
                return "postponed", f"{where}, but nowhere was it found to leave all jobs their minimal utility"
            if way.worth == 0:
                return "outvoted", "fits, but its option is worth nothing, so placing it would not raise the value"
            if context.handover.blocks and job not in context.handover.not_reached:
                return "policy", f"{where}, but {context.handover.blocks}"
            limit = context.budget.limit
            stopped = "the search did not get to it" if limit == "none" else f"stopped by {limit}"
            return "not_reached", f"{where}; {stopped}"
        if self._alone.has_any(job):
            return "outvoted", f"fits alone, but other jobs of the plan hold the room: {need_of(problem, job, record)}"
        if not problem.changeable:
            return "conflict", conflict_detail(self._alone.candidates, job, record, "the running jobs")
        if self._opened.has_any(job):
            return (
                "outvoted",
                "fits only if running jobs make room, which the plan does not ask of them: "
                f"{need_of(problem, job, record)}",
            )
        return "conflict", conflict_detail(self._opened.candidates, job, record, "the running jobs that must stay")


class _Way(NamedTuple):
    """Nodes on which the job fits, what it is worth there, and whether ways were counted: minimal utility set aside."""

    nodes: tuple[int, ...]
    worth: int
    counted: bool


class _Ways:
    """Ways for jobs to fit into a state; what was found of one answers for others that ask for less, or for more."""

    def __init__(self, candidates: Candidates, requests: Requests, deadline: float) -> None:
        self.candidates, self._requests, self._deadline = candidates, requests, deadline
        self._refused, self._taken = Refused(requests), Answered(requests, room=True)

    def has_any(self, job: int) -> bool:
        """Return whether there is a way for the job to fit."""
        return any(map(self._taken.covers, self._requests.of(job))) or self.way(job) is not None

    def way(self, job: int) -> _Way | None:
        """
        Return a way for the job; None: there is none, even with minimal utilities set aside, and that is exact.

        Greedy is tried first. It finds a place if there is one, except where workers have to be spread in a certain way
        over domains or share links, or jobs have minimal utilities: there ways are counted.
        """
        if time.monotonic() > self._deadline:
            raise OutOfTime("no time left to look for a place")
        if self._refused.covers_job(job):
            return None
        problem, placement = self.candidates.problem, place(self.candidates, job)
        if placement is not None:
            if placement.option in self._requests.of(job):
                self._taken.add(placement.option)
            worth = int(problem.options.value[placement.option])
            return _Way(tuple(dict.fromkeys(placement.nodes)), worth, counted=False)
        self._refused.add_job(job)
        if not applies(problem) and not any(is_laid_out(problem, option) for option in problem.options_of(job)):
            return None
        record = problem.instance.jobs[job]
        fit = best_fit(
            free_capacity_of(self.candidates.state, record),
            requirements_of(problem, record),
            Deadline(self._deadline - time.monotonic()),
        )
        return None if fit is None else _Way(tuple(fit.nodes), fit.worth, counted=True)


def is_laid_out(problem: Problem, option: int) -> bool:
    """Tell whether workers have to be spread in a certain way or share links: greedy may miss a way then."""
    options = problem.options
    if options.lies[option] or options.part_level[option] is not None:
        return True
    return bool(options.bundles[option] > 1 and options.network_mbps[option] > 0)


def why_forbidden(beside: Candidates, job: int, record: Job) -> tuple[UnplacedReason, str] | None:
    """Return reason and detail if utility or quota keep a job from starting, however much room there is."""
    too_low = _utility_is_low(beside, job)
    if too_low is not None:
        return "postponed", too_low
    if not len(beside.problem.options_of(job)):
        return "policy", "every option's utility is below the job's minimum, utility_min_thousandths"
    queue = _queue_is_full(beside.state, job, record)
    return None if queue is None else ("policy", queue)


def _queue_is_full(state: State, job: int, record: Job) -> str | None:
    """Return a sentence if the job's queue forbids each of its options."""
    full = None
    for option in _startable(state.problem, job):
        full = _full_queue(state, job, option)
        if full is None:
            return None
    return None if full is None else f"{full}; the job asks for {need_of(state.problem, job, record)}"


def _full_queue(state: State, job: int, option: int) -> str | None:
    """Return a sentence if the job's queue, or one above it, forbids an option."""
    problem = state.problem
    own, use = int(problem.class_queue[problem.job_class[job]]), problem.queue_use[option]
    flavors = ("", *(f" of flavor {flavor.id!r}" for flavor in problem.policy.flavors))
    units = [f"{unit}{flavor}" for flavor in flavors for unit in ("GPU-milli", *RESOURCES[:2])]
    for queue, room in problem.queue_tree.rooms(state.queue_used, own) if own >= 0 else ():
        if ((use > room) & (use != 0)).any():
            left = ", ".join(f"{int(r)} {unit}" for r, unit in zip(room, units, strict=True) if r < UNLIMITED // 2)
            return f"queue {problem.policy.queues[queue].id!r} may hold no more than {left} beside what it holds"
    return None


def _startable(problem: Problem, job: int) -> list[int]:
    """Return the options that are not only for jobs which run on nodes of no flavor of their queue."""
    options = list(problem.options_of(job))
    return [o for o in options if problem.options.flavor[o] >= 0] or options


def _better_later(problem: Problem, wait: Start) -> str:
    now, names = problem.instance.now_ms, [problem.node_ids[node] for node in dict.fromkeys(wait.placement.nodes)]
    where = f"node {names[0]!r}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
    start, then = (f"{(ms - now) / 1000:.1f} s" for ms in (wait.start_ms, wait.end_ms or 0))
    if wait.end_if_now_ms is None:
        return f"starts in about {start} on {where}, ends in {then}; what it could have now is better used by others"
    at_once = f"{(wait.end_if_now_ms - now) / 1000:.1f} s"
    return f"starts in about {start} on {where}; now it would end in {at_once}, then in {then}"


def _is_kept(context: SolveContext, beside: Candidates, job: int) -> str | None:
    """Return a sentence if the job fits only on GPUs that are kept for others."""
    if place(beside, job) is not None:
        return None
    whole = State(context.whole)
    for other, placement in enumerate(beside.state.placements):
        if placement is not None and other not in context.whole.running:
            whole.apply(Move(other, renumbered(context.whole, other, placement, beside.problem)))
    first_fit = place(Candidates(whole, score_named("first_fit", context.whole)), job)
    if first_fit is None:
        return None
    node = context.whole.node_ids[first_fit.nodes[0]]
    if context.ahead is not None and job in context.ahead.scheduled:
        return f"fits on node {node!r}, but look-ahead has another place for it, which others hold"
    return f"fits on node {node!r}, but would not end before the start of a job for which GPUs there are reserved"


def _utility_is_low(beside: Candidates, job: int) -> str | None:
    """Return a sentence if only minimal utility, its own or that of others, keeps the job out."""
    state, problem = beside.state, beside.problem
    if not applies(problem) or place(beside, job) is not None:
        return None
    free = without_minima(state)
    candidates = Candidates(free, score_named("first_fit", free.problem))
    room = [p for o in problem.options_of(job) for p in places(candidates, o) if fits(free, job, p)]
    if not room:
        return None
    best = max(utility_at(free, job, p) for p in room)
    least = problem.instance.jobs[job].utility_min_thousandths or 0
    if best < least:
        return f"would run at a utility of {best}/1000 in the best place found, and asks for {least}/1000"
    return f"where it would have a utility of {best}/1000, a job that starts would fall below its own minimum"


def need_of(problem: Problem, job: int, record: Job, option: int | None = None) -> str:
    """Return what an option of a job needs, in words, the first unless one is given."""
    o = problem.options_of(job)[0] if option is None else option
    options = problem.options
    workers, gpus = int(options.workers[o]), int(options.gpus[o])
    demand = record.option(options.name[o]).demand
    each = f"{int(options.milli[o])}/1000 of a GPU" if options.milli[o] < 1000 else f"{gpus} GPU{'s' * (gpus != 1)}"
    if gpus == 0:
        each = "no GPU"
    elif models := demand.gpu_models:
        each += f" of model {' or '.join(models)}"
    amounts = (
        (options.gpu_memory_mib[o] * (gpus > 0), "MiB of GPU memory"),
        (options.demand[o, 0], "millicores"),
        (options.demand[o, 1], "MiB"),
        *((amount, name) for name, amount in demand.resources.items()),
    )
    parts = [each, *(f"{int(amount)} {unit}" for amount, unit in amounts if amount)]
    return ("" if workers == 1 else f"{workers} workers of ") + ", ".join(parts)


def _named(problem: Problem, option: int) -> str:
    """Return id and flavor of an option, in words."""
    name, flavor = problem.options.kinds[option]
    return f"option {name!r}" + (f" on nodes of flavor {problem.policy.flavors[flavor].id!r}" if flavor >= 0 else "")


def conflict_detail(alone: Candidates, job: int, record: Job, others: str) -> str:
    """Say which demand no node meets by itself, or that it is their combination."""
    problem, options, startable = alone.problem, alone.problem.options, _startable(alone.problem, job)
    tried = []
    for o in startable:
        nodes = np.flatnonzero(problem.node_ok(o))
        name = f"{_named(problem, o)}: " if len(startable) > 1 else ""
        need = need_of(problem, job, record, o)
        if not len(nodes):
            tried.append(f"{name}no node offers {need} even while idle, where the job may run")
            continue
        total, bundles = int(alone.rooms(o, nodes).sum()), int(options.bundles[o])
        if total < bundles:
            tried.append(f"{name}{total} of {bundles} needed places free beside {others}, for {need}")
        elif full := _full_queue(alone.state, job, o):
            tried.append(f"{name}{full}")
        else:
            what = f"there are {total} places for its {bundles} parts, but no distribution over them that it allows"
            tried.append(f"{name}{what}")
    return "; ".join(tried)
