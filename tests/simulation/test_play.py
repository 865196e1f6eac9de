"""Whole simulations: nothing is lost, every decision is lawful; `test_events` has what happens to the cluster."""

import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from helpers.changing_scenarios import audit, lively_scenario
from helpers.plans import NO_COSTS
from helpers.scenarios import PLAIN, policy, random_scenario, scenario, timed
from placeopt import build
from placeopt.build import running
from placeopt.model import Changes, Policy, Postpone, Slowdown
from placeopt.scheduling import Scheduling
from placeopt.simulation import Scenario, simulate, summarise
from placeopt.systems.horus import Watch
from placeopt.systems.soda import Arrays

FREE = Policy(
    weights=NO_COSTS,
    changes=Changes(moves_max=4, preemptions_max=4, shrinks_max=4, move_price=1, shrink_price_per_worker=1),
)
LEVELS = {"rule": "las", "levels_gpu_s": (5, 30)}
BY_USER = Arrays(rule="arrays", by="user", borrow_percent=100)
BY_SIZE = Arrays(rule="arrays", by="size", parts="demand", borrow_percent=1000)
CALM = [
    policy("fcfs", strict=True),
    policy("best-fit", name="srtf-calm", order="srtf"),
    policy("stranding", interval_ms=5000),
    Scheduling(name="drb", method="drb"),
    Scheduling(name="auto", method="auto", policy=Policy(postpone=Postpone(rule="lookahead"))),
    policy("best-fit", name="utility", policy=PLAIN.model_copy(update={"postpone": Postpone(rule="utility")})),
]
"""Policies that change no running job, for jobs that slow each other."""
LIVELY = [
    Scheduling(name="whole", method="stranding", policy=FREE),
    Scheduling(name="exact", policy=FREE),
    policy("best-fit", name="priority", order="priority", preempts="priority"),
    policy("best-fit", name="aging", order={"rule": "priority", "aging_ms": 5000}),
    policy("best-fit", name="inference", order="inference_first", preempts="inference"),
    policy("best-fit", name="las", order=LEVELS, preempts={**LEVELS, "quantum_ms": 4000}),
    policy("best-fit", name="srtf", order="srtf", preempts="srtf"),
    policy("best-fit", name="srsf", order="srsf", preempts="srsf", restarts_max_thousandths=40),
    policy("best-fit", name="capacity", order="capacity", divides=BY_USER, preempts="capacity"),
    policy("best-fit", name="arrays", order="drf", divides=BY_SIZE, preempts="arrays"),
    policy("best-fit", name="load", order="inference_first", elastic="load"),
    policy("best-fit", name="both", order="inference_first", elastic="load", preempts="inference"),
    policy("fcfs", name="pods", elastic="pods"),
    policy("obp", name="watch", watch=Watch(rule="slowed", after_ms=2000, one_by_one=True)),
]
"""Policies that change running jobs, for jobs that do not slow each other."""
PHYSICS = [{}, {"keeps_work": False}, {"checkpoint_ms": 3000}]
SC17 = {"rule": "sc17", "step_ms": 1100}

WORLDS = [(rules, random_scenario, {"seed": 11, "jobs": 14, **physics}) for rules in CALM for physics in ({}, SC17)]
WORLDS += [(rules, lively_scenario, {"seed": 3, "jobs": 14, **physics}) for rules in LIVELY for physics in PHYSICS]


@pytest.mark.parametrize(("scheduling", "make", "fields"), WORLDS, ids=lambda one: getattr(one, "name", None))
def test_every_decision_is_lawful_and_no_work_is_won_or_lost(
    scheduling: Scheduling, make: Callable[..., Scenario], fields: dict[str, Any], tmp_path: Path
) -> None:
    """The log alone, read by a stranger: the referee takes every state, jobs end when their work is done."""
    world, log = make(**fields), tmp_path / "log"
    history = simulate(world, scheduling, log=log)
    assert history.finished
    assert history.stranded == ()
    count = audit(world, scheduling, log)
    told = summarise(history)
    counted = told.stops, told.moves, told.resizes, told.failures
    assert counted == tuple(count[kind] for kind in ("stop", "move", "resize", "failure"))
    held = told.occupancy
    assert held.granted + held.idle == 1000 * held.total
    assert held.granted == sum(
        sum(sum(a.gpus.values()) for a in span.placement.assignments) * (span.end_ms - span.start_ms)
        for job in history.jobs
        for span in job.spans
    )


