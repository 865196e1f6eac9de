"""Whole simulations: nothing is lost, every decision is lawful, the same seed gives the same log."""

import threading
from pathlib import Path

import pytest

from helpers.scenarios import PLAIN, log_lines, policy, random_scenario, scenario, timed
from placeopt import BadInput, violations
from placeopt.build import running
from placeopt.model import (
    Changes,
    Instance,
    InstanceRef,
    Interference,
    Level,
    Placement,
    Plan,
    Policy,
    PolicyRef,
    Postpone,
    Running,
    Scenario,
    Scheduling,
    Slowdown,
    Unplaced,
    Weights,
)
from placeopt.simulation import simulate, summarise

POLICIES = [
    policy("fcfs", strict=True),
    policy("best-fit", order="srtf"),
    policy("stranding", interval_ms=5000),
    Scheduling(name="whole", method="drb"),
    Scheduling(name="auto", method="auto", policy=Policy(postpone=Postpone(rule="lookahead"))),
]
UTILITY = policy(
    "best-fit",
    name="utility",
    policy=PLAIN.model_copy(update={"name": "utility", "postpone": Postpone(rule="utility")}),
)
each_policy = pytest.mark.parametrize("scheduling", POLICIES, ids=lambda one: one.name)


def audit(world: Scenario, scheduling: Scheduling, path: Path) -> None:
    """Read a log as a stranger would: the story of every job, and the referee's word on every round."""
    jobs = {one.job.id: one.job for one in world.arrivals}
    came: dict[str, int] = {}
    started: dict[str, int] = {}
    ended: dict[str, int] = {}
    now: dict[str, Placement] = {}
    last = 0
    for line in log_lines(path)[1:]:
        assert line["t"] >= last, "time goes forward"
        last = line["t"]
        if line["e"] == "arrival":
            assert line["job"] not in came
            assert line["t"] >= jobs[line["job"]].arrival_ms
            came[line["job"]] = line["t"]
        elif line["e"] == "end":
            del now[line["job"]]
            ended[line["job"]] = line["t"]
        elif line["e"] == "round":
            waiting = [name for name in came if name not in started]
            assert line["waiting"] == len(waiting)
            start = [Placement.model_validate(one, strict=False) for one in line["start"]]
            held = tuple(Running(**dict(one)) for one in now.values())
            for one in start:
                assert one.job in waiting, "a job starts once, after it came"
                started[one.job] = line["t"]
                now[one.job] = one
            here = tuple(jobs[name] for name in [*(one.job for one in held), *waiting])
            round_ = Instance(
                cluster=world.cluster, jobs=here, running=held, slowdowns=world.slowdowns, policy=scheduling.policy
            )
            assert violations(round_, plan_of(round_, tuple(now.values()))) == []
    assert came.keys() == jobs.keys()
    assert started.keys() == ended.keys() == jobs.keys()
    assert all(ended[name] > started[name] >= came[name] for name in jobs)


def plan_of(round_: Instance, placements: tuple[Placement, ...]) -> Plan:
    """Return the plan of a round, for the referee."""
    placed = {one.job for one in placements}
    return Plan(
        instance=InstanceRef(name=round_.name, digest=round_.digest, revision=0),
        policy=PolicyRef(name=round_.policy.name, digest=round_.policy.digest, values=round_.policy),
        status="feasible",
        limit="none",
        levels=(Level(name="value", sense="max", objective=0, bound=None),),
        gap=None,
        placements=placements,
        unplaced=tuple(
            Unplaced(job=job.id, reason="outvoted", detail="") for job in round_.jobs if job.id not in placed
        ),
    )


@each_policy
@pytest.mark.parametrize("physics", [{}, {"rule": "sc17", "step_ms": 1100}], ids=["rate", "sc17"])
def test_every_decision_is_lawful_and_every_job_has_its_story(
    scheduling: Scheduling, physics: dict, tmp_path: Path
) -> None:
    """No job lost, duplicated or finished before it began; the referee takes every round."""
    world = random_scenario(11, jobs=14, **physics)
    log = tmp_path / "log.jsonl"
    history = simulate(world, scheduling, log=log)
    assert history.finished
    audit(world, scheduling, log)


@pytest.mark.parametrize("scheduling", [*POLICIES, UTILITY], ids=lambda one: one.name)
def test_gpu_time_is_conserved(scheduling: Scheduling) -> None:
    """Granted and idle are all there is; what was granted is what the jobs held."""
    world = random_scenario(5, jobs=12)
    history = simulate(world, scheduling)
    held = summarise(history).occupancy
    assert held.granted + held.idle == 1000 * held.total
    assert held.granted == sum(job.gpu_milli * (job.end_ms - job.start_ms) for job in history.jobs)


