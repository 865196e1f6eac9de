"""Updates, failures of nodes, starts that are undone or happened elsewhere, flags, machine types and policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from helpers.live_engine import (
    assert_as_if_fresh,
    engine_of,
    fail_node,
    places,
    refuses,
    release,
    runs,
    set_policy,
    undo,
    update,
)
from helpers.plans import plan_for
from placeopt import Engine, Instance, Policy, StaleSnapshot, Unsupported
from placeopt.build import instance, job, machine, node, running
from placeopt.edits import AddDomains, AddJobs, AddMachines, Label, PutNodes, Start
from placeopt.model import Changes, Domain, Flavor, FlavorAllowance, Job, Queue, Split

GANG, SMALL = job("gang", workers=2, gpus=4), job("small", gpus=1)
FIRST, SECOND, WIDE = job("first", gpus=2), job("second", gpus=2, nodes_allowed=("n2",)), job("wide", gpus=4)
NEW = job("new", gpus=1)
PREEMPTING = Policy(changes=Changes(preemptions_max=1))


def busy(*more: Job, nodes: int = 3, **fields: Any) -> Instance:
    """Nodes of 4 GPUs; a gang runs on the first two, a small job on the third, two jobs wait."""
    held = [running(GANG, [("n0", range(4)), ("n1", range(4))]), running(SMALL, [("n2", [0])])]
    return instance(nodes, [GANG, SMALL, FIRST, SECOND, *more], running=held, **fields)


def adopt(
    held: Job, gpus: list[int], node: str = "n2", *, new: bool = False, **fields: Any
) -> Callable[[Engine], object]:
    """Return the report that a job of one worker, which waits or is new, was started elsewhere."""
    add = (AddJobs(do="add_jobs", jobs=(held,)),) if new else ()
    start = Start(do="start", running=(running(held, [(node, gpus)], **fields),))
    return lambda engine: engine.edit((*add, start))


def wrong(**fields: Any) -> Callable[[Engine], object]:
    """Return differences of which one part is wrong, beside a job that could be added."""
    return lambda engine: update(engine, **{"add_jobs": [job("good")], "now_ms": 9, **fields})


IN_A_HALL = job("x", splits=(Split(level="hall", domains=1),))
VAST = [job(f"x{i}", workers=90_000, workers_min=1, value=90_000 * 10**9, value_per_worker=10**9) for i in range(110)]
REFUSED: list[tuple[str, Callable[[Engine], object]]] = [
    ("'first' is there already", wrong(add_jobs=[job("first")])),
    ("'x' is there already", wrong(add_jobs=[job("x"), job("x")])),
    ("hall", wrong(add_jobs=[NEW, IN_A_HALL])),
    (r"add_jobs\[0\]", wrong(add_jobs=["good"])),
    (r"2\*\*53", wrong(add_jobs=VAST)),
    ("release", wrong(remove_jobs=["gang"])),
    ("no job 'x'", wrong(remove_jobs=["x"])),
    ("cannot go; release what runs there first: job 'gang'", wrong(nodes={"n0": None})),
    ("melt", wrong(nodes={"n2": "melt"})),
    ("keys are ids", wrong(nodes={"n2": node("n3")})),
    ("machine type", wrong(nodes={"n2": node("n2", "huge")})),
    ("domain", wrong(nodes={"n2": node("n2", domain="hall")})),
    ("'nobody' does not run", wrong(expected_end_ms={"nobody": 1})),
    ("expected_end_ms.small: -1, expected at least 0", wrong(expected_end_ms={"small": -1})),
    ("'first' does not run", wrong(flags={"first": {"movable": True}})),
    ("flags.small.moveable|flags.small: .*moveable", wrong(flags={"small": {"moveable": True}})),
    ("flags.small.movable: 1, expected true or false", wrong(flags={"small": {"movable": 1}})),
    ("flags.small: true, expected an object", wrong(flags={"small": True})),
    ("no job 'nobody'", wrong(priority={"nobody": 1})),
    ("no job 'first'", wrong(priority={"first": 1}, remove_jobs=["first"])),
    ("priorities.first: 10000000, expected at most 1000000", wrong(priority={"first": 10**7})),
    ("priorities.first: true, expected a whole number", wrong(priority={"first": True})),
    ("no node 'n9'", lambda engine: fail_node(engine, "n9")),
    ("no running job 'first'", lambda engine: undo(engine, "first")),
    ("does not run", lambda engine: release(engine, "first")),
    ("no waiting job 'small'", adopt(SMALL, [1])),
    ("no waiting job 'new'", adopt(NEW, [1])),
    ("'first' is there already", adopt(FIRST, [1, 2], new=True)),
    ("no node 'n9'", adopt(FIRST, [1, 2], "n9")),
    ("has 4 GPUs, but no GPU 4", adopt(FIRST, [3, 4])),
    ("1 GPUs, the option's demand is 2", adopt(FIRST, [1])),
    ("contradicts itself.*gpu_share", adopt(FIRST, [0, 1])),
    ("contradicts itself.*gpu_share", adopt(NEW, [0], new=True)),
    ("no queue 'q'", lambda engine: set_policy(engine, Policy(queues=(Queue(id="other"),)))),
]


def test_what_is_refused_changes_nothing() -> None:
    """Whatever part of a report is wrong; the next one finds everything in order."""
    queued = Policy(queues=(Queue(id="q"),))
    more = [job("third", nodes_allowed=("n3",)), job("queued", queue="q")]
    with engine_of(busy(*more, nodes=4, policy=queued)) as engine:
        refuses(engine, REFUSED)
        update(engine, add_jobs=[job("good")])
        assert places(engine.place(["good"])).keys() == {"good"}
    with engine_of(1, [SMALL], running=[running(SMALL, [("n0", [0])])]) as engine:
        refuses(engine, [("no node would be left", lambda one: fail_node(one, "n0", remove=True))])


def test_a_job_that_names_a_node_waits_while_it_is_gone() -> None:
    """Names are conditions: the node may go, and a node that comes back under its name takes the job."""
    with engine_of(busy(job("third", nodes_allowed=("n3",)), nodes=4)) as engine:
        there = next(one for one in engine.snapshot.cluster.nodes if one.id == "n3")
        update(engine, nodes={"n3": None})
        assert places(engine.place(["third"])) == {}
        update(engine, nodes={"n3": there})
        assert places(engine.place(["third"])).keys() == {"third"}


@pytest.mark.parametrize("remove", [False, True])
def test_a_node_fails_and_the_whole_gang_waits_again(remove: bool) -> None:
    """Its other node is free, the failed one takes no work, and a plan made before says what happened."""
    with engine_of(busy()) as engine:
        old = engine.place(["first"])
        assert fail_node(engine, "n0", remove=remove) == (GANG,)
        assert (engine.revision, runs(engine)) == (1, ["small"])
        assert [n.id for n in engine.snapshot.cluster.nodes if not n.drained] == ["n1", "n2"]
        assert len(engine.snapshot.cluster.nodes) == (2 if remove else 3)
        with pytest.raises(
            StaleSnapshot, match=f"job 'gang' stopped and node 'n0' {'went' if remove else 'changed'}"
        ) as stale:
            engine.commit(old)
        assert (stale.value.jobs, stale.value.nodes) == (("gang",), ("n0",))
        assert_as_if_fresh(engine)
        assert engine.place(["gang"]).unplaced[0].job == "gang"
        update(engine, add_jobs=[WIDE])
        assert places(engine.place(["wide"]))["wide"][0][0] == "n1"


def test_an_idle_node_fails_too() -> None:
    """Nothing waits again."""
    with engine_of(2, [SMALL]) as engine:
        assert fail_node(engine, "n1") == ()
        assert_as_if_fresh(engine)


def test_a_failure_to_compile_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The jobs run again, in their former order."""
    name, faults = "placeopt.live_cluster.cluster_state.refuse_huge_values", ["too large"]

    def fail(*_: object) -> None:
        if faults:
            raise Unsupported(faults.pop())

    with engine_of(busy()) as engine:
        engine.place(method="stranding")  # so that positions of running jobs are known
        monkeypatch.setattr(name, fail)
        before = engine.snapshot.model_dump()
        with pytest.raises(Unsupported):
            fail_node(engine, "n0", remove=True)
        assert engine.snapshot.model_dump() == before
        update(engine, now_ms=1)  # a new snapshot
        assert runs(engine) == ["gang", "small"]
        assert_as_if_fresh(engine)