OVERCOMMIT = PLAIN.model_copy(update={"share_mode": "overcommit", "jobs_per_gpu_max": 3})


@pytest.mark.parametrize(
    "scheduling",
    [
        policy("best-fit", name="las", order=LEVELS, preempts={**LEVELS, "quantum_ms": 2000}),
        policy("best-fit", name="srtf", order="srtf", preempts="srtf"),
        policy("obp", name="watch", watch=Watch(rule="slowed", after_ms=500, slower_percent=20), policy=OVERCOMMIT),
    ],
    ids=lambda one: one.name,
)
def test_no_job_ends_early_where_jobs_disturb_each_other(scheduling: Scheduling, tmp_path: Path) -> None:
    """With slowdowns by neighbours and place: time on GPUs is at least the run time alone; logs repeat."""
    world = random_scenario(6, jobs=45, nodes=2, restart_ms=200)
    log, other = tmp_path / "log", tmp_path / "other"
    history = simulate(world, scheduling, log=log)
    assert history.stranded == ()
    for job in history.jobs:
        held = sum((span.end_ms or 0) - span.start_ms for span in job.spans)
        assert held >= job.alone_ms + 200 * job.stops
        assert job.end_ms == job.spans[-1].end_ms
        assert all((one.end_ms or 0) <= two.start_ms for one, two in pairwise(job.spans))
    assert sum(job.stops for job in history.jobs) > 0
    assert simulate(world, scheduling, log=other).jobs == history.jobs
    assert other.read_bytes() == log.read_bytes()


def test_a_stopped_one_leaves_the_beginning_of_a_log_and_starts_anew(tmp_path: Path) -> None:
    """Stopped after a round; the next one writes the whole log in its place."""
    world, scheduling = random_scenario(8, jobs=15), CALM[3]
    one, other = tmp_path / "one", tmp_path / "other"
    simulate(world, scheduling, log=one)
    cancel = threading.Event()
    stopped = simulate(world, scheduling, log=other, cancel=cancel, on_progress=lambda _: cancel.set())
    assert not stopped.finished
    assert stopped.rounds.held == 1
    assert len(other.read_bytes()) < len(one.read_bytes())
    assert one.read_bytes().startswith(other.read_bytes())
    assert simulate(world, scheduling, log=other).finished
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("method", ["stranding", "prices", "fgd"])
def test_methods_that_go_by_the_mix_of_jobs_may_stop_jobs(method: str, tmp_path: Path) -> None:
    """Lawful as the log alone tells it, and the same bytes again."""
    scheduling = policy(method, name=method, order="srtf", preempts="srtf")
    world, logs = random_scenario(6, jobs=30, nodes=2, restart_ms=200), [tmp_path / "one", tmp_path / "other"]
    histories = [simulate(world, scheduling, log=log) for log in logs]
    assert histories[0].stranded == ()
    assert audit(world, scheduling, logs[0])["stop"] > 0
    assert logs[0].read_bytes() == logs[1].read_bytes()


def test_strict_keeps_the_order_where_others_overtake() -> None:
    """wide has no room until first is gone; small could start at once. What never fits blocks a strict queue."""
    jobs = [timed("first", 0, 100, gpus=2), timed("wide", 1, 100, gpus=4), timed("small", 2, 100)]
    for strict, starts in ((True, [0, 100, 200]), (False, [0, 102, 2])):
        assert [job.start_ms for job in simulate(scenario(jobs), policy(strict=strict)).jobs] == starts
    never = scenario([timed("huge", 0, 10, gpus=5), timed("small", 1, 10)])
    assert simulate(never, policy(strict=True)).stranded == ("huge", "small")
    assert simulate(never, Scheduling(name="whole")).stranded == ("huge",)


