"""The wording of the referee, which people act upon; all numbers by hand."""

from typing import Any

import pytest

from helpers.plans import plan_for
from helpers.referee_messages import rules
from placeopt.build import instance, job, machine, placement
from placeopt.check import Violation, violations
from placeopt.model import Policy


def test_a_message_names_fault_place_and_numbers() -> None:
    """750 + 500 = 1250."""
    round_ = instance(4, [job("a", gpu_milli=750), job("b", gpu_milli=500)])
    plan = plan_for(round_, {"a": [("n3", [2])], "b": [("n3", [2])]})
    assert violations(round_, plan) == [
        Violation(
            "gpu_share", "node 'n3' gpu 2", "node 'n3' gpu 2: 1250 of 1000 milli held by jobs 'a', 'b'", node="n3"
        )
    ]
    assert str(violations(round_, plan)[0]).endswith("jobs 'a', 'b' [gpu_share]")


@pytest.mark.parametrize(
    ("fields", "kind", "message"),
    [
        ({"workers": 3}, {}, "job 'a': 1 workers of option 'default', which has 3"),
        ({"workers": 3, "workers_min": 2}, {}, "job 'a': 1 workers of option 'default', which has 2 to 3"),
        (
            {"memory_bandwidth_mbps": 76},
            {"memory_bandwidth_mbps": 100},
            "node 'n0': 76 of 75 % of 100 MB/s of memory bandwidth held by job 'a'",
        ),
        ({"cpu_millicores": 11}, {"cpu_millicores": 10}, "node 'n0': 11 of 10 millicores of CPU held by job 'a'"),
    ],
)
def test_what_was_expected(fields: dict[str, Any], kind: dict[str, int], message: str) -> None:
    """One right number or a range; of a bandwidth its usable part."""
    round_ = instance(1, [job("a", **fields)], machines=[machine(**kind)])
    assert violations(round_, plan_for(round_, {"a": [("n0", [0])]}))[0].message == message


@pytest.mark.parametrize(("limit", "expected"), [(None, "200"), (300, "200 to 300")])
def test_what_share_was_expected(limit: int | None, expected: str) -> None:
    round_ = instance(1, [job("a", gpu_milli=200, gpu_milli_limit=limit)])
    (first, *_) = violations(round_, plan_for(round_, {"a": placement(round_.jobs[0], [("n0", [0])], milli=100)}))
    assert first.message == f"job 'a' on node 'n0': 100 milli of GPU 0, expected {expected}"


def test_judged_by_the_policy_of_the_plan() -> None:
    """The instance's default policy does not count: the plan carries the one it was made by."""
    round_ = instance(1, [job("a", gpu_milli=500), job("b", gpu_milli=500)], policy=Policy(share_mode="exclusive"))
    placed = {"a": [("n0", [0])], "b": [("n0", [0])]}
    assert rules(round_, placed) == ["gpu_exclusive"]
    assert rules(round_, placed, policy=Policy()) == []