def test_an_undone_job_waits_as_before() -> None:
    """In its place among the jobs, with room for it; a plan made while another ran is stale."""
    with engine_of(busy()) as engine:
        before = engine.snapshot
        engine.commit(engine.place(["first"]))
        undo(engine, "first")
        after = engine.snapshot
        assert (after.jobs, after.running, after.revision) == (before.jobs, before.running, before.revision + 2)
        assert_as_if_fresh(engine)
        old = engine.place(["first"])
        engine.commit(old)
        assert runs(engine) == ["gang", "small", "first"]
        undo(engine, "small")
        with pytest.raises(StaleSnapshot, match="job 'small' stopped"):
            engine.commit(old)


def test_a_whole_round_beside_an_undone_job_may_start_it() -> None:
    """It waited when the round was planned, and waits again; one that another system started does not."""
    with engine_of(2, [FIRST, job("other", gpus=2)]) as engine:
        plan = engine.place(method="stranding")
        engine.commit(engine.place(["first"]))
        undo(engine, "first")
        engine.edit(
            [AddMachines(do="add_machines", machines=(machine("big", 8),))]
        )  # compiled anew, what happened before is known
        adopt(job("other", gpus=2), [0, 1], "n1")(engine)
        done = engine.commit(plan, rebase=True)
        assert done.committed == ("first",)
        assert [(entry.job, entry.why) for entry in done.refused] == [("other", "it was started meanwhile")]
        assert_as_if_fresh(engine)