def test_running_jobs_are_changed_only_where_job_and_policy_allow_it() -> None:
    """A dear job stops a cheap one that may be stopped, with the millisecond of work that it had done; or it waits."""
    cheap, dear = timed("cheap", 0, 1000, gpus=4, value=1), timed("dear", 1, 1000, gpus=4, value=1000)
    greedy = Scheduling(name="greedy", policy=Policy(changes=Changes(preemptions_max=9, moves_max=9)))
    for free, policy_of, expected in (
        (True, greedy, [(0, 2000), (1, 1001)]),
        (False, greedy, [(0, 1000), (1000, 2000)]),
        (True, Scheduling(name="plain"), [(0, 1000), (1000, 2000)]),
    ):
        held = running(cheap, [("n0", (0, 1, 2, 3))], preemptible=free, movable=free, shrinkable=free)
        done = simulate(scenario([cheap, dear], running=(held,)), policy_of).jobs
        assert [(job.start_ms, job.end_ms) for job in done] == expected


def test_look_ahead_goes_by_predictions_and_the_world_by_what_is_true() -> None:
    """
    A pair finds GPUs in two sockets; one socket is said to be whole in 20 s, so it waits for that; it takes 60 s.

    Waiting ends at 20 + 100 by the prediction, against 130 at once; in truth at 60 + 100.
    """
    jobs = [timed("short", 0, 20_000), timed("long", 0, 900_000), timed("pair", 1, 100_000, gpus=2, spread=300)]
    held = (running(jobs[0], [("n0", (0,))]), running(jobs[1], [("n0", (2,))]))
    world = scenario(jobs, running=held, actual={"short": 60_000})
    for rule, expected in (("lookahead", (60_000, 160_000)), ("none", (1, 1 + 130_000))):
        played = simulate(world, Scheduling(name="ahead", policy=Policy(postpone=Postpone(rule=rule)))).jobs[2]
        assert (played.start_ms, played.end_ms) == expected


def test_a_scenario_refuses_references_to_nothing() -> None:
    """In the words of an instance, at the scenario's own paths."""
    with pytest.raises(ValueError, match=r"arrivals\[1\].job.id: 'x' appears twice"):
        scenario([timed("x", 0, 1), timed("x", 0, 1)])
    with pytest.raises(ValueError, match="actual_run_time_ms: must be stated"):
        scenario([build.job("x")])
    late = timed("x", 5, 1)
    with pytest.raises(ValueError, match=r"arrivals\[0\].job.arrival_ms: 5, but the job runs"):
        scenario([late], running=(running(late, [("n0", (0,))]),))
    with pytest.raises(ValueError, match=r"slowdowns\[1\]"):
        scenario([], slowdowns=(Slowdown(profile="a", beside="b"),) * 2)


def test_rounds_that_the_time_limit_cut_are_counted() -> None:
    """A thousandth of a second is not enough for a round with solvers; the log would not be the same again."""
    world = random_scenario(11, jobs=14)
    short = simulate(world, Scheduling(name="at-once"), time_limit_s=0.001)
    assert short.finished
    assert short.rounds.cut > 1
    assert summarise(short).rounds_cut == short.rounds.cut
    assert simulate(world, CALM[3]).rounds.cut == 0


@pytest.mark.parametrize(("most", "start"), [(None, 1), (10_000, 1), (100, 2000)])
def test_a_job_waits_rather_than_run_too_far_apart(most: int | None, start: int) -> None:
    """One GPU of either node is left: the pair starts across them, or when another of its first node has ended."""
    full = [timed("three", 0, 2000, gpus=3), timed("others", 0, 9000, gpus=3)]
    world = scenario([*full, timed("pair", 1, 1000, workers=2, spread=300)], nodes=2)
    history = simulate(world, policy("best-fit", apart_max_thousandths=most))
    assert {job.job: job.start_ms for job in history.jobs}["pair"] == start
