"""What a placed job costs, term by term, and the best place for it while all others stay where they are."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from placeopt.errors import OutOfTime, Unsupported
from placeopt.explain.explanation import Explanation
from placeopt.explain.fixed_round import fixed_round
from placeopt.explain.question import Question
from placeopt.explain.records import Alternative, JobPosition, TermShare
from placeopt.model import Changes, Postpone
from placeopt.problem import Move, Placement, Problem, State, compile_problem
from placeopt.problem.hardware import find_lost
from placeopt.problem.running import placed_in
from placeopt.problem.target import target_workload
from placeopt.solving.api import RoundInput
from placeopt.solving.params import SolveParams
from placeopt.terms.costs import costs_of
from placeopt.terms.objective import Weighted
from placeopt.terms.rules.minimal_utility import MinimalUtility, applies

UNTIMED_S = 3600.0
MORE = 1
"""Worth of the job in its round beyond its own, so that it is placed where it is worth nothing, too."""


def explain_placed(q: Question) -> Explanation:
    """Explain what the job costs where it is, and which place is best while all others stay."""
    if q.tree is not None and q.tree.runs:
        detail = "is placed; other places of jobs with groups that ran before the round are not compared"
        return Explanation(job=q.job.id, status="placed", detail=detail, proven=False, seconds=q.seconds())
    plan = q.plan
    weighted = tuple(  # as in the whole round: by what the plan states
        Weighted(cost, plan.costs[cost.name].weight, plan.costs[cost.name].worst)
        for cost in costs_of(plan.policy.values)
        if cost.name in plan.costs
    )
    alone = _Alone.of(q)
    spot = alone.spot(weighted)
    ran, now = q.round.running.get(q.number), q.round.placed[q.number]
    stays = ran is not None and (ran.nodes, ran.gpus) == (now.nodes, now.gpus)
    best = _alternative(q, alone, weighted, spot if stays else None)
    runs = " (it ran there before the round)" if ran is not None else ""
    if best.gain_value > 0 or (best.gain_value == 0 and best.gain_cost > 0):
        verdict = "a better place exists while all other jobs stay"
    elif best.proven:
        verdict = "has its best place while all other jobs stay"
    else:
        verdict = "no better place was found while all other jobs stay; not proven that none exists"
    return Explanation(
        job=q.job.id,
        status="placed",
        detail=f"{verdict}{runs}",
        spot=spot,
        best=best,
        proven=best.proven,
        seconds=q.seconds(),
    )


@dataclass(frozen=True)
class _Alone:
    """The round of the job alone: where all others are, and where the job, or each of its groups, is by the plan."""

    problem: Problem
    members: tuple[int, ...]
    now: dict[int, Placement]

    @classmethod
    def of(cls, q: Question) -> _Alone:
        """Compile it."""
        policy, name, placed = q.plan.policy.values, q.job.id, q.plan.placement_of(q.job.id)
        if placed is None:
            raise ValueError("the plan does not place the job")
        postpone = policy.postpone if policy.postpone.rule == "utility" else Postpone()
        policy = policy.model_copy(update={"changes": Changes(), "postpone": postpone, "priorities": "price"})
        round_ = fixed_round(q, q.plan.placements, policy)
        worthy = tuple(option.model_copy(update={"value": option.value + MORE}) for option in q.job.options)
        new = q.job.model_copy(update={"options": worthy})
        jobs = tuple(new if job.id == name else job for job in round_.jobs)
        problem = compile_problem(round_.model_copy(update={"jobs": jobs}), lost=find_lost(q.instance))
        # the expected workload does not depend on the job in question
        problem = replace(problem, target=target_workload(q.instance, policy, problem.type_model))
        tree = next((tree for tree in problem.trees if tree.job == name), None)
        members = (problem.job_ids.index(name),) if tree is None else tree.members
        return cls(problem, members, placed_in(problem, [placed]))

    def spot(self, weighted: tuple[Weighted, ...], place: Mapping[int, Placement] | None = None) -> JobPosition:
        """Return what the job is worth at a place, and what it adds to every term there; None: where it is."""
        problem, at = self.problem, place or self.now
        state, raws = State(problem), [0] * len(weighted)
        for member, there in at.items():
            move = Move(member, there)
            raws = [raw + w.cost.delta(state, move) for raw, w in zip(raws, weighted, strict=True)]
            state.apply(move)
        terms = tuple(
            TermShare(term=w.cost.name, raw=raw, unit=w.cost.unit, cost=w.weight * raw)
            for w, raw in zip(weighted, raws, strict=True)
        )
        workers = Counter(node for there in at.values() for node in there.nodes)
        name = problem.options.name[next(iter(at.values())).option]
        return JobPosition(
            option=name,
            nodes={problem.node_ids[node]: count for node, count in sorted(workers.items())},
            value=sum(int(problem.options.value[there.option]) for there in at.values()) - MORE,
            cost=sum(term.cost for term in terms),
            terms=terms,
        )

    def best(self, q: Question, weighted: tuple[Weighted, ...]) -> tuple[dict[int, Placement], bool]:
        """Return the best place, and whether it is proven: the most value, then the least cost."""
        q.deadline.check("the best place was looked for")
        left = q.deadline.left_s
        params = SolveParams(method="counts", time_limit_s=left if math.isfinite(left) else UNTIMED_S)
        given = RoundInput(time.monotonic(), cancel=q.deadline)
        context = q.by.solver.run_stages(lambda: self.problem, params, given, weighted=weighted).context
        found, bounds = context.incumbent, context.bounds
        proven = found.value == bounds.whole_value and (not weighted or found.cost == bounds.cost)
        allocation = found.allocation
        place = {member: there for member in self.members if (there := allocation[member]) is not None}
        if not place and not proven:
            raise OutOfTime("stopped before there was an answer")
        if place and applies(self.problem) and self._hurts(q, place):
            raise Unsupported("neighbours keep a minimal utility from being reached there")
        return place, proven

    def _hurts(self, q: Question, place: Mapping[int, Placement]) -> bool:
        """Return whether the job there, or one that started in the round beside it, falls short of its minimum."""
        ran, record = {held.job for held in q.instance.running}, {job.id: job for job in q.instance.jobs}
        given = self.problem.instance
        jobs = tuple(job if job.id in ran else record.get(job.id, job) for job in given.jobs)
        judged = replace(self.problem, instance=given.model_copy(update={"jobs": jobs}), running={})
        state = State(judged, State(self.problem).allocation())
        return not all(MinimalUtility().fits(state, member, there) for member, there in place.items())


def _alternative(
    q: Question,
    alone: _Alone,
    weighted: tuple[Weighted, ...],
    stays: JobPosition | None = None,
) -> Alternative:
    """
    Solve the round of this one job beside the others.

    If the time is over before there is an answer, ``proven`` is false and ``detail`` has the cause. ``stays``: where a
    job ran before and may stay, whatever applies to those that start, such as a minimal utility or a toleration.
    """
    here, there, proven, detail = alone.spot(weighted), stays, False, "it fits nowhere"
    try:
        place, proven = alone.best(q, weighted)
    except (OutOfTime, Unsupported) as error:
        detail = str(error)
    else:
        found = alone.spot(weighted, place) if place else None
        for spot in (found, here):  # what a bound on the cost leads to may cost more
            if spot is not None and (there is None or (spot.value, -spot.cost) > (there.value, -there.cost)):
                there = spot
    if there is None:
        return Alternative(spot=None, proven=proven, detail=detail)
    return Alternative(spot=there, gain_value=there.value - here.value, gain_cost=here.cost - there.cost, proven=proven)
