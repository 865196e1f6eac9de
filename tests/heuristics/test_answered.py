"""What one request says of others: the same as asking for each, whatever fills up in between."""

from hypothesis import given
from hypothesis import strategies as st

from placeopt import Instance
from placeopt.heuristics import Answered, Candidates, Refused, Requests, place, score_named
from placeopt.problem import State, compile_problem
from strategies import choices, rounds
from strategies.choice import Choice


@given(rounds(), choices, st.booleans())
def test_answers_are_those_of_greedy(round_: Instance, choice: Choice, fills_up: bool) -> None:
    problem = compile_problem(round_)
    state, requests = State(problem), Requests(problem)
    candidates = Candidates(state, score_named("first_fit", problem))
    refused, taken = Refused(requests), Answered(requests, room=True)
    waiting = [job for job in range(problem.num_jobs) if job not in problem.running]
    for job in choice.shuffled(waiting * 2):
        if state.placements[job] is not None:
            continue
        found = place(candidates, job)
        if refused.covers_job(job):
            assert found is None
        if not fills_up and any(map(taken.covers, requests.of(job))):
            assert found is not None
        if found is None:
            refused.add_job(job)
        elif found.option in requests.of(job):
            taken.add(found.option)
        if found is not None and fills_up:
            state.place(job, found)
            for node in found.nodes:
                candidates.changed(node)
