"""Why a job waits for its minimal utility: two Minskys worked out by hand."""

import json

import pytest

from placeopt import solve
from placeopt.build import instance, job, machine, running
from placeopt.explain import Explanation, explain
from placeopt.model import Communication, Gpu, Instance, Job, Part, Policy, Postpone
from placeopt.readable import plain
from placeopt.report.text import explanation_page

MINSKY = machine(
    gpus=[Gpu(model="P100", memory_mib=16_384, part=f"s{i // 2}") for i in range(4)],
    parts=(Part(id="s0", level="socket"), Part(id="s1", level="socket")),
    gpu_distance_matrix=((0, 1, 20, 20), (1, 0, 20, 20), (20, 20, 0, 1), (20, 20, 1, 0)),
)


def one_minsky(*jobs: Job, on: tuple[int, ...] = (0, 2), policy: Policy | None = None, **fields: object) -> Instance:
    """What runs holds the GPUs ``on``, one job a GPU."""
    held = [job(f"held-{gpu}") for gpu in on]
    return instance(
        1,
        [*held, *jobs],
        machines=[MINSKY],
        running=[running(one, [("n0", [gpu])], **fields) for one, gpu in zip(held, on, strict=True)],
        policy=policy or Policy(share_mode="exclusive", postpone=Postpone(rule="utility")),
    )


def pair(least: int = 300) -> Job:
    """Two GPUs that talk: a utility of 1000 in a socket, 253 across."""
    return job("pair", gpus=2, communication=Communication(weight=1), utility_min_thousandths=least)


def explained(round_: Instance, name: str = "pair") -> Explanation:
    return explain(round_, solve(round_, isolation="thread"), name, isolation="thread")


def test_below_its_minimum() -> None:
    """GPUs 1 and 3 are free: 253. One GPU freed makes a socket whole; what else would do is not said."""
    found = explained(one_minsky(pair()))
    assert (found.reason, found.plan_reason, found.proven) == ("postponed", "postponed", True)
    assert found.detail == "has room beside the plan, at a utility of 253/1000 at best, on n0; it asks for 300/1000"
    place = found.best_place
    assert place is not None
    assert (place.utility, place.asks, place.nodes, [gpu.gpu for gpu in place.gpus]) == (
        253,
        300,
        ("n0",),
        [1, 3],
    )
    freed = found.remedies.gpus_to_free
    assert freed is not None
    assert len(freed.gpus) == 1
    assert freed.gpus[0].gpu in (0, 2)
    assert found.remedies.preempt is None
    assert "minimal utilities" in found.remedies.none["preempt"]


def test_it_is_in_the_text_and_in_json() -> None:
    found = explained(one_minsky(pair()))
    page = " ".join(plain(str(part)) for part in explanation_page(found))
    assert "waiting: postponed" in page
    assert "253/1000 at best" in page
    written = json.loads(found.model_dump_json())
    assert written["best_place"] == {
        "utility": 253,
        "asks": 300,
        "option": "default",
        "nodes": ["n0"],
        "gpus": [{"node": "n0", "gpu": 1}, {"node": "n0", "gpu": 3}],
        "falls_short": [],
    }


def test_more_is_freed_than_room_alone_would_need() -> None:
    """GPU 3 is free: one more gives room, 0 and 1 or 2 give the utility; 2 it is, also where a socket is needed."""
    found = explained(one_minsky(pair(), on=(0, 1, 2)))
    assert found.reason == "conflict"
    assert [one.group for one in found.conflict] == ["gpu_count"]
    freed = found.remedies.gpus_to_free
    assert freed is not None
    assert [gpu.gpu for gpu in freed.gpus] == [2]


def test_a_remedy_by_room_alone_is_not_offered() -> None:
    """
    GPU 3 is free. The cheapest to stop is on GPU 0, which leaves the pair across: not named. Without minimum it is.
    """
    jobs = (pair(), *(job(f"held-{gpu}", value=value) for gpu, value in ((0, 1), (1, 5), (2, 9))))
    for least, named in ((300, None), (200, ["held-0"])):
        round_ = instance(
            1,
            [pair(least), *jobs[1:]],
            machines=[MINSKY],
            running=[running(one, [("n0", [gpu])], preemptible=True) for gpu, one in enumerate(jobs[1:])],
            policy=Policy(share_mode="exclusive", postpone=Postpone(rule="utility")),
        )
        offered = explained(round_).remedies
        assert (None if offered.preempt is None else [rival.job for rival in offered.preempt.jobs]) == named
        assert ("below its minimal utility" in offered.none.get("preempt", "")) == (named is None)


@pytest.mark.parametrize("rule", ["none", "lookahead"])
def test_other_rules_ignore_minimal_utility(rule: str) -> None:
    """The pair waits for room alone: which of three jobs stops does not matter."""
    postpone = Postpone.model_validate({"rule": rule})
    round_ = one_minsky(pair(), on=(0, 1, 2), policy=Policy(share_mode="exclusive", postpone=postpone))
    found = explained(round_)
    assert found.reason == "conflict"
    assert found.best_place is None
    assert found.remedies.level is None
    assert found.remedies.gpus_to_free is not None
    assert len(found.remedies.gpus_to_free.gpus) == 1
