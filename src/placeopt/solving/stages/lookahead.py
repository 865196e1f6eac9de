"""Stage ``lookahead``: jobs that end earlier if they wait leave the round, and others keep to their places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from placeopt.heuristics import Candidates, score_named
from placeopt.heuristics.lookahead import LookaheadDecision, look_ahead
from placeopt.heuristics.run_times import longest_run_ms
from placeopt.model.plan import StageOutcome
from placeopt.problem import Move, Placement, Problem, State, compile_problem
from placeopt.problem.classes import group_by_key
from placeopt.solving.budget import Budget
from placeopt.solving.context import SolveContext
from placeopt.solving.greedy_rule import GreedyRule
from placeopt.solving.incumbent import Offer, Refused
from placeopt.solving.stage import StageReport, reason_of_binding

FOREVER = np.iinfo(np.int64).max


def hold_back(problem: Problem, ahead: LookaheadDecision) -> Problem:
    """Return the round in which jobs that wait by look-ahead have no node, others only places that block none."""
    pinned = {job: ahead.starts[job] for job in ahead.scheduled if ahead.starts[job].gpus}
    nodes_of = {**dict.fromkeys(ahead.waits, ()), **{job: placement.nodes for job, placement in pinned.items()}}
    records = list(problem.instance.jobs)
    for job, nodes in nodes_of.items():
        names = tuple(problem.node_ids[node] for node in dict.fromkeys(nodes))
        records[job] = records[job].with_conditions(nodes_allowed=names)
    instance = problem.given.model_copy(update={"jobs": tuple(records)})
    narrowed = compile_problem(instance, problem.policy, problem)
    return _close_gpus(narrowed, ahead.needed, _pinned_gpus(narrowed, pinned))


def renumbered(problem: Problem, job: int, placement: Placement, former: Problem) -> Placement:
    """Return the placement with the option's number in another compilation of the same jobs."""
    options, o = former.options, placement.option
    same = (options.kinds[o], int(options.workers[o]))
    number = next(p for p in problem.options_of(job) if (problem.options.kinds[p], problem.options.workers[p]) == same)
    return replace(placement, option=number)


def _pinned_gpus(problem: Problem, pinned: dict[int, Placement]) -> dict[int, frozenset[int]]:
    """Return class -> GPUs of its jobs, for classes all of whose jobs are pinned to a place."""
    count = np.bincount(problem.job_class)
    gpus: dict[int, set[int]] = {}
    for job, placement in pinned.items():
        k = int(problem.job_class[job])
        gpus.setdefault(k, set()).update(placement.gpus)
        count[k] -= 1
    return {k: frozenset(held) for k, held in gpus.items() if not count[k]}


def _close_gpus(problem: Problem, needed: dict[int, int], places: dict[int, frozenset[int]]) -> Problem:
    """
    Give GPUs that are needed at a time, or that jobs are pinned to, types of their own, which few options allow.

    ``needed`` is GPU -> when it is needed, ``places`` class -> GPUs. Their nodes get classes of their own: nodes of a
    class have GPUs of the same types.
    """
    options, gpu_type = problem.options, problem.gpu_type.copy()
    gpus = sorted({*needed, *(gpu for held in places.values() for gpu in held)})
    if not gpus:
        return problem
    kinds = [
        (int(gpu_type[gpu]), needed.get(gpu, FOREVER), tuple(k for k, held in places.items() if gpu in held))
        for gpu in gpus
    ]
    number, firsts = group_by_key(kinds)
    plain, bound = len(problem.type_model), np.isin(options.job_class, list(places))
    former = np.append(np.arange(plain), gpu_type[gpus][firsts])  # per type, the one of before that it was
    type_ok = options.gpu_type_ok[:, former]
    type_ok[bound, :plain] = False
    latest_end = _latest_ends(problem) if needed else np.zeros(len(options), dtype=np.int64)
    for t, (_, start, classes) in enumerate([kinds[first] for first in firsts], plain):
        type_ok[:, t] &= np.where(bound, np.isin(options.job_class, classes), latest_end <= start)
    gpu_type[gpus] = plain + np.array(number)
    nodes = np.unique(problem.gpu_node[gpus])
    node_class = problem.node_class.copy()
    node_class[nodes] = options.node_class_ok.shape[1] + np.arange(len(nodes))
    node_class_ok = np.concatenate([options.node_class_ok, options.node_class_ok[:, problem.node_class[nodes]]], axis=1)
    present, node_class = np.unique(node_class, return_inverse=True)  # a class may have lost its last node
    return replace(
        problem,
        node_class=node_class,
        gpu_type=gpu_type,
        type_model=tuple(problem.type_model[t] for t in former),
        type_memory_mib=problem.type_memory_mib[former],
        type_lost=problem.type_lost[former],
        type_holds=tuple(problem.type_holds[t] for t in former),
        type_geometry=tuple(problem.type_geometry[t] for t in former),
        # The target workload does not compete for places: a closed GPU serves it as before.
        target=replace(problem.target, type_ok=problem.target.type_ok[:, former]),
        options=replace(options, gpu_type_ok=type_ok, node_class_ok=node_class_ok[:, present]),
    )


def _latest_ends(problem: Problem) -> np.ndarray:
    """Shape (options,): when a job in the option ends at the latest if it starts now, undisturbed on a machine."""
    _, firsts = np.unique(problem.job_class, return_index=True)
    ends = []
    for o, k in enumerate(problem.options.job_class.tolist()):
        length = longest_run_ms(problem, int(firsts[k]), o)
        ends.append(FOREVER if length is None else problem.instance.now_ms + length)
    return np.array(ends, dtype=np.int64)


