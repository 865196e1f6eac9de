"""What a caller of a resident cluster is promised: plans, commits, errors that say what changed, prices of moves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from helpers.live_engine import engine_of, places, refuses, release, runs, update
from helpers.plans import NO_COSTS
from helpers.scenarios import two_sockets
from placeopt import BadInput, Engine, Instance, Plan, Policy, StaleSnapshot, Unsupported, audit, solve, violations
from placeopt.build import instance, job, machine, node, option, running
from placeopt.documents import dumps, loads
from placeopt.explain import explain
from placeopt.model import Changes, Communication, Domain, Fragmentation, Postpone, Queue, Quota, Split, Weights
from strategies import Choice, choices, rounds

MIXED = [job(f"j{i}", gpus=1 + i % 3, value=1 + i) for i in range(12)]


@settings(max_examples=10)
@given(rounds())
def test_a_whole_round_is_the_plan_of_the_snapshot(loaded: Instance) -> None:
    """Byte for byte, cold and with the last plan as hint."""
    with engine_of(loaded) as engine:
        last = None
        for step in range(2):
            update(engine, add_jobs=[job(f"more-{step}", gpus=1)])
            fresh = Instance.model_validate_json(engine.snapshot.model_dump_json())
            options: dict[str, Any] = {"method": "stranding", "deterministic": True}
            assert dumps(engine.place(**options)) == dumps(solve(fresh, previous=last, isolation="thread", **options))
            last = engine.place(warm=False, **options)
            assert dumps(last) == dumps(solve(fresh, isolation="thread", **options))


def test_seconds_add_up() -> None:
    """Also where checking what runs takes longer than all else (solving took negative time)."""
    jobs = [job(f"j{i}") for i in range(400)]
    held = [running(one, [(f"n{i // 4}", [i % 4])]) for i, one in enumerate(jobs)]
    with engine_of(100, jobs, running=held) as engine:
        seconds = engine.place(method="stranding").seconds
    parts = [part for part in (seconds.compile, seconds.solve, seconds.check) if part is not None]
    assert len(parts) == 3
    assert min(parts) >= 0
    assert seconds.total is not None
    assert sum(parts) <= seconds.total


def test_the_last_plan_is_a_hint() -> None:
    """Its stage says how much of it still holds."""
    with engine_of(2, [job("a", gpus=4), job("b", gpus=2)]) as engine:
        for warm, said in ((True, []), (True, ["2 of 2 earlier placements hold"]), (False, [])):
            stages = engine.place(method="stranding", warm=warm).stages
            assert [stage.detail for stage in stages if stage.name == "previous"] == said


@pytest.mark.parametrize(("price", "moves"), [(0, 1), (5, 0)])
def test_a_move_has_its_price(price: int, moves: int) -> None:
    """
    Two jobs of one GPU run on two nodes, which fragments both. Together on one node they would cost less: at no price
    the round moves one; at any price it does not, since value comes before cost.
    """
    policy = Policy(
        weights=Weights(communication=0, interference=0, fragmentation=1000),
        fragmentation=Fragmentation(level_weights={"node": 1}),
        changes=Changes(moves_max=1, move_price=price),
    )
    jobs = [job("a"), job("b"), job("c", gpus=2)]
    held = [running(one, [(f"n{i}", [0])], movable=True) for i, one in enumerate(jobs[:2])]
    with engine_of(2, jobs, running=held, policy=policy, machines=[machine(gpus=2)]) as engine:
        plan, before = engine.place(time_limit_s=20), places(engine.snapshot)
        assert len(plan.moved) == moves
        assert (plan.placement_of("c") is not None) == (price == 0)
        engine.commit(plan)
        after = places(engine.snapshot)
        assert sum(before[name] != after[name] for name in before) == moves


def test_jobs_are_placed_in_turn_and_the_cluster_is_left_as_it_was() -> None:
    """The second sees the first; the next call sees neither."""
    with engine_of(1, [job("a", gpus=3), job("b", gpus=3)]) as engine:
        plan = engine.place(["b", "a"])
        assert places(plan).keys() == {"b"}
        assert (plan.unplaced[0].job, plan.unplaced[0].reason) == ("a", "outvoted")
        assert places(engine.place(["a"])).keys() == {"a"}
        assert (plan.instance.digest, plan.asked) == (None, ("b", "a"))
        assert loads(Plan, dumps(plan)) == plan


def test_status_and_gap_are_of_the_value_alone() -> None:
    """Optimal only where no cost counts; else the gap is open once the value is proven."""
    for weights, status, gap in ((NO_COSTS, "optimal", 0.0), (Weights(), "feasible", None)):
        with engine_of(1, [job("a", gpus=2, value=7)], policy=Policy(weights=weights)) as engine:
            plan = engine.place("a")
            assert (plan.status, plan.gap, plan.levels[0].objective) == (status, gap, 7)
            assert audit(engine.snapshot, plan) == []
            lie = plan.model_copy(update={"levels": (plan.levels[0].model_copy(update={"objective": 8}),)})
            assert audit(engine.snapshot, lie) != []


def test_other_readers_of_plans_for_some_jobs() -> None:
    """The explanation of a round is not one of such a plan; a hint it may be."""
    with engine_of(1, [job("a"), job("b")]) as engine:
        plan = engine.place("a")
        with pytest.raises(BadInput, match="some jobs only"):
            explain(engine.snapshot, plan, "b")
        assert places(solve(engine.snapshot, previous=plan, isolation="thread")).keys() == {"a", "b"}


def test_why_a_job_waits() -> None:
    """Too large, barred by its queue, or laid out in a way that greedy may miss."""
    policy = Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=1000)),))
    apart = job("apart", workers=2, splits=(Split(level="rack", domains=2),))
    jobs = [job("large", gpus=5), job("barred", gpus=2, queue="q"), apart]
    racks = [Domain(id="r0"), Domain(id="r1")]
    with engine_of([node("n0", domain="r0")], jobs, domains=racks, policy=policy) as engine:
        reasons = [entry.reason for entry in engine.place(["large", "barred", "apart"]).unplaced]
        assert reasons == ["conflict", "policy", "not_reached"]


def test_only_waiting_jobs_and_greedy_methods() -> None:
    """Everything else is refused with what to do instead."""
    a, b = job("a"), job("b")
    with engine_of(1, [a, b], running=[running(a, [("n0", [0])])]) as engine:
        refuses(
            engine,
            [
                ("runs already", lambda e: e.place(["a"])),
                ("no job 'x'", lambda e: e.place(["x"])),
                ("twice", lambda e: e.place(["b", "b"])),
                ("stranding", lambda e: e.place(["b"], method="auto")),
                ("no method", lambda e: e.place(["b"], method="nonsense")),
            ],
        )
        assert places(engine.place(["b"], method="fcfs")).keys() == {"b"}


def test_a_stale_plan_names_what_changed() -> None:
    """Jobs and nodes, by attribute and in words; nothing is committed."""
    with engine_of(2, [job("a"), job("b"), job("c")]) as engine:
        first, whole = engine.place(["a"]), engine.place(method="stranding")
        update(engine, nodes={"n1": "drain"}, remove_jobs=["c"])
        engine.commit(engine.place(["b"]))
        for plan in (first, whole):
            with pytest.raises(StaleSnapshot, match=r"revision 0.*at 2.*'c' went.*'n1'.*'b' started") as caught:
                engine.commit(plan)
            assert (caught.value.planned, caught.value.revision) == (0, 2)
            assert (caught.value.jobs, caught.value.nodes) == (("c", "b"), ("n1",))
        assert (engine.revision, runs(engine)) == (2, ["b"])


def test_plans_of_elsewhere() -> None:
    """Another cluster, another policy, a revision that was never; but a plan made outside is judged and taken."""
    with engine_of(1, [job("a")], name="mine") as engine:
        plan = engine.place(["a"])
        foreign = solve(engine.snapshot, policy=Policy(name="p"), isolation="thread")
        other, later = (
            plan.model_copy(update={"instance": plan.instance.model_copy(update=update)})
            for update in ({"name": "other"}, {"revision": 9})
        )
        cases = (("is of 'other'", other), ("of another", later), ("another policy", foreign))
        refuses(engine, [(words, lambda e, plan=plan: e.commit(plan)) for words, plan in cases])
        engine.commit(solve(engine.snapshot, isolation="thread"))
        assert engine.revision == 1


@given(rounds(minima=False), choices)
def test_broken_plans_are_refused(loaded: Instance, choice: Choice) -> None:
    """By whatever rule the referee refuses them; and nothing of them is committed."""
    with engine_of(loaded) as engine:
        held = set(runs(engine))
        plan = engine.place([entry.id for entry in loaded.jobs if entry.id not in held])
        for _ in range(8):
            broken = damaged(choice, plan, loaded)
            if violations(loaded, broken):
                with pytest.raises(BadInput):
                    engine.commit(broken)
        assert engine.snapshot == loaded


def damaged(choice: Choice, plan: Plan, snapshot: Instance) -> Plan:
    """Move a placement elsewhere, change its amounts, swap its job, or name others."""
    if not plan.placements:
        return plan.model_copy(update={"asked": ("nobody",)})
    victim = choice.pick(plan.placements)
    part = victim.assignments[0]
    shifted = {
        "gpus": {str(int(gpu) + 1): share for gpu, share in part.gpus.items()},
        "workers": tuple(w.model_copy(update={"gpus": tuple(g + 1 for g in w.gpus)}) for w in part.workers),
    }
    changes = ({"node": choice.pick(snapshot.cluster.nodes).id}, shifted, {"node": "nowhere"}, {})
    change = choice.pick((*changes, {"cpu_millicores": part.cpu_millicores + 1}))
    update: dict[str, Any] = {"assignments": (part.model_copy(update=change), *victim.assignments[1:])}
    if not change:
        update["job"] = choice.pick(snapshot.jobs).id
    placements = [held if held is not victim else victim.model_copy(update=update) for held in plan.placements]
    return plan.model_copy(update={"placements": tuple(placements)})


def test_shares_of_queues_and_uplinks_count_what_runs() -> None:
    """A commit counts sums over the whole cluster though it looks at few nodes."""
    policy = Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=3000)),))
    wide = (option(workers=2, gpus=1, workers_per_node_max=1, network_bandwidth_mbps=60),)
    jobs = [job(name, options=wide, queue="q") for name in "ab"]
    jobs.append(job("c", options=wide, nodes_allowed=("n2", "n3")))
    small = machine(network_bandwidth_mbps=100)  # 75 usable
    held = [running(jobs[0], [("n0", [0]), ("n1", [0])])]
    with engine_of(4, jobs, running=held, machines=[small], policy=policy) as engine:
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


def test_nothing_is_loaded() -> None:
    """Every call says so; what runs must be lawful."""
    with Engine(isolation="thread") as engine:
        for call in (lambda: engine.snapshot, lambda: engine.revision, lambda: update(engine), engine.place):
            with pytest.raises(BadInput, match="load"):
                call()
        with pytest.raises(BadInput, match="load"):
            release(engine, "a")
        jobs = [job("a"), job("b")]
        with pytest.raises(BadInput, match="running placements"):
            engine.load(instance(1, jobs, running=[running(held, [("n0", [0])]) for held in jobs]))


def test_flags_of_jobs_that_start() -> None:
    """All of them, or some by id, of which a string is one and not its letters; and when they started."""
    with engine_of(1, [job("a"), job("ab"), job("b"), job("late")]) as engine:
        update(engine, now_ms=70)
        engine.commit(engine.place(["a", "b"]), movable=True, preemptible=["b"])
        engine.commit(engine.place(["ab"]), shrinkable="ab", movable="a")
        update(engine, remove_jobs=["late"])
        held = [(h.job, h.movable, h.shrinkable, h.preemptible, h.started_ms) for h in engine.snapshot.running]
        assert held == [("a", True, False, False, 70), ("b", True, False, True, 70), ("ab", False, True, False, 70)]
        assert [one.id for one in engine.snapshot.jobs] == ["a", "ab", "b"]


def one_pair(**postpone: Any) -> Instance:
    """A Minsky with a job in each socket, and a pair that would run across at a utility of 253."""
    pair = job("pair", gpus=2, communication=Communication(weight=1), utility_min_thousandths=300, run_time_ms=100_000)
    jobs = [job("left"), job("right"), pair]
    held = [running(one, [("n0", [gpu])]) for one, gpu in zip(jobs[:2], (0, 2), strict=True)]
    return instance(1, jobs, machines=[two_sockets()], running=held, policy=Policy(postpone=Postpone(**postpone)))


def test_a_decision_for_one_job_keeps_to_minimal_utility() -> None:
    """It waits until a socket is whole; a plan that says otherwise is not committed, be it of the same revision."""
    with engine_of(one_pair(rule="utility")) as engine:
        plan = engine.place(["pair"])
        assert [(one.reason, "253/1000" in one.detail) for one in plan.unplaced] == [("postponed", True)]
        engine.load(one_pair())
        across = engine.place(["pair"]).placements
        assert {int(gpu) for held in across[0].assignments for gpu in held.gpus} == {1, 3}
        engine.load(one_pair(rule="utility"))
        with pytest.raises(BadInput, match="utility"):
            engine.commit(engine.place(["pair"]).model_copy(update={"placements": across, "unplaced": ()}))
        release(engine, "left")
        engine.commit(engine.place(["pair"]))
        assert len(engine.snapshot.running) == 2


def test_look_ahead_decides_whole_rounds_by_expected_ends() -> None:
    """A pair waits for a socket that is whole in 5 s, and starts at once when that is put off by 500 or unknown."""
    with engine_of(one_pair(rule="lookahead")) as engine:
        with pytest.raises(Unsupported, match="call place\\(\\) without jobs"):
            engine.place(["pair"])
        assert engine.place(time_limit_s=5).placement_of("pair") is not None
        for soon, waits in ((5_000, True), (500_000, False)):
            update(engine, expected_end_ms={"left": soon, "right": 900_000})
            assert bool(engine.place(deterministic=True, warm=False).unplaced) == waits
            assert engine.snapshot.running[0].expected_end_ms == soon


def test_ends_that_were_known_are_no_change() -> None:
    """A plan stays good where the same ends are stated again, and the records are the same objects."""
    held = job("held")
    with engine_of(1, [held], running=[running(held, [("n0", [0])], expected_end_ms=900)]) as engine:
        before = engine.snapshot
        update(engine, expected_end_ms={"held": 900})
        assert engine.snapshot is before
        update(engine, expected_end_ms={"held": 901})
        assert engine.revision == before.revision + 1
        assert [one.expected_end_ms for one in engine.snapshot.running] == [901]


def test_a_round_of_greedy_without_a_proof_decides_the_same() -> None:
    """Only the bound is the trivial one; methods that prove by their nature do so all the same."""
    with engine_of(2, MIXED) as engine:
        proven, quick = (engine.place(method="best-fit", deterministic=True, prove=prove) for prove in (True, False))
        assert places(proven) == places(quick)
        assert [any(stage.name == "bound" for stage in one.stages) for one in (proven, quick)] == [True, False]
        assert quick.levels[0].bound is not None
        assert proven.levels[0].bound <= quick.levels[0].bound
        assert engine.place(method="counts-cpsat", deterministic=True, prove=False).status == "optimal"


@pytest.mark.parametrize("jobs", [None, [one.id for one in MIXED]], ids=["whole round", "some jobs"])
def test_a_round_without_reasons_decides_the_same(jobs: list[str] | None) -> None:
    """Every job that waits is stated as not reached."""
    options: dict[str, Any] = {} if jobs else {"deterministic": True}
    with engine_of(2, MIXED) as engine:
        told, quick = (engine.place(jobs, method="best-fit", explain=asked, **options) for asked in (True, False))
        assert places(told) == places(quick)
        assert {one.reason for one in told.unplaced} == {"outvoted"}
        assert {(one.reason, one.detail) for one in quick.unplaced} == {("not_reached", "no reason was requested")}
        assert [one.job for one in told.unplaced] == [one.job for one in quick.unplaced]
