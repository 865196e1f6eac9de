"""Rules ``reference`` and ``account``: what they say, for whole plans and for plans of some jobs, and ``since``."""

from typing import Any

import pytest

from helpers.plans import plan_for
from helpers.referee_messages import Finding, findings, places, rules, rules_of
from placeopt.build import instance, job, running
from placeopt.check import violations
from placeopt.model import Changes, Plan, Policy, Preempted, Shrunk, Unplaced

ROUND = instance(2, [job("a"), job("b"), job("c")], name="tiny", revision=3)
PLACED = {"a": [("n0", [0])]}
PLAN = plan_for(ROUND, PLACED)
(HELD,) = PLAN.placements
MOVED = HELD.model_copy(update={"assignments": plan_for(ROUND, {"a": [("n1", [0])]}).placements[0].assignments})
STRANGER = HELD.model_copy(update={"job": "zz"})


def waits(*names: str, reason: Any = "outvoted") -> tuple[Unplaced, ...]:
    return tuple(Unplaced.model_construct(job=name, reason=reason, detail="") for name in names)


def told(where: str, numbers: str = "") -> Finding:
    """Return what rule ``account`` tells: the numbers and names of the message."""
    return "account", where, numbers.split()


class TestReference:
    """Five fields; each message has what the plan says and what is true."""

    @pytest.mark.parametrize(
        ("field", "value", "numbers"),
        [("name", "huge", ["'huge'", "'tiny'"]), ("revision", 2, ["2", "3"]), ("digest", None, [f"'{ROUND.digest}'"])],
    )
    def test_instance(self, field: str, value: Any, numbers: list[str]) -> None:
        other = PLAN.instance.model_copy(update={field: value})
        found = findings(ROUND, PLAN.model_copy(update={"instance": other}))
        assert found == [("reference", f"instance.{field}", numbers)]

    @pytest.mark.parametrize("field", ["name", "digest"])
    def test_policy(self, field: str) -> None:
        other, true = PLAN.policy.model_copy(update={field: "other"}), getattr(PLAN.policy.values, field)
        found = findings(ROUND, PLAN.model_copy(update={"policy": other}))
        assert found == [("reference", f"policy.{field}", ["'other'", f"'{true}'"])]

    def test_a_plan_for_some_jobs_names_no_content(self) -> None:
        """None is right, the true digest of the snapshot is not."""
        assert rules(ROUND, PLACED, asked="a") == []
        found = findings(ROUND, plan_for(ROUND, PLACED, asked="a").model_copy(update={"instance": PLAN.instance}))
        assert found == [("reference", "instance.digest", [f"'{ROUND.digest}'"])]


