"""What is left, what a failure does, what has to be added: by hand, and against rounds solved one by one."""

import sys
import threading
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings

from placeopt import BadInput, Engine
from placeopt.build import instance, job, machine, node, option, running
from placeopt.edits import Patch, apply, displaced
from placeopt.model import (
    Demand,
    Domain,
    Flavor,
    FlavorAllowance,
    Gpu,
    Group,
    Instance,
    Job,
    LabelExpression,
    Node,
    Part,
    Policy,
    Postpone,
    Queue,
    Quota,
    Relation,
    Weights,
)
from placeopt.whatif import Limits, add, defrag, fail, fit, parse_job, slots
from strategies import Choice, choices

SHORT = Limits(time_limit_s=5.0, threads=1)
TWO_TYPES = (machine(), machine("big", gpus=8))
VALUE_ALONE = Policy(weights=Weights(communication=0, interference=0, fragmentation=0))


def cluster(*busy: int, per_rack: int = 2) -> Instance:
    """Nodes of four GPUs and 32 cores in racks; on node i the first ``busy[i]`` GPUs are held, by a job each."""
    jobs = [job(f"run-{i}", gpus=held) for i, held in enumerate(busy) if held]
    where = [running(job(f"run-{i}", gpus=held), [(f"n{i}", range(held))]) for i, held in enumerate(busy) if held]
    nodes = [node(f"n{i}", domain=f"rack-{i // per_rack}") for i in range(len(busy))]
    domains = [Domain(id=f"rack-{i}") for i in range(-(-len(busy) // per_rack))]
    return instance(nodes, jobs, domains=domains, running=where)


def with_jobs(base: Instance, *waiting: Job) -> Instance:
    """Let more jobs wait."""
    return base.model_copy(update={"jobs": (*base.jobs, *waiting)})


def with_nodes(base: Instance, nodes: Iterable[Node]) -> Instance:
    """Give the cluster other nodes."""
    return base.model_copy(update={"cluster": base.cluster.model_copy(update={"nodes": tuple(nodes)})})


@pytest.mark.parametrize(
    ("text", "workers", "gpus", "milli", "models"),
    [
        ("8", 1, 8, 1000, ()),
        ("4xV100", 1, 4, 1000, ("V100",)),
        ("2x4", 2, 4, 1000, ()),
        ("16x8xV100", 16, 8, 1000, ("V100",)),
        ("0.5", 1, 1, 500, ()),
        ("3x0.125xV100", 3, 1, 125, ("V100",)),
        ("2.0", 1, 2, 1000, ()),
    ],
)
def test_jobs_are_asked_for_in_short(text: str, workers: int, gpus: int, milli: int, models: tuple[str, ...]) -> None:
    """Workers, GPUs of each, model."""
    [option] = parse_job(text, cluster(0)).options
    assert (option.workers, option.demand.gpus, option.demand.gpu_milli) == (workers, gpus, milli)
    assert option.demand.gpu_models == models


@pytest.mark.parametrize("text", ["", "x", "8x", "1.5", "0.0001", "8xK80", "2000", "0x8", "-1", "8 x", "999999x1", "0"])
def test_what_is_no_job_is_named(text: str) -> None:
    """With what was expected, or the models that there are."""
    with pytest.raises(BadInput, match="job"):
        parse_job(text, cluster(0))


def test_a_job_of_the_instance_is_asked_for_by_id() -> None:
    """Its like, with all its options."""
    base = cluster(3)
    assert parse_job("run-0", base) == base.jobs[0]


FREE = cluster(0, 2, 3, 4)
QUOTA = Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=3000)),))
FITS: list[tuple[Instance, str, dict[str, Any], int, list[str]]] = [
    (FREE, "2", {}, 3, ["GPU count"]),  # free GPUs 4, 2, 1, 0: of 2 GPUs a node, 2 + 1
    (FREE, "2x2", {}, 1, ["GPU count", "gang"]),  # as a gang of two such
    (FREE, "0.5", {}, 14, ["GPU count"]),
    (cluster(0, 0), "1", {"cpu_millicores": 20_000}, 2, ["CPU"]),  # 32 cores a node: one a node whatever the GPUs
    (cluster(0, 0).model_copy(update={"policy": QUOTA}), "1", {"queue": "q"}, 3, ["GPU count", "queue"]),
    (cluster(0, 0), "1", {"resources": {"licence": 1}}, 0, ["licence"]),
    (cluster(2), "0", {"cpu_millicores": 8000}, 4, ["CPU"]),
]


