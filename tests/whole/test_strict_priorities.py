"""``policy.priorities`` strict: who may stop whom, and who starts first; referee and solver."""

from typing import Any

import pytest

from helpers.night import seeds
from helpers.plans import plan_for
from helpers.referee_messages import rules, rules_of
from placeopt import solve
from placeopt.build import gang, instance, job, running
from placeopt.check import violations
from placeopt.model import Changes, Instance, Job, NodeConditions, Policy
from strategies.choice import Choice, seeded

STOPS = Changes(preemptions_max=9, moves_max=9, shrinks_max=9)
STRICT = Policy(priorities="strict", changes=STOPS)
MAY = {"preemptible": True}


def started(round_: Instance, **fields: Any) -> set[str]:
    """Return the jobs that run in the plan, which the referee accepts."""
    plan = solve(round_, time_limit_s=20, isolation="thread", **fields)
    assert violations(round_, plan) == []
    return {placed.job for placed in plan.placements}


WAITING: dict[str, tuple[list[Job], set[str]]] = {
    # a node of four GPUs
    "one of high priority and a large one that is worth more": (
        [job("high", priority=9, value=1), job("large", gpus=4, value=10**6)], {"high"}),
    "what is left goes to lower ones": (
        [job("high", priority=9, value=1), job("half", gpus=2, value=9), job("large", gpus=4, value=99)],
        {"high", "half"}),
    "of equal priority value decides": ([job("a", gpus=3, value=3), job("b", gpus=4, value=9)], {"b"}),
    "a gang of high priority": (
        [gang("g", workers=4, priority=2), *(job(f"s{i}", priority=1, value=99) for i in range(4))], {"g"}),
    "one that does not fit holds nobody up": ([job("huge", gpus=5, priority=9), job("a")], {"a"}),
}  # fmt: skip


@pytest.mark.parametrize("name", WAITING)
def test_who_starts(name: str) -> None:
    jobs, expected = WAITING[name]
    assert started(instance(1, jobs, policy=STRICT)) == expected


RUNNING: dict[str, tuple[list[Job], list[Job], set[str]]] = {
    # jobs of two GPUs run on a node of four, then the jobs that wait
    "a lower one is stopped, whatever it is worth": (
        [job("r", gpus=4, priority=1, value=10**6)], [job("w", priority=2, value=1)], {"w"}),
    "an equal one is not": ([job("r", gpus=4, priority=2)], [job("w", priority=2, value=10**6)], {"r"}),
    "a higher one is not": ([job("r", gpus=4, priority=3)], [job("w", priority=2, value=10**6)], {"r"}),
    "for a job that never preempts none is": (
        [job("r", gpus=4, priority=1)], [job("w", priority=2, preempts=False, value=10**6)], {"r"}),
    "the fewest that do": (
        [job("r", gpus=2, priority=1, value=9), job("s", gpus=2, priority=1, value=8)], [job("w", priority=2)],
        {"r", "w"}),
    "a gang of priority 10 does not stop a pod of 100": (
        [job("r", gpus=1, priority=100)], [gang("g", workers=4, priority=10, value=10**6)], {"r"}),
    "a gang of priority 100 stops a pod of 10": (
        [job("r", gpus=1, priority=10, value=10**6)], [gang("g", workers=4, priority=100)], {"g"}),
    "what is left of the room may be used": (
        [job("r", gpus=4, priority=1)], [job("w", priority=2, gpus=3), job("v", priority=0)], {"w", "v"}),
    "one that never preempts takes no room of a stop for a lower one": (
        [job("r", gpus=4, priority=1)],
        [job("never", gpus=4, priority=3, preempts=False), job("w", gpus=4, priority=2)], {"w"}),
}  # fmt: skip


