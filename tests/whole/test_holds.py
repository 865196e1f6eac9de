"""Room held without a job, and named amounts of domains and of the cluster: referee, solver and brute force."""

from contextlib import nullcontext
from itertools import combinations, product
from typing import Any

import pytest

from helpers.live_engine import (
    assert_as_if_fresh,
    engine_of,
    fail_gpu,
    fail_or_repair,
    places,
    refuses,
    release,
    update,
)
from helpers.night import seeds
from helpers.plans import plan_for
from helpers.referee_messages import findings
from helpers.solved import compare_methods, planned
from placeopt import BadInput, StaleSnapshot, solve
from placeopt.build import cluster, instance, job, machine, node, running
from placeopt.check import Ledger, judge, violations
from placeopt.explain import explain, explain_all
from placeopt.live_cluster import ClusterChanges, Engine, changes_between
from placeopt.model import Domain, Hold, Instance, Job, Policy, Queue, Quota
from strategies.choice import Choice, seeded


def hold(name: str = "h", at: str = "n0", **fields: Any) -> Hold:
    """Return a hold; ``of``: the jobs that the room is held for."""
    of = fields.pop("of", ())
    return Hold.model_validate({"id": name, "node": at, "for": tuple(of), **fields})


def placed(round_: Instance) -> set[str]:
    """Solve a round to the proven optimum and return the jobs that run."""
    plan = planned(round_)
    assert plan.status == "optimal"
    return {placement.job for placement in plan.placements}