@pytest.mark.parametrize(("base", "text", "more", "count", "binds"), FITS)
def test_what_fits_by_hand(base: Instance, text: str, more: dict[str, Any], count: int, binds: list[str]) -> None:
    """How many copies, proven, and what is short."""
    found = fit(base, parse_job(text, base, **more), SHORT)
    assert (found.found, found.most) == (count, count)
    assert [one.name for one in found.binds or ()] == binds


def test_the_largest_gang_by_hand() -> None:
    """Of 2 GPUs each: in one rack (nodes 0 and 1) three workers, on one node two. Waiting jobs hold nothing."""
    found = fit(FREE, parse_job("2", FREE), SHORT)
    assert {gang.level: gang.workers for gang in found.gangs} == {"node": 2, "rack": 3, "cluster": 3}
    base = cluster(0).model_copy(update={"jobs": (job("asked", gpus=4), job("asked-0", gpus=4))})
    assert fit(base, parse_job("4", base), SHORT).found == 1


def test_copies_may_run_in_unlike_options() -> None:
    """Two GPUs of one model and three of another; a job may have one of either."""
    machines = [machine("two", gpus=2, model="A"), machine("three", gpus=3, model="B")]
    options = tuple(option(f"on-{model}", gpus=1, gpu_models=(model,)) for model in "AB")
    found = fit(instance([node("a", "two"), node("b", "three")], machines=machines), job("w", options=options), SHORT)
    assert (found.found, found.most) == (5, 5)


def test_copies_may_run_in_unlike_flavors() -> None:
    """Each node is of a flavor of its own."""
    names = ("f", "g")
    allowances = tuple(FlavorAllowance(flavor=name, quota=Quota(gpu_milli=3000)) for name in names)
    flavors = tuple(Flavor(id=name, node_selector={"pool": name}) for name in names)
    policy = Policy(queues=(Queue(id="q", flavors=allowances),), flavors=flavors)
    base = instance([node(name, labels={"pool": name}) for name in (*names, "other")], policy=policy)
    found = fit(base, job("w", queue="q"), SHORT)
    assert (found.found, found.most) == (6, 6)