def preempted(engine: Engine) -> None:
    """Let a job take the place of ``small``."""
    engine.commit(plan_for(engine.snapshot, {"better": [("n0", [0, 1])]}, preempted=["small"]))


STOPS: dict[str, Callable[[Engine], object]] = {
    "undo": lambda engine: undo(engine, "small"),
    "release": lambda engine: release(engine, "small"),
    "fail_node": lambda engine: fail_node(engine, "n0"),
    "preempted": preempted,
}


@pytest.mark.parametrize("how", STOPS)
def test_stand_ins_go_with_the_job_that_needs_them(how: str) -> None:
    """A job holds a GPU that its node no longer has; once it stops, nothing is left of it."""
    held = running(SMALL, [("n0", [3])], preemptible=True)
    with engine_of(1, [SMALL, job("better", gpus=2, value=9)], running=[held], policy=PREEMPTING) as engine:
        engine.edit([AddMachines(do="add_machines", machines=(machine("two", 2, cpu_millicores=0),))])
        update(engine, nodes={"n0": node("n0", "two")})
        assert_as_if_fresh(engine)
        STOPS[how](engine)
        assert "small" not in runs(engine)
        assert_as_if_fresh(engine)


def test_a_job_is_adopted_where_no_plan_could_start_it() -> None:
    """On a drained node, with the flags and times given; a new one with twice the CPU there is, whose time is now."""
    huge = job("huge", gpus=0, kind="cpu", cpu_millicores=64_000)
    with engine_of(busy()) as engine:
        update(engine, nodes={"n2": "drain"}, now_ms=50)
        adopt(FIRST, [1, 2], started_ms=40, expected_end_ms=90, preemptible=True)(engine)
        held = engine.snapshot.running[-1]
        assert (held.job, held.started_ms, held.expected_end_ms) == ("first", 40, 90)
        assert (held.movable, held.shrinkable, held.preemptible) == (False, False, True)
        assert_as_if_fresh(engine)
        adopt(huge, [], new=True, started_ms=50)(engine)
        assert (runs(engine)[-1], engine.snapshot.running[-1].started_ms) == ("huge", 50)
        assert_as_if_fresh(engine)
        assert [entry.rule for entry in engine.place(method="stranding").standing] == ["cpu"]
        release(engine, "huge")
        assert [one.id for one in engine.snapshot.jobs] == ["gang", "small", "first", "second"]