def with_running(runs: list[Job], waits: list[Job], policy: Policy = STRICT, **fields: Any) -> Instance:
    """Put the running jobs one beside the other on a node of four GPUs."""
    first, held = 0, []
    for one in runs:
        gpus = one.options[0].demand.gpus
        held.append(running(one, [("n0", list(range(first, first + gpus)))], **{**MAY, **fields}))
        first += gpus
    return instance(1, [*runs, *waits], running=held, policy=policy, now_ms=1000)


@pytest.mark.parametrize("name", RUNNING)
def test_who_is_stopped(name: str) -> None:
    runs, waits, expected = RUNNING[name]
    assert started(with_running(runs, waits)) == expected


def test_the_price_decides_otherwise() -> None:
    """The same rounds by value: the large job starts, and the dear one runs on."""
    jobs, _ = WAITING["one of high priority and a large one that is worth more"]
    price = Policy(changes=STOPS)
    assert started(instance(1, jobs, policy=price)) == {"large"}
    runs, waits, _ = RUNNING["a lower one is stopped, whatever it is worth"]
    assert started(with_running(runs, waits, price)) == {"r"}


class TestReferee:
    """Each fault alone."""

    @pytest.mark.parametrize(
        ("high", "fields", "expected"),
        [
            (3, {}, []),
            (2, {}, ["priority"]),
            (1, {}, ["priority"]),
            (3, {"preempts": False}, ["priority"]),
        ],
    )
    def test_a_stop(self, high: int, fields: dict[str, Any], expected: list[str]) -> None:
        """Of a job of priority 2, for one of this priority."""
        round_ = with_running([job("r", gpus=4, priority=2)], [job("w", priority=high, **fields)])
        assert rules(round_, {"w": [("n0", [0])]}, preempted=["r"]) == expected

    def test_a_stop_that_nobody_needs(self) -> None:
        """Beside the job that starts there is room for it; a lower one took it."""
        round_ = with_running(
            [job("r", gpus=2, priority=2)], [job("w", gpus=2, priority=3), job("v", gpus=2, priority=1)]
        )
        assert rules(round_, {"w": [("n0", [2, 3])], "v": [("n0", [0, 1])]}, preempted=["r"]) == ["priority"]
        assert rules(round_, {"w": [("n0", [2, 3])]}) == []

    def test_a_job_that_waits_for_a_lower_one(self) -> None:
        """By name; where it finds no room anyway, nothing."""
        jobs = [job("high", gpus=3, priority=2), job("low", gpus=2), job("huge", gpus=5, priority=9)]
        round_ = instance(1, jobs, policy=STRICT)
        assert rules(round_, {"low": [("n0", [0, 1])]}) == ["priority"]
        (found,) = violations(round_, plan_for(round_, {"low": [("n0", [0, 1])]}))
        assert "'high'" in found.where
        assert "'low'" in found.message
        assert rules(round_, {"high": [("n0", [0, 1, 2])]}) == []

    @pytest.mark.parametrize("fields", [{"prefer": ("node",)}, {"conditions": NodeConditions(nodes_excluded=("n1",))}])
    def test_one_with_wishes_that_waits_for_a_lower_one(self, fields: dict[str, Any]) -> None:
        """An option that prefers a level, or asks something of nodes itself, is one of alike workers all the same."""
        high = job("high", gpus=3, priority=2)
        high = high.model_copy(update={"options": (high.options[0].model_copy(update=fields),)})
        round_ = instance(2, [high, job("low", gpus=2), job("other", gpus=2)], policy=STRICT)
        assert rules(round_, {"low": [("n0", [0, 1])], "other": [("n1", [0, 1])]}) == ["priority"]
        assert rules(round_, {"high": [("n0", [0, 1, 2])], "low": [("n1", [0, 1])], "other": [("n1", [2, 3])]}) == []

    def test_a_gang_that_waits_for_a_lower_one(self) -> None:
        jobs = [gang("g", workers=6, priority=2), job("low", gpus=3)]
        round_ = instance(2, jobs, policy=STRICT)
        assert rules(round_, {"low": [("n0", [0, 1, 2])]}) == ["priority"]

    @pytest.mark.parametrize(
        ("policy", "fields", "expected"),
        [
            ({}, {"protected_until_ms": 1001}, ["protected"]),
            ({}, {"protected_until_ms": 1000}, []),
            ({"run_time_min_ms": 501}, {"started_ms": 500}, ["protected"]),
            ({"run_time_min_ms": 500}, {"started_ms": 500}, []),
        ],
    )
    @pytest.mark.parametrize("priorities", ["price", "strict"])
    def test_protection(
        self, priorities: Any, policy: dict[str, int], fields: dict[str, int], expected: list[str]
    ) -> None:
        """At 1000 ms, whatever decides; the solver leaves it alone, too."""
        rule = Policy(priorities=priorities, changes=STOPS.model_copy(update=policy))
        waits = [job("w", gpus=4, priority=2, value=10**6)]
        round_ = with_running([job("r", gpus=4, priority=1)], waits, rule, **fields)
        assert rules(round_, {"w": [("n0", [0, 1, 2, 3])]}, preempted=["r"]) == expected
        assert started(round_) == ({"r"} if expected else {"w"})