WHOLE: dict[str, tuple[dict[str, Any], list[Finding]]] = {
    "those that wait are missing": ({"unplaced": ()}, [told("job 'b'"), told("job 'c'")]),
    "the placed one is missing": ({"placements": (), "unplaced": waits("b", "c")}, [told("job 'a'")]),
    # the message says where it stands already; the third time it still is the first place
    "three times among those that wait": (
        {"unplaced": waits("b", "c", "b", "b")}, [told("unplaced[2]", "'b' 0"), told("unplaced[3]", "'b' 0")]),
    "placed and waiting": ({"unplaced": waits("b", "c", "a")}, [told("unplaced[2]", "'a' 0")]),
    "placed twice": ({"placements": (HELD, MOVED)}, [told("placements[1]", "'a' 0")]),
    # in the place of a known one, so that the number of jobs is right, and beside all of them
    "an unknown one waits": ({"unplaced": waits("b", "zz")}, [told("unplaced[1]", "'zz'"), told("job 'c'")]),
    "an unknown one is placed": ({"placements": (STRANGER, HELD)}, [told("placements[0]", "'zz'")]),
    # blanks are no reason; the faulty entry is named by its position
    "no reason": ({"unplaced": waits("b") + waits("c", reason="  ")}, [told("unplaced[1]", "'c'")]),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_every_job_stands_once(name: str) -> None:
    update, expected = WHOLE[name]
    assert findings(ROUND, PLAN.model_copy(update=update)) == expected


def test_the_first_place_is_named() -> None:
    twice = PLAN.model_copy(update={"unplaced": waits("b", "c", "a")})
    assert "placements[0]" in violations(ROUND, twice)[0].message


def test_jobs_that_stand_twice_in_both_lists() -> None:
    """b twice among the placed and a among those that wait as well: the number of names alone would fit."""
    two = instance(2, [job("a"), job("b")])
    plan = plan_for(two, {"a": [("n0", [0])], "b": [("n0", [1])]})
    plan = plan.model_copy(update={"placements": (*plan.placements, plan.placements[1]), "unplaced": waits("a")})
    assert findings(two, plan)[:2] == [told("placements[2]", "'b' 1"), told("unplaced[0]", "'a' 0")]


def test_what_cannot_be_looked_up_hides_nothing() -> None:
    """A placement of an unknown job and one of an unknown option come first; what comes after is judged."""
    round_ = instance(1, [job("a"), job("b", cpu_millicores=32_001)])
    plan = plan_for(round_, {"a": [("n0", [0])], "b": [("n0", [1])]})
    first, second = plan.placements
    odd = (first.model_copy(update={"job": "zz"}), first.model_copy(update={"option": "odd"}), second)
    assert rules_of(round_, plan.model_copy(update={"placements": odd})) == ["account", "option", "cpu"]


RUNS = instance(2, [job("a"), job("b"), job("r")], running=[running(job("r"), [("n0", [1])])])
TWO = {**PLACED, "b": [("n0", [2])]}
SOME: dict[str, tuple[dict[str, Any], dict[str, Any], list[Finding]]] = {
    # neither the other waiting job nor the one that runs stands in the plan
    "one": ({"asked": "a"}, PLACED, []),
    "two that wait": ({"asked": "ba"}, {}, []),
    "none": ({"asked": ()}, {}, []),
    "one is missing": ({"asked": "ab", "unplaced": ()}, PLACED, [told("job 'b'")]),
    "placed and waiting": ({"asked": "a", "unplaced": waits("a")}, PLACED, [told("unplaced[0]", "'a' 0")]),
    # the message has the number of jobs asked for
    "another one waits": ({"asked": "a", "unplaced": waits("b")}, PLACED, [told("unplaced[0]", "1 'b'")]),
    "another one is placed": ({"asked": "b"}, TWO, [told("placements[0]", "1 'a'")]),
    "an unknown one": ({"asked": ("a", "zz"), "unplaced": ()}, PLACED, [told("job 'zz'"), told("job 'zz'")]),
    # wrong as it is, a running job that the plan places holds its GPU as the plan says, and not once more as it runs
    "one that runs": ({"asked": "r"}, {"r": [("n0", [1])]}, [told("job 'r'")]),
}


@pytest.mark.parametrize("name", SOME)
def test_a_plan_for_some_jobs(name: str) -> None:
    """Those and no others stand in it, and they are waiting ones."""
    fields, placed, expected = SOME[name]
    assert findings(RUNS, plan_for(RUNS, placed, **fields)) == expected


def test_one_that_runs_is_not_asked_for() -> None:
    first = violations(RUNS, plan_for(RUNS, {}, asked="ra"))[0]
    assert (first.rule, first.where) == ("account", "job 'r'")
    assert "runs already" in first.message


def test_running_jobs_count_in_it_where_they_stand() -> None:
    """It holds GPU 1 of n0."""
    assert places(RUNS, {"a": [("n0", [1])]}, asked="a") == [("gpu_share", "node 'n0' gpu 1")]


class TestSince:
    """A copy of a plan known to be right: only its words are read, unless it differs in what the rules look at."""

    begun = instance(
        2,
        [job("a"), job("b")],
        running=[running(job("b"), [("n0", [1])], preemptible=True, movable=True, shrinkable=True)],
        policy=Policy(changes=Changes(preemptions_max=1, moves_max=1, shrinks_max=1)),
    )
    good = plan_for(begun, PLACED)
    wrong = plan_for(begun, {"a": [("n0", [1])]})
    stops = plan_for(begun, PLACED, preempted=["b"])

    def rules(self, since: Plan, **update: Any) -> list[str]:
        return rules_of(self.begun, since.model_copy(update=update), since=since)

    def test_words_are_judged(self) -> None:
        assert self.rules(self.good, unplaced=()) == []
        renamed = self.good.model_copy(update={"instance": self.good.instance.model_copy(update={"revision": 9})})
        assert findings(self.begun, renamed, since=self.good) == [("reference", "instance.revision", ["9", "0"])]

    def test_placements_of_the_same_plan_are_not_read_again(self) -> None:
        """Shown with one that is not right itself: what it has in common with itself is not judged."""
        assert rules_of(self.begun, self.wrong) == ["gpu_share"]
        assert self.rules(self.wrong) == []

    def test_what_differs_is_read(self) -> None:
        """
        Changes, placements, the jobs asked for, another policy.

        With preemptions everything is: who is stopped stands in ``unplaced``, which are words.
        """
        assert self.rules(self.good, shrunk=(Shrunk(job="b", workers=1),)) == ["shrunk"]
        assert self.rules(self.good, preempted=(Preempted(job="a", freed_gpu_milli=0),)) == ["preempted"]
        assert self.rules(self.good, placements=self.wrong.placements) == ["gpu_share"]
        assert self.rules(self.good, asked=("a",))[:1] == ["reference"]
        strict = self.good.policy.values.model_copy(update={"jobs_per_gpu_max": 1, "queues": ()})
        ref = self.good.policy.model_copy(update={"values": strict, "digest": strict.digest})
        assert self.rules(self.wrong, policy=ref) == ["gpu_share", "gpu_jobs"]
        assert self.rules(self.stops) == []
        assert self.rules(self.stops, unplaced=()) == ["account", "preempted"]
