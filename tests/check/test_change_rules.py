"""Rules ``running``, ``moved``, ``shrunk``, ``preempted`` and ``last_submitted_first``: what is told, and of whom."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from helpers.plans import plan_for, with_assignment
from helpers.referee_messages import Finding, faults, findings, rules, rules_of
from placeopt.build import Where, instance, job, option, placement, running
from placeopt.model import Assignment, Changes, Instance, Job, Moved, Placement, Plan, Policy, Preempted, Queue, Shrunk

HOME: Where = (("n0", [0]), ("n0", [1]), ("n1", [0]))
THERE: Where = (("n1", [1]), ("n1", [2]))
ALL = Changes(moves_max=9, shrinks_max=9, preemptions_max=9)
MAY = {"movable": True, "shrinkable": True, "preemptible": True}


def round_of(of: Job | None = None, **may: bool) -> Instance:
    """Job ``a`` of 2 to 3 workers runs at ``HOME`` with half a GPU each; ``b`` waits."""
    a = job("a", workers=3, workers_min=2, gpu_milli=500) if of is None else of
    return instance(2, [a, job("b")], running=[running(a, HOME, **{**MAY, **may})], policy=Policy(changes=ALL))


def with_entries(plan: Plan, **entries: Any) -> Plan:
    return plan.model_copy(update={name: tuple(listed) for name, listed in entries.items()})


def judged(
    where: Where | Placement | None = None, *, round_: Instance | None = None, true: dict | None = None, **entries: Any
) -> list[Finding]:
    """Judge a plan in which ``a`` stands there, or where it runs, with ``true`` lists of changes, or these entries."""
    round_ = round_of() if round_ is None else round_
    return findings(
        round_, with_entries(plan_for(round_, {} if where is None else {"a": where}, **(true or {})), **entries)
    )


def move(before: str, after: str, name: str = "a") -> Moved:
    return Moved.model_validate({"job": name, "from": tuple(before.split()), "to": tuple(after.split())})


def shrink(workers: int, name: str = "a") -> Shrunk:
    return Shrunk(job=name, workers=workers)


def stop(milli: int = 1500, name: str = "a") -> Preempted:
    return Preempted(job=name, freed_gpu_milli=milli)


def told(rule: str, numbers: str = "", where: str = "job 'a'") -> Finding:
    """Return what is told: the numbers and names of the message."""
    return rule, where, numbers.split()


case = partial(partial, judged)
"""What is judged by the test of its row."""
MOVED_OR_SHRUNK, SHRUNK_OR_MOVED = [told("running", "'moved' 'shrunk'")], [told("running", "'shrunk' 'moved'")]
FOUR = round_of(job("a", workers=4, workers_min=2, gpu_milli=500))
TWO_OPTIONS = job("a", options=(option("x", workers=3), option("y", workers=3)))
IN_Y = placement(TWO_OPTIONS, HOME, option="y")
OTHER_GPU = [*HOME[:2], ("n1", [1])]
STAYS, GONE = move("n0 n1", "n0 n1"), {"preempted": ["a"]}

CASES: dict[str, tuple[Callable[[], list[Finding]], list[Finding]]] = {
    # running: a change that the plan does not state, and which lists would do
    "stays": (case(HOME, round_=FOUR), []),
    "fewer workers": (case(HOME[:2], round_=FOUR), SHRUNK_OR_MOVED),
    "another GPU": (case(OTHER_GPU, round_=FOUR), MOVED_OR_SHRUNK),
    "two ranks of a node": (case([HOME[1], HOME[0], HOME[2]], round_=FOUR), MOVED_OR_SHRUNK),
    "two ranks of two nodes": (case([HOME[2], HOME[1], HOME[0]], round_=FOUR), MOVED_OR_SHRUNK),
    "one worker more": (case([*HOME, ("n1", [1])], round_=FOUR), MOVED_OR_SHRUNK),
    "another GPU, unlisted": (case(OTHER_GPU), MOVED_OR_SHRUNK),
    "another GPU, moved": (case(OTHER_GPU, moved=[STAYS]), []),
    "fewer workers, unlisted": (case(HOME[:2]), SHRUNK_OR_MOVED),
    "fewer workers, shrunk": (case(HOME[:2], shrunk=[shrink(2)]), []),
    "fewer workers, moved": (case(HOME[:2], moved=[move("n0 n1", "n0")]), []),
    "in two lists": (case(HOME[:2], true={"moved": ["a"], "shrunk": ["a"]}), MOVED_OR_SHRUNK),
    "stopped, unlisted": (case(true=GONE, preempted=[]), [told("running", "'preempted'")]),
    "another option": (case(IN_Y, round_=round_of(TWO_OPTIONS)), MOVED_OR_SHRUNK),
    "another option, moved": (case(IN_Y, round_=round_of(TWO_OPTIONS), true={"moved": ["a"]}), []),
    # moved: true ends in whatever order, each node as often as the job has an assignment there
    "true ends": (case(THERE, moved=[move("n0 n1", "n1")]), []),
    "true ends in another order": (case(THERE, moved=[move("n1 n0", "n1")]), []),
    **{
        f"from {before!r} to {after!r}": (
            case(THERE, moved=[move(before, after)]), [told("moved", numbers) for numbers in expected])
        for before, after, expected in (
            ("n0", "n1", ["'from' 'n0' 'n0' 'n1'"]),
            ("n1 n0 n0", "n1", ["'from' 'n0' 'n0' 'n1' 'n0' 'n1'"]),
            ("n0 n1", "n0 n1", ["'to' 'n0' 'n1' 'n1'"]),
            ("n0 n1", "n1 n1", ["'to' 'n1' 'n1' 'n1'"]),
            ("n1 n1", "n1", ["'from' 'n1' 'n1' 'n0' 'n1'"]),
            ("", "", ["'from' 'n0' 'n1'", "'to' 'n1'"]),
        )
    },
    "did not move": (case(moved=[STAYS]), [told("moved")]),
    "moved and stopped": (case(true=GONE, moved=[STAYS]), [told("moved")]),
    "not movable": (case(THERE, round_=round_of(movable=False), moved=[move("n0 n1", "n1")]), [told("moved")]),
    "moved, and not running": (
        case(THERE, moved=[move("n0 n1", "n1"), move("", "", "b"), move("", "", "zz")]),
        [told("moved", "'b'", "moved[1]"), told("moved", "'zz'", "moved[2]")]),
    "moved twice": (case(THERE, moved=[move("n0 n1", "n1"), move("", "")]), [told("moved", "'a'", "moved[1]")]),
    "moved twice, the first false": (
        case(THERE, moved=[move("", ""), move("n0 n1", "n1")]),
        [told("moved", "'a'", "moved[1]"), told("moved", "'from' 'n0' 'n1'"), told("moved", "'to' 'n1'")]),
    # shrunk: the chief stays, and some others where they are
    **{
        f"ranks 0 and {rank} stay, {stated} stated": (
            case([HOME[0], HOME[rank]], shrunk=[shrink(stated)]),
            [] if stated == 2 else [told("shrunk", f"{stated} 2")])
        for rank in (1, 2) for stated in (1, 2, 3)
    },
    "without the chief": (case(HOME[1:], shrunk=[shrink(2)]), [told("shrunk")]),
    "another chief": (case((HOME[1], HOME[0]), shrunk=[shrink(2)]), [told("shrunk")]),
    "one elsewhere": (case((HOME[0], ("n1", [1])), shrunk=[shrink(2)]), [told("shrunk")]),
    "two on a GPU": (
        case((HOME[0], ("n0", [0])), shrunk=[shrink(2)]),
        [told("gpu_indexes", "0", "job 'a' on node 'n0'"), told("shrunk")]),
    "the chief elsewhere": (case((("n0", [3]), HOME[1]), shrunk=[shrink(2)]), [told("shrunk")]),
    "did not shrink": (case(HOME, shrunk=[shrink(3)]), [told("shrunk")]),
    "shrunk and stopped": (case(true=GONE, shrunk=[shrink(2)]), [told("shrunk")]),
    "not shrinkable": (case(HOME[:2], round_=round_of(shrinkable=False), shrunk=[shrink(2)]), [told("shrunk")]),
    "below its minimum": (
        case(HOME[:1], shrunk=[shrink(1)]),
        [told("workers", "1 'default' 2 3"), told("shrunk", "1 2")]),
    "not elastic": (
        case(HOME[:2], round_=round_of(job("a", workers=3, gpu_milli=500)), shrunk=[shrink(2)]),
        [told("workers", "2 'default' 3"), told("shrunk", "'default'")]),
    "shrunk, and not running, and twice": (
        case(HOME[:2], shrunk=[shrink(1, "b"), shrink(2), shrink(2)]),
        [told("shrunk", "'b'", "shrunk[0]"), told("shrunk", "'a'", "shrunk[2]")]),
    # preempted: it stands in ``unplaced``, and there alone; 3 x 500 on two nodes are freed
    "stopped": (case(true=GONE), []),
    "less freed than stated": (case(true=GONE, preempted=[stop(1000)]), [told("preempted", "1000 1500")]),
    "stopped and still there": (case(preempted=[stop()]), [told("preempted", "'unplaced'")]),
    "stopped and nowhere": (
        case(true=GONE, unplaced=[one for one in plan_for(round_of(), {}).unplaced if one.job != "a"]),
        [told("account"), told("preempted", "'unplaced'")]),
    "stopped, there and waiting": (
        case(preempted=[stop()], unplaced=plan_for(round_of(), {}, **GONE).unplaced),
        [told("account", "'a' 0", "unplaced[0]"), told("preempted", "'unplaced'")]),
    "not preemptible": (case(round_=round_of(preemptible=False), true=GONE), [told("preempted")]),
    "stopped, and not running, and twice": (
        case(true=GONE, preempted=[stop(name="zz"), stop(), stop()]),
        [told("preempted", "'zz'", "preempted[0]"), told("preempted", "'a'", "preempted[2]")]),
}  # fmt: skip
"""What becomes of job ``a`` and what the plan says of that, and all that is told."""


@pytest.mark.parametrize("name", CASES)
def test_changes(name: str) -> None:
    found, expected = CASES[name]
    assert found() == expected


def test_a_share_is_no_difference() -> None:
    """A running job may keep what it was granted, or hold its request alone; neither is a change."""
    a = job("a", workers=3, workers_min=2, gpu_milli=500, gpu_milli_limit=900)
    policy = Policy(share_mode="overcommit", jobs_per_gpu_max=9, changes=ALL)
    round_ = instance(2, [a], running=[running(a, HOME, milli=900, **MAY)], policy=policy)
    for milli in (500, 900):
        assert judged(placement(a, HOME, milli=milli), round_=round_) == []
        assert judged(placement(a, HOME[:2], milli=milli), round_=round_, true={"shrunk": ["a"]}) == []
    assert judged(round_=round_, true=GONE, preempted=[stop()]) == []


def test_spelling_is_no_change() -> None:
    """Assignments, workers and shares in another order, also where no job may start."""
    round_ = round_of()
    (held, *others) = plan_for(round_, {}).placements
    first = held.assignments[0]
    turned = Assignment.model_construct(
        **{**dict(first), "workers": first.workers[::-1], "gpus": dict(reversed(first.gpus.items()))}
    )
    placements = [held.model_copy(update={"assignments": (held.assignments[1], turned)}), *others]
    assert judged(round_=round_, placements=placements) == []
    closed = tuple(one.model_copy(update={"drained": True}) for one in round_.cluster.nodes)
    drained = round_.model_copy(update={"cluster": round_.cluster.model_copy(update={"nodes": closed})})
    assert judged(round_=drained, placements=placements) == []
    assert judged(round_=round_, placements=placements, moved=[STAYS]) == [told("moved")]


def test_other_ranks_for_the_same_workers() -> None:
    """0 and 2 for 0 and 1, which no plan may say: a change, and none that shrinks the job."""
    pair = job("a", workers=2, workers_min=1)
    round_ = instance(1, [pair], running=[running(pair, [("n0", [0]), ("n0", [1])])])
    first, second = plan_for(round_, {}).placements[0].assignments[0].workers
    odd = with_assignment(plan_for(round_, {}), workers=(first, second.model_copy(update={"rank": 2})))
    assert findings(round_, odd) == [told("workers", "2 0 1"), *MOVED_OR_SHRUNK]


@pytest.mark.parametrize(("gpus", "expected"), [([3, 0], []), ([0, 2], ["running"])])
def test_gpus_of_a_worker_in_another_order(gpus: list[int], expected: list[str]) -> None:
    pair = job("a", gpus=2)
    round_ = instance(1, [pair], running=[running(pair, [("n0", [0, 3])])])
    assert rules(round_, {"a": [("n0", gpus)]}) == expected


def test_each_running_job_is_looked_at() -> None:
    """In the order of the instance; one that stays stands between."""
    jobs = [job(name) for name in "abc"]
    round_ = instance(2, jobs, running=[running(one, [("n0", [i])]) for i, one in enumerate(jobs)])
    found = faults(round_, {"c": [("n1", [0])], "a": [("n1", [1])]})
    assert [where for _, where, _ in found] == ["job 'a'", "job 'c'"]


@pytest.mark.parametrize(
    ("kept", "right"),
    [((0, 2, 4), True), ((0, 4, 2), False), ((0, 1, 2, 3), True), ((0, 1, 3, 2), False), ((0, 3), True)],
)
def test_order_of_ranks(kept: tuple[int, ...], right: bool) -> None:
    """Of five 0, 2, 4 may stay, as 0, 2, 4 and in no other order."""
    a = job("a", workers=5, workers_min=2, gpu_milli=100)
    home = [(f"n{i % 2}", [i // 2]) for i in range(5)]
    round_ = instance(2, [a], running=[running(a, home, shrinkable=True)], policy=Policy(changes=ALL))
    found = judged([home[rank] for rank in kept], round_=round_, shrunk=[shrink(len(kept))])
    assert found == ([] if right else [told("shrunk")])


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
        runs = []
        for i, one in enumerate(jobs):
            where = [(f"n{i}", [gpu]) for gpu in range(one.options[0].workers)]
            runs.append(running(one, where, **{**MAY, **may.get(one.id, {})}))
        changes = (ALL if changes is None else changes).model_copy(update={"last_submitted_first": True})
        policy = Policy(queues=tuple(Queue(id=name) for name in ("p", "q")), changes=changes)
        return instance(len(jobs), jobs, running=runs, policy=policy)

    def stopped(self, round_: Instance, *names: str, **fields: Any) -> list[Finding]:
        return faults(round_, fields.pop("placed", {}), preempted=names, **fields)

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
            expected = [("last_submitted_first", "job 'a'", ["'b'", "2", "1"])] if could else []
            assert faults(round_, {"a": [("n0", [0]), ("n0", [1])]}, shrunk=["a"]) == expected

    def test_a_job_that_shrank_gave_and_one_that_moved_did_not(self) -> None:
        a, b = job("a", arrival_ms=1), job("b", arrival_ms=2, workers=3, workers_min=1)
        round_ = self.round(a, b)
        assert self.stopped(round_, "a", placed={"b": [("n1", [0]), ("n1", [1])]}, shrunk=["b"]) == []
        moved = self.stopped(round_, "a", placed={"b": [("n1", [0]), ("n1", [3])]}, moved=["b"])
        assert moved == [("last_submitted_first", "job 'a'", ["'b'", "2", "1"])]

    def test_only_where_the_policy_requires_it(self) -> None:
        round_ = self.round(job("a", arrival_ms=1), job("b", arrival_ms=2))
        free = round_.policy.model_copy(update={"changes": ALL})
        assert faults(round_, {}, policy=free, preempted=["a"]) == []


def test_a_job_placed_twice_is_compared_where_it_stands_first() -> None:
    """Its first placement is where it runs; the second is told as ``account``, and holds what it holds."""
    plan = plan_for(round_of(), {})
    second = placement(round_of().jobs[0], [("n1", [1]), ("n1", [2])])
    assert judged(placements=[*plan.placements, second]) == [told("account", "'a' 0", "placements[1]")]
    assert rules_of(round_of(), with_entries(plan, placements=[second, *plan.placements])) == ["account", "running"]
