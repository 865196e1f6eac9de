"""Rule ``gpu_grant``: what is due of a GPU above the requests, by hand (DynamoML 3.1)."""

from typing import Any

import pytest

from helpers.grant_cases import CASES, Asked
from helpers.plans import plan_for, with_assignment
from helpers.referee_messages import faults, findings, rules
from placeopt import solve, violations
from placeopt.build import instance, job, placement, running
from placeopt.check import Ledger
from placeopt.model import Instance, Placement, Policy


def round_of(asked: dict[str, Asked], **fields: Any) -> Instance:
    jobs = [job(name, gpu_milli=low, gpu_milli_limit=high) for name, (low, high, _) in asked.items()]
    return instance(2, jobs, **fields)


def granted(round_: Instance, shares: dict[str, int]) -> dict[str, Placement]:
    """Place these jobs on GPU 1 of n0 with these shares."""
    jobs = {one.id: one for one in round_.jobs}
    return {name: placement(jobs[name], [("n0", [1])], milli=milli) for name, milli in shares.items()}


@pytest.mark.parametrize("name", CASES)
def test_what_is_due(name: str) -> None:
    """Just that; one more or one less is told with what is due, wherever request and limit allow it."""
    asked = CASES[name]
    round_ = round_of(asked)
    right = {job_: due for job_, (_, _, due) in asked.items()}
    assert faults(round_, granted(round_, right)) == []
    for job_, (low, high, due) in asked.items():
        for other in {due - 1, due + 1, low, high or low} - {due}:
            if high is not None and low <= other <= high:
                expected = ("gpu_grant", f"job '{job_}' on node 'n0'", [str(other), "1", *map(str, (due, low, high))])
                assert faults(round_, granted(round_, {**right, job_: other})) == [expected]


def test_more_is_requested_than_there_is() -> None:
    """1100 of 1000: told as such, and nothing is due above the requests."""
    round_ = round_of({"a": (500, 900, 500), "b": (600, 700, 600)})
    assert rules(round_, granted(round_, {"a": 500, "b": 600})) == ["gpu_share"]
    found = faults(round_, granted(round_, {"a": 501, "b": 600}))
    assert found[-1] == ("gpu_grant", "job 'a' on node 'n0'", ["501", "1", "500", "500", "900"])


@pytest.mark.parametrize("milli", [299, 501])
def test_beyond_request_and_limit_is_another_rule(milli: int) -> None:
    round_ = round_of({"a": (300, 500, 500)})
    assert rules(round_, granted(round_, {"a": milli})) == ["gpu_milli"]


@pytest.mark.parametrize(
    "policy", [Policy(share_mode="exclusive"), Policy(share_mode="overcommit", jobs_per_gpu_max=2)]
)
def test_where_shares_are_no_fractions_the_request_is_due(policy: Policy) -> None:
    """The referee accepted any share between request and limit there; a job that runs keeps what it holds."""
    round_ = round_of({"a": (300, 500, 300)}, policy=policy)
    assert rules(round_, granted(round_, {"a": 300})) == []
    assert rules(round_, granted(round_, {"a": 400})) == ["gpu_grant"]
    a = job("a", gpu_milli=300, gpu_milli_limit=500)
    begun = instance(1, [a], running=[running(a, [("n0", [0])], milli=400)], policy=policy)
    assert violations(begun, solve(begun, isolation="thread", deterministic=True)) == []


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        (({"0": 900, "1": 900}, {"0": 400}), []),
        (({"0": 900, "1": 899}, {"0": 400}), [("n0", ["899", "1", "900", "300", "900"])]),
        (({"0": 900, "1": 900}, {"0": 401}), [("n1", ["401", "0", "400", "300", "900"])]),
    ],
)
def test_every_gpu_of_every_node_by_itself(shares: tuple[dict[str, int], ...], expected: list) -> None:
    """A gang on three GPUs, one shared with a job of 600: 900, 900 and 400 are due."""
    round_ = instance(2, [job("a", workers=3, gpu_milli=300, gpu_milli_limit=900), job("b", gpu_milli=600)])
    plan = plan_for(round_, {"b": [("n1", [0])], "a": [("n0", [0]), ("n0", [1]), ("n1", [0])]})
    for i, gpus in enumerate(shares):
        plan = with_assignment(plan, "a", i, gpus=gpus)
    assert findings(round_, plan) == [("gpu_grant", f"job 'a' on node '{at}'", numbers) for at, numbers in expected]


@pytest.mark.parametrize(("milli", "expected"), [(500, []), (499, ["gpu_grant"]), (600, ["gpu_grant"])])
def test_of_a_plan_for_some_jobs_only_those_are_judged(milli: int, expected: list[str]) -> None:
    """Beside a running job that holds what it was granted before: 600 of 1000, and now 400 are due to each."""
    runs, new = (job(name, gpu_milli=300, gpu_milli_limit=600) for name in "ra")
    round_ = instance(1, [runs, new], running=[running(runs, [("n0", [0])], milli=600)])
    assert rules(round_, {"a": placement(new, [("n0", [0])], milli=milli)}, asked="a") == expected


def test_a_running_job_that_was_not_asked_for_is_no_fault_of_its_grant() -> None:
    """Where shares are no fractions: it keeps what it holds, also in a plan for other jobs, which may not name it."""
    runs = job("r", gpu_milli=300, gpu_milli_limit=600)
    round_ = instance(
        1, [runs], running=[running(runs, [("n0", [0])], milli=400)], policy=Policy(share_mode="exclusive")
    )
    plan = plan_for(round_, {"r": placement(runs, [("n0", [0])], milli=400)}, asked=("r",))
    plan = plan.model_copy(update={"asked": ()})
    for found in (violations(round_, plan), Ledger(round_, round_.policy).violations(round_, plan)):
        assert "gpu_grant" not in {one.rule for one in found}
        assert found


def test_nowhere_nothing_is_due() -> None:
    """On a node that is not there, whatever the share; on one that is, it is."""
    gang = job("a", workers=2, gpu_milli=300, gpu_milli_limit=600)
    assert faults(instance(1, [gang]), {"a": placement(gang, [("n9", [0]), ("n0", [0])], milli=400)}) == [
        ("unknown_node", "job 'a' on node 'n9'", []),
        ("gpu_grant", "job 'a' on node 'n0'", ["400", "0", "600", "300", "600"]),
    ]
