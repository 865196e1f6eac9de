"""Rules ``running``, ``moved``, ``shrunk``, ``preempted`` and ``last_submitted_first``: what is told, and of whom."""

from collections.abc import Sequence
from typing import Any

import pytest

from helpers.plans import plan_for
from helpers.referee_messages import Finding, findings
from placeopt.build import Where, instance, job, option, placement, running
from placeopt.model import Assignment, Changes, Instance, Job, Moved, Plan, Policy, Preempted, Queue, Running, Shrunk

HOME: Where = (("n0", [0]), ("n0", [1]), ("n1", [0]))
ALL = Changes(moves_max=9, shrinks_max=9, preemptions_max=9)
MAY = {"movable": True, "shrinkable": True, "preemptible": True}


def round_of(changes: Changes = ALL, *, of: Job | None = None, **may: bool) -> Instance:
    """Job ``a`` of 2 to 3 workers runs at ``HOME`` with half a GPU each; ``b`` waits."""
    a = job("a", workers=3, workers_min=2, gpu_milli=500) if of is None else of
    policy = Policy(changes=changes)
    return instance(2, [a, job("b")], running=[running(a, HOME, **{**MAY, **may})], policy=policy)


def with_entries(plan: Plan, **entries: Sequence[Any]) -> Plan:
    return plan.model_copy(update={name: tuple(listed) for name, listed in entries.items()})


def move(name: str, before: Sequence[str], after: Sequence[str]) -> Moved:
    return Moved.model_validate({"job": name, "from": tuple(before), "to": tuple(after)})