@pytest.mark.parametrize("scheduling", [*POLICIES, UTILITY], ids=lambda one: one.name)
def test_the_same_seed_gives_the_same_log_and_a_cut_one_is_gone_on_with(scheduling: Scheduling, tmp_path: Path) -> None:
    """Byte for byte, wherever it was cut, even inside a line."""
    world = random_scenario(3, jobs=9)
    one, other = tmp_path / "one", tmp_path / "other"
    whole = simulate(world, scheduling, log=one, seed=4)
    simulate(world, scheduling, log=other, seed=4)
    assert one.read_bytes() == other.read_bytes()
    for cut in (1, len(one.read_bytes()) // 2, len(one.read_bytes()) - 1):
        other.write_bytes(one.read_bytes()[:cut])
        again = simulate(world, scheduling, log=other, seed=4, resume=True)
        assert other.read_bytes() == one.read_bytes()
        assert again.jobs == whole.jobs
        assert again.rounds.held == whole.rounds.held


def test_a_stopped_one_keeps_what_is_there(tmp_path: Path) -> None:
    """Stopped after a round, it goes on to the same end."""
    world, scheduling = random_scenario(8, jobs=15), POLICIES[3]
    one, other = tmp_path / "one", tmp_path / "other"
    simulate(world, scheduling, log=one)
    cancel = threading.Event()
    stopped = simulate(world, scheduling, log=other, cancel=cancel, on_progress=lambda _: cancel.set())
    assert not stopped.finished
    assert stopped.rounds.held == 1
    assert len(other.read_bytes()) < len(one.read_bytes())
    assert simulate(world, scheduling, log=other, resume=True).finished
    assert one.read_bytes() == other.read_bytes()


def test_a_log_of_something_else_is_refused(tmp_path: Path) -> None:
    """Another seed, another scenario; the log stays as it is."""
    log = tmp_path / "log"
    simulate(random_scenario(1, jobs=5), policy(), log=log)
    before = log.read_bytes()
    with pytest.raises(BadInput, match=r"line 1: .*expected .*start anew"):
        simulate(random_scenario(1, jobs=5), policy(), log=log, resume=True, seed=1)
    with pytest.raises(BadInput, match="line 1"):
        simulate(random_scenario(2, jobs=5), policy(), log=log, resume=True)
    assert log.read_bytes() == before
    log.write_bytes(b"\xff\n")
    with pytest.raises(BadInput, match="not UTF-8"):
        simulate(random_scenario(1, jobs=5), policy(), log=log, resume=True)


def test_a_log_whose_decision_breaks_a_rule_is_refused(tmp_path: Path) -> None:
    """The referee reads it again: two jobs on one GPU."""
    world = scenario([timed("a", 0, 1000, gpus=4), timed("b", 1, 1000, gpus=4)])
    log = tmp_path / "log"
    simulate(world, policy(), log=log)
    lines = log.read_text().splitlines()
    lines[3:] = [lines[3], lines[2].replace('"a"', '"b"').replace('"n":1', '"n":2').replace('"t":0', '"t":1')]
    log.write_text("\n".join(lines[:5]) + "\n")
    with pytest.raises(BadInput, match="plan"):
        simulate(world, policy(), log=log, resume=True)


def test_a_job_that_never_fits_is_reported() -> None:
    """It waits for ever, and is not lost; under a strict queue neither are those behind it."""
    jobs = [timed("huge", 0, 10, gpus=5), timed("small", 1, 10)]
    assert simulate(scenario(jobs), policy()).stranded == ("huge",)
    assert simulate(scenario(jobs), policy(strict=True)).stranded == ("huge", "small")
    assert simulate(scenario(jobs), Scheduling(name="whole")).stranded == ("huge",)


def test_strict_keeps_the_order_where_others_overtake() -> None:
    """wide has no room until first is gone; small could start at once."""
    jobs = [timed("first", 0, 100, gpus=2), timed("wide", 1, 100, gpus=4), timed("small", 2, 100)]
    start = {job.job: job.start_ms for job in simulate(scenario(jobs), policy(strict=True)).jobs}
    assert start == {"first": 0, "wide": 100, "small": 200}
    start = {job.job: job.start_ms for job in simulate(scenario(jobs), policy()).jobs}
    assert start == {"first": 0, "wide": 102, "small": 2}


def test_what_runs_at_the_beginning_ends_like_any_other() -> None:
    """A job holds the machine until 50; the other waits for it."""
    jobs = [timed("old", 0, 50, gpus=4), timed("new", 1, 10, gpus=1)]
    held = (running(jobs[0], [("n0", (0, 1, 2, 3))]),)
    done = simulate(scenario(jobs, running=held), policy()).jobs
    assert [(job.start_ms, job.end_ms) for job in done] == [(0, 50), (50, 60)]


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
    jobs = [
        timed("short", 0, 20_000),
        timed("long", 0, 900_000),
        timed("pair", 1, 100_000, gpus=2, spread=300),
    ]
    held = (running(jobs[0], [("n0", (0,))]), running(jobs[1], [("n0", (2,))]))
    world = scenario(jobs, running=held, actual={"short": 60_000})
    ahead = Scheduling(name="ahead", policy=Policy(postpone=Postpone(rule="lookahead")))
    done = {job.job: job for job in simulate(world, ahead).jobs}
    assert (done["pair"].start_ms, done["pair"].end_ms) == (60_000, 160_000)
    at_once = {job.job: job for job in simulate(world, Scheduling(name="at-once")).jobs}
    assert (at_once["pair"].start_ms, at_once["pair"].end_ms) == (1, 1 + 130_000)


def test_a_scenario_refuses_references_to_nothing() -> None:
    """In the words of an instance, at the scenario's own paths."""
    with pytest.raises(ValueError, match=r"arrivals\[1\].job.id: 'x' appears twice"):
        scenario([timed("x", 0, 1), timed("x", 0, 1)])
    with pytest.raises(ValueError, match="actual_run_time_ms: must be stated"):
        scenario(
            [
                timed("x", 0, 1).model_copy(
                    update={"options": (timed("y", 0, 0).options[0].model_copy(update={"run_time_ms": None}),)}
                )
            ]
        )
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
    assert short.rounds.cut > 0
    assert summarise(short).rounds_cut == short.rounds.cut
    assert simulate(world, POLICIES[3]).rounds.cut == 0


def test_overcommitted_gpus_take_jobs_beyond_their_number() -> None:
    """Two a GPU on four GPUs: eight of nine start at once (regression: it ended one above the number of GPUs)."""
    shared = Policy(
        share_mode="overcommit",
        jobs_per_gpu_max=2,
        weights=Weights(communication=0, interference=0, fragmentation=0, horus=1000),
        interference=Interference(model="curve"),
        order="fcfs",
    )
    jobs = [timed(f"j{i}", 0, 10_000, gpu_utilisation_percent=40) for i in range(9)]
    history = simulate(scenario(jobs, physics={"interference": "curve"}), policy("horus", policy=shared))
    assert sum(job.start_ms == 0 for job in history.jobs) == 8


@pytest.mark.parametrize(
    ("percents", "ends"),
    [
        ((100, 100), [2000, 2000]),  # each gets half of the GPU
        ((60, 80), [1400, 1400]),  # 140 % of what there is
        ((100, 50), [1500, 1500]),
        ((50, 50), [1000, 1000]),  # there is enough for both
    ],
)
def test_a_gpu_does_no_more_than_all_of_its_work(percents: tuple[int, int], ends: list[int]) -> None:
    """Two jobs that use all of a GPU alone take twice as long on one, also where no slowdown of theirs is stated."""
    shared = PLAIN.model_copy(update={"share_mode": "overcommit", "jobs_per_gpu_max": 2})
    jobs = [timed(f"j{i}", 0, 1000, gpus=4, gpu_utilisation_percent=percent) for i, percent in enumerate(percents)]
    history = simulate(scenario(jobs), policy("best-fit", policy=shared))
    assert [job.end_ms for job in history.jobs] == ends


def test_a_job_gets_the_rest_of_a_gpu_when_its_neighbour_ends() -> None:
    """Both use all of it: the short one ends after twice its second, the other has done one of its three by then."""
    shared = PLAIN.model_copy(update={"share_mode": "overcommit", "jobs_per_gpu_max": 2})
    jobs = [timed(f"j{i}", 0, run_ms, gpus=4, gpu_utilisation_percent=100) for i, run_ms in enumerate((1000, 3000))]
    history = simulate(scenario(jobs), policy("best-fit", policy=shared))
    assert [job.end_ms for job in history.jobs] == [2000, 4000]


@pytest.mark.parametrize(("most", "start"), [(None, 1), (10_000, 1), (100, 2000)])
def test_a_job_waits_rather_than_run_too_far_apart(most: int | None, start: int) -> None:
    """One GPU of either node is left: the pair starts across them, or when another of its first node has ended."""
    full = [timed("three", 0, 2000, gpus=3), timed("others", 0, 9000, gpus=3)]
    world = scenario([*full, timed("pair", 1, 1000, workers=2, spread=300)], nodes=2)
    history = simulate(world, policy("best-fit", apart_max_thousandths=most))
    assert {job.job: job.start_ms for job in history.jobs}["pair"] == start
