"""Failures, starts that are undone or happened elsewhere, flags, priorities, machine types and policies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from test_random_changes import assert_as_if_fresh

from helpers.plans import plan_for
from placeopt import BadInput, Engine, Instance, Policy, StaleSnapshot, Unsupported
from placeopt.build import instance, job, machine, node, placement, running
from placeopt.model import Changes, Domain, Queue

GANG = job("gang", workers=2, gpus=4)
SMALL = job("small", gpus=1)
FIRST, SECOND = job("first", gpus=2), job("second", gpus=2, nodes_allowed=("n2",))
JOBS = [GANG, SMALL, FIRST, SECOND]


def busy(**fields: Any) -> Instance:
    """Three nodes of 4 GPUs; a gang runs on the first two, a small job on the third, two jobs wait."""
    runs = [running(GANG, [("n0", range(4)), ("n1", range(4))]), running(SMALL, [("n2", [0])])]
    return instance(3, JOBS, running=runs, **fields)


def engine_of(loaded: Instance) -> Engine:
    """Load an instance."""
    engine = Engine(isolation="thread")
    engine.load(loaded)
    return engine


def runs(engine: Engine) -> list[str]:
    """Ids of the running jobs, in order."""
    return [held.job for held in engine.snapshot.running]


def refused(engine: Engine, call: Callable[[], object], words: str) -> None:
    """The call is refused in these words, and nothing changes."""
    before, revision = engine.snapshot.model_dump(), engine.revision
    with pytest.raises(BadInput, match=words):
        call()
    assert (engine.snapshot.model_dump(), engine.revision) == (before, revision)
    assert_as_if_fresh(engine)


class TestFailNode:
    """``fail_node``."""

    @pytest.mark.parametrize("remove", [False, True])
    def test_the_whole_gang_waits_again(self, remove: bool) -> None:
        """Its other node is free, the failed one takes no work, and a plan made before says what happened."""
        with engine_of(busy()) as engine:
            old = engine.place(["first"])
            assert engine.fail_node("n0", remove=remove) == (GANG,)
            assert engine.revision == old.instance.revision + 1
            assert runs(engine) == ["small"]
            assert [n.id for n in engine.snapshot.cluster.nodes if not n.drained] == ["n1", "n2"]
            assert len(engine.snapshot.cluster.nodes) == (2 if remove else 3)
            with pytest.raises(StaleSnapshot, match="node 'n0' failed and job 'gang' stopped") as stale:
                engine.commit(old)
            assert (stale.value.jobs, stale.value.nodes) == (("gang",), ("n0",))
            assert_as_if_fresh(engine)
            assert engine.place(["gang"]).unplaced[0].job == "gang"
            engine.update(add_jobs=[job("four", gpus=4)])
            assert engine.place(["four"]).placements[0].assignments[0].node == "n1"

    def test_an_idle_node_too(self) -> None:
        """Nothing waits again."""
        with engine_of(instance(2, [SMALL])) as engine:
            assert engine.fail_node("n1") == ()
            assert_as_if_fresh(engine)

    def test_what_is_refused_changes_nothing(self) -> None:
        """An unknown node; one that a job names; the last one."""
        with engine_of(busy()) as engine:
            refused(engine, lambda: engine.fail_node("n9"), "no node 'n9'")
            refused(engine, lambda: engine.fail_node("n2", remove=True), "'second' names it")
        with engine_of(instance(1, [SMALL], running=[running(SMALL, [("n0", [0])])])) as engine:
            refused(engine, lambda: engine.fail_node("n0", remove=True), "0 nodes would be left")

    def test_a_failure_to_compile_changes_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The jobs run again, in their former order."""

        def fail(*_: object) -> None:
            raise Unsupported("too large")

        with engine_of(busy()) as engine:
            before = engine.snapshot.model_dump()
            engine.place(method="stranding")  # so that positions of running jobs are known
            with monkeypatch.context() as patch:
                patch.setattr("placeopt.live_cluster.cluster_state.refuse_huge_values", fail)
                with pytest.raises(Unsupported):
                    engine.fail_node("n0", remove=True)
            assert engine.snapshot.model_dump() == before
            engine.update(now_ms=1)  # a new snapshot
            assert runs(engine) == ["gang", "small"]
            assert_as_if_fresh(engine)


class TestUndo:
    """``undo``."""

    def test_it_waits_as_before(self) -> None:
        """In its place among the jobs, with room for it."""
        with engine_of(busy()) as engine:
            before = engine.snapshot
            engine.commit(engine.place(["first"]))
            engine.undo("first")
            after = engine.snapshot
            assert (after.jobs, after.running, after.revision) == (before.jobs, before.running, before.revision + 2)
            assert_as_if_fresh(engine)
            engine.commit(engine.place(["first"]))
            assert runs(engine) == ["gang", "small", "first"]

    def test_a_whole_round_beside_it_may_start_it(self) -> None:
        """It waited when the round was planned, and waits again; one that another system started does not."""
        with engine_of(instance(2, [FIRST, job("other", gpus=2)])) as engine:
            plan = engine.place(method="stranding")
            engine.commit(engine.place(["first"]))
            engine.undo("first")
            engine.update(machines=[machine("big", 8)])  # compiled anew, what happened before is known
            engine.adopt(placement(job("other", gpus=2), [("n1", [0, 1])]))
            done = engine.commit(plan, rebase=True)
            assert done.committed == ("first",)
            assert [(entry.job, entry.why) for entry in done.refused] == [("other", "it was started meanwhile")]
            assert_as_if_fresh(engine)

    def test_it_says_so(self) -> None:
        """A plan made while it ran is stale."""
        with engine_of(busy()) as engine:
            old = engine.place(["first"])
            engine.undo("small")
            with pytest.raises(StaleSnapshot, match="job 'small' waits again"):
                engine.commit(old)
            refused(engine, lambda: engine.undo("small"), "'small' does not run")