class TestSilence:
    """Rule ``running``: a change that the plan does not state."""

    @pytest.mark.parametrize(
        ("where", "changed"),
        [
            (HOME, False),
            (HOME[:2], True),
            ([*HOME[:2], ("n1", [1])], True),
            ([HOME[1], HOME[0], HOME[2]], True),
            ([HOME[2], HOME[1], HOME[0]], True),
            ([*HOME, ("n1", [1])], True),
        ],
    )
    def test_any_difference_is_a_change(self, where: Where, changed: bool) -> None:
        """Number of workers, a GPU, two ranks on a node and on two nodes, one worker more."""
        round_ = round_of(of=job("a", workers=4, workers_min=2, gpu_milli=500))
        lists = ["'shrunk'", "'moved'"] if where == HOME[:2] else ["'moved'", "'shrunk'"]
        expected = [("running", "job 'a'", lists)] if changed else []
        assert findings(round_, plan_for(round_, {"a": where})) == expected

    def test_a_share_is_no_difference(self) -> None:
        """A running job may keep what it was granted, or hold its request alone; neither is a change."""
        a = job("a", workers=3, workers_min=2, gpu_milli=500, gpu_milli_limit=900)
        policy = Policy(share_mode="overcommit", jobs_per_gpu_max=9, changes=ALL)
        round_ = instance(2, [a], running=[running(a, HOME, milli=900, **MAY)], policy=policy)
        for milli in (500, 900):
            assert findings(round_, plan_for(round_, {"a": placement(a, HOME, milli=milli)})) == []
            fewer = plan_for(round_, {"a": placement(a, HOME[:2], milli=milli)}, shrunk=["a"])
            assert findings(round_, fewer) == []
        stopped = plan_for(round_, {}, preempted=["a"])
        right = with_entries(stopped, preempted=[Preempted(job="a", freed_gpu_milli=1500)])
        assert findings(round_, right) == []

    def test_another_option_of_the_same_form_is_a_change(self) -> None:
        a = job("a", options=(option("x", workers=3), option("y", workers=3)))
        round_ = round_of(of=a)
        plan = plan_for(round_, {"a": placement(a, HOME, option="y")})
        assert [rule for rule, *_ in findings(round_, plan)] == ["running"]
        listed = plan_for(round_, {"a": placement(a, HOME, option="y")}, moved=["a"])
        assert findings(round_, listed) == []

    def test_spelling_is_no_change(self) -> None:
        """Assignments, workers and shares in another order."""
        round_ = round_of()
        held = plan_for(round_, {}).placements[0]
        first = held.assignments[0]
        turned = Assignment.model_construct(
            **{**dict(first), "workers": first.workers[::-1], "gpus": dict(reversed(first.gpus.items()))}
        )
        spelt = held.model_copy(update={"assignments": (held.assignments[1], turned)})
        others = plan_for(round_, {}).placements[1:]
        plan = with_entries(plan_for(round_, {}), placements=[spelt, *others])
        assert findings(round_, plan) == []
        closed = tuple(one.model_copy(update={"drained": True}) for one in round_.cluster.nodes)
        drained = round_.model_copy(update={"cluster": round_.cluster.model_copy(update={"nodes": closed})})
        stays = with_entries(plan_for(drained, {}), placements=[spelt, *others])
        assert findings(drained, stays) == []
        entry = move("a", ["n0", "n1"], ["n0", "n1"])
        assert findings(round_, with_entries(plan, moved=[entry])) == [("moved", "job 'a'", [])]

    def test_other_ranks_for_the_same_workers(self) -> None:
        """0 and 2 for 0 and 1, which no plan may say: a change, and none that shrinks the job."""
        pair = job("a", workers=2, workers_min=1)
        round_ = instance(1, [pair], running=[running(pair, [("n0", [0]), ("n0", [1])])])
        held = plan_for(round_, {}).placements[0]
        first, second = held.assignments[0].workers
        ranks = (first, second.model_copy(update={"rank": 2}))
        odd = held.model_copy(update={"assignments": (held.assignments[0].model_copy(update={"workers": ranks}),)})
        assert findings(round_, with_entries(plan_for(round_, {}), placements=[odd])) == [
            ("workers", "job 'a'", ["2", "0", "1"]),
            ("running", "job 'a'", ["'moved'", "'shrunk'"]),
        ]

    def test_gpus_of_a_worker_in_another_order(self) -> None:
        pair = job("a", gpus=2)
        round_ = instance(1, [pair], running=[running(pair, [("n0", [0, 3])])])
        assert findings(round_, plan_for(round_, {"a": [("n0", [3, 0])]})) == []
        assert [rule for rule, *_ in findings(round_, plan_for(round_, {"a": [("n0", [0, 2])]}))] == ["running"]

    def test_stopped(self) -> None:
        round_ = round_of()
        plan = with_entries(plan_for(round_, {}, preempted=["a"]), preempted=[])
        assert findings(round_, plan) == [("running", "job 'a'", ["'preempted'"])]

    def test_which_lists_would_do(self) -> None:
        """Other GPUs: moved or shrunk, whichever is true; fewer workers likewise."""
        round_ = round_of()
        elsewhere = plan_for(round_, {"a": [*HOME[:2], ("n1", [1])]})
        assert findings(round_, elsewhere) == [("running", "job 'a'", ["'moved'", "'shrunk'"])]
        assert findings(round_, with_entries(elsewhere, moved=[move("a", ["n0", "n1"], ["n0", "n1"])])) == []
        fewer = plan_for(round_, {"a": HOME[:2]})
        assert findings(round_, fewer) == [("running", "job 'a'", ["'shrunk'", "'moved'"])]
        assert findings(round_, with_entries(fewer, shrunk=[Shrunk(job="a", workers=2)])) == []
        assert findings(round_, with_entries(fewer, moved=[move("a", ["n0", "n1"], ["n0"])])) == []

    def test_in_two_lists(self) -> None:
        round_ = round_of()
        both = plan_for(round_, {"a": HOME[:2]}, moved=["a"], shrunk=["a"])
        assert findings(round_, both) == [("running", "job 'a'", ["'moved'", "'shrunk'"])]

    def test_each_running_job_is_looked_at(self) -> None:
        """In the order of the instance; one that stays stands between."""
        jobs = [job(name) for name in "abc"]
        runs = [running(one, [("n0", [i])]) for i, one in enumerate(jobs)]
        round_ = instance(2, jobs, running=runs)
        plan = plan_for(round_, {"c": [("n1", [0])], "a": [("n1", [1])]})
        assert [where for _, where, _ in findings(round_, plan)] == ["job 'a'", "job 'c'"]


