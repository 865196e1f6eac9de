"""Rules ``reference`` and ``account``: what they say, for whole plans and for plans of some jobs, and ``since``."""

from typing import Any

import pytest

from helpers.plans import plan_for
from helpers.referee_messages import findings
from placeopt.build import instance, job, running
from placeopt.check import violations
from placeopt.model import Changes, Instance, Plan, Policy, Preempted, Shrunk, Unplaced

ROUND = instance(2, [job("a"), job("b"), job("c")], name="tiny", revision=3)
PLACED = {"a": [("n0", [0])]}


def waits(name: str, reason: Any = "outvoted") -> Unplaced:
    return Unplaced.model_construct(job=name, reason=reason, detail="")


def some(round_: Instance, asked: tuple[str, ...], **fields: Any) -> Plan:
    """Return a plan for some jobs: those asked for that are not in ``placed`` wait, and nothing else stands in it."""
    placed = fields.pop("placed", {})
    plan = plan_for(round_, placed)
    named = {held.job for held in plan.placements if held.job in placed}
    own = {
        "asked": asked,
        "instance": plan.instance.model_copy(update={"digest": None}),
        "placements": tuple(held for held in plan.placements if held.job in named),
        "unplaced": tuple(waits(name) for name in asked if name not in named),
    }
    return plan.model_copy(update={**own, **fields})


class TestReference:
    """Five fields; each message has what the plan says and what is true."""

    @pytest.mark.parametrize(
        ("field", "value", "numbers"),
        [("name", "huge", ["'huge'", "'tiny'"]), ("revision", 2, ["2", "3"]), ("digest", None, [f"'{ROUND.digest}'"])],
    )
    def test_instance(self, field: str, value: Any, numbers: list[str]) -> None:
        plan = plan_for(ROUND, PLACED)
        other = plan.instance.model_copy(update={field: value})
        found = findings(ROUND, plan.model_copy(update={"instance": other}))
        assert found == [("reference", f"instance.{field}", numbers)]

    @pytest.mark.parametrize("field", ["name", "digest"])
    def test_policy(self, field: str) -> None:
        plan = plan_for(ROUND, PLACED)
        other = plan.policy.model_copy(update={field: "other"})
        true = getattr(plan.policy.values, field)
        found = findings(ROUND, plan.model_copy(update={"policy": other}))
        assert found == [("reference", f"policy.{field}", ["'other'", f"'{true}'"])]

    def test_a_plan_for_some_jobs_names_no_content(self) -> None:
        """None is right, the true digest of the snapshot is not."""
        plan = some(ROUND, ("a",), placed=PLACED)
        assert findings(ROUND, plan) == []
        named = plan.instance.model_copy(update={"digest": ROUND.digest})
        found = findings(ROUND, plan.model_copy(update={"instance": named}))
        assert found == [("reference", "instance.digest", [f"'{ROUND.digest}'"])]