def make_small(choice: Choice) -> Instance:
    """Draw two nodes of four GPUs, running jobs that may go, and waiting jobs of a few priorities."""
    runs, held = [], []
    for n in (0, 1):
        first = 0
        while first < 4 and choice.chance(0.6):
            gpus = choice.number(1, 4 - first)
            one = job(f"r{n}{first}", gpus=gpus, priority=choice.number(0, 3), value=choice.number(1, 99))
            runs.append(one)
            where = [(f"n{n}", list(range(first, first + gpus)))]
            held.append(running(one, where, preemptible=choice.chance(0.8), movable=choice.chance(0.3)))
            first += gpus
    waits = [
        job(
            f"w{i}",
            gpus=choice.number(0, 3),
            workers=choice.number(1, 3),
            cpu_millicores=choice.number(0, 20_000),
            priority=choice.number(0, 4),
            preempts=choice.chance(0.8),
            value=choice.number(1, 99),
        )
        for i in range(choice.number(1, 5))
    ]
    return instance(2, [*runs, *waits], running=held, policy=STRICT)


@pytest.mark.parametrize("seed", seeds(60))
def test_the_referee_accepts_what_is_planned(seed: int) -> None:
    """Small random rounds: no job is stopped for one that may not, none waits in favour of a lower one."""
    round_ = make_small(seeded(f"strict-{seed}"))
    plan = solve(round_, time_limit_s=20, isolation="thread")
    assert violations(round_, plan) == []
    assert not [stage for stage in plan.stages if stage.outcome == "failed"]


@pytest.mark.parametrize(("arrival_ms", "expected"), [(600, {"r"}), (500, {"w"})])
def test_a_job_waits_before_others_are_stopped_for_it(arrival_ms: int, expected: set[str]) -> None:
    """At 1000, where half a second is asked; a plan that stops for a younger one is refused."""
    policy = STRICT.model_copy(update={"changes": STOPS.model_copy(update={"wait_min_ms": 500})})
    young = job("w", priority=2, arrival_ms=arrival_ms)
    round_ = with_running([job("r", gpus=4, priority=1)], [young], policy)
    assert started(round_) == expected
    stops = solve(round_.model_copy(update={"policy": STRICT}), time_limit_s=20, isolation="thread")
    ref = {"name": policy.name, "digest": policy.digest, "values": policy}
    stops = stops.model_copy(update={"policy": type(stops.policy).model_validate(ref)})
    assert ("priority" in rules_of(round_, stops)) == (expected == {"r"})


def test_a_price_says_not_for_whom_a_job_stops() -> None:
    with pytest.raises(ValueError, match="wait_min_ms: goes with priorities 'strict'"):
        Policy(changes=Changes(wait_min_ms=1))