class TestMoved:
    there: Where = (("n1", [1]), ("n1", [2]))

    def judged(self, *entries: Moved, where: Where | None = None, round_: Instance | None = None) -> list[Finding]:
        round_ = round_of() if round_ is None else round_
        plan = plan_for(round_, {} if where is None else {"a": where})
        return findings(round_, with_entries(plan, moved=entries))

    def test_true_ends(self) -> None:
        """In whatever order; each node as often as the job has an assignment there."""
        assert self.judged(move("a", ["n0", "n1"], ["n1"]), where=self.there) == []
        assert self.judged(move("a", ["n1", "n0"], ["n1"]), where=self.there) == []

    @pytest.mark.parametrize(
        ("before", "after", "expected"),
        [
            (["n0"], ["n1"], [["'from'", "'n0'", "'n0'", "'n1'"]]),
            (["n1", "n0", "n0"], ["n1"], [["'from'", "'n0'", "'n0'", "'n1'", "'n0'", "'n1'"]]),
            (["n0", "n1"], ["n0", "n1"], [["'to'", "'n0'", "'n1'", "'n1'"]]),
            (["n0", "n1"], ["n1", "n1"], [["'to'", "'n1'", "'n1'", "'n1'"]]),
            (["n1", "n1"], ["n1"], [["'from'", "'n1'", "'n1'", "'n0'", "'n1'"]]),
            ([], [], [["'from'", "'n0'", "'n1'"], ["'to'", "'n1'"]]),
        ],
    )  # fmt: skip
    def test_false_ends(self, before: list[str], after: list[str], expected: list[list[str]]) -> None:
        found = self.judged(move("a", before, after), where=self.there)
        assert found == [("moved", "job 'a'", numbers) for numbers in expected]

    def test_did_not_move(self) -> None:
        """It stays, or is not placed at all."""
        entry = move("a", ["n0", "n1"], ["n0", "n1"])
        assert self.judged(entry) == [("moved", "job 'a'", [])]
        round_ = round_of()
        gone = with_entries(plan_for(round_, {}, preempted=["a"]), moved=[entry])
        assert findings(round_, gone) == [("moved", "job 'a'", [])]

    def test_not_movable(self) -> None:
        entry = move("a", ["n0", "n1"], ["n1"])
        assert self.judged(entry, where=self.there, round_=round_of(movable=False)) == [("moved", "job 'a'", [])]

    def test_a_job_that_does_not_run_was_not_moved(self) -> None:
        """A waiting job and an unknown one, by their places in the list."""
        found = self.judged(move("a", ["n0", "n1"], ["n1"]), move("b", [], []), move("zz", [], []), where=self.there)
        assert found == [("moved", "moved[1]", ["'b'"]), ("moved", "moved[2]", ["'zz'"])]

    def test_listed_twice(self) -> None:
        """The first entry counts."""
        true, false = move("a", ["n0", "n1"], ["n1"]), move("a", [], [])
        assert self.judged(true, false, where=self.there) == [("moved", "moved[1]", ["'a'"])]
        assert len(self.judged(false, true, where=self.there)) == 3


