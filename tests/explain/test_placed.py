"""A placed job: what it adds to each term, and where else it could be."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.explanation_oracle import faults
from placeopt import Policy, read_instance, solve
from placeopt.build import instance, job, machine, node, running
from placeopt.explain import explain
from placeopt.model import Communication, Postpone, Slowdown, Weights
from placeopt.problem import compile_problem
from placeopt.solving import allocation_of
from placeopt.terms import weighted_costs

ROUNDS = Path(__file__).resolve().parents[1] / "data" / "rounds"

TALK = Policy(weights=Weights(communication=1000, interference=0, fragmentation=0))


def test_the_best_place_is_found() -> None:
    """
    Two workers that talk run on two nodes, one on each, where both fit on either: together they would cost less.

    On a node two GPUs are 2 apart (an edge of weight 1 up to the machine for each), across nodes more. The job is
    alone, so it pays the whole term.
    """
    talker = job("j", workers=2, communication=Communication(weight=3))
    round_ = instance(2, [talker], policy=TALK, running=[running(talker, [("n0", [0]), ("n1", [0])])])
    plan = solve(round_)
    found = explain(round_, plan, "j", isolation="thread", time_limit_s=60)
    assert (found.status, found.proven) == ("placed", True)
    assert found.spot is not None
    assert [(term.term, term.raw) for term in found.spot.terms] == [("communication", plan.costs["communication"].raw)]
    assert found.spot.nodes == {"n0": 1, "n1": 1}
    assert found.best is not None
    assert found.best.spot is not None
    assert found.best.spot.nodes in ({"n0": 2}, {"n1": 2})
    assert [term.raw for term in found.best.spot.terms] == [2 * 3]
    assert found.best.gain_cost == found.spot.cost - found.best.spot.cost > 0
    assert found.detail == "a better place exists while all other jobs stay (it ran there before the round)"


def test_its_terms_are_what_the_plan_would_save() -> None:
    """Two jobs: the plan's terms fall by what the explanation says when one of them leaves."""
    jobs = [job(name, gpus=2, communication=Communication(weight=2)) for name in "ab"]
    round_ = instance(1, jobs)
    plan = solve(round_)
    found = explain(round_, plan, "a", isolation="thread", time_limit_s=60)
    problem = compile_problem(round_, plan.policy.values)
    both = allocation_of(plan, problem)
    assert found.spot is not None
    assert found.spot.terms
    for term in found.spot.terms:
        (w,) = [w for w in weighted_costs(problem) if w.cost.name == term.term]
        assert term.raw == w.cost.score(problem, both) - w.cost.score(problem, (None, both[1]))
        assert term.cost == w.weight * term.raw


def test_what_the_time_does_not_allow_is_reported() -> None:
    """Nothing is proven then, and its costs are told all the same."""
    round_ = instance(2, [job("j")], machines=[machine(gpus=4)])
    found = explain(round_, solve(round_), "j", time_limit_s=1e-6, isolation="thread")
    assert not found.proven
    assert found.best is not None
    assert "time" in found.best.detail
    assert found.spot is not None


@pytest.mark.parametrize("number", range(3))
def test_a_running_job_may_stay_below_its_minimal_utility(number: int) -> None:
    """Rounds that a campaign found: the job falls short of its minimal utility everywhere, also where it runs."""
    round_ = read_instance(ROUNDS / f"runs-below-its-minimal-utility-{number}.json")
    plan = solve(round_, method="stranding", isolation="thread")
    name = plan.placements[0].job
    assert name in {held.job for held in round_.running}
    found = explain(round_, plan, name, isolation="thread", time_limit_s=60)
    assert found.best is not None
    assert found.best.spot == found.spot
    assert faults(round_, plan, found) == []


def test_where_neighbours_decide_about_a_minimal_utility_no_other_place_is_claimed_or_denied() -> None:
    """Its node is drained; the model names that of ``calm``, which must not be slowed at all: it may stay, unproven."""
    calm = job("calm", profile="p", utility_min_thousandths=1000)
    slow = (Slowdown(profile="p", beside="p", node_thousandths=50),)
    policy, loud = Policy(postpone=Postpone(rule="utility", utility="sum")), job("loud", profile="p")
    held = [running(loud, [("n1", [0])])]
    nodes = [node("n0"), node("n1", drained=True)]
    round_ = instance(nodes, [loud, calm], slowdowns=slow, policy=policy, running=held)
    plan = solve(round_, time_limit_s=5)
    assert len(plan.placements) == 2
    found = explain(round_, plan, "loud", time_limit_s=60)
    assert found.best is not None
    assert (found.best.spot, found.best.proven) == (found.spot, False)
    assert "not proven that none exists" in found.detail
