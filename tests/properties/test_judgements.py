"""
Every statement of every judgement, by brute force.

The best plan with what runs fixed, and with changes; of each waiting job whether it fits, the smallest set of changes
that lets it start, and that no set does where there is none; idle GPUs that no waiting job can use.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.judgement_oracle import faults
from placeopt import Instance, Plan
from placeopt.judge import judge
from strategies import gang_rounds, plans, rounds

pytestmark = pytest.mark.usefixtures("unhurried")
ROUNDS = {
    "rounds": st.one_of(rounds(changes=True), rounds(resources=True, standing=False)),
    "gangs among racks": gang_rounds(),
    "minimal utilities": st.one_of(rounds(minima=True), rounds(changes=True, minima=True)),
}


@pytest.mark.parametrize("kind", ROUNDS)
@settings(max_examples=settings().max_examples)
@given(data=st.data())
def test_every_statement_is_true(kind: str, data: st.DataObject) -> None:
    """Of any lawful plan, and of what runs."""
    round_: Instance = data.draw(ROUNDS[kind], "round")
    plan: Plan = data.draw(plans(round_), "plan")
    assert faults(round_, plan, judge(round_, plan, time_limit_s=120)) == []
