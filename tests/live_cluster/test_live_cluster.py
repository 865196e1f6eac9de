"""What a caller of a resident cluster is promised: plans, commits, errors that say what changed, prices of moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placeopt import BadInput, Engine, Instance, Plan, Policy, StaleSnapshot, Unsupported, audit, solve, violations
from placeopt.build import instance, job, machine, node, option, running
from placeopt.explain import explain
from placeopt.formats import dumps, loads
from placeopt.model import (
    Changes,
    Communication,
    Domain,
    Fragmentation,
    Gpu,
    Part,
    Postpone,
    Queue,
    Quota,
    Split,
    Weights,
)
from strategies import rounds

NO_COST = Weights(communication=0, interference=0, fragmentation=0)


def engine_of(*args: Any, **fields: Any) -> Engine:
    """Load an instance made of the arguments of ``build.instance``."""
    engine = Engine(isolation="thread")
    engine.load(instance(*args, **fields))
    return engine


def places(plan: Plan) -> dict[str, list[tuple[str, list[str]]]]:
    """Return the nodes and GPUs of every job that is placed."""
    return {p.job: [(a.node, list(a.gpus)) for a in p.assignments] for p in plan.placements}


class TestWholeRounds:
    """``place()``."""

    @settings(max_examples=10)
    @given(rounds())
    def test_it_is_the_plan_of_the_snapshot(self, loaded: Instance) -> None:
        """Byte for byte, cold and with the last plan as hint."""
        with Engine(isolation="thread") as engine:
            engine.load(loaded)
            last = None
            for step in range(2):
                engine.update(add_jobs=[job(f"more-{step}", gpus=1)])
                fresh = Instance.model_validate_json(engine.snapshot.model_dump_json())
                options: dict[str, Any] = {"method": "stranding", "deterministic": True}
                warm = engine.place(**options)
                assert dumps(warm) == dumps(solve(fresh, previous=last, isolation="thread", **options))
                cold = engine.place(warm=False, **options)
                assert dumps(cold) == dumps(solve(fresh, isolation="thread", **options))
                last = cold

    def test_its_seconds_add_up(self) -> None:
        """Also where checking what runs takes longer than all else (regression: solving took negative time)."""
        jobs = [job(f"j{i}") for i in range(400)]
        runs = [running(held, [(f"n{i // 4}", [i % 4])]) for i, held in enumerate(jobs)]
        with engine_of(100, jobs, running=runs) as engine:
            seconds = engine.place(method="stranding").seconds
            parts = (seconds.compile, seconds.solve, seconds.check)
            assert all(part is not None and part >= 0 for part in parts)
            assert seconds.total is not None
            assert sum(part or 0 for part in parts) <= seconds.total

    def test_the_last_plan_is_a_hint(self) -> None:
        """Its stage says how much of it still holds; what is committed is no hint any more."""
        with engine_of(2, [job("a", gpus=4), job("b", gpus=2)]) as engine:
            engine.place(method="stranding")
            again = engine.place(method="stranding")
            assert [stage.detail for stage in again.stages if stage.name == "previous"] == [
                "2 of 2 earlier placements hold"
            ]
            assert "previous" not in [stage.name for stage in engine.place(method="stranding", warm=False).stages]

    @pytest.mark.parametrize(("price", "moves"), [(0, 1), (5, 0)])
    def test_a_move_has_its_price(self, price: int, moves: int) -> None:
        """
        Two jobs of one GPU run on two nodes, which fragments both. Together on one node they would cost less: at no
        price the round moves one; at any price it does not, since value comes before cost.
        """
        policy = Policy(
            weights=Weights(communication=0, interference=0, fragmentation=1000),
            fragmentation=Fragmentation(level_weights={"node": 1}),
            changes=Changes(moves_max=1, move_price=price),
        )
        jobs = [job("a"), job("b"), job("c", gpus=2)]
        runs = [running(jobs[0], [("n0", [0])], movable=True), running(jobs[1], [("n1", [0])], movable=True)]
        with engine_of(2, jobs, running=runs, policy=policy, machines=[machine(gpus=2)]) as engine:
            plan = engine.place(time_limit_s=20)
            assert len(plan.moved) == moves if price == 0 else not plan.moved
            assert (plan.placement_of("c") is not None) == (price == 0)
            before = {held.job: held for held in engine.snapshot.running}
            engine.commit(plan)
            after = {held.job: held for held in engine.snapshot.running}
            assert sum(before[name] != after[name] for name in before) == moves

    def test_a_warm_round_keeps_what_a_cold_one_would_shuffle(self) -> None:
        """The same jobs, all waiting, are placed otherwise; running ones that may be moved at a price stay."""
        policy = Policy(weights=NO_COST, changes=Changes(moves_max=9, move_price=1))
        jobs = [job(f"j{i}", gpus=1 + i % 2) for i in range(4)]
        runs = [running(held, [(f"n{3 - i}", [0, 1][: 1 + i % 2])], movable=True) for i, held in enumerate(jobs)]
        with engine_of(4, jobs, running=runs, policy=policy) as engine:
            stood = {held.job: [(a.node, list(a.gpus)) for a in held.assignments] for held in engine.snapshot.running}
            engine.update(add_jobs=[job("new", gpus=4)])
            plan = engine.place(time_limit_s=20)
            assert plan.placement_of("new") is None or not plan.moved
            kept = {name: where for name, where in places(plan).items() if name in stood}
            moved = {entry.job for entry in plan.moved}
            assert all(kept[name] == stood[name] for name in stood if name not in moved)
            assert len(moved) <= 1  # one move makes room for a job worth 1 at a price of 1: no gain in more
            shuffled = solve(instance(4, [*jobs, job("new", gpus=4)], policy=policy), isolation="thread")
            assert sum(places(shuffled).get(name) != stood[name] for name in stood) > len(moved)


class TestSomeJobs:
    """``place(jobs)``."""

    def test_jobs_are_placed_in_turn_and_the_cluster_is_left_as_it_was(self) -> None:
        """The second sees the first; the next call sees neither."""
        with engine_of(1, [job("a", gpus=3), job("b", gpus=3)]) as engine:
            plan = engine.place(["b", "a"])
            assert places(plan).keys() == {"b"}
            assert (plan.unplaced[0].job, plan.unplaced[0].reason) == ("a", "outvoted")
            assert places(engine.place(["a"])).keys() == {"a"}
            assert plan.instance.digest is None
            assert plan.asked == ("b", "a")
            assert loads(Plan, dumps(plan)) == plan

    def test_status_and_gap_are_of_the_value_alone(self) -> None:
        """Optimal only where no cost counts; else the gap is open once the value is proven."""
        for weights, status, gap in ((NO_COST, "optimal", 0.0), (Weights(), "feasible", None)):
            with engine_of(1, [job("a", gpus=2, value=7)], policy=Policy(weights=weights)) as engine:
                plan = engine.place("a")
                assert (plan.status, plan.gap, plan.levels[0].objective) == (status, gap, 7)
                assert audit(engine.snapshot, plan) == []
                lie = plan.model_copy(update={"levels": (plan.levels[0].model_copy(update={"objective": 8}),)})
                assert audit(engine.snapshot, lie) != []

    def test_other_readers_of_plans(self) -> None:
        """The explanation of a round is not one of a plan for some jobs; a hint it may be."""
        with engine_of(1, [job("a"), job("b")]) as engine:
            plan = engine.place("a")
            with pytest.raises(BadInput, match="some jobs only"):
                explain(engine.snapshot, plan, "b")
            assert places(solve(engine.snapshot, previous=plan, isolation="thread")).keys() == {"a", "b"}

    def test_why_a_job_waits(self) -> None:
        """Too large, barred by its queue, or laid out in a way that greedy may miss."""
        policy = Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=1000)),))
        split = option(workers=2, splits=(Split(level="rack", domains=2),))
        jobs = [job("large", gpus=5), job("barred", gpus=2, queue="q"), job("apart", options=(split,))]
        with engine_of(
            [node("n0", domain="r0")], jobs, domains=[Domain(id="r0"), Domain(id="r1")], policy=policy
        ) as engine:
            plan = engine.place(["large", "barred", "apart"])
            assert [entry.reason for entry in plan.unplaced] == ["conflict", "policy", "not_reached"]

    def test_only_waiting_jobs_and_greedy_methods(self) -> None:
        """Everything else is refused with what to do instead."""
        a, b = job("a"), job("b")
        with engine_of(1, [a, b], running=[running(a, [("n0", [0])])]) as engine:
            for jobs, message in ((["a"], "runs already"), (["x"], "no job 'x'"), (["b", "b"], "twice")):
                with pytest.raises(BadInput, match=message):
                    engine.place(jobs)
            with pytest.raises(Unsupported, match="stranding"):
                engine.place(["b"], method="auto")
            with pytest.raises(BadInput, match="no method"):
                engine.place(["b"], method="nonsense")
            assert places(engine.place(["b"], method="fcfs")).keys() == {"b"}


class TestCommit:
    """What may take effect."""

    def test_a_stale_plan_names_what_changed(self) -> None:
        """Jobs and nodes, by attribute and in words; nothing is committed."""
        with engine_of(2, [job("a"), job("b"), job("c")]) as engine:
            first, whole = engine.place(["a"]), engine.place(method="stranding")
            engine.update(nodes={"n1": "drain"}, remove_jobs=["c"])
            engine.commit(engine.place(["b"]))
            for plan in (first, whole):
                with pytest.raises(StaleSnapshot, match=r"revision 0.*at 2.*'c' went.*'n1'.*'b' started") as caught:
                    engine.commit(plan)
                assert (caught.value.planned, caught.value.revision) == (0, 2)
                assert (caught.value.jobs, caught.value.nodes) == (("c", "b"), ("n1",))
            assert engine.revision == 2
            assert [held.job for held in engine.snapshot.running] == ["b"]

    def test_plans_of_elsewhere(self) -> None:
        """Another cluster, another policy, a revision that was never; but a plan made outside is judged and taken."""
        with engine_of(1, [job("a")], name="mine") as engine:
            plan = engine.place(["a"])
            ref = plan.instance
            for update, message in (
                ({"instance": ref.model_copy(update={"name": "other"})}, "is of 'other'"),
                ({"instance": ref.model_copy(update={"revision": 9})}, "of another"),
            ):
                with pytest.raises(BadInput, match=message):
                    engine.commit(plan.model_copy(update=update))
            foreign = solve(engine.snapshot, policy=Policy(name="p"), isolation="thread")
            with pytest.raises(BadInput, match="another policy"):
                engine.commit(foreign)
            engine.commit(solve(engine.snapshot, isolation="thread"))
            assert engine.revision == 1

    @given(rounds(minima=False), st.integers(0, 2**32))
    def test_broken_plans_are_refused(self, loaded: Instance, seed: int) -> None:
        """By whatever rule the referee refuses them; and nothing of them is committed."""
        rng = np.random.default_rng(seed)
        with Engine(isolation="thread") as engine:
            engine.load(loaded)
            held = {entry.job for entry in loaded.running}
            plan = engine.place([entry.id for entry in loaded.jobs if entry.id not in held])
            for _ in range(8):
                broken = damaged(rng, plan, loaded)
                if violations(loaded, broken):
                    with pytest.raises(BadInput):
                        engine.commit(broken)
            assert engine.snapshot == loaded

    def test_shares_of_queues_and_uplinks_count_what_runs(self) -> None:
        """A commit counts sums over the whole cluster though it looks at few nodes."""
        policy = Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=3000)),))
        wide = option(workers=2, gpus=1, workers_per_node_max=1, network_bandwidth_mbps=60)
        jobs = [
            job("a", options=(wide,), queue="q"),
            job("b", options=(wide,), queue="q"),
            job("c", options=(wide,), nodes_allowed=("n2", "n3")),
        ]
        small = machine(network_bandwidth_mbps=100)  # 75 usable
        runs = [running(jobs[0], [("n0", [0]), ("n1", [0])])]
        with engine_of(4, jobs, running=runs, machines=[small], policy=policy) as engine:
            plan = engine.place(["c"])
            right, other = plan.placements[0].assignments
            worker = right.workers[0].model_copy(update={"gpus": (1,)})
            wrong = right.model_copy(update={"node": "n0", "gpus": {"1": 1000}, "workers": (worker,)})
            beside_a = plan.placements[0].model_copy(update={"assignments": (wrong, other)})
            for fields, rule in (
                ({"placements": (beside_a,)}, "uplink"),
                ({"asked": ("b",), "placements": (beside_a.model_copy(update={"job": "b"}),)}, "queue_quota"),
            ):
                broken = plan.model_copy(update=fields)
                assert rule in {found.rule for found in violations(engine.snapshot, broken)}
                with pytest.raises(BadInput, match="plan: "):
                    engine.commit(broken)


def damaged(rng: np.random.Generator, plan: Plan, snapshot: Instance) -> Plan:
    """Move a placement elsewhere, change its amounts, swap its job, or name others."""
    if not plan.placements:
        return plan.model_copy(update={"asked": ("nobody",)})
    i = int(rng.integers(len(plan.placements)))
    victim = plan.placements[i]
    part = victim.assignments[0]
    match int(rng.integers(5)):
        case 0:
            nodes = snapshot.cluster.nodes
            part = part.model_copy(update={"node": nodes[int(rng.integers(len(nodes)))].id})
        case 1:
            shift = {str(int(gpu) + 1): share for gpu, share in part.gpus.items()}
            workers = tuple(w.model_copy(update={"gpus": tuple(g + 1 for g in w.gpus)}) for w in part.workers)
            part = part.model_copy(update={"gpus": shift, "workers": workers})
        case 2:
            part = part.model_copy(update={"cpu_millicores": part.cpu_millicores + 1})
        case 3:
            part = part.model_copy(update={"node": "nowhere"})
        case _:
            jobs = snapshot.jobs
            victim = victim.model_copy(update={"job": jobs[int(rng.integers(len(jobs)))].id})
    victim = victim.model_copy(update={"assignments": (part, *victim.assignments[1:])})
    return plan.model_copy(update={"placements": (*plan.placements[:i], victim, *plan.placements[i + 1 :])})


class TestErrors:
    """Nothing happens halfway."""

    def test_nothing_is_loaded(self) -> None:
        """Every call says so."""
        with Engine(isolation="thread") as engine:
            for call in (
                lambda: engine.snapshot,
                lambda: engine.revision,
                engine.update,
                engine.place,
                lambda: engine.release("a"),
            ):
                with pytest.raises(BadInput, match="load"):
                    call()

    def test_what_runs_must_be_lawful(self) -> None:
        """At loading, too."""
        jobs = [job("a"), job("b")]
        both = instance(1, jobs, running=[running(held, [("n0", [0])]) for held in jobs])
        with Engine(isolation="thread") as engine, pytest.raises(BadInput, match="running placements"):
            engine.load(both)

    def test_refused_updates_change_nothing(self) -> None:
        """Whatever part of it is wrong."""
        a, b = job("a", gpus=3), job("b", nodes_allowed=("n1",))
        machines = [machine(), machine("tiny", gpus=1)]
        with engine_of(3, [a, b], running=[running(a, [("n0", [0, 1, 2])])], machines=machines) as engine:
            before = engine.snapshot
            good, in_a_hall = [job("good")], option(splits=(Split(level="hall", domains=1),))
            for update, message in (
                ({"add_jobs": [job("b")]}, "there already"),
                ({"add_jobs": [job("x"), job("x")]}, "there already"),
                ({"add_jobs": [job("x", nodes_allowed=("gone",))]}, "no node 'gone'"),
                ({"add_jobs": [*good, job("x", options=(in_a_hall,))]}, "hall"),
                ({"add_jobs": good, "remove_jobs": ["a"]}, "release"),
                ({"add_jobs": good, "remove_jobs": ["x"]}, "no job 'x'"),
                ({"add_jobs": good, "nodes": {"n0": None}}, "cannot go; release what runs there first: job 'a'"),
                ({"add_jobs": good, "nodes": {"n1": None}}, "nodes_allowed"),
                ({"add_jobs": good, "nodes": {"n9": "drain"}}, "no node"),
                ({"add_jobs": good, "nodes": {"n2": "melt"}}, "melt"),
                ({"add_jobs": good, "nodes": {"n2": node("n3")}}, "keys are ids"),
                ({"add_jobs": good, "nodes": {"n2": node("n2", "huge")}}, "machine type"),
                ({"add_jobs": good, "nodes": {"n2": node("n2", domain="hall")}}, "domain"),
                ({"add_jobs": ["good"]}, "records"),
                ({"now_ms": -1}, "forward"),
            ):
                with pytest.raises(BadInput, match=message):
                    engine.update(**update)
                assert engine.snapshot is before, message
            vast = option(workers=90_000, workers_min=1, value_per_extra_worker=10**9)
            with pytest.raises(Unsupported, match=r"2\*\*53"):
                engine.update(add_jobs=[job(f"x{i}", options=(vast,)) for i in range(110)])
            assert engine.snapshot is before
            engine.update(add_jobs=good)  # and the next one finds everything in order
            assert places(engine.place(["good"])).keys() == {"good"}

    def test_released_jobs_are_gone(self) -> None:
        """Their record comes back; what does not run cannot be released."""
        a = job("a")
        with engine_of(1, [a], running=[running(a, [("n0", [0])])]) as engine:
            assert engine.release("a") == a
            assert engine.snapshot.jobs == ()
            with pytest.raises(BadInput, match="does not run"):
                engine.release("a")

    def test_flags_of_jobs_that_start(self) -> None:
        """All of them, or some by id; and when they started."""
        with engine_of(1, [job("a"), job("b")]) as engine:
            engine.update(now_ms=70)
            engine.commit(engine.place(["a", "b"]), movable=True, preemptible=["b"])
            assert [(h.job, h.movable, h.shrinkable, h.preemptible, h.started_ms) for h in engine.snapshot.running] == [
                ("a", True, False, False, 70),
                ("b", True, False, True, 70),
            ]

    def test_a_string_is_one_id(self) -> None:
        """Not its letters, nor whatever is a part of it."""
        with engine_of(1, [job("a"), job("ab"), job("late")]) as engine:
            engine.commit(engine.place(["a", "ab"]), movable="ab")
            assert {held.job: held.movable for held in engine.snapshot.running} == {"a": False, "ab": True}
            engine.update(remove_jobs="late")
            assert [one.id for one in engine.snapshot.jobs] == ["a", "ab"]


def one_pair(postpone: Postpone) -> Instance:
    """A Minsky with a job in each socket, and a pair that would run across at a utility of 253."""
    gpus = [Gpu(model="P100", memory_mib=16_384, part=f"s{i // 2}") for i in range(4)]
    minsky = machine(
        gpus=gpus,
        parts=(Part(id="s0", level="socket"), Part(id="s1", level="socket")),
        gpu_distance_matrix=((0, 1, 20, 20), (1, 0, 20, 20), (20, 20, 0, 1), (20, 20, 1, 0)),
    )
    held = [job("left"), job("right")]
    pair = job("pair", gpus=2, communication=Communication(weight=1), utility_min_thousandths=300)
    return instance(
        1,
        [*held, pair],
        machines=[minsky],
        running=[running(held[0], [("n0", [0])]), running(held[1], [("n0", [2])])],
        policy=Policy(postpone=postpone),
    )


def test_a_decision_for_one_job_keeps_to_minimal_utility() -> None:
    """It waits until a socket is whole; a plan that says otherwise is not committed, be it of the same revision."""
    with Engine(isolation="thread") as engine:
        engine.load(one_pair(Postpone(rule="utility")))
        plan = engine.place(["pair"])
        assert [(one.reason, "253/1000" in one.detail) for one in plan.unplaced] == [("postponed", True)]
        engine.load(one_pair(Postpone()))
        across = engine.place(["pair"]).placements
        assert {int(gpu) for held in across[0].assignments for gpu in held.gpus} == {1, 3}
        engine.load(one_pair(Postpone(rule="utility")))
        with pytest.raises(BadInput, match="utility"):
            engine.commit(engine.place(["pair"]).model_copy(update={"placements": across, "unplaced": ()}))
        engine.release("left")
        engine.commit(engine.place(["pair"]))
        assert len(engine.snapshot.running) == 2


def test_look_ahead_decides_whole_rounds_only() -> None:
    with Engine(isolation="thread") as engine:
        engine.load(one_pair(Postpone(rule="lookahead")))
        with pytest.raises(Unsupported, match="call place\\(\\) without jobs"):
            engine.place(["pair"])
        assert engine.place(time_limit_s=5).placement_of("pair") is not None


def test_updated_expected_ends_change_look_ahead() -> None:
    """A pair waits for a socket that is whole in 5 s, and starts at once when that is put off by 500."""
    loaded = one_pair(Postpone(rule="lookahead"))
    pair = loaded.jobs[-1]
    timed = pair.model_copy(update={"options": (pair.options[0].model_copy(update={"run_time_ms": 100_000}),)})
    with Engine(isolation="thread") as engine:
        engine.load(loaded.model_copy(update={"jobs": (*loaded.jobs[:-1], timed)}))
        held = [runs.job for runs in engine.snapshot.running]
        for soon, waits in ((5_000, True), (500_000, False)):
            engine.update(expected_end_ms={held[0]: soon, held[1]: 900_000})
            assert bool(engine.place(deterministic=True, warm=False).unplaced) == waits
            assert engine.snapshot.running[0].expected_end_ms == soon
        with pytest.raises(BadInput, match="expected_end_ms: job 'nobody' does not run"):
            engine.update(expected_end_ms={"nobody": 1})
        with pytest.raises(BadInput, match="expected_end_ms: -1 for job"):
            engine.update(expected_end_ms={held[0]: -1})


def test_a_round_of_greedy_without_a_proof_decides_the_same() -> None:
    """Only the bound is the trivial one; methods that prove by their nature do so all the same."""
    jobs = [job(f"j{i}", gpus=1 + i % 3, value=1 + i) for i in range(12)]
    with engine_of(2, jobs) as engine:
        proven, quick = (engine.place(method="best-fit", deterministic=True, prove=prove) for prove in (True, False))
        assert places(proven) == places(quick)
        assert any(stage.name == "bound" for stage in proven.stages)
        assert not any(stage.name == "bound" for stage in quick.stages)
        assert quick.levels[0].bound is not None
        assert proven.levels[0].bound <= quick.levels[0].bound
        assert engine.place(method="counts-cpsat", deterministic=True, prove=False).status == "optimal"


def test_a_round_without_reasons_decides_the_same() -> None:
    """They are told of as not reached, but for those that look-ahead lets wait, whose reason is known."""
    jobs = [job(f"j{i}", gpus=1 + i % 3, value=1 + i) for i in range(12)]
    with engine_of(2, jobs) as engine:
        told, quick = (engine.place(method="best-fit", deterministic=True, explain=asked) for asked in (True, False))
        assert places(told) == places(quick)
        assert {one.reason for one in told.unplaced} == {"outvoted"}
        assert {(one.reason, one.detail) for one in quick.unplaced} == {("not_reached", "no reason was requested")}
        assert [one.job for one in told.unplaced] == [one.job for one in quick.unplaced]
        ids = [one.id for one in jobs]
        told, quick = (engine.place(ids, method="best-fit", explain=asked) for asked in (True, False))
        assert places(told) == places(quick)
        assert {one.reason for one in told.unplaced} == {"outvoted"}
        assert {one.reason for one in quick.unplaced} == {"not_reached"}


def test_ends_that_were_known_are_no_change() -> None:
    """A plan stays good where the same ends are stated again, and the records are the same objects."""
    held = job("held")
    with engine_of(1, [held], running=[running(held, [("n0", [0])], expected_end_ms=900)]) as engine:
        before = engine.snapshot
        engine.update(expected_end_ms={"held": 900})
        assert engine.snapshot is before
        engine.update(expected_end_ms={"held": 901})
        assert engine.revision == before.revision + 1
        assert [one.expected_end_ms for one in engine.snapshot.running] == [901]