def test_flags_and_priorities_hold_from_then_on() -> None:
    """A job that may be preempted makes room; what is not new is no revision."""
    jobs = [SMALL, job("better", gpus=4, value=9)]
    with engine_of(1, jobs, running=[running(SMALL, [("n0", [0])])], policy=PREEMPTING) as engine:
        assert places(engine.place(time_limit_s=2)).keys() == {"small"}
        for _ in range(2):
            update(engine, flags={"small": {"preemptible": True}}, priority={"better": 5, "small": 7})
            assert engine.revision == 1
        assert [one.priority for one in engine.snapshot.jobs] == [7, 5]
        assert_as_if_fresh(engine)
        assert places(engine.place(time_limit_s=2)).keys() == {"better"}
        undo(engine, "small")
        assert engine.snapshot.jobs[0].priority == 7
        assert_as_if_fresh(engine)


def test_new_hardware_in_one_revision() -> None:
    """A type, a domain and a node of both; a job takes it, and an older plan says what came."""
    with engine_of(busy()) as engine:
        old = engine.place(["first"])
        steps = (
            AddMachines(do="add_machines", machines=(machine("big", 8),)),
            AddDomains(do="add_domains", domains=(Domain(id="r0"),)),
            PutNodes(do="put_nodes", nodes=(node("x", "big"),)),
            AddJobs(do="add_jobs", jobs=(job("eight", gpus=8),)),
        )
        engine.edit(steps)
        assert engine.revision == 1
        with pytest.raises(StaleSnapshot, match="'big'; add domains 'r0'; put nodes 'x'; add jobs 'eight'"):
            engine.commit(old)
        assert_as_if_fresh(engine)
        engine.commit(engine.place(["eight"]))
        update(engine, nodes={"n2": node("n2", domain="r0")})
        assert_as_if_fresh(engine)


def test_another_policy() -> None:
    """The snapshot states it; plans under the former one are refused, as they are and rebased."""
    with engine_of(busy()) as engine:
        old = engine.place(["first"])
        exclusive = Policy(name="exclusive", share_mode="exclusive")
        set_policy(engine, exclusive)
        assert (engine.snapshot.policy, engine.revision) == (exclusive, 1)
        with pytest.raises(StaleSnapshot, match="policy 'exclusive' took the place of"):
            engine.commit(old)
        refuses(engine, [("under another policy", lambda one: one.commit(old, rebase=True))])
        assert engine.commit(engine.place(method="stranding")).committed


def test_a_policy_under_which_what_runs_contradicts_itself() -> None:
    """Two jobs that share a GPU beyond its whole run only under ``overcommit``."""
    jobs = [job(name, gpu_milli=600) for name in "ab"]
    policy = Policy(share_mode="overcommit", jobs_per_gpu_max=2)
    with engine_of(1, jobs, running=[running(held, [("n0", [0])]) for held in jobs], policy=policy) as engine:
        refuses(engine, [("running placements", lambda one: set_policy(one, Policy()))])


def test_a_label_gives_a_node_another_flavor() -> None:
    """A job whose queue has the fast flavor alone waits until a node is labelled so."""
    queue = Queue(id="q", flavors=(FlavorAllowance(flavor="fast"),))
    policy = Policy(queues=(queue,), flavors=(Flavor(id="fast", node_selector={"pool": "fast"}),))
    with engine_of(2, [job("a", queue="q")], policy=policy) as engine:
        assert places(engine.place(["a"])) == {}
        engine.edit([Label(do="label", labels={"pool": "fast"}, nodes=("n1",))])
        assert places(engine.place(["a"])) == {"a": [("n1", [0])]}
        assert_as_if_fresh(engine)
