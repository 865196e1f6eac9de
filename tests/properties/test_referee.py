"""Referee and audit accept exactly the plans that brute force lists: none that breaks a rule, and none too few."""

from hypothesis import event, given, settings
from hypothesis import strategies as st

from helpers.brute_force import Enumeration, all_places, running_outcomes
from helpers.plan_records import plan_of
from helpers.utilities import below_minimum
from placeopt import Instance, Plan, violations
from placeopt.check import Referee
from placeopt.model import Placement
from placeopt.problem import Allocation, Problem, compile_problem
from strategies import Choice, odd_rounds, plans, rounds, strategy

NEGATIVE = 10**9
"""Changes may cost more than all jobs are worth."""
any_round = st.one_of(rounds(), rounds(changes=True), rounds(changes=True, resources=True), odd_rounds())


def any_allocation(choice: Choice, problem: Problem, everything: Enumeration) -> Allocation:
    """Draw a place for every job without a look at the others, now and then one that the job may not have at all."""
    drawn = []
    for job, candidates in enumerate(everything.candidates):
        among = list(candidates)
        if choice.chance(0.2):
            running = job in problem.running
            wild = [one.placement for one in running_outcomes(problem, job)] if running else [*all_places(problem, job)]
            among = wild or among
        drawn.append(choice.pick(among[:200]))
    return tuple(drawn)


@settings(max_examples=settings().max_examples * 4)
@given(round_=any_round, data=st.data())
def test_accepts_what_brute_force_lists_and_nothing_else(round_: Instance, data: st.DataObject) -> None:
    """Places drawn for each job by itself: together they keep all rules, or break some."""
    problem = compile_problem(round_)
    everything = Enumeration(problem)
    allocation = data.draw(strategy(any_allocation)(problem, everything))
    lawful = allocation in {everything.allocation(row) for row in everything.rows(-NEGATIVE)[0]}
    event("lawful" if lawful else "against a rule")
    plan = plan_of(problem, allocation)
    found = [str(one) for one in violations(round_, plan)] or below_minimum(round_, plan)
    assert (found == []) == lawful, found


@given(round_=any_round, data=st.data())
def test_accepts_plans_made_job_by_job(round_: Instance, data: st.DataObject) -> None:
    """What fits beside what is placed already is lawful, changes of running jobs included."""
    plan: Plan = data.draw(plans(round_))
    assert violations(round_, plan) == []


@settings(max_examples=settings().max_examples * 2)
@given(round_=any_round, data=st.data())
def test_a_referee_of_several_plans_finds_what_one_of_each_finds(round_: Instance, data: st.DataObject) -> None:
    """Plans that share the records of jobs with the same place, as those of a round do, lawful and not."""
    problem = compile_problem(round_)
    everything, referee, records = Enumeration(problem), Referee(round_), dict[str, Placement]()
    policy = None
    for _ in range(4):
        plan = plan_of(problem, data.draw(strategy(any_allocation)(problem, everything)))
        policy = policy or plan.policy
        shared = [known if (known := records.get(one.job)) == one else one for one in plan.placements]
        records |= {one.job: one for one in shared}
        plan = plan.model_copy(update={"placements": tuple(shared), "policy": policy})
        found = referee.judge(plan)
        event("clean" if not any(found) else "not clean")
        assert found == Referee(round_).judge(plan)
