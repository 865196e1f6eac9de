"""Rounds that one stage decides alone: a plan for the jobs that start, without the stages of a whole round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from placeopt.heuristics.lookahead import LookaheadDecision
from placeopt.live_cluster.starts_plan import StartsPlan
from placeopt.model import Plan
from placeopt.model.plan import Stage
from placeopt.problem import Placement, Problem, State
from placeopt.solving.budget import Budget
from placeopt.solving.draft import Recorder, placed_facts, value_level
from placeopt.solving.methods import Method
from placeopt.solving.stages.lookahead import close_needed, decide_ahead, lookahead_summary
from placeopt.solving.stages.trivial_proof import decides_all


class Choice(NamedTuple):
    """Jobs that start, by number, and where; the stage that chose, whether it improved anything, and what it did."""

    starts: Mapping[int, Placement]
    stage: str
    improved: bool
    detail: str


def choose_by_lookahead(problem: Problem, method: Method, budget: Budget) -> tuple[LookaheadDecision, Choice | None]:
    """Return what look-ahead decides now, and the choice where that is all there is to decide."""
    ahead = decide_ahead(problem, method.greedy.for_problem(problem), budget)
    if not decides_all(problem, ahead, close_needed):
        return ahead, None
    return ahead, Choice(ahead.starts, "lookahead", bool(ahead.starts or ahead.waits), lookahead_summary(ahead))


def choose_by_greedy(problem: Problem, method: Method, budget: Budget) -> Choice | None:
    """Return greedy's choice; None where stages may find more, or time has run out."""
    has_traffic = any(communication.edges for communication in problem.class_communication)
    if not method.is_greedy or method.greedy.shape != "value" or problem.changeable or has_traffic:
        return None
    rule = method.greedy.for_problem(problem)
    with budget.heuristic() as deadline:
        result = rule.place(problem, budget, deadline)
    if result.not_reached:
        return None
    starts = {
        job: placement
        for job, placement in enumerate(result.allocation)
        if placement is not None and job not in problem.running
    }
    if starts and not any(problem.options.value[placement.option] for placement in starts.values()):
        return None  # a round places what is worth nothing only where that costs less
    return Choice(starts, "greedy", True, f"{rule.chooser or rule.score} in order {rule.order}")


def fast_path_plan(form: StartsPlan, problem: Problem, choice: Choice) -> Plan | None:
    """
    Return the checked plan for the jobs that start now, and no others; ``problem`` is that of the cluster's snapshot.

    None where ledger or audit, which judge the plan as they do any for some jobs, refuse it.
    """
    placed = sorted(choice.starts.items())
    starts = [held for _, held in placed]
    worth = int(problem.options.value[[held.option for held in starts]].sum())
    stage = Stage(
        name=choice.stage,
        outcome="improved" if choice.improved else "kept",
        detail=choice.detail,
        objective=worth,
        bound=None,
        seconds=None,
    )
    plan = form.write(
        Recorder(problem).records(placed, State(problem) if problem.has_geometry else None) if placed else (),
        levels=(value_level(worth, None),),
        facts=placed_facts(problem, starts, 0),  # of those in the plan
        stages=(stage,),
    )
    return None if form.faults(plan, problem, choice.starts) else plan