ALL, CPU = {"gpus": (0, 1, 2, 3)}, {"cpu_millicores": 20_000}
CASES: dict[str, tuple[list[Job], dict[str, Any], set[str]]] = {
    # four GPUs, 32 cores
    "no job at all": ([], ALL, set()),
    "GPUs held against all": ([job("w", gpus=4)], ALL, set()),
    "the others are free": ([job("w", gpus=3, value=2), job("v", gpus=1)], {"gpus": (3,)}, {"w"}),
    "cores held against all": ([job("w", gpus=0, cpu_millicores=12_001)], CPU, set()),
    "cores that are left": ([job("w", gpus=0, cpu_millicores=12_000), job("v", gpus=4)], CPU, {"w", "v"}),
    "memory": ([job("w", memory_mib=262_144)], {"memory_mib": 1}, set()),
    "held for a job": ([job("w", gpus=4)], {**ALL, "of": ["w"]}, {"w"}),
    "held for another": ([job("w", gpus=4)], {**ALL, "of": ["v"]}, set()),
    "held for one of two": (
        [job("w", gpus=1), job("v", gpus=1, value=9), job("u", gpus=1)], {**ALL, "of": ["w", "u"]}, {"w", "u"}),
    # of equal priority it counts, as in Kubernetes
    "below its priority": ([job("w", gpus=4, priority=4)], {**ALL, "priority": 5}, set()),
    "at its priority": ([job("w", gpus=4, priority=5)], {**ALL, "priority": 5}, set()),
    "above its priority": ([job("w", gpus=4, priority=6)], {**ALL, "priority": 5}, {"w"}),
    "cores for a priority": (
        [job("w", gpus=0, cpu_millicores=20_000, priority=6), job("v", gpus=0, cpu_millicores=13_000)],
        {**CPU, "priority": 5}, {"w"}),
    "cores for a job, which takes less": (
        [job("w", gpus=0, cpu_millicores=1_000), job("v", gpus=0, cpu_millicores=12_000),
         job("u", gpus=0, cpu_millicores=1)], {**CPU, "of": ["w"]}, {"w", "v"}),
    "it has ended": ([job("w", gpus=4)], {**ALL, "until_ms": 100}, {"w"}),
    "it has not": ([job("w", gpus=4)], {**ALL, "until_ms": 101}, set()),
    "it begins after the job": ([job("w", gpus=4, run_time_ms=900)], {**ALL, "from_ms": 1000}, {"w"}),
    "it begins before the job ends": ([job("w", gpus=4, run_time_ms=901)], {**ALL, "from_ms": 1000}, set()),
    "no run time is stated": ([job("w", gpus=4)], {**ALL, "from_ms": 1000}, set()),
    "it has begun": ([job("w", gpus=4, run_time_ms=0)], {**ALL, "from_ms": 100}, set()),
    "it begins, for a job that runs on": (
        [job("w", gpus=4, run_time_ms=2000)], {**ALL, "from_ms": 1000, "of": ["w"]}, {"w"}),
    "it begins, against a priority": (
        [job("w", gpus=2, priority=6), job("v", gpus=2, priority=5), job("u", gpus=1, priority=1, run_time_ms=9)],
        {**ALL, "from_ms": 1000, "priority": 5}, {"w", "u"}),
    "cores that are held later": (
        [job("w", gpus=0, cpu_millicores=12_001, run_time_ms=901), job("v", gpus=0, cpu_millicores=12_000, value=2),
         job("u", gpus=0, cpu_millicores=20_000, run_time_ms=900)], {**CPU, "from_ms": 1000}, {"v", "u"}),
    "a node that is not listed": ([job("w", gpus=4)], {**ALL, "at": "gone"}, {"w"}),
    "a GPU that is not listed": ([job("w", gpus=4)], {"gpus": (9,)}, {"w"}),
    "named resources": (
        [job("w", resources={"dev": 2}), job("v", resources={"dev": 1}, value=2)], {"resources": {"dev": 1}}, {"v"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_hold(name: str) -> None:
    """Which of the jobs start on one node beside the hold; the referee refuses each of the others alone."""
    jobs, fields, expected = CASES[name]
    machines = [machine(resources={"dev": 2})]
    round_ = instance(1, jobs, machines=machines, holds=[hold(**fields)], now_ms=100)
    assert placed(round_) == expected
    for method in ("fcfs", "best-fit"):
        assert violations(round_, solve(round_, method=method)) == []
    for one in jobs[:1]:
        assert explain(round_, planned(round_), one.id) is not None


def test_holds_that_follow_each_other() -> None:
    """From 1,000 on there are 12 cores, from 2,000 on 2: what is held until then has ended."""
    held = [
        hold("a", cpu_millicores=20_000, from_ms=1000, until_ms=2000),
        hold("b", cpu_millicores=20_000, from_ms=2000),
        hold("c", cpu_millicores=10_000, from_ms=2000),
    ]
    for cores, run_time_ms, starts in (
        (12, 2000, True), (13, 1001, False), (32, 1000, True), (3, 2001, False), (2, 3000, True)
    ):  # fmt: skip
        round_ = instance(1, [job("w", gpus=0, cpu_millicores=1000 * cores, run_time_ms=run_time_ms)], holds=held)
        assert placed(round_) == {"w"} if starts else not placed(round_), cores


def test_an_engine_knows_when_holds_begin_and_end() -> None:
    """As if the cluster were loaded at that time."""
    jobs = [job("w", gpus=4, run_time_ms=500), job("r", gpus=0, cpu_millicores=1, run_time_ms=400)]
    runs = [running(jobs[1], [("n0", [])])]
    round_ = instance(1, jobs, running=runs, holds=[hold(**ALL, from_ms=1000, until_ms=2000)])
    with Engine(isolation="thread") as engine:
        engine.load(round_)
        for now_ms, starts in ((400, True), (501, False), (1999, False), (2000, True)):
            update(engine, now_ms=now_ms)
            plan = engine.place(["w"], time_limit_s=20)
            assert bool(plan.placements) == starts
            assert placed(engine.snapshot) == ({"w", "r"} if starts else {"r"})
        release(engine, "r")
        engine.commit(engine.place(["w"], time_limit_s=20))
        assert [one.job for one in engine.snapshot.running] == ["w"]


def test_what_the_referee_says() -> None:
    """The hold by name; of a running job that stays nothing, but that it stands."""
    jobs = [job("w", cpu_millicores=13_000), job("r", cpu_millicores=1)]
    round_ = instance(1, jobs, running=[running(jobs[1], [("n0", [1])])], holds=[hold(gpus=(0, 1), **CPU)])
    plan = plan_for(round_, {"w": [("n0", [0])]})
    assert findings(round_, plan) == [
        ("hold", "node 'n0'", ["13001", "12000", "'h'", "'r'", "'w'"]),
        ("hold", "node 'n0' gpu 0", ["1", "0", "'h'", "'w'"]),
    ]
    assert [(v.rule, v.job) for v in judge(round_, plan).standing] == [("hold", "r")]
    some = plan_for(round_, {"w": [("n0", [0])]}, asked=["w"])
    assert {v.where for v in Ledger(round_, Policy()).violations(round_, some)} == {"node 'n0'", "node 'n0' gpu 0"}


def test_what_would_let_jobs_start() -> None:
    """A hold that is released, a licence that there is enough of; each alone, and not what nobody waits for."""
    jobs = [job("w", gpus=4), job("l", gpus=0, resources={"lic": 2})]
    made = cluster([node("n0")]).model_copy(update={"resources": {"lic": 1}})
    round_ = instance(made, jobs, holds=[hold(**ALL), hold("other", "gone")])
    found = explain_all(round_, solve(round_, time_limit_s=20))
    freed = {one.change: one.jobs_together for one in found.changes}
    assert freed["release hold 'h'"] == freed["enough lic everywhere"] == 1
    assert not freed.get("release hold 'other'")


def test_running_jobs_stay_in_held_room() -> None:
    jobs = [job("r", gpus=4), job("w", gpus=1)]
    round_ = instance(1, jobs, running=[running(jobs[0], [("n0", [0, 1, 2, 3])])], holds=[hold(**ALL)])
    assert placed(round_) == {"r"}


def test_shares_of_queues_are_of_the_whole_cluster() -> None:
    """50 % of the cores of a node of which three quarters are held."""
    policy = Policy(queues=(Queue(id="q", dominant_share_percent=25),))
    jobs = [job("w", gpus=0, cpu_millicores=8_000, queue="q"), job("v", gpus=0, cpu_millicores=1, queue="q")]
    round_ = instance(1, jobs, holds=[hold(cpu_millicores=24_000)], policy=policy)
    assert placed(round_) == {"w"}


POWER = {"resources": {"watt": 400}}
PLACES: dict[str, tuple[list[Job], dict[str, Any], set[str]]] = {
    "power of a rack": (
        [job(name, resources={"watt": 700}, node_selector={"rack": rack}, value=value)
         for name, rack, value in (("a", "r0", 2), ("b", "r0", 1), ("c", "r1", 1))],
        {"racks": {"r0": {"watt": 1000}}}, {"a", "c"}),
    "a gang over two racks": (
        [job("g", workers=3, gpus=4, resources={"watt": 500})], {"racks": {"r0": {"watt": 999}}}, {"g"}),
    "a gang that finds too little": (
        [job("g", workers=4, gpus=4, resources={"watt": 500})], {"racks": {"r0": {"watt": 999}}}, set()),
    "licences of the cluster": (
        [job(name, gpus=0, resources={"lic": n}, value=n) for name, n in (("a", 3), ("b", 2), ("c", 2))],
        {"cluster": {"lic": 4}}, {"b", "c"}),
    "what nobody states": ([job("a", gpus=0, resources={"dongle": 1})], {"cluster": {"lic": 4}}, set()),
    "of nodes and of the cluster": (
        [job(name, gpus=0, resources={"dev": 2}) for name in "abc"], {"cluster": {"dev": 4}}, {"a", "b"}),
}  # fmt: skip


def with_places(jobs: list[Job], racks: dict[str, Any], of_cluster: dict[str, int], **fields: Any) -> Instance:
    """Two racks of two nodes of four GPUs, each with two devices."""
    domains = [Domain(id=name, resources=racks.get(name, {})) for name in ("r0", "r1")]
    nodes = [node(f"n{i}", domain=f"r{i // 2}") for i in range(4)]
    made = cluster(nodes, machines=[machine(resources={"dev": 2})], domains=domains)
    return instance(made.model_copy(update={"resources": of_cluster}), jobs, **fields)


@pytest.mark.parametrize("name", PLACES)
def test_amounts_of_domains_and_the_cluster(name: str) -> None:
    jobs, where, expected = PLACES[name]
    round_ = with_places(jobs, where.get("racks", {}), where.get("cluster", {}))
    found = placed(round_)
    assert found == expected if name != "of nodes and of the cluster" else len(found) == len(expected)
    for method in ("fcfs", "best-fit"):
        assert violations(round_, solve(round_, method=method)) == []


def test_the_referee_names_domain_and_licence() -> None:
    jobs = [job(name, resources={"watt": 700, "lic": 1}) for name in "ab"]
    round_ = with_places(jobs, {"r0": {"watt": 1000}}, {"lic": 1})
    plan = plan_for(round_, {"a": [("n0", [0])], "b": [("n1", [0])]})
    assert findings(round_, plan) == [
        ("resource", "cluster", ["2", "1", "'a'", "'b'"]),
        ("resource", "domain 'r0'", ["1400", "1000", "'a'", "'b'"]),
    ]


def test_a_reading_with_other_holds_is_a_difference() -> None:
    """An engine holds other room without a load; what was held for nobody since, because a GPU failed, stays."""
    before = instance(1, [job("w", gpus=3)], holds=[hold(gpus=(0, 1))])
    after = instance(1, before.jobs, holds=[hold(gpus=(0,)), hold("of-w", gpus=(1,), of=["w"])])
    assert not changes_between(before, before)
    with engine_of(before) as engine:
        assert not engine.place(["w"]).placements
        engine.apply(changes_between(before, after))
        assert [one.id for one in engine.snapshot.holds] == ["h", "of-w"]
        assert places(engine.place(["w"])) == {"w": [("n0", [1, 2, 3])]}
        old = engine.place()
        fail_gpu(engine, "n0", 3)
        with pytest.raises(StaleSnapshot, match="hold 'failed-gpu-0' came") as stale:
            engine.commit(old)
        assert stale.value.nodes == ("n0",)
        engine.apply(changes_between(engine.snapshot, after))
        assert engine.revision == 2
        engine.apply(changes_between(engine.snapshot, instance(1, before.jobs)))
        assert engine.snapshot.failed_gpus.keys() == {("n0", 3)}
        assert places(engine.place(["w"])) == {"w": [("n0", [0, 1, 2])]}
        refuses(engine, [("a hold appears twice", lambda e: e.apply(ClusterChanges(holds=(hold(), hold()))))])


def change_something(choice: Choice, engine: Engine) -> None:
    """Hold other room, or let time go on, priorities change, a GPU fail or be repaired, nodes and jobs come and go."""
    now, other = engine.snapshot, make_small(choice)
    runs = [one.job for one in now.running]
    match choice.number(0, 6):
        case 0:
            more = [one.model_copy(update={"id": f"{one.id}-{now.revision}"}) for one in other.holds]
            update(engine, holds=(*choice.some(now.holds, 0.6), *more))
        case 1:
            update(engine, now_ms=now.now_ms + choice.number(1, 2))
        case 2:
            update(engine, priority={one.id: choice.number(0, 3) for one in choice.some(now.jobs, 0.5)})
        case 3:
            fail_or_repair(choice, engine)
        case 4:
            changed = choice.pick(now.cluster.nodes).model_copy(update={"drained": choice.chance(0.3)})
            holds = choice.some(now.holds, 0.5) if choice.chance(0.5) else None
            update(engine, nodes={changed.id: changed}, holds=holds, release=choice.some(runs, 0.5))
        case 5:
            new = [one.model_copy(update={"id": f"{one.id}-{now.revision}"}) for one in choice.some(other.jobs, 0.6)]
            update(engine, add_jobs=new, holds=choice.some(now.holds, 0.5) if choice.chance(0.3) else None)
        case _:
            engine.commit(engine.place())


@pytest.mark.parametrize("seed", [*seeds(24), 525])
def test_holds_that_change_in_a_live_cluster(seed: int) -> None:
    """Whatever changes, it decides as a fresh load of its snapshot does, and takes the plans that the referee takes."""
    choice = seeded(f"changing-{seed}")
    with engine_of(make_small(choice)) as engine:
        for _ in range(5):
            change_something(choice, engine)
            assert_as_if_fresh(engine)
            now = engine.snapshot
            waits = [one for one in now.jobs if one.id not in {held.job for held in now.running}]
            for one in choice.some(waits, 0.4):
                ways = [way for way in all_ways(one) if way]
                if not ways:
                    continue
                made = plan_for(engine.snapshot, {one.id: choice.pick(ways)}).placements[-1:]
                plan = engine.place([one.id]).model_copy(update={"placements": made, "unplaced": ()})
                lawful = not violations(engine.snapshot, plan)
                with nullcontext() if lawful else pytest.raises(BadInput, match="plan: "):
                    engine.commit(plan)


def make_small(choice: Choice) -> Instance:
    """Draw two nodes of two GPUs in racks, holds of all kinds, up to four jobs, some of which run."""
    jobs = []
    for i in range(choice.number(2, 4)):
        gpus = choice.number(0, 2)
        own = {"gpu_milli": 500} if gpus == 1 and choice.chance(0.4) else {}
        jobs.append(
            job(
                f"j{i}",
                gpus=gpus,
                workers=choice.number(1, 2),
                cpu_millicores=choice.number(0, 3),
                resources={name: choice.number(1, 2) for name in choice.some(("dev", "watt", "lic"))},
                priority=choice.number(0, 2),
                value=choice.number(1, 9),
                run_time_ms=choice.maybe(0.6, 1, 4),
                **own,
            )
        )
    begins = [choice.number(0, 4) for _ in range(choice.number(0, 3))]
    holds = [
        hold(
            f"h{i}",
            choice.pick(("n0", "n1")),
            gpus=tuple(choice.some((0, 1), 0.4)),
            cpu_millicores=choice.number(0, 3),
            resources={"dev": choice.number(0, 2)} if choice.chance(0.4) else {},
            priority=choice.maybe(0.5, 0, 2),
            of=choice.some([one.id for one in jobs], 0.3) if choice.chance(0.5) else (),
            from_ms=from_ms,
            until_ms=choice.maybe(0.3, from_ms + 1, 5),
        )
        for i, from_ms in enumerate(begins)
    ]
    domains = [
        Domain(id=f"r{i}", resources={"watt": choice.number(1, 4)} if choice.chance(0.5) else {}) for i in (0, 1)
    ]
    kind = machine(gpus=2, cpu_millicores=4, resources={"dev": 2} if choice.chance(0.7) else {})
    made = cluster([node(f"n{i}", domain=f"r{i}") for i in (0, 1)], machines=[kind], domains=domains)
    made = made.model_copy(update={"resources": {"lic": choice.number(1, 3)} if choice.chance(0.6) else {}})
    policy = Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=3000)),)) if choice.chance(0.2) else Policy()
    round_ = instance(made, jobs, holds=holds, policy=policy)
    if choice.chance(0.4):
        ways = [way for way in all_ways(jobs[0]) if way]
        if ways:
            runs = running(jobs[0], choice.pick(ways))
            round_ = round_.model_copy(update={"running": (runs,)})
    return round_


