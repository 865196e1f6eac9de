"""Placements that somebody else made: found out, measured, and the moves that help most, by hand."""

from helpers.plans import plan_for
from placeopt import solve, violations
from placeopt.build import instance, job, placement, running
from placeopt.model import Group, Instance
from placeopt.whatif import Limits, Placements, plan_of, review, running_as_plan

SHORT = Limits(time_limit_s=4.0, threads=1)


def pair(**fields: object) -> Instance:
    """Two nodes of four GPUs; ``a`` talks between two workers of two GPUs, ``b`` waits for three GPUs."""
    talking = job("a", workers=2, gpus=2, value=10, communication={"weight": 4})
    return instance(2, [talking, job("b", gpus=3, value=5)], **fields)


def test_a_spread_job_is_moved_together() -> None:
    """On two nodes of two free GPUs each ``b`` has no room; together on one, all that is apart is saved."""
    base = pair()
    spread = plan_for(base, {"a": [("n0", (0, 1)), ("n1", (0, 1))]})
    found = review(base, spread, limits=SHORT)
    assert (found.valid, found.value, found.best_value, found.value_bound) == (True, 10, 15, 15)
    assert found.value_gap == 0.5
    [move] = found.moves
    assert (move.job, move.kind, list(move.nodes.values()), move.gain_value) == ("a", "move", [2], 0)
    assert move.gain_cost is not None
    assert move.gain_cost > 0
    communication = next(term for term in found.terms if term.name == "communication")
    assert communication.raw > communication.best_raw
    assert found.all_tried


def test_a_waiting_job_that_fits_is_placed() -> None:
    """``b`` was left out although a node is free, by a plan that calls itself optimal."""
    base = pair()
    boast = plan_for(base, {"a": [("n0", (0, 1)), ("n0", (2, 3))]}, status="optimal", gap=0.0)
    found = review(base, boast, limits=SHORT)
    assert [(one.job, one.kind, one.nodes, one.gain_value) for one in found.moves] == [("b", "place", {"n1": 1}, 5)]
    assert (found.value, found.best_value) == (10, 15)


def test_the_best_plan_leaves_nothing_to_do() -> None:
    """Our own, proven: no move, no distance."""
    base = pair()
    found = review(base, solve(base, time_limit_s=5), limits=SHORT)
    assert (found.value, found.cost, found.moves) == (found.value_bound, found.best_cost, ())


def test_what_breaks_rules_is_named_and_not_measured() -> None:
    """Two jobs on one GPU."""
    base = pair()
    both = plan_for(base, {"a": [("n0", (0, 1)), ("n0", (2, 3))], "b": [("n0", (0, 1, 2))]})
    found = review(base, both, limits=SHORT)
    assert (found.valid, found.value) == (False, None)
    assert found.count >= 1
    assert any("n0" in text for text in found.violations)


def test_placements_alone_will_do() -> None:
    """Running jobs stay, those that are not named wait."""
    held = job("held", gpus=4, value=1)
    base = pair()
    base = instance(2, [held, *base.jobs], running=[running(held, [("n1", (0, 1, 2, 3))])])
    named = Placements(placements=(placement(base.jobs[1], [("n0", (0, 1)), ("n0", (2, 3))]),))
    plan = plan_of(base, named.placements)
    assert [one.job for one in plan.placements] == ["held", "a"]
    assert [one.job for one in plan.unplaced] == ["b"]
    assert review(base, plan, limits=SHORT).value == 11


def test_a_placement_in_an_unknown_option_is_refused_by_its_name() -> None:
    """Another scheduler may know an option that the job does not have."""
    base = pair()
    (named,) = plan_for(base, {"b": [("n0", (0, 1, 2))]}).placements
    found = review(base, plan_of(base, [named.model_copy(update={"option": "other"})]), limits=SHORT)
    assert not found.valid
    assert any("'other'" in text for text in found.violations)


def test_no_more_moves_than_asked_for() -> None:
    """The best of them first."""
    base = instance(2, [job("small", value=1), job("big", gpus=4, value=9), job("mid", gpus=2, value=4)])
    found = review(base, plan_for(base, {}), moves=2, limits=SHORT)
    assert [one.job for one in found.moves] == ["big", "mid"]


def test_a_job_that_runs_in_part_stays() -> None:
    """A leader and one of two workers run, which no scheduler could start; with both they can be placed anew."""
    team = job("team", groups=(Group(id="lead"), Group(id="work", workers=2)))
    part = [("n0", (0,), "lead"), ("n0", (1,), "work")]
    for where, staying in ((part, ["team"]), ([*part, ("n1", (0,), "work")], [])):
        anew, plan = running_as_plan(instance(2, [team], running=[running(team, where)]))
        assert ([one.job for one in anew.running], violations(anew, plan)) == (staying, [])
