"""Stage ``lookahead``: jobs that end earlier if they wait leave the round, and others keep to their places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from placeopt.heuristics.lookahead import LookaheadDecision, look_ahead
from placeopt.heuristics.run_times import longest_run_ms
from placeopt.model.plan import StageOutcome
from placeopt.problem import Placement, Problem, compile_problem
from placeopt.solving.budget import Budget
from placeopt.solving.context import SolveContext
from placeopt.solving.greedy_rule import GreedyRule
from placeopt.solving.incumbent import Offer, Refused
from placeopt.solving.stage import StageReport
from placeopt.solving.stages.trivial_proof import all_start

FOREVER = np.iinfo(np.int64).max


def hold_back(problem: Problem, ahead: LookaheadDecision) -> Problem:
    """Return the round in which jobs that wait by look-ahead have no node, others only places that block none."""
    names = problem.node_ids
    pinned = {job: ahead.starts[job] for job in ahead.scheduled if ahead.starts[job].gpus}
    records = list(problem.instance.jobs)
    for job in ahead.waits:
        records[job] = records[job].with_conditions(nodes_allowed=())
    for job, placement in pinned.items():
        nodes = tuple(names[node] for node in dict.fromkeys(placement.nodes))
        records[job] = records[job].with_conditions(nodes_allowed=nodes)
    instance = problem.given.model_copy(update={"jobs": tuple(records)})
    narrowed = compile_problem(instance, problem.policy, problem)
    return _close_gpus(narrowed, ahead.needed, _pinned_gpus(narrowed, pinned))


def close_needed(problem: Problem, ahead: LookaheadDecision) -> Problem:
    """Return the round in which GPUs that a later start needs are closed to options that might not end in time."""
    return _close_gpus(problem, ahead.needed, {})


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
    classes_of: dict[int, list[int]] = {}
    for k, gpus in places.items():
        for gpu in gpus:
            classes_of.setdefault(gpu, []).append(k)
    touched = sorted({*needed, *classes_of})
    if not touched:
        return problem
    bound = np.isin(options.job_class, list(places))
    may = options.gpu_type_ok & ~bound[:, None]
    end = _latest_ends(problem) if needed else np.zeros(len(options), dtype=np.int64)
    types: dict[tuple[int, int, tuple[int, ...]], int] = {}
    columns, models, memory = [may], list(problem.type_model), problem.type_memory_mib.tolist()
    same_model = list(range(len(models)))  # per type, the one of before that it was
    for gpu in touched:
        former, start, classes = int(problem.gpu_type[gpu]), needed.get(gpu, FOREVER), tuple(classes_of.get(gpu, ()))
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
        type_holds=tuple(problem.type_holds[former] for former in same_model),
        type_geometry=tuple(problem.type_geometry[former] for former in same_model),
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


SHARE_OF_TIME = 0.3
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
        return None if context.problem.policy.postpone.rule == "lookahead" else "the policy does not look ahead"

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
        if all_start(former, ahead):
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