@settings(max_examples=8)
@given(choices)
def test_counts_are_those_of_nodes(choice: Choice) -> None:
    """Jobs of one worker: the sum over nodes of what each takes, by GPUs, CPU and memory."""
    busy = [choice.number(0, 4) for _ in range(choice.number(1, 6))]
    gpus, cpu, memory = choice.pick((1, 2, 4)), choice.pick((0, 3_000, 9_000)), choice.pick((0, 100_000))
    base = cluster(*busy)
    takes = [
        min((4 - held) // gpus, 32_000 // cpu if cpu else 99, 262_144 // memory if memory else 99) for held in busy
    ]
    found = fit(base, parse_job(f"{gpus}", base, cpu_millicores=cpu, memory_mib=memory), SHORT)
    assert found.found == found.most == sum(takes)


def test_slots_by_hand() -> None:
    """Free GPUs 4, 2, 1, 0 and 3 on a drained node: of two GPUs, 2 + 1 on nodes, 3 in the first rack."""
    base = cluster(0, 2, 3, 4, 1)
    drained = base.cluster.nodes[4].model_copy(update={"drained": True})
    base = with_nodes(base, (*base.cluster.nodes[:4], drained))
    found = slots(base, [1, 2, 4, 6])
    at = {(one.level, one.size): one.slots for one in found.counts}
    assert (found.free_gpus, found.gpus) == (7, 20)
    assert [at["node", size] for size in (1, 2, 4, 6)] == [7, 3, 1, 0]
    assert [at["rack", size] for size in (1, 2, 4, 6)] == [7, 3, 1, 1]
    assert [at["cluster", size] for size in (1, 2, 4, 6)] == [7, 3, 1, 1]
    assert {one.largest for one in found.counts if one.level == "rack"} == {6}


def test_slots_of_a_model() -> None:
    """Only GPUs of that model count; a model that is nowhere is named."""
    mixed = machine("mixed", gpus=(Gpu(model="A"), Gpu(model="A"), Gpu(model="B")))
    base = instance([node("n0", "mixed")], machines=[mixed])
    assert slots(base, [1, 2], model="A").free_gpus == 2
    with pytest.raises(BadInput, match="there are: A, B"):
        slots(base, model="C")
    with pytest.raises(BadInput, match="sizes"):
        slots(base, [0])


FAILURES: list[tuple[tuple[int, ...], str, dict[str, Any], list[tuple[int, int, int]]]] = [
    # two nodes hold 3 of 4 GPUs each, two hold 1: the 3 find 3 free GPUs elsewhere; two such nodes at once as well
    ((3, 1, 3, 1), "node", {}, [(1, 0, 0)] * 4),
    ((3, 1, 3, 1), "node", {"k": 2}, [(2, 0, 0)] * 6),
    # of nodes full of one job of 4, none finds a place
    ((4, 1, 4, 1), "node", {}, [(1, 1, 1), (1, 0, 0), (1, 1, 1), (1, 0, 0)]),
    # rack 0 holds jobs of 4 and 2 GPUs, rack 1 has 3 + 4 free: 4 fits, and 2; with 3 + 3 free the 4 is lost
    ((4, 2, 1, 0), "rack", {"domains": ["rack-0"]}, [(2, 0, 0)]),
    ((4, 2, 1, 1), "rack", {"domains": ["rack-0"]}, [(2, 1, 1)]),
    # everything fails: there is nothing to solve
    ((1, 1), "rack", {}, [(2, 2, 2)]),
]


@pytest.mark.parametrize(("busy", "level", "more", "told"), FAILURES)
def test_failures_by_hand(busy: tuple[int, ...], level: str, more: dict[str, Any], told: list[tuple[int, ...]]) -> None:
    """Of each scenario the jobs displaced and lost, and how many are lost for certain."""
    found = fail(cluster(*busy), level, limits=SHORT, **more)
    assert [(one.displaced, one.lost, one.lost_at_least) for one in found.scenarios] == told
    assert found.answer == ("no" if any(lost for _, lost, _ in told) else "yes")
    assert found.worst is None or found.worst.lost == max(lost for _, lost, _ in told)


def test_what_a_failure_loses_is_named() -> None:
    """With its GPUs."""
    [one] = fail(cluster(4, 2, 1, 1), "rack", domains=["rack-0"], limits=SHORT).scenarios
    assert (one.lost_jobs, one.displaced_gpu_milli, one.lost_gpu_milli) == (("run-0",), 6000, 4000)


def _switches(*held: tuple[int, ...]) -> Instance:
    """Return nodes of four GPUs on two switches; on node i a job on each of these GPUs together."""
    parts = (Part(id="sw0", level="switch"), Part(id="sw1", level="switch"))
    box = machine(gpus=[Gpu(model="V100", part=f"sw{i // 2}") for i in range(4)], parts=parts)
    jobs = [job(f"j{i}", gpus=len(gpus)) for i, gpus in enumerate(held) if gpus]
    where = [running(one, [(f"n{one.id[1:]}", held[int(one.id[1:])])]) for one in jobs]
    return instance(len(held), jobs, machines=(box,), running=where)


def test_a_failing_switch_by_hand() -> None:
    """Two GPUs of n0 hold a job, three of n1: n0's first switch costs nobody his place, one of n1's does."""
    base = _switches((0, 1), (1, 2, 3))
    found = fail(base, "switch", limits=SHORT)
    told = {one.domains[0]: (one.displaced, one.lost, one.nodes, one.gpus) for one in found.scenarios}
    assert told == {"n0/sw0": (1, 0, 0, 2), "n0/sw1": (0, 0, 0, 2), "n1/sw0": (1, 1, 0, 2), "n1/sw1": (1, 1, 0, 2)}
    assert found.answer == "no"
    gpus = fail(base, "gpu", limits=SHORT)
    assert {one.domains[0]: one.lost for one in gpus.scenarios if one.displaced} == {
        "n0/gpu0": 0,
        "n0/gpu1": 0,
        "n1/gpu1": 0,  # GPUs 0, 2 and 3 take it
        "n1/gpu2": 0,
        "n1/gpu3": 0,
    }
    pairs = fail(base, "switch", k=2, domains=["n0/sw0", "n0/sw1"], limits=SHORT)
    assert [(one.displaced, one.lost, one.gpus) for one in pairs.scenarios] == [(1, 1, 4)]


def test_what_stays_beside_a_failed_switch_keeps_its_place() -> None:
    """The job on GPUs 2 and 3 runs on; 0 and 1 are held for nobody, and cannot fail again."""
    base = _switches((2, 3))
    step = {"do": "fail", "level": "switch", "domains": ("n0/sw0",)}
    after = apply(base, Patch.model_validate({"steps": (step,)}).steps)
    assert displaced(base, after) == ()
    assert (after.cluster, after.running) == (base.cluster, base.running)
    assert list(after.failed_gpus) == [("n0", 0), ("n0", 1)]
    assert [one.domains for one in fail(after, "switch", limits=SHORT).scenarios] == [("n0/sw1",)]
    for name in ("n0/sw7", "n0/sw0"):
        with pytest.raises(BadInput, match=name):
            apply(after, Patch.model_validate({"steps": ({**step, "domains": (name,)},)}).steps)


def test_failures_side_by_side() -> None:
    """In processes, the same answer."""
    base = cluster(4, 2, 1, 1, 0, 3)
    one, two = (fail(base, "node", limits=SHORT, jobs=jobs) for jobs in (1, 2))
    assert one.scenarios == two.scenarios


def test_an_interrupted_question_reports_what_is_left() -> None:
    """And does not say yes."""
    event = threading.Event()
    event.set()
    found = fail(cluster(1, 1), "node", limits=SHORT, cancel=event)
    assert (found.answer, found.left, found.scenarios) == ("unknown", 2, ())


@pytest.mark.parametrize(
    ("level", "k", "domains", "words"),
    [
        ("leaf", 1, None, "no level 'leaf'.*socket"),
        ("node", 0, None, "k: 0"),
        ("node", 3, None, "k: 3"),
        ("rack", 1, ["x"], "no rack 'x'"),
        ("numa", 1, None, "no numa"),
        ("switch", 1, ["n9/sw0"], "n9/sw0"),
    ],
)
def test_a_wrong_failure_is_named(level: str, k: int, domains: list[str] | None, words: str) -> None:
    """Before anything is solved."""
    with pytest.raises(BadInput, match=words):
        fail(_switches((0,), (0,)) if level != "rack" else cluster(1, 1), level, k=k, domains=domains)


WAITING = (job("a", gpus=4), job("b", gpus=4), job("c", gpus=2), job("d", gpus=1))
IN_RACK_1 = [job(name, gpus=4, node_selector={"rack": "rack-1"}) for name in "ab"]
NEVER = (job("huge", gpus=8), job("other", gpu_models=("A100",)), job("fine"))
ADDED: list[tuple[Instance, str, int | None, tuple[str, ...]]] = [
    (with_jobs(cluster(2), *WAITING), "m", 3, ()),  # two free GPUs: the 2 fits, the others need three nodes
    (with_jobs(cluster(2), *WAITING[:3]), "m", 2, ()),
    (cluster(2), "m", 0, ()),
    (with_jobs(cluster(0), *NEVER), "m", None, ("huge", "other")),  # 8 GPUs on a node of 4; a model the type has not
    (with_jobs(cluster(0, 0, 0, 4), *IN_RACK_1), "n0", None, ()),  # both ask for a free node of rack 1, which has one
    (with_jobs(cluster(0, 0, 0, 4), *IN_RACK_1), "n3", 1, ()),
]


@pytest.mark.parametrize(("base", "kind", "nodes", "never"), ADDED)
def test_what_to_add_by_hand(base: Instance, kind: str, nodes: int | None, never: tuple[str, ...]) -> None:
    """How many nodes, proven; or that no number helps, and whom."""
    answer = add(base, kind, limits=SHORT)
    (found,) = answer.types
    assert (found.at_least, found.found, found.never, found.impossible) == (nodes, nodes, never, nodes is None)
    assert (answer.found, answer.impossible) == (None if nodes is None else (nodes,), nodes is None)
    assert found.proven == answer.proven == (nodes is not None)
    assert not nodes or {one.nodes: one.fits for one in answer.tried}[nodes,] is True
    assert answer.view().figure(f"nodes of {kind}") == nodes


@settings(max_examples=6)
@given(choices)
def test_intervals_hold_the_truth(engine: Engine, choice: Choice) -> None:
    """Against every number in turn, each proven; an interval that is open still holds it."""
    base = cluster(*(choice.number(0, 4) for _ in range(2)))
    for i in range(choice.number(1, 6)):
        workers, cpu = choice.pick((1, 1, 2)), choice.pick((0, 11_000))
        base = with_jobs(base, job(f"w{i}", workers=workers, gpus=choice.number(1, 4), cpu_millicores=cpu))
    (found,) = add(base, "n0", limits=Limits(time_limit_s=20.0, threads=1)).types

    def fits(more: int) -> bool:
        nodes = (*base.cluster.nodes, *(base.cluster.nodes[0].model_copy(update={"id": f"x{i}"}) for i in range(more)))
        plan = engine.solve(with_nodes(base, nodes).model_copy(update={"policy": VALUE_ALONE}), time_limit_s=20)
        assert plan.levels[0].objective == plan.levels[0].bound
        return not plan.unplaced

    assert found.at_least is not None
    assert found.found is not None
    assert found.at_least <= next(more for more in range(20) if fits(more)) <= found.found
    assert found.proven


def test_minimal_utilities_hold_and_lookahead_does_not() -> None:
    """A gang that would run too badly apart is no copy that fits; that a better time will come is no reason to wait."""
    gang = job("asked", workers=2, gpus=2, communication={"weight": 4}, utility_min_thousandths=1000)
    base = cluster(2, 2, per_rack=1)
    assert fit(base, gang, SHORT).found == 1
    strict = base.model_copy(update={"policy": Policy(postpone=Postpone(rule="utility"))})
    assert fit(strict, gang, SHORT).found == 0
    ahead = base.model_copy(update={"policy": Policy(postpone=Postpone(rule="lookahead"))})
    assert fit(ahead, gang, SHORT).found == 1


def test_more_copies_than_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then only what there is room for bounds them: eight shares of a quarter on two GPUs, of which five are tried."""
    base = cluster(2)
    quarter = parse_job("0.25", base)
    assert (fit(base, quarter, SHORT).found, fit(base, quarter, SHORT).most) == (8, 8)
    monkeypatch.setattr(sys.modules[fit.__module__], "MOST_COPIES", 5)
    found = fit(base, quarter, SHORT)
    assert 5 <= found.found <= 6
    assert found.most == 8


def test_the_cheapest_type_by_hand() -> None:
    """Four jobs of four GPUs: four nodes of four at 1 each, or two of eight at 3 each; nodes of two never do."""
    held, big = job("held", gpus=4), node("dear", "big", price_milli_per_hour=3000, drained=True)
    jobs = [held, *(job(f"w{i}", gpus=4) for i in range(4))]
    machines, kinds = [*TWO_TYPES, machine("tiny", gpus=2)], [node("n0"), big, node("less", "tiny", drained=True)]
    base = instance(kinds, jobs, machines=machines, running=[running(held, [("n0", range(4))])])
    found = add(base, "dear", "m", "less", limits=Limits(15.0, threads=1))
    told = [(one.at_least, one.found, one.impossible) for one in found.types]
    assert told == [(2, 2, False), (4, 4, False), (None, None, True)]
    assert (found.price_milli_per_hour, found.at_least_milli_per_hour) == (4000, 4000)
    assert (found.proven, found.found) == (True, (0, 4, 0))
    assert found.view().title == "4 m place all jobs: price 4 an hour"


def five_jobs(price: int = 1800) -> Instance:
    """Five jobs of four GPUs; nodes of four at 1, and of eight at 1.8 or another price, of which none is free."""
    kinds = [node("n0", drained=True), node("big0", "big", price_milli_per_hour=price, drained=True)]
    return instance(kinds, [job(f"w{i}", gpus=4) for i in range(5)], machines=TWO_TYPES)


def test_the_cheapest_mixture_by_hand() -> None:
    """
    Five jobs of four GPUs: five small nodes cost 5, three big ones 5.4, two big ones and a small one 4.6.

    Jobs that go with one model each need both types, and neither does alone.
    """
    found = add(five_jobs(), "m", "big", limits=Limits(20.0, threads=1))
    assert [one.found for one in found.types] == [5, 3]
    assert (found.found, found.price_milli_per_hour) == ((1, 2), 4600)
    assert found.proven
    for axis, one in enumerate(found.types):  # mixtures bound the types alone
        refuted = [trial.nodes[axis] for trial in found.tried if trial.fits is False]
        assert one.at_least == max(refuted) + 1
    other = machine("other", gpus=[Gpu(model="K80")])
    jobs = [job("a", gpus=1, gpu_models=("K80",)), job("b", gpus=4)]
    both = instance([node("n0", drained=True)], jobs, machines=(machine(), other))
    needed = add(both, "m", "other", limits=Limits(10.0, threads=1))
    assert ([one.found for one in needed.types], needed.found, needed.proven) == ([None, None], (1, 1), True)
    never = add(with_jobs(five_jobs(), job("huge", gpus=16)), "m", "big", limits=SHORT)
    assert (never.found, never.price_milli_per_hour, never.at_least_milli_per_hour) == (None, None, None)
    assert all(one.impossible for one in never.types)
    with pytest.raises(BadInput, match="each once"):
        add(five_jobs(), "m", "m")
    free = instance([node("n0", price_milli_per_hour=0)], [job("a", gpus=8)], machines=TWO_TYPES)
    with pytest.raises(BadInput, match="price"):
        add(free, "m", "big", limits=SHORT)
    with pytest.raises(BadInput, match="machine types: m"):
        add(free, "x")


def test_what_a_failure_leaves_may_stay_beyond_a_share_of_less() -> None:
    """A queue may hold half of two nodes, and holds one: when the other fails that is all there is, and no fault."""
    held = job("held", gpus=4, queue="q")
    policy = Policy(queues=(Queue(id="q", dominant_share_percent=50),))
    base = instance(2, [held], running=[running(held, [("n0", range(4))])], policy=policy)
    found = fail(base, "node", limits=SHORT)
    assert [(one.domains, one.displaced, one.lost) for one in found.scenarios] == [(("n0",), 1, 0), (("n1",), 0, 0)]
    assert found.answer == "yes"
    assert defrag(base, everyone=True, limits=SHORT).free_before == 1


def test_copies_of_jobs_with_groups_and_relations() -> None:
    """By CPU where groups hold no GPU; one a node where copies keep apart; the largest gang is said of neither."""
    groups = (Group(id="lead", demand=Demand(gpus=0, cpu_millicores=8_000)), Group(id="rest", demand=Demand(gpus=0)))
    base = instance(2, machines=[machine(gpus=1, cpu_millicores=16_000)])
    found = fit(base, job("tree", groups=groups), SHORT)
    assert (found.found, found.most, found.gangs) == (4, 4, ())
    selector = (LabelExpression(key="app", operator="In", values=("web",)),)
    apart = job("web", labels={"app": "web"}, relations=(Relation(kind="apart", level="node", selector=selector),))
    found = fit(instance(3, machines=[machine(gpus=4)]), apart, SHORT)
    assert (found.found, found.most, found.gangs) == (3, 3, ())