@pytest.mark.parametrize("how", ["undo", "release", "preempted", "fail_node"])
def test_stand_ins_go_with_the_job_that_needs_them(how: str) -> None:
    """A job holds a GPU that its node no longer has; once it stops, nothing is left of it (regression: release)."""
    better = job("better", gpus=2, value=9)
    policy = Policy(changes=Changes(preemptions_max=1))
    held = running(SMALL, [("n0", [3])], preemptible=True)
    with engine_of(instance(1, [SMALL, better], running=[held], policy=policy)) as engine:
        engine.update(machines=[machine("two", 2, cpu_millicores=0)])
        engine.update(nodes={"n0": node("n0", "two")})
        assert_as_if_fresh(engine)
        match how:
            case "undo":
                engine.undo("small")
            case "release":
                engine.release("small")
            case "fail_node":
                engine.fail_node("n0")
            case _:
                engine.commit(plan_for(engine.snapshot, {"better": [("n0", [0, 1])]}, preempted=["small"]))
        assert "small" not in runs(engine)
        assert_as_if_fresh(engine)


class TestAdopt:
    """``adopt``."""

    def test_a_waiting_job_on_a_drained_node(self) -> None:
        """Where no plan could start it; its flags and times are those given."""
        with engine_of(busy()) as engine:
            engine.update(nodes={"n2": "drain"}, now_ms=50)
            engine.adopt(placement(FIRST, [("n2", [1, 2])]), started_ms=40, expected_end_ms=90, preemptible=True)
            held = engine.snapshot.running[-1]
            assert (held.job, held.started_ms, held.expected_end_ms) == ("first", 40, 90)
            assert (held.movable, held.shrinkable, held.preemptible) == (False, False, True)
            assert_as_if_fresh(engine)

    def test_a_new_job_beyond_limits_stands(self) -> None:
        """Twice the CPU that the node has; time counts from now."""
        huge = job("huge", gpus=0, kind="cpu", cpu_millicores=64_000)
        with engine_of(busy(now_ms=7)) as engine:
            engine.adopt(placement(huge, [("n2", [])]), job=huge)
            assert (runs(engine)[-1], engine.snapshot.running[-1].started_ms) == ("huge", 7)
            assert_as_if_fresh(engine)
            assert [entry.rule for entry in engine.place(method="stranding").standing] == ["cpu"]
            assert engine.release("huge") == huge

    def test_what_contradicts_itself_changes_nothing(self) -> None:
        """Unknown things, wrong workers, GPUs beyond their whole, times before 0."""
        new = job("new", gpus=1)
        with engine_of(busy()) as engine:
            for call, words in (
                (lambda: engine.adopt(placement(SMALL, [("n2", [1])])), "'small' runs already"),
                (lambda: engine.adopt(placement(new, [("n2", [1])])), r"give its record \(job=\)"),
                (lambda: engine.adopt(placement(FIRST, [("n2", [1, 2])]), job=FIRST), "'first' is there already"),
                (lambda: engine.adopt(placement(FIRST, [("n2", [1, 2])]), job=new), "is 'new', the placement is of"),
                (lambda: engine.adopt(placement(FIRST, [("n9", [1, 2])])), "no node 'n9'"),
                (lambda: engine.adopt(placement(FIRST, [("n2", [3, 4])])), "has 4 GPUs, but no GPU 4"),
                (lambda: engine.adopt(placement(FIRST, [("n2", [1])])), "1 GPUs, the option's demand is 2"),
                (lambda: engine.adopt(placement(FIRST, [("n2", [0, 1])])), "contradicts itself.*gpu_share"),
                (lambda: engine.adopt(placement(new, [("n2", [0])]), job=new), "contradicts itself.*gpu_share"),
                (lambda: engine.adopt(placement(FIRST, [("n2", [1, 2])]), started_ms=-1), "started_ms"),
            ):
                refused(engine, call, words)