class TestWhole:
    """Every job of the instance once."""

    def plan(self, **fields: Any) -> Plan:
        return plan_for(ROUND, PLACED).model_copy(update=fields)

    def test_missing_jobs_are_named(self) -> None:
        assert findings(ROUND, self.plan(unplaced=())) == [("account", "job 'b'", []), ("account", "job 'c'", [])]
        assert findings(ROUND, self.plan(placements=(), unplaced=(waits("b"), waits("c")))) == [
            ("account", "job 'a'", [])
        ]

    def test_jobs_that_stand_twice(self) -> None:
        """The message says where it stands already; the third time it still is the first place."""
        found = findings(ROUND, self.plan(unplaced=(waits("b"), waits("c"), waits("b"), waits("b"))))
        first = ["'b'", "0"]
        assert found == [("account", "unplaced[2]", first), ("account", "unplaced[3]", first)]
        found = findings(ROUND, self.plan(unplaced=(waits("b"), waits("c"), waits("a"))))
        assert found == [("account", "unplaced[2]", ["'a'", "0"])]
        text = violations(ROUND, self.plan(unplaced=(waits("b"), waits("c"), waits("a"))))[0].message
        assert "placements[0]" in text
        held = plan_for(ROUND, PLACED).placements[0]
        twice = (
            held,
            held.model_copy(update={"assignments": plan_for(ROUND, {"a": [("n1", [0])]}).placements[0].assignments}),
        )
        assert findings(ROUND, self.plan(placements=twice)) == [("account", "placements[1]", ["'a'", "0"])]

    def test_jobs_that_stand_twice_in_both_lists(self) -> None:
        """b twice among the placed and a among those that wait as well: the number of names alone would fit."""
        two = instance(2, [job("a"), job("b")])
        plan = plan_for(two, {"a": [("n0", [0])], "b": [("n0", [1])]})
        plan = plan.model_copy(update={"placements": (*plan.placements, plan.placements[1]), "unplaced": (waits("a"),)})
        assert findings(two, plan)[:2] == [
            ("account", "placements[2]", ["'b'", "1"]),
            ("account", "unplaced[0]", ["'a'", "0"]),
        ]

    def test_what_cannot_be_looked_up_hides_nothing(self) -> None:
        """A placement of an unknown job and one of an unknown option come first; what comes after is judged."""
        jobs = [job("a"), job("b", cpu_millicores=32_001)]
        round_ = instance(1, jobs)
        plan = plan_for(round_, {"a": [("n0", [0])], "b": [("n0", [1])]})
        first, second = plan.placements
        stranger = first.model_copy(update={"job": "zz"})
        odd = first.model_copy(update={"option": "odd"})
        found = findings(round_, plan.model_copy(update={"placements": (stranger, odd, second)}))
        assert [rule for rule, *_ in found] == ["account", "option", "cpu"]

    def test_unknown_jobs(self) -> None:
        """In the place of a known one, so that the number of jobs is right, and beside all of them."""
        found = findings(ROUND, self.plan(unplaced=(waits("b"), waits("zz"))))
        assert found == [("account", "unplaced[1]", ["'zz'"]), ("account", "job 'c'", [])]
        stranger = plan_for(ROUND, PLACED).placements[0].model_copy(update={"job": "zz"})
        found = findings(ROUND, self.plan(placements=(stranger, *plan_for(ROUND, PLACED).placements)))
        assert found == [("account", "placements[0]", ["'zz'"])]

    def test_reasons(self) -> None:
        """Blanks are no reason; the faulty entry is named by its position."""
        found = findings(ROUND, self.plan(unplaced=(waits("b"), waits("c", "  "))))
        assert found == [("account", "unplaced[1]", ["'c'"])]


class TestSome:
    """A plan for some jobs: those and no others, and they are waiting ones."""

    round = instance(2, [job("a"), job("b"), job("r")], running=[running(job("r"), [("n0", [1])])])

    def test_others_are_left_out(self) -> None:
        """Neither the other waiting job nor the one that runs stands in the plan."""
        assert findings(self.round, some(self.round, ("a",), placed=PLACED)) == []
        assert findings(self.round, some(self.round, ("b", "a"))) == []
        assert findings(self.round, some(self.round, ())) == []

    def test_those_asked_for_stand_in_it(self) -> None:
        assert findings(self.round, some(self.round, ("a", "b"), placed=PLACED, unplaced=())) == [
            ("account", "job 'b'", [])
        ]
        twice = some(self.round, ("a",), placed=PLACED, unplaced=(waits("a"),))
        assert findings(self.round, twice) == [("account", "unplaced[0]", ["'a'", "0"])]

    def test_no_others_stand_in_it(self) -> None:
        """The message has the number of jobs asked for."""
        plan = some(self.round, ("a",), placed=PLACED, unplaced=(waits("b"),))
        assert findings(self.round, plan) == [("account", "unplaced[0]", ["1", "'b'"])]
        plan = some(self.round, ("b",), placed={**PLACED, "b": [("n0", [2])]})
        assert findings(self.round, plan) == [("account", "placements[0]", ["1", "'a'"])]

    def test_asked_for_are_known_and_waiting_ones(self) -> None:
        assert findings(self.round, some(self.round, ("a", "zz"), placed=PLACED, unplaced=())) == [
            ("account", "job 'zz'", []),
            ("account", "job 'zz'", []),
        ]
        found = violations(self.round, some(self.round, ("r", "a"), unplaced=(waits("r"), waits("a"))))
        assert next((v.rule, v.where) for v in found) == ("account", "job 'r'")
        assert "runs already" in found[0].message

    def test_a_running_job_that_the_plan_places_counts_once(self) -> None:
        """Wrong as it is, it holds its GPU as the plan says, and not once more as it runs."""
        plan = some(self.round, ("r",), placed={"r": [("n0", [1])]})
        assert findings(self.round, plan) == [("account", "job 'r'", [])]

    def test_running_jobs_count_in_it_where_they_stand(self) -> None:
        """It holds GPU 1 of n0."""
        plan = some(self.round, ("a",), placed={"a": [("n0", [1])]})
        assert [(rule, where) for rule, where, _ in findings(self.round, plan)] == [("gpu_share", "node 'n0' gpu 1")]


