"""Why a job waits, in words that are true: by hand, and against every placement that there is."""

import pytest
from hypothesis import given

from helpers.instance_edits import beside, changeable, fits_somewhere
from placeopt import Engine, Instance, Plan, Policy
from placeopt.build import instance, job, machine, node, option, running
from placeopt.model import Domain, Flavor, FlavorAllowance, Queue, Quota, Split, Weights
from strategies import rounds

NO_COST = Policy(weights=Weights(communication=0, interference=0, fragmentation=0))


def reason_of(plan: Plan, name: str) -> tuple[str, str]:
    return next((entry.reason, entry.detail) for entry in plan.unplaced if entry.job == name)


def lopsided(name: str, *, held: bool = False, wanted: int = 4, value: int = 9) -> Instance:
    """A rack of one GPU and one of three; a job asks for 4 workers in 2 racks, and so has to lie 1 + 3."""
    nodes = [node(f"n{i}", "one", domain="small" if i == 0 else "large") for i in range(4)]
    wide = job(name, workers=wanted, value=value, splits=(Split(level="rack", domains=2),), arrival_ms=1)
    there = [job("held")] if held else []
    runs, racks = [running(one, [("n0", [0])]) for one in there], [Domain(id="small"), Domain(id="large")]
    boxes = [machine("one", gpus=1)]
    return instance(nodes, [wide, *there], machines=boxes, domains=racks, running=runs, policy=NO_COST)


QUOTA = Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=1000)),))
HELD = job("held", gpus=3)


def of_flavors(gpus: int, **allowed: int) -> Instance:
    """A job of a queue that may hold so many GPUs on the node of each flavor; on a third node it may not run."""
    of = tuple(FlavorAllowance(flavor=name, quota=Quota(gpu_milli=1000 * most)) for name, most in allowed.items())
    flavors = tuple(Flavor(id=name, node_selector={"pool": name}) for name in allowed)
    nodes = [node(name, labels={"pool": name}) for name in (*allowed, "other")]
    policy = Policy(queues=(Queue(id="q", flavors=of),), flavors=flavors)
    return instance(nodes, [job("w", queue="q", gpus=gpus)], policy=policy)


ROUNDS = {
    "too large for any node": instance(1, [job("w", gpus=8)]),
    "no room beside what runs": instance(1, [HELD, job("w", gpus=2)], running=[running(HELD, [("n0", [0, 1, 2])])]),
    "others are worth more": instance(1, [job("w", gpus=3), job("b", gpus=3, value=2)]),
    "worth nothing": instance(1, [job("w", value=0)], policy=NO_COST),
    "its queue is full": instance(1, [job("a", queue="q", value=2), job("w", queue="q")], policy=QUOTA),
    "its queue is full of every flavor": of_flavors(2, f=1, g=0),
    "too large for the only flavor with quota": of_flavors(5, f=9, g=0),
    "below its minimum": instance(
        1, [job("w", options=(option(utility_thousandths=300),), utility_min_thousandths=500)]
    ),
    "room that greedy misses": lopsided("w"),
    "worth nothing, with room that greedy misses": lopsided("w", value=0),
    "no distribution over racks": lopsided("w", held=True, wanted=3),
}


@pytest.mark.parametrize(
    ("name", "reason", "words"),
    [
        ("too large for any node", "conflict", "no node offers 8 GPUs"),
        ("no room beside what runs", "conflict", "0 of 1 needed places free beside the running jobs"),
        ("others are worth more", "outvoted", "fits alone, but other jobs of the plan hold the room"),
        ("worth nothing", "outvoted", "worth nothing"),
        ("its queue is full", "policy", "queue 'q' may hold no more than 0 GPU-milli"),
        (
            "its queue is full of every flavor",
            "policy",
            "1000 GPU-milli of flavor 'f', 0 GPU-milli of flavor 'g' be",
        ),
        ("too large for the only flavor with quota", "conflict", "on nodes of flavor 'f': no node offers 5 GPUs even"),
        ("below its minimum", "policy", "below the job's minimum"),
        # greedy divides workers evenly over racks; 1 + 3 is a way that it does not try
        ("room that greedy misses", "not_reached", "fits on node 'n0' and 3 more; the search did not get to it"),
        ("worth nothing, with room that greedy misses", "outvoted", "placing it would not raise the value"),
        ("no distribution over racks", "conflict", "3 places for its 3 parts, but no distribution over them that it"),
    ],
)
def test_by_hand(name: str, reason: str, words: str, engine: Engine) -> None:
    method = "stranding" if ROUNDS[name].cluster.domains else "auto"
    found, detail = reason_of(engine.solve(ROUNDS[name], method=method), "w")
    assert found == reason
    assert words in detail


def test_each_option_is_named_by_its_own_need(engine: Engine) -> None:
    """With the model that it asks for; a whole round and a decision for one job say the same."""
    wide, other = option(id="wide", gpus=8), option(id="other", gpus=1, gpu_models=("H100",), gpu_memory_mib=10)
    of = instance(1, [job("picky", options=(wide, other))])
    reason, detail = reason_of(engine.solve(of), "picky")
    assert reason == "conflict"
    assert "'wide': no node offers 8 GPUs even" in detail
    assert "'other': no node offers 1 GPU of model H100, 10 MiB of GPU memory even" in detail
    with Engine(isolation="thread") as live:
        live.load(of)
        assert reason_of(live.place(["picky"]), "picky") == (reason, detail)


def test_a_strict_queue_is_policy(engine: Engine) -> None:
    """The third job would fit, but may not overtake the second."""
    jobs = [job("first", gpus=3), job("second", gpus=3, arrival_ms=1), job("third", arrival_ms=2)]
    plan = engine.solve(instance(1, jobs), method="fcfs-strict")
    assert [held.job for held in plan.placements] == ["first"]
    assert reason_of(plan, "second")[0] == "outvoted"
    reason, detail = reason_of(plan, "third")
    assert reason == "policy"
    assert "queue is strict" in detail


@given(round_=rounds(minima=False) | rounds(minima=False, changes=True))
def test_conflict_and_not_reached_are_exact(engine: Engine, round_: Instance) -> None:
    """
    Against all placements beside the plan, and beside the running jobs that must stay; no minimal utilities.

    Each job stands once, in placements or among the waiting, these with words.
    """
    plan = engine.solve(round_, method="stranding", deterministic=True)
    names = [held.job for held in plan.placements] + [entry.job for entry in plan.unplaced]
    assert sorted(names) == sorted(one.id for one in round_.jobs)
    runs, gone = {held.job for held in round_.running}, changeable(round_, plan)
    for entry in plan.unplaced:
        assert entry.detail, entry.job
        if entry.job in runs or entry.reason == "postponed":
            continue
        worth = [o.value for one in round_.jobs if one.id == entry.job for o in one.options]
        if fits_somewhere(beside(round_, plan, entry.job, whole_plan=True), entry.job):
            allowed = {"not_reached" if value else "outvoted" for value in worth}
        elif fits_somewhere(beside(round_, plan, entry.job, whole_plan=False, without=gone), entry.job):
            allowed = {"policy", "outvoted"}
        else:
            allowed = {"policy", "conflict"}
        assert entry.reason in allowed, entry.job