def is_decided(problem: Problem, ahead: LookaheadDecision) -> bool:
    """
    Tell whether no stage can find anything but what look-ahead has decided.

    Every job that waits starts in the place that it has or none, or ends earlier if it waits, or has no room on the
    GPUs that later starts leave to it. Or it has none beside the jobs that start, and all of its kind together are
    worth less than any one of those: then a round without one of them is worth less.
    """
    if problem.changeable:
        return False
    left = _undecided(problem, ahead)
    if not left:
        return True
    narrowed = _close_gpus(problem, ahead.needed, {})
    rivals = _with_room(State(narrowed), left)
    if not rivals or any(job in ahead.starts for job in rivals):
        return not rivals
    value, beside = problem.options.value, State(narrowed)
    for job, placement in ahead.starts.items():
        beside.apply(Move(job, placement))
    worth = sum(max(int(value[option]) for option in problem.options_of(job)) for job in rivals)
    least = min((int(value[placement.option]) for placement in ahead.starts.values()), default=0)
    return worth < least and not _with_room(beside, rivals)


def _undecided(problem: Problem, ahead: LookaheadDecision) -> list[int]:
    """
    Return the waiting jobs that may start now, but not in the place that they have or none.

    Places bind jobs with GPUs alone; a job of several options may have another one there, one worth nothing need not
    start, and workers that differ by their traffic may change places.
    """

    def has_its_place(job: int) -> bool:
        return (
            job in ahead.scheduled
            and bool(ahead.starts[job].gpus)
            and len(problem.options_of(job)) == 1
            and problem.options.value[ahead.starts[job].option] > 0
            and not problem.class_communication[problem.job_class[job]].edges
        )

    waiting = (job for job in range(problem.num_jobs) if job not in problem.running and job not in ahead.waits)
    return [job for job in waiting if not has_its_place(job)]


def _with_room(state: State, jobs: Sequence[int]) -> list[int]:
    """Return the jobs that have room in ``state``, each by itself."""
    problem, candidates = state.problem, Candidates(state, score_named("first_fit", state.problem))
    member = {int(problem.job_class[job]): job for job in jobs}
    has_room = {k: any(map(candidates.has_room, problem.options_of(job))) for k, job in member.items()}
    return [job for job in jobs if has_room[int(problem.job_class[job])]]


SHARE_OF_TIME = 1 / 4
"""Part of a round's time that schedules may take; ours: most is left to the stages that prove something."""


def decide_ahead(problem: Problem, rule: GreedyRule, budget: Budget) -> LookaheadDecision:
    """Return which waiting jobs start now, and where, and which end earlier if they wait."""
    with budget.heuristic(SHARE_OF_TIME) as deadline:
        return look_ahead(
            problem,
            rule.jobs(problem),
            rule.score,
            reorder=not rule.strict,
            deadline=deadline,
            cancelled=budget.cancelled,
        )


@dataclass(frozen=True)
class LookAhead:
    """
    Narrows the round to what may start now, and where, for all later stages, if the policy looks ahead.

    A job that waits may go nowhere. A GPU that is needed later is closed to options that might not end in time: alone
    and as far apart as on a machine. A job whose place was weighed by times has that place or none, since costs do not
    contain times. Later stages need not look at any of that. What they prove is of plans that keep to it; the plan's
    own bound is of the whole round, so it is hardly ever called optimal.

    Nothing is left to decide where all that waits starts, each job in its place. Nearly every round of a cluster that
    is seldom full is like that, and need not be compiled again.
    """

    name: ClassVar[str] = "lookahead"
    uses_solver: ClassVar[bool] = False

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only under a policy with look-ahead."""
        looks_ahead = context.problem.policy.postpone.rule == "lookahead"
        return reason_of_binding(context) if looks_ahead else "the policy does not look ahead"

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Decide, unless that was done before on this very problem; narrow the round, and offer what starts."""
        ahead = context.handover.decision or decide_ahead(context.problem, context.greedy, context.budget)
        offer = self._apply(context, ahead)
        detail = lookahead_summary(ahead) + (
            "; stages after this one are about plans that keep to it" if context.narrowed else ""
        )
        if isinstance(offer, Refused):
            yield StageReport(f"{detail}: {offer.why}", "failed")
            return
        outcome: StageOutcome = "improved" if ahead.starts or ahead.waits else "kept"
        yield StageReport(detail, outcome)

    def _apply(self, context: SolveContext, ahead: LookaheadDecision) -> Offer | None:
        former, offer = context.problem, None
        if ahead.starts and not (ahead.waits or former.changeable or _undecided(former, ahead)):
            offer = _start(context, former, ahead)
            incumbent = context.incumbent
            if all(incumbent.allocation[job] == placement for job, placement in ahead.starts.items()):
                context.handover.is_decided = True
                context.bounds.prove_value(incumbent.value)
                context.bounds.prove_cost(incumbent.cost)
                return offer
        if ahead.waits or ahead.needed or ahead.scheduled:
            offer = _start(context, hold_back(former, ahead), ahead)
        return offer


def _start(context: SolveContext, narrowed: Problem, ahead: LookaheadDecision) -> Offer:
    """Narrow the round, and offer what starts now."""
    former = context.problem
    context.narrow(narrowed, ahead)
    starts = {job: renumbered(narrowed, job, placement, former) for job, placement in ahead.starts.items()}
    return context.incumbent.offer(tuple(starts.get(job, held) for job, held in enumerate(context.base.allocation())))


def lookahead_summary(ahead: LookaheadDecision) -> str:
    """Say what look-ahead decided."""
    number = len(ahead.waits)
    if not number:
        return "no job ends earlier by waiting"
    return f"{'1 job ends' if number == 1 else f'{number} jobs end'} earlier by waiting"