def all_ways(one: Job) -> list[Any]:
    """List the ways to place a job on two nodes of two GPUs; None: it waits."""
    option = one.options[0]
    of_worker = [(f"n{n}", gpus) for n in (0, 1) for gpus in combinations((0, 1), option.demand.gpus)]
    ways = [None]
    for way in product(of_worker, repeat=option.workers):
        held = [(at, gpu) for at, gpus in way for gpu in gpus]
        if len(set(held)) == len(held):
            ways.append([(at, list(gpus)) for at, gpus in way])
    return ways


def best_value(round_: Instance) -> int:
    """Return the value of the best plan that the referee accepts, by trying all."""
    runs = {one.job for one in round_.running}
    free = [one for one in round_.jobs if one.id not in runs]
    fixed = sum(one.options[0].value for one in round_.jobs if one.id in runs)
    lawful = [[way for way in all_ways(one) if not way or not broken(round_, {one.id: way})] for one in free]
    totals = sorted(
        (
            (sum(one.options[0].value for one, way in zip(free, chosen, strict=True) if way), chosen)
            for chosen in product(*lawful)
        ),
        key=lambda entry: -entry[0],
    )
    for total, chosen in totals:
        if not broken(round_, {one.id: way for one, way in zip(free, chosen, strict=True) if way}):
            return fixed + total
    raise AssertionError("nothing starts: that is lawful")


def broken(round_: Instance, placed: dict[str, Any]) -> bool:
    return bool(violations(round_, plan_for(round_, placed)))


METHODS = ("filling-costs", "fillings", "gpu-patterns", "search", "drb", "prices", "fgd", "swaf", "stranding")


@pytest.mark.parametrize("seed", seeds(40))
def test_the_optimum_is_that_of_brute_force(seed: int) -> None:
    """All methods keep the rules; what is proven is the best of all plans."""
    round_ = make_small(seeded(f"holds-{seed}"))
    best = best_value(round_)
    compare_methods(round_, best, ("auto", "assignment", "counts"), exact=("auto",))
    compare_methods(round_, best, [METHODS[seed % len(METHODS)]], exact=(), time_limit_s=1)  # a search takes all of it
