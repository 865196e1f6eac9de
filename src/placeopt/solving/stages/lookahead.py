"""Stage 0, where the policy asks for it: who had better wait leaves the round, and others keep to their places."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from placeopt.heuristics import Candidates, score_named
from placeopt.heuristics.job_orders import order_jobs
from placeopt.heuristics.lookahead import LookaheadDecision, look_ahead
from placeopt.model.plan import StageOutcome
from placeopt.problem import Placement, Problem, State, compile_problem
from placeopt.problem.compile import hardware_of
from placeopt.solving.context import SolveContext
from placeopt.solving.stages.trivial_proof import NO_ROOM, only_way
from placeopt.terms.costs.run_time import longest_run_ms

SHARE_OF_TIME = 0.3
"""Part of a round's time that schedules may take; ours: most is left to the stages that prove something."""
FOREVER = np.iinfo(np.int64).max


def run_lookahead(
    context: SolveContext, score: str, order: str, *, strict: bool, ahead: LookaheadDecision | None = None
) -> bool:
    """
    Narrow the round to what may start now, and where, for all later stages alike; true: they have nothing to decide.

    A job that waits may go nowhere. A GPU that is needed later is closed to options that might not end in time: alone
    and as far apart as on a machine. A job whose place was weighed by times has that place or none, since costs do not
    know of times. Later stages need no knowledge of all that. What they prove is of plans that keep to it; the plan's
    own bound is of the whole round, so it is hardly ever called optimal.

    Nothing is left to decide where all that waits starts, each job in its place. Nearly every round of a cluster that
    is seldom full is like that, and need not be compiled anew.

    ``ahead`` is what it has decided on this very problem before.
    """
    if context.problem.policy.postpone.rule != "lookahead":
        return False
    started, limits = time.monotonic(), context.budget
    deadline = float("inf") if limits.deterministic else started + SHARE_OF_TIME * limits.left_s
    former = context.problem
    if ahead is None:
        jobs = order_jobs(former, order)
        ahead = look_ahead(former, jobs, score, reorder=not strict, deadline=deadline, cancelled=context.cancelled)
    refused, settled = None, settles(former, ahead)
    if settled:
        refused = _start(context, former, ahead)
        held = None if context.incumbent is None else context.incumbent.allocation
        settled = held is not None and all(held[job] == place for job, place in ahead.starts.items())
    if not settled and (ahead.waits or ahead.needed or ahead.scheduled):
        refused = _start(context, hold_back(former, ahead), ahead)
    if settled and context.incumbent is not None:
        context.prove_value(context.incumbent.value)
        context.prove_cost(context.incumbent.cost)
    detail = lookahead_summary(ahead) + (
        "; stages after this one are about plans that keep to it" if context.narrowed else ""
    )
    outcome: StageOutcome = "failed" if refused else "improved" if ahead.starts or ahead.waits else "kept"
    context.record("lookahead", outcome, started, detail + (f": {refused}" if refused else ""))
    return settled


def _start(context: SolveContext, narrowed: Problem, ahead: LookaheadDecision) -> str | None:
    """Go on with the narrowed round, and offer what starts now; return what the referee says against it."""
    former = context.problem
    context.narrow(narrowed, ahead)
    starts = {job: renumbered(narrowed, job, one, former) for job, one in ahead.starts.items()}
    return context.offer(tuple(starts.get(job, held) for job, held in enumerate(context.base.allocation())))


def settles(problem: Problem, ahead: LookaheadDecision) -> bool:
    """
    Tell whether every job that waits starts, in the place that it has or none.

    Places bind jobs with GPUs alone; a job of several options may have another one there, and workers whose traffic
    tells them apart may change places.
    """
    waiting = [job for job in range(problem.num_jobs) if job not in problem.running]
    return not problem.changeable and bool(waiting) and all(_has_its_place(problem, ahead, job) for job in waiting)


def decides_all(problem: Problem, ahead: LookaheadDecision) -> bool:
    """
    Tell whether no stage can find anything but what look-ahead has decided.

    Every job that waits starts in the place that it has or none, or had better wait, or has no room even if nobody
    else started.
    """
    if problem.changeable:
        return False
    candidates: Candidates | None = None
    has_room: dict[int, bool] = {}
    for job in range(problem.num_jobs):
        if job in problem.running or job in ahead.waits or _has_its_place(problem, ahead, job):
            continue
        k = int(problem.job_class[job])
        if k not in has_room:
            if candidates is None:
                candidates = Candidates(State(problem), score_named("first_fit", problem))
            has_room[k] = only_way(candidates, job) != NO_ROOM
        if has_room[k]:
            return False
    return True


def _has_its_place(problem: Problem, ahead: LookaheadDecision, job: int) -> bool:
    """Tell whether the job starts, in a place that it has or none, and had better start than not."""
    return (
        job in ahead.scheduled
        and bool(ahead.starts[job].gpus)
        and len(problem.options_of(job)) == 1
        and problem.options.value[ahead.starts[job].option] > 0
        and not problem.class_communication[problem.job_class[job]].edges
    )


