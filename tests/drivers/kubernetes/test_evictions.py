"""Running pods are stopped through the eviction API; what takes their room starts once they are gone."""

import pytest

from helpers.kubernetes_cluster import pod
from placeopt.importers import PriorityRule

RULE = PriorityRule(value_per_gpu_of={"batch": 1})
"""By which low jobs are worth little."""
MAY_BE_PREEMPTED = {"placeopt.io/preemptible": "true"}


def low(annotations=MAY_BE_PREEMPTED, **more):
    """A pod of little value that its owner lets others replace."""
    return pod("low", 8, annotations=dict(annotations), priorityClassName="batch", **more)


@pytest.fixture
def start_low(world):
    """Fill the cluster with a low pod; returns the driver that started it."""

    def start(rule=RULE, **more):
        world.add_nodes("n0")
        world.submit(low(**more))
        driven = world.connect(rule=rule)
        driven.turn()
        world.settle()
        assert world.running() == {"low": "n0"}
        return driven

    return start


def test_the_start_waits_until_the_victim_is_gone(world, start_low):
    driven = start_low()
    world.cluster.holds.add("low")
    world.submit(pod("high", 8))
    report = driven.turn()
    assert (report.evicted, report.started, report.deferred) == (1, 0, 1)
    for one in (driven, driven, world.connect(rule=RULE)):  # it is still there: nothing starts, nothing more is evicted
        report = one.turn()
        assert (report.evicted, report.started, report.deferred) == (0, 0, 1)
    world.cluster.holds.clear()
    world.cluster.turn()
    assert driven.turn().started == 1
    world.settle()
    assert world.running() == {"high": "n0"}
    assert world.written("eviction") == ["low"]


def test_a_disruption_budget_is_heeded_and_its_job_left_alone_for_a_while(world, start_low):
    """429: the victim stays, what needs its room waits, and the next rounds do without it."""
    driven = start_low()
    world.api.budgets.append(({}, 1))
    world.submit(pod("high", 8))
    report = driven.turn()
    assert (report.evicted, report.refused, report.started, report.deferred) == (0, 1, 0, 1)
    assert "disruption budget" in report.actions[-1].why
    report = driven.turn()
    assert (report.placed, report.refused) == (0, 0)
    assert world.running() == {"low": "n0"}


def test_another_pod_of_the_same_name_is_not_evicted(world, start_low):
    """The UID is a precondition: 409, and the pod that has the name now stays."""
    driven = start_low()
    world.api.deleted = lambda found: None
    world.submit(pod("high", 8))
    world.at("eviction", "low", lambda: (world.api.remove("pods", "low"), world.submit(low())))
    driven.turn()
    assert "deletionTimestamp" not in world.pod("low")["metadata"]
    assert world.written("eviction") == []


@pytest.mark.parametrize(
    ("more", "rule", "evicted"),
    [
        ({"owned": False}, RULE, 0),  # nothing would make it anew
        ({"annotations": {}}, RULE, 0),
        ({"annotations": {}}, PriorityRule(value_per_gpu_of={"batch": 1}, preemptible={"batch": True}), 1),
        ({"annotations": {"placeopt.io/preemptible": "false"}}, PriorityRule(preemptible={"batch": True}), 0),
        ({}, PriorityRule(), 0),  # a job worth as much is no reason to stop one
    ],
)
def test_rule_annotations_and_controller_decide_who_is_a_victim_and_for_whom(world, start_low, more, rule, evicted):
    driven = start_low(rule, **more)
    world.submit(pod("high", 8))
    report = driven.turn()
    assert (report.placed, report.evicted) == (evicted, evicted)
    assert world.written("eviction") == ["low"] * evicted
