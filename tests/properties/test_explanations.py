"""
Every statement of every explanation, by brute force.

The reason; that the conflict does not fit with everything else dropped, and fits without any one of its members; that
each remedy does when it is granted, nothing less does, and one that is not named does not exist; of a placed job, its
best place of all and the best on another node.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.explanation_oracle import faults
from placeopt import Engine, Instance
from placeopt.explain import explain
from strategies import gang_rounds, rounds

pytestmark = pytest.mark.usefixtures("unhurried")
METHODS = ("stranding", "fcfs", "auto")
ROUNDS = {
    "rounds": st.one_of(rounds(), rounds(changes=True), rounds(resources=True, standing=False)),
    "gangs among racks": gang_rounds(),
    "minimal utilities": st.one_of(rounds(minima=True), rounds(changes=True, minima=True)),
}


@pytest.mark.parametrize("kind", ROUNDS)
@settings(max_examples=settings().max_examples)
@given(data=st.data(), method=st.sampled_from(METHODS))
def test_every_statement_is_true(engine: Engine, kind: str, data: st.DataObject, method: str) -> None:
    """Of all waiting jobs, and of one placed."""
    round_: Instance = data.draw(ROUNDS[kind], "round")
    plan = engine.solve(round_, method=method, time_limit_s=1, deterministic=True)
    wrong = []
    for job in [*(one.job for one in plan.unplaced), *(one.job for one in plan.placements[:1])]:
        found = explain(round_, plan, job, time_limit_s=60, isolation="thread")
        wrong += [f"{job}: {text}" for text in faults(round_, plan, found)]
    assert wrong == []