class TestFlagsAndPriority:
    """``update(flags=, priority=)``."""

    def test_they_hold_from_then_on(self) -> None:
        """A job that may be preempted makes room."""
        policy = Policy(changes=Changes(preemptions_max=1))
        jobs = [SMALL, job("better", gpus=4, value=9)]
        with engine_of(instance(1, jobs, running=[running(SMALL, [("n0", [0])])], policy=policy)) as engine:
            assert [p.job for p in engine.place(time_limit_s=2).placements] == ["small"]
            engine.update(flags={"small": {"preemptible": True}}, priority={"better": 5})
            assert engine.revision == 1
            assert engine.snapshot.jobs[1].priority == 5
            assert_as_if_fresh(engine)
            assert [p.job for p in engine.place(time_limit_s=2).placements] == ["better"]

    def test_nothing_new_is_no_revision(self) -> None:
        """As for expected ends."""
        with engine_of(busy()) as engine:
            engine.update(flags={"small": {"movable": False}}, priority={"first": 0})
            assert engine.revision == 0

    def test_the_priority_of_a_running_job(self) -> None:
        """It is that of the job once it waits again."""
        with engine_of(busy()) as engine:
            engine.update(priority={"small": 7, "first": -2})
            assert [job.priority for job in engine.snapshot.jobs] == [0, 7, -2, 0]
            assert_as_if_fresh(engine)
            engine.undo("small")
            assert engine.snapshot.jobs[1].priority == 7
            assert_as_if_fresh(engine)

    def test_what_is_refused_changes_nothing(self) -> None:
        """Neither with something else that could be done."""
        with engine_of(busy()) as engine:
            cases: tuple[tuple[dict[str, Any], str], ...] = (
                ({"flags": {"first": {"movable": True}}}, "'first' does not run"),
                ({"flags": {"small": {"moveable": True}}}, "expected movable, shrinkable, preemptible"),
                ({"flags": {"small": {"movable": 1}}}, "with true or false"),
                ({"flags": {"small": True}}, "expected flags by name"),
                ({"priority": {"nobody": 1}}, "no job 'nobody'"),
                ({"priority": {"first": 1}, "remove_jobs": ["first"]}, "no job 'first'"),
                ({"priority": {"first": 10**7}}, "at most 1000000"),
                ({"priority": {"first": True}}, "expected an integer"),
            )
            for fields, words in cases:
                refused(engine, partial(engine.update, now_ms=9, **fields), words)


class TestTypesAndPolicy:
    """``update(machines=, domains=)`` and ``set_policy``."""

    def test_new_hardware_in_one_revision(self) -> None:
        """A type, a domain and a node of both; a job takes it, and an older plan says what came."""
        with engine_of(busy()) as engine:
            old = engine.place(["first"])
            engine.update(
                machines=[machine("big", 8)],
                domains=[Domain(id="r0")],
                nodes={"x": node("x", "big")},
                add_jobs=[job("eight", gpus=8)],
            )
            assert engine.revision == 1
            with pytest.raises(StaleSnapshot, match="type 'big' came and domain 'r0' came and job 'eight' came"):
                engine.commit(old)
            assert_as_if_fresh(engine)
            engine.commit(engine.place(["eight"]))
            engine.update(nodes={"n2": node("n2", domain="r0")})
            assert_as_if_fresh(engine)

    def test_what_is_refused_changes_nothing(self) -> None:
        """Taken ids, unknown parents, and what stands beside them."""
        with engine_of(busy()) as engine:
            cases: tuple[tuple[dict[str, Any], str], ...] = (
                ({"machines": [machine("m")]}, "'m' appears twice"),
                ({"machines": [node("x")]}, "expected records of placeopt.model.Machine"),
                ({"domains": [Domain(id="r0", parent="r1")]}, "no domain 'r1' before"),
                ({"machines": [machine("big")], "nodes": {"n9": "drain"}}, "no node 'n9'"),
            )
            for fields, words in cases:
                refused(engine, partial(engine.update, **fields), words)

    def test_another_policy(self) -> None:
        """The snapshot states it; plans under the former one are refused, as they are and rebased."""
        with engine_of(busy()) as engine:
            old = engine.place(["first"])
            exclusive = Policy(name="exclusive", share_mode="exclusive")
            engine.set_policy(exclusive)
            assert (engine.snapshot.policy, engine.revision) == (exclusive, 1)
            with pytest.raises(StaleSnapshot, match="policy 'exclusive' took the place of"):
                engine.commit(old)
            refused(engine, lambda: engine.commit(old, rebase=True), "under another policy")
            assert engine.commit(engine.place(method="stranding")).committed

    def test_a_policy_without_the_queue_of_a_job(self) -> None:
        """It is refused by the words of an instance."""
        queued = Policy(queues=(Queue(id="q"),))
        with engine_of(instance(1, [job("a", queue="q")], policy=queued)) as engine:
            other = Policy(queues=(Queue(id="other"),))
            refused(engine, lambda: engine.set_policy(other), "no queue 'q'")

    def test_a_policy_under_which_what_runs_contradicts_itself(self) -> None:
        """Two jobs that share a GPU beyond its whole run only under ``overcommit``."""
        jobs = [job("a", gpu_milli=600), job("b", gpu_milli=600)]
        shared = [running(held, [("n0", [0])]) for held in jobs]
        policy = Policy(share_mode="overcommit", jobs_per_gpu_max=2)
        with engine_of(instance(1, jobs, running=shared, policy=policy)) as engine:
            refused(engine, lambda: engine.set_policy(Policy()), "running placements")
