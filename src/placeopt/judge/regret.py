"""Regret: how far a plan is from the best one, with all that runs fixed, and with the changes that are allowed."""

from __future__ import annotations

from placeopt.deadline import Deadline
from placeopt.edits import truth, unread_in
from placeopt.errors import OutOfTime
from placeopt.judge.ranking import Ranking, Score
from placeopt.judge.records import Band, Regret, Rules
from placeopt.judge.rounds import Best, best_plan, counted
from placeopt.model import Instance, Plan
from placeopt.solving import Solver
from placeopt.whatif import plan_of


def regret_of(
    solver: Solver, instance: Instance, plan: Plan, rules: Rules, deadline: Deadline
) -> tuple[Regret, Ranking, Best]:
    """
    Return the regret of a valid plan, and the best plan in its ranking.

    A plan that changes what runs is none of those that leave it fixed: it has no regret among them. Without time for a
    better one, the best plan known is that which is judged, or that nothing starts.
    """
    ranking = Ranking(instance, counted(instance, rules))
    changed = plan.moved or plan.shrunk or plan.preempted
    known = plan_of(instance, ()) if rules == "fixed" and changed else plan
    least = ranking.score(known.placements)
    try:
        best = best_plan(solver, instance, ranking, rules, deadline, known)
    except OutOfTime:
        best = Best(known, least, ranking.most(None))
    if best.score < least:  # cut short before it had read the known plan
        best = Best(known, least, best.bound)
    given = least if known is plan else None
    unread = unread_in(instance, moved=None if rules == "changes" else ())

    def same() -> bool:
        freest = unread.freest(instance)
        try:
            other = best_plan(solver, freest, Ranking(freest, counted(freest, rules)), rules, deadline)
        except OutOfTime:
            return False
        return other.bound == best.bound

    of, names = truth(unread, same)
    return _record(ranking, rules, given, best).model_copy(update={"of": of, "unread": names}), ranking, best


def _record(ranking: Ranking, rules: Rules, given: Score | None, best: Best) -> Regret:
    bands = tuple(
        Band(
            highest=high,
            lowest=low,
            jobs=ranking.sizes[b],
            given=None if given is None else given.jobs[b],
            best=best.score.jobs[b],
            bound=best.bound.jobs[b],
        )
        for b, (high, low) in enumerate(ranking.bands)
    )
    return Regret(
        rules=rules,
        bands=bands,
        gpu_milli=None if given is None else given.gpu_milli,
        best_gpu_milli=best.score.gpu_milli,
        bound_gpu_milli=best.bound.gpu_milli,
        stopped=len(best.plan.preempted),
        moved=len(best.plan.moved),
        shrunk=len(best.plan.shrunk),
        proven=best.proven,
    )
