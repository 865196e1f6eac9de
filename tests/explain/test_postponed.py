"""Why a job waits for its minimal utility: two Minskys worked out by hand."""

import json

import pytest

from helpers.scenarios import two_sockets
from placeopt import solve
from placeopt.build import instance, job, running
from placeopt.explain import Explanation, explain
from placeopt.model import (
    Communication,
    Flavor,
    FlavorAllowance,
    Instance,
    Job,
    Policy,
    Postpone,
    Queue,
    Quota,
)


def one_minsky(
    waits: Job, on: tuple[int, ...] = (0, 2), values: tuple[int, ...] = (), rule: str = "utility"
) -> Instance:
    """What runs holds the GPUs ``on``, one job a GPU; with ``values`` it may stop."""
    held = [job(f"held-{gpu}", value=value) for gpu, value in zip(on, values or (1,) * len(on), strict=True)]
    runs = [running(one, [("n0", [gpu])], preemptible=bool(values)) for one, gpu in zip(held, on, strict=True)]
    policy = Policy(share_mode="exclusive", postpone=Postpone.model_validate({"rule": rule}))
    return instance(1, [*held, waits], machines=[two_sockets()], running=runs, policy=policy)


def pair(least: int = 300) -> Job:
    """Two GPUs that talk: a utility of 1000 in a socket, 253 across."""
    return job("pair", gpus=2, communication=Communication(weight=1), utility_min_thousandths=least)


def explained(round_: Instance) -> Explanation:
    return explain(round_, solve(round_, isolation="thread"), "pair", isolation="thread", time_limit_s=60)


def stopped(found: Explanation) -> list[str] | None:
    """Return the cheapest jobs to stop."""
    return None if found.remedies.preempt is None else [rival.job for rival in found.remedies.preempt.jobs]


def test_below_its_minimum() -> None:
    """GPUs 1 and 3 are free: 253. The cheaper of two jobs makes a socket whole; changes of the job are not said."""
    found = explained(one_minsky(pair(), values=(3, 2)))
    assert (found.reason, found.plan_reason, found.proven) == ("postponed", "postponed", True)
    assert found.detail == "has room beside the plan, at a utility of 253/1000 at best, on n0; it asks for 300/1000"
    assert json.loads(found.model_dump_json())["best_place"] == {
        "utility": 253,
        "asks": 300,
        "option": "default",
        "nodes": ["n0"],
        "gpus": [{"node": "n0", "gpu": 1}, {"node": "n0", "gpu": 3}],
        "falls_short": [],
    }
    assert stopped(found) == ["held-2"]
    assert "minimal utilities" in found.remedies.none["level"]
    view = found.view()
    assert view.title.endswith("waiting, postponed")
    assert "253/1000 at best" in view.notes[0]


@pytest.mark.parametrize(("least", "named"), [(300, ["held-0", "held-1"]), (200, ["held-0"])])
def test_more_stops_than_room_alone_would_need(least: int, named: list[str]) -> None:
    """GPU 3 is free. The job on GPU 0 is cheapest, which leaves the pair across; 0 and 1 cost 6, 2 alone costs 9."""
    assert stopped(explained(one_minsky(pair(least), on=(0, 1, 2), values=(1, 5, 9)))) == named


@pytest.mark.parametrize("rule", ["none", "lookahead"])
def test_other_rules_ignore_minimal_utility(rule: str) -> None:
    """The pair waits for room alone: the cheapest of three jobs is enough."""
    found = explained(one_minsky(pair(), on=(0, 1, 2), values=(1, 5, 9), rule=rule))
    assert (found.reason, found.best_place, found.remedies.level) == ("conflict", None, None)
    assert stopped(found) == ["held-0"]


def test_in_a_queue_of_flavors() -> None:
    """GPUs 1 and 3 are free, on a node of the flavor that the job's queue may use."""
    round_ = one_minsky(pair().model_copy(update={"queue": "q"}))
    queue = Queue(id="q", flavors=(FlavorAllowance(flavor="f", quota=Quota(gpu_milli=9000)),))
    policy = round_.policy.model_copy(update={"queues": (queue,), "flavors": (Flavor(id="f"),)})
    found = explained(round_.model_copy(update={"policy": policy}))
    assert (found.reason, found.plan_reason, found.proven) == ("postponed", "postponed", True)
    assert found.detail == "has room beside the plan, at a utility of 253/1000 at best, on n0; it asks for 300/1000"
