"""Lawful plans of a round."""

from __future__ import annotations

from helpers.brute_force import allowed_outcomes, placements, running_outcomes
from helpers.plan_records import plan_of
from placeopt.model import Instance, Plan
from placeopt.problem import Move, State, compile_problem
from placeopt.terms.rules import fits
from strategies.choice import Choice


def make_plan(choice: Choice, round_: Instance) -> Plan:
    """Draw a lawful plan: running jobs stay or are changed, waiting jobs start wherever they still fit."""
    problem = compile_problem(round_)
    state, most = State(problem), round_.policy.changes
    left = {
        "moved": most.moves_max,
        "shrunk": most.shrinks_max,
        "preempted": most.preemptions_max,
        "kept": problem.num_jobs,
    }
    for job in sorted(problem.running):
        state.apply(Move(job, problem.running[job]))
    for job in sorted(problem.running):
        outcomes = allowed_outcomes(problem, job, running_outcomes(problem, job)) if choice.chance(0.5) else []
        state.apply(Move(job, None))
        open_to = [
            one
            for one in outcomes
            if left[one.change] > 0
            and (one.change != "moved" or fits(state, job, one.placement))
            and not (most.last_submitted_first and one.change in ("shrunk", "preempted"))  # a rule about whole plans
        ]
        chosen = choice.pick(open_to) if open_to else None
        kept = problem.running[job] if chosen is None else chosen.placement
        left["kept" if chosen is None else chosen.change] -= 1
        if kept is not None:
            state.apply(Move(job, kept))
    for job in choice.shuffled(j for j in range(problem.num_jobs) if j not in problem.running):
        open_to = [place for place in placements(problem, job) if fits(state, job, place)]
        if open_to and choice.chance(0.8):
            state.apply(Move(job, choice.pick(open_to)))
    return plan_of(problem, state.allocation())