class TestSince:
    """A copy of a plan known to be right: only its words are read, unless it differs in what the rules look at."""

    round = instance(
        2,
        [job("a"), job("b")],
        running=[running(job("b"), [("n0", [1])], preemptible=True, movable=True, shrinkable=True)],
        policy=Policy(changes=Changes(preemptions_max=1, moves_max=1, shrinks_max=1)),
    )

    def test_words_are_judged(self) -> None:
        good = plan_for(self.round, PLACED)
        assert findings(self.round, good.model_copy(update={"unplaced": ()}), since=good) == []
        renamed = good.instance.model_copy(update={"revision": 9})
        found = findings(self.round, good.model_copy(update={"instance": renamed}), since=good)
        assert found == [("reference", "instance.revision", ["9", "0"])]

    def test_placements_of_the_same_plan_are_not_read_again(self) -> None:
        """Shown with one that is not right itself: what it has in common with itself is not judged."""
        wrong = plan_for(self.round, {"a": [("n0", [1])]})
        assert [rule for rule, _, _ in findings(self.round, wrong)] == ["gpu_share"]
        assert findings(self.round, wrong, since=wrong) == []

    @pytest.mark.parametrize(
        ("update", "rule"),
        [
            ({"shrunk": (Shrunk(job="b", workers=1),)}, "shrunk"),
            ({"preempted": (Preempted(job="a", freed_gpu_milli=0),)}, "preempted"),
        ],
    )
    def test_changes_that_differ_are_read(self, update: dict[str, Any], rule: str) -> None:
        good = plan_for(self.round, PLACED)
        assert [found for found, _, _ in findings(self.round, good.model_copy(update=update), since=good)] == [rule]

    def test_another_policy_or_other_placements_are_read(self) -> None:
        good = plan_for(self.round, PLACED)
        strict = good.policy.values.model_copy(update={"jobs_per_gpu_max": 1})
        low = strict.model_copy(update={"queues": ()})
        ref = good.policy.model_copy(update={"values": low, "digest": low.digest})
        other = plan_for(self.round, {"a": [("n0", [1])]})
        assert [rule for rule, _, _ in findings(self.round, other, since=good)] == ["gpu_share"]
        wrong = good.model_copy(update={"placements": other.placements})
        assert [rule for rule, _, _ in findings(self.round, wrong.model_copy(update={"policy": ref}), since=wrong)] == [
            "gpu_jobs",
            "gpu_share",
        ]

    def test_a_stopped_job_must_stand_among_those_that_wait(self) -> None:
        """With preemptions everything is read: who is stopped stands in ``unplaced``, which are words."""
        good = plan_for(self.round, PLACED, preempted=["b"])
        assert findings(self.round, good, since=good) == []
        silent = good.model_copy(update={"unplaced": ()})
        assert [rule for rule, _, _ in findings(self.round, silent, since=good)] == ["account", "preempted"]

    def test_a_plan_for_other_jobs_is_read(self) -> None:
        good = plan_for(self.round, PLACED)
        asked = good.model_copy(update={"asked": ("a",)})
        assert [rule for rule, _, _ in findings(self.round, asked, since=good)][:1] == ["reference"]