def lookahead_summary(ahead: LookaheadDecision) -> str:
    """Say what look-ahead decided."""
    number = len(ahead.waits)
    if not number:
        return "nobody ends earlier by waiting"
    return f"{'1 job ends' if number == 1 else f'{number} jobs end'} earlier by waiting"


def hold_back(problem: Problem, ahead: LookaheadDecision) -> Problem:
    """Return the round in which jobs that wait may go nowhere, others not where they are in the way."""
    names = problem.node_ids
    pinned = {job: ahead.starts[job] for job in ahead.scheduled if ahead.starts[job].gpus}
    records = list(problem.instance.jobs)
    for job in ahead.waits:
        records[job] = records[job].model_copy(update={"nodes_allowed": ()})
    for job, placement in pinned.items():
        nodes = tuple(names[node] for node in dict.fromkeys(placement.nodes))
        records[job] = records[job].model_copy(update={"nodes_allowed": nodes})
    instance = problem.given.model_copy(update={"jobs": tuple(records)})
    narrowed = compile_problem(instance, problem.policy, hardware_of(problem))
    return _close(narrowed, ahead.needed, _places(narrowed, pinned))


def renumbered(problem: Problem, job: int, placement: Placement, former: Problem) -> Placement:
    """Return the placement with the option's number in another compilation of the same jobs."""
    options, o = former.options, placement.option
    same = (options.name[o], int(options.workers[o]))
    number = next(p for p in problem.options_of(job) if (problem.options.name[p], problem.options.workers[p]) == same)
    return replace(placement, option=number)


def _places(problem: Problem, pinned: dict[int, Placement]) -> dict[int, frozenset[int]]:
    """Return class -> GPUs of its jobs, for classes all of whose jobs have a place."""
    count = np.bincount(problem.job_class)
    gpus: dict[int, set[int]] = {}
    for job, placement in pinned.items():
        k = int(problem.job_class[job])
        gpus.setdefault(k, set()).update(placement.gpus)
        count[k] -= 1
    return {k: frozenset(held) for k, held in gpus.items() if not count[k]}


def _close(problem: Problem, needed: dict[int, int], places: dict[int, frozenset[int]]) -> Problem:
    """
    Give GPUs that are needed at a time, or are somebody's place, a type of their own, and say who may have it.

    Their nodes get classes of their own: nodes of a class have GPUs of the same types.
    """
    options, gpu_type = problem.options, problem.gpu_type.copy()
    whose: dict[int, list[int]] = {}
    for k, gpus in places.items():
        for gpu in gpus:
            whose.setdefault(gpu, []).append(k)
    touched = sorted({*needed, *whose})
    if not touched:
        return problem
    bound = np.isin(options.job_class, list(places))
    may = options.gpu_type_ok & ~bound[:, None]
    end = _latest_ends(problem) if needed else np.zeros(len(options), dtype=np.int64)
    types: dict[tuple[int, int, tuple[int, ...]], int] = {}
    columns, models, memory = [may], list(problem.type_model), problem.type_memory_mib.tolist()
    same_model = list(range(len(models)))  # per type, the one of before that it was
    for gpu in touched:
        former, start, classes = int(problem.gpu_type[gpu]), needed.get(gpu, FOREVER), tuple(whose.get(gpu, ()))
        if (former, start, classes) not in types:
            types[former, start, classes] = len(models)
            models.append(problem.type_model[former])
            same_model.append(former)
            memory.append(int(problem.type_memory_mib[former]))
            own = np.isin(options.job_class, classes)
            columns.append((options.gpu_type_ok[:, former] & np.where(bound, own, end <= start))[:, None])
        gpu_type[gpu] = types[former, start, classes]
    nodes = np.unique(problem.gpu_node[touched])
    node_class = problem.node_class.copy()
    node_class[nodes] = options.node_class_ok.shape[1] + np.arange(len(nodes))
    node_class_ok = np.concatenate([options.node_class_ok, options.node_class_ok[:, problem.node_class[nodes]]], axis=1)
    present, node_class = np.unique(node_class, return_inverse=True)  # a class may have lost its last node
    return replace(
        problem,
        node_class=node_class,
        gpu_type=gpu_type,
        type_model=tuple(models),
        type_memory_mib=np.array(memory, dtype=np.int64),
        type_lost=problem.type_lost[same_model],
        # The target workload does not compete for places: a closed GPU serves it as before.
        target=replace(problem.target, type_ok=problem.target.type_ok[:, same_model]),
        options=replace(options, gpu_type_ok=np.concatenate(columns, axis=1), node_class_ok=node_class_ok[:, present]),
    )


def _latest_ends(problem: Problem) -> np.ndarray:
    """Shape (options,): when a job in the option ends at the latest if it starts now, undisturbed on a machine."""
    _, firsts = np.unique(problem.job_class, return_index=True)
    ends = []
    for o, k in enumerate(problem.options.job_class.tolist()):
        length = longest_run_ms(problem, int(firsts[k]), o)
        ends.append(FOREVER if length is None else problem.instance.now_ms + length)
    return np.array(ends, dtype=np.int64)