class TestShrunk:
    def judged(self, where: Where, workers: int, *, round_: Instance | None = None) -> list[Finding]:
        round_ = round_of() if round_ is None else round_
        return findings(round_, with_entries(plan_for(round_, {"a": where}), shrunk=[Shrunk(job="a", workers=workers)]))

    @pytest.mark.parametrize("kept", [(0, 1), (0, 2)])
    def test_the_chief_and_some_others(self, kept: tuple[int, ...]) -> None:
        where = [HOME[rank] for rank in kept]
        assert self.judged(where, 2) == []
        assert self.judged(where, 1) == [("shrunk", "job 'a'", ["1", "2"])]
        assert self.judged(where, 3) == [("shrunk", "job 'a'", ["3", "2"])]

    @pytest.mark.parametrize(
        "where",
        [
            (HOME[1], HOME[2]),  # without the chief
            (HOME[1], HOME[0]),  # another chief
            (HOME[0], ("n1", [1])),
            (HOME[0], ("n0", [0])),
            (("n0", [3]), HOME[1]),
        ],
    )
    def test_others_than_before(self, where: Where) -> None:
        found = [fault for fault in self.judged(where, 2) if fault[0] == "shrunk"]
        assert found == [("shrunk", "job 'a'", [])]

    def test_order_of_ranks(self) -> None:
        """Of five 0, 2, 4 may stay, as 0, 2, 4 and in no other order."""
        a = job("a", workers=5, workers_min=2, gpu_milli=100)
        home = [(f"n{i % 2}", [i // 2]) for i in range(5)]
        round_ = instance(2, [a], running=[running(a, home, shrinkable=True)], policy=Policy(changes=ALL))
        for kept, right in (
            ((0, 2, 4), True),
            ((0, 4, 2), False),
            ((0, 1, 2, 3), True),
            ((0, 1, 3, 2), False),
            ((0, 3), True),
        ):
            found = self.judged([home[rank] for rank in kept], len(kept), round_=round_)
            assert found == ([] if right else [("shrunk", "job 'a'", [])])

    def test_did_not_shrink(self) -> None:
        assert self.judged(HOME, 3) == [("shrunk", "job 'a'", [])]
        round_ = round_of()
        gone = with_entries(plan_for(round_, {}, preempted=["a"]), shrunk=[Shrunk(job="a", workers=2)])
        assert findings(round_, gone) == [("shrunk", "job 'a'", [])]

    def test_not_shrinkable(self) -> None:
        assert self.judged(HOME[:2], 2, round_=round_of(shrinkable=False)) == [("shrunk", "job 'a'", [])]

    def test_below_its_minimum_and_not_elastic(self) -> None:
        assert self.judged(HOME[:1], 1) == [
            ("workers", "job 'a'", ["1", "'default'", "2", "3"]),
            ("shrunk", "job 'a'", ["1", "2"]),
        ]
        gang = round_of(of=job("a", workers=3, gpu_milli=500))
        assert self.judged(HOME[:2], 2, round_=gang) == [
            ("workers", "job 'a'", ["2", "'default'", "3"]),
            ("shrunk", "job 'a'", ["'default'"]),
        ]

    def test_a_job_that_does_not_run_was_not_shrunk(self) -> None:
        round_ = round_of()
        entries = [Shrunk(job="b", workers=1), Shrunk(job="a", workers=2), Shrunk(job="a", workers=2)]
        found = findings(round_, with_entries(plan_for(round_, {"a": HOME[:2]}), shrunk=entries))
        assert found == [("shrunk", "shrunk[0]", ["'b'"]), ("shrunk", "shrunk[2]", ["'a'"])]


class TestPreempted:
    def test_what_is_freed(self) -> None:
        """3 x 500 on two nodes."""
        round_ = round_of()
        stopped = plan_for(round_, {}, preempted=["a"])
        assert findings(round_, stopped) == []
        lie = with_entries(stopped, preempted=[Preempted(job="a", freed_gpu_milli=1000)])
        assert findings(round_, lie) == [("preempted", "job 'a'", ["1000", "1500"])]

    def test_still_there_or_nowhere(self) -> None:
        """It stands in ``unplaced``, and there alone."""
        round_ = round_of()
        entry = Preempted(job="a", freed_gpu_milli=1500)
        assert findings(round_, with_entries(plan_for(round_, {}), preempted=[entry])) == [
            ("preempted", "job 'a'", ["'unplaced'"])
        ]
        stopped = plan_for(round_, {}, preempted=["a"])
        nowhere = with_entries(stopped, unplaced=[one for one in stopped.unplaced if one.job != "a"])
        assert findings(round_, nowhere) == [("account", "job 'a'", []), ("preempted", "job 'a'", ["'unplaced'"])]
        both = with_entries(plan_for(round_, {}), preempted=[entry], unplaced=stopped.unplaced)
        assert [rule for rule, *_ in findings(round_, both)] == ["account", "preempted"]

    def test_not_preemptible(self) -> None:
        round_ = round_of(preemptible=False)
        assert findings(round_, plan_for(round_, {}, preempted=["a"])) == [("preempted", "job 'a'", [])]

    def test_a_job_that_does_not_run_was_not_stopped(self) -> None:
        round_ = round_of()
        entries = [Preempted(job=name, freed_gpu_milli=1500) for name in ("zz", "a", "a")]
        found = findings(round_, with_entries(plan_for(round_, {}, preempted=["a"]), preempted=entries))
        assert found == [("preempted", "preempted[0]", ["'zz'"]), ("preempted", "preempted[2]", ["'a'"])]


@pytest.mark.parametrize(
    ("kind", "field"), [("moved", "moves_max"), ("shrunk", "shrinks_max"), ("preempted", "preemptions_max")]
)
@pytest.mark.parametrize("most", [0, 1, 2])
def test_limits_count_jobs(kind: str, field: str, most: int) -> None:
    """Two jobs are changed; a second entry for one of them and one for a waiting job do not count."""
    jobs = [job(name, workers=2, workers_min=1) for name in "ab"]
    runs = [running(one, [("n0", [2 * i]), ("n0", [2 * i + 1])], **MAY) for i, one in enumerate(jobs)]
    round_ = instance(2, jobs, running=runs, policy=Policy(changes=Changes(**{field: most})))
    where: dict[str, dict[str, Where]] = {
        "moved": {"a": [("n1", [0])], "b": [("n1", [1])]},
        "shrunk": {"a": [("n0", [0])], "b": [("n0", [2])]},
        "preempted": {},
    }
    plan = plan_for(round_, where[kind], **{kind: ["a", "b"]})
    over = [(kind, kind, ["2", str(most)])] if most < 2 else []
    assert findings(round_, plan) == over
    again = with_entries(plan, **{kind: getattr(plan, kind) * 2})
    assert findings(round_, again) == [(kind, f"{kind}[2]", ["'a'"]), (kind, f"{kind}[3]", ["'b'"]), *over]


class TestOrder:
    """``last_submitted_first``: SODA V-D."""

    def round(self, *jobs: Job, changes: Changes | None = None, **may: dict[str, bool]) -> Instance:
        """Every job runs on a GPU of its own for each worker it has, on a node of its own."""
        runs: list[Running] = []
        for i, one in enumerate(jobs):
            where = [(f"n{i}", [gpu]) for gpu in range(one.options[0].workers)]
            runs.append(running(one, where, **{**MAY, **may.get(one.id, {})}))
        changes = Changes(preemptions_max=9, shrinks_max=9, moves_max=9) if changes is None else changes
        queues = tuple(Queue(id=name) for name in ("p", "q"))
        policy = Policy(queues=queues, changes=changes.model_copy(update={"last_submitted_first": True}))
        return instance(len(jobs), jobs, running=runs, policy=policy)

    def stopped(self, round_: Instance, *names: str, **fields: Any) -> list[Finding]:
        return findings(round_, plan_for(round_, fields.pop("placed", {}), preempted=names, **fields))

    def test_an_earlier_job_than_one_that_could_give(self) -> None:
        """The latest of those that gave nothing is named, with both times."""
        round_ = self.round(*(job(f"j{at}", queue="q", arrival_ms=at) for at in (10, 20, 40, 30)))
        assert self.stopped(round_, "j40") == []
        assert self.stopped(round_, "j40", "j30") == []
        rule = "last_submitted_first"
        assert self.stopped(round_, "j30") == [(rule, "job 'j30'", ["'j40'", "40", "30"])]
        assert self.stopped(round_, "j40", "j20", "j10") == [
            (rule, "job 'j10'", ["'j30'", "30", "10"]),
            (rule, "job 'j20'", ["'j30'", "30", "20"]),
        ]

    def test_together_means_in_any_order(self) -> None:
        """1 ms later is later."""
        round_ = self.round(*(job(name, queue="q", arrival_ms=at) for name, at in (("a", 0), ("b", 0), ("c", 1))))
        assert self.stopped(round_, "c") == self.stopped(round_, "c", "a") == self.stopped(round_, "c", "b") == []
        assert self.stopped(round_, "a") == [("last_submitted_first", "job 'a'", ["'c'", "1", "0"])]

    def test_each_queue_by_itself_and_those_without_as_one(self) -> None:
        jobs = [job("a", queue="q", arrival_ms=1), job("b", queue="p", arrival_ms=2), job("c", arrival_ms=3)]
        round_ = self.round(*jobs, job("d", arrival_ms=4))
        assert self.stopped(round_, "a") == self.stopped(round_, "b") == self.stopped(round_, "d") == []
        assert self.stopped(round_, "c") == [("last_submitted_first", "job 'c'", ["'d'", "4", "3"])]

    @pytest.mark.parametrize(
        ("later", "may", "changes", "could"),
        [
            ({}, {"preemptible": False, "shrinkable": False}, {}, False),
            ({}, {"preemptible": True, "shrinkable": False}, {}, True),
            ({}, {"preemptible": False, "shrinkable": True}, {}, False),  # a gang cannot shrink
            ({"workers": 3, "workers_min": 2}, {"preemptible": False, "shrinkable": True}, {}, True),
            ({"workers": 3, "workers_min": 3}, {"preemptible": False, "shrinkable": True}, {}, False),
            ({"workers": 3, "workers_min": 2}, {"preemptible": False, "shrinkable": False}, {}, False),
            ({"workers": 3, "workers_min": 2}, {"preemptible": False}, {"shrinks_max": 0}, False),
            ({"workers": 3, "workers_min": 2}, {"preemptible": False}, {"shrinks_max": 1}, True),
        ],
    )
    def test_jobs_that_could_give(
        self, later: dict[str, Any], may: dict[str, bool], changes: dict[str, int], could: bool
    ) -> None:
        """By the job, by the policy, and above its minimum."""
        limits = Changes(**{"preemptions_max": 1, "shrinks_max": 9, **changes})
        round_ = self.round(job("a", arrival_ms=1), job("b", arrival_ms=2, **later), changes=limits, b=may)
        expected = [("last_submitted_first", "job 'a'", ["'b'", "2", "1"])] if could else []
        assert self.stopped(round_, "a") == expected

    def test_where_nothing_may_be_stopped_only_shrinking_counts(self) -> None:
        """``preemptions_max`` 0: a later job that could only be stopped gives nothing, and an elastic one is asked."""
        a = job("a", arrival_ms=1, workers=3, workers_min=2)
        changes = Changes(shrinks_max=1)
        for b, could in ((job("b", arrival_ms=2), False), (job("b", arrival_ms=2, workers=2, workers_min=1), True)):
            round_ = self.round(a, b, changes=changes)
            plan = plan_for(round_, {"a": [("n0", [0]), ("n0", [1])]}, shrunk=["a"])
            expected = [("last_submitted_first", "job 'a'", ["'b'", "2", "1"])] if could else []
            assert findings(round_, plan) == expected

    def test_a_job_that_shrank_gave_and_one_that_moved_did_not(self) -> None:
        a, b = job("a", arrival_ms=1), job("b", arrival_ms=2, workers=3, workers_min=1)
        round_ = self.round(a, b)
        assert self.stopped(round_, "a", placed={"b": [("n1", [0]), ("n1", [1])]}, shrunk=["b"]) == []
        moved = self.stopped(round_, "a", placed={"b": [("n1", [0]), ("n1", [3])]}, moved=["b"])
        assert moved == [("last_submitted_first", "job 'a'", ["'b'", "2", "1"])]

    def test_only_where_the_policy_requires_it(self) -> None:
        round_ = self.round(job("a", arrival_ms=1), job("b", arrival_ms=2))
        free = round_.policy.model_copy(update={"changes": ALL})
        assert findings(round_, plan_for(round_, {}, policy=free, preempted=["a"])) == []


def test_a_job_placed_twice_is_compared_where_it_stands_first() -> None:
    """Its first placement is where it runs; the second is told as ``account``, and holds what it holds."""
    round_ = round_of()
    plan = plan_for(round_, {})
    second = placement(round_.jobs[0], [("n1", [1]), ("n1", [2])])
    found = findings(round_, with_entries(plan, placements=[*plan.placements, second]))
    assert found == [("account", "placements[1]", ["'a'", "0"])]
    found = findings(round_, with_entries(plan, placements=[second, *plan.placements]))
    assert [rule for rule, *_ in found] == ["account", "running"]
