"""The policy ``placeopt``: each of its mechanisms decides a scenario worked by hand; its logs replay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from helpers.scenarios import log_lines, policy, random_scenario, scenario, timed
from placeopt import solve
from placeopt.build import job, option, running
from placeopt.check import violations
from placeopt.model import Demand, Job, Slowdown
from placeopt.scheduling import Goals, Rule, Scheduling, adapted, named_policy
from placeopt.simulation import Arrival, Endpoint, History, LoadStep, Replica, round_at, simulate, summarise

PLACEOPT = named_policy("placeopt")
MINUTE = 60_000


def with_goals(**weights: int) -> Scheduling:
    """Return ``placeopt`` with these goals alone."""
    none = {"completion": 0, "in_time": 0, "makespan": 0, "fairness": 0}
    return PLACEOPT.model_copy(update={"order": Goals(rule="urgency", **{**none, **weights})})


def starts(history: History) -> dict[str, int | None]:
    """Return when each job started, in ms."""
    return {done.job: done.start_ms for done in history.jobs}


def endpoint() -> Endpoint:
    """Return a service that always wants one replica of one GPU."""
    gpu = Replica(demand=Demand(), rate_milli=1000, latency_ms=10)
    return Endpoint(id="e", gpu=gpu, latency_target_ms=100, load=(LoadStep(from_ms=0, rate_milli=1),), until_ms=MINUTE)


def pair(excess: int) -> Slowdown:
    """Return the slowdown of two jobs of profile "a" on one GPU, in thousandths."""
    return Slowdown(profile="a", beside="a", gpu_thousandths=excess)


NEIGHBOURS = Slowdown(profile="a", beside="a", gpu_thousandths=1000, node_thousandths=100)
"""Jobs that slow one another with GPUs of their own."""
WHOLE_GPUS = [timed("j", 0, 1000, gpus=1, profile="a")]
ELASTIC = [job("j", workers=2, workers_min=1, run_time_ms=1000)]
STATED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"share_mode": "exclusive", "preempts": "never", "elastic": "asked", "rounds": "each"}),
    ({"jobs": [timed("j", 0, 1000, gpu_milli=500)]}, {"share_mode": "fraction"}),
    ({"jobs": [timed("j", 0, 1000, gpu_utilisation_percent=30)]}, {"share_mode": "overcommit"}),
    ({"slowdowns": (pair(100),)}, {"share_mode": "overcommit"}),
    ({"slowdowns": (NEIGHBOURS,)}, {"share_mode": "exclusive", "rounds": "whole", "preempts": "never"}),
    ({"slowdowns": (NEIGHBOURS,), "nodes": 9}, {"rounds": "each"}),
    ({"slowdowns": (pair(1000),)}, {"share_mode": "exclusive", "rounds": "each"}),
    ({"physics": {"restart_ms": 1}}, {"preempts": "priced", "rounds": "each"}),
    ({"physics": {"rule": "sc17"}, "jobs": ELASTIC}, {"preempts": "never", "elastic": "asked"}),
    ({"endpoints": (endpoint(),)}, {"preempts": "host"}),
    ({"jobs": ELASTIC}, {"elastic": "load"}),
]


def names_of_rules(rules: Scheduling) -> dict[str, str]:
    """Field -> name of the rule that it names."""
    return {field: rule.rule for field, rule in rules if isinstance(rule, Rule)}


@pytest.mark.parametrize(("fields", "expected"), STATED, ids=range(len(STATED)))
def test_mechanisms_follow_what_the_scenario_states(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    """Without a statement none is used; each statement switches on its own."""
    made = scenario(fields.pop("jobs", WHOLE_GPUS), **fields)
    found = adapted(PLACEOPT, made.setting())
    used = {**dict(found.policy), **dict(found), **names_of_rules(found)}
    assert {name: used[name] for name in expected} == expected
    assert not found.adapts
    assert adapted(found, made.setting()) is found


SISTERS: list[tuple[str, dict[str, Any]]] = [
    ("placeopt-queue", {"rounds": "each", "preempts": "never", "elastic": "asked", "order": "srtf"}),
    ("placeopt-preemptive", {"rounds": "each", "preempts": "priced", "elastic": "load", "order": "urgency"}),
    ("placeopt-rounds", {"rounds": "whole", "preempts": "never", "worth": "stated"}),
    ("placeopt-jct", {"rounds": "whole", "preempts": "never", "worth": "rate"}),
    ("placeopt-elastic", {"rounds": "whole", "preempts": "never"}),
]


@pytest.mark.parametrize(("name", "expected"), SISTERS, ids=[name for name, _ in SISTERS])
def test_sisters_are_settings_of_one_policy(name: str, expected: dict[str, Any]) -> None:
    """What a sister fixes holds whether or not the scenario states a price; the rest follows the scenario."""
    sister = named_policy(name)
    assert sister.adapts
    for restart_ms in (0, 1):
        for gpu_milli, share in ((1000, "exclusive"), (500, "fraction")):
            elastic = job("j", workers=2, workers_min=1, run_time_ms=1000, gpu_milli=gpu_milli)
            found = adapted(sister, scenario([elastic], physics={"restart_ms": restart_ms}).setting())
            used = {**dict(found), **names_of_rules(found)}
            assert {field: used[field] for field in expected} == expected
            if "share_mode" not in sister.fixed:
                assert found.policy.share_mode == share


def test_policies_that_do_not_adapt_stay() -> None:
    """A paper's policy does what its file says, whatever the scenario states: everything is fixed already."""
    paper = named_policy("dynamoml")
    assert adapted(paper, scenario(WHOLE_GPUS, physics={"restart_ms": 1}).setting()) is paper
    with pytest.raises(ValueError, match="fixed: goes with adapts"):
        Scheduling(name="p", fixed=("rounds",))


def test_what_is_never_stopped_comes_by_run_time() -> None:
    """40 s on one GPU and 15 s on four: a node is kept for 40 s or 15, if no job is stopped; else 40 against 60."""
    jobs = [timed("narrow", 0, 40_000), timed("wide", 0, 15_000, gpus=4)]
    completion = with_goals(completion=1)
    assert starts(simulate(scenario(jobs), completion)) == {"narrow": 15_000, "wide": 0}
    assert starts(simulate(scenario(jobs, physics={"restart_ms": 1}), completion)) == {"narrow": 0, "wide": 40_000}


DUE = [timed("late", 0, 20_000, deadline_ms=1), timed("in_time", 0, 30_000, deadline_ms=MINUTE)]
SMALL, SHORT = timed("small", 0, 30_000), timed("short", 0, 10_000, gpus=4)
ONE_A_SECOND = [*(timed(f"s{i}", 1000 * i, 5_000) for i in range(400)), timed("long", 400_000, 10**9)]
FIVE = [*(timed(f"s{i}", 1000 * i, 5_000) for i in range(5)), timed("long", 5000, MINUTE)]
CORES = scenario([]).cluster.machines[0].cpu_millicores
HOST = timed("cpu", 0, 10_000, gpus=0, cpu_millicores=CORES, kind="cpu")
URGENT: list[tuple[list[Job], dict[str, int], int, str]] = [
    # 40, 30 and 20 GPU-seconds
    ([timed("40", 0, 40_000), timed("30", 0, 15_000, gpus=2), timed("20", 0, 5_000, gpus=4)], {}, 0, "20 30 40"),
    # all cores of a node of four GPUs for 10 s are 40 GPU-seconds
    ([timed("50", 0, 50_000), HOST, timed("30", 0, 30_000)], {}, 0, "30 cpu 50"),
    # 30 s that would end in time count twice, so as 15 s: before the 20 s that are late; at 31 s both are late
    (DUE, {}, 0, "in_time late"),
    (DUE, {}, 31_000, "late in_time"),
    (DUE, {"in_time": 0}, 0, "late in_time"),
    # fairness goes by slowdown: 1 / (40 x 10) against 1 / (30 x 30)
    ([SMALL, SHORT], {"completion": 0, "in_time": 0, "fairness": 1}, 0, "short small"),
    ([SMALL, SHORT], {}, 0, "small short"),
    # a lull is not the end of the arrivals: 30 s are 30 of their distances, but less than a tenth of the time so far
    (ONE_A_SECOND, {"makespan": 10**6}, 430_000, "s0"),
    (ONE_A_SECOND, {"makespan": 10**6}, 441_000, "long"),
    # a job every second: after 2 s without one more are expected, after 20 s none are, and the long one is urgent
    (FIVE, {"makespan": 10}, 7_000, "s0"),
    (FIVE, {"makespan": 10}, 25_000, "long"),
]


@pytest.mark.parametrize(("jobs", "goals", "at_ms", "order"), URGENT, ids=range(len(URGENT)))
def test_the_most_urgent_comes_first(
    jobs: list[Job], goals: dict[str, int], at_ms: int, order: str, tmp_path: Path
) -> None:
    """Urgency over GPU time decides in which order jobs start when nine nodes come free that others held until then."""
    full = timed("full", 0, at_ms, gpus=4, workers=9, cpu_millicores=CORES)
    held = running(full, [(f"n{i}", (0, 1, 2, 3)) for i in range(9)])
    made = scenario([full, *jobs], nodes=9, running=(held,)) if at_ms else scenario(jobs, nodes=9)
    rules = policy("best-fit", order=Goals(rule="urgency", **{"makespan": 0, **goals}), preempts="priority")
    simulate(made, rules, log=tmp_path / "log")
    started = next(line["start"] for line in log_lines(tmp_path / "log") if line["e"] == "round" and line["t"] == at_ms)
    assert " ".join(placed["job"] for placed in started).startswith(order)


def test_the_job_that_ends_last_starts_before_it_is_too_late() -> None:
    """
    Four GPUs, seven jobs of 10 s and one of 30 s, all there from the beginning: 100 GPU-seconds, 25 s on all GPUs.

    The long one takes longer than all, so it starts at once and ends last, after 30 s; by completion alone it starts
    with the second wave and ends after 40 s.
    """
    jobs = [*(timed(f"s{i}", 0, 10_000) for i in range(7)), timed("long", 0, 30_000)]
    assert summarise(simulate(scenario(jobs), PLACEOPT)).last_end_s == 30
    assert summarise(simulate(scenario(jobs), with_goals(completion=1))).last_end_s == 40


def shapes(name: str, **fields: Any) -> Any:
    """Build a job of 40 s on one GPU, 24 s on two and 16 s on four."""
    timed_options = tuple(
        option(id=f"x{gpus}", gpus=gpus, run_time_ms=run, value=100 * gpus)
        for gpus, run in ((1, 40_000), (2, 24_000), (4, 16_000))
    )
    return job(name, options=timed_options, **fields)


def held_gpus(history: History) -> list[int]:
    """Return the number of GPUs that each job got."""
    return [sum(len(assignment.gpus) for assignment in done.spans[0].placement.assignments) for done in history.jobs]


def test_the_option_that_costs_the_goals_least() -> None:
    """
    A job alone takes its fastest. Of sixteen on four GPUs each takes one: 40 s and 15 x 40 / 4 s for the others,
    against 24 s and 15 x 48 / 4 s; with 20 s left only four GPUs are fast enough, although others wait.
    """
    assert held_gpus(simulate(scenario([shapes("a")]), PLACEOPT)) == [4]
    due = [shapes("due", deadline_ms=20_000), *(shapes(f"j{i}") for i in range(15))]
    assert held_gpus(simulate(scenario(due), with_goals(completion=1)))[:4] == [1, 1, 1, 1]
    in_time = simulate(scenario(due), with_goals(completion=1, in_time=100))
    assert (held_gpus(in_time)[0], in_time.jobs[0].end_ms) == (4, 16_000)


def test_jobs_share_a_gpu_where_it_gets_more_done() -> None:
    """Five jobs of 30 % each on four GPUs: all start at once. Of 100 % each, the fifth waits."""
    for percent, waits in ((30, 0), (100, 1)):
        jobs = [timed(f"j{i}", 0, 10_000, gpu_utilisation_percent=percent) for i in range(5)]
        history = simulate(scenario(jobs, physics={"interference": "curve"}), PLACEOPT)
        assert sum(done.start_ms != 0 for done in history.jobs) == waits


def test_a_moment_with_shared_gpus_is_a_valid_round() -> None:
    """The round that stands then allows what the policy did."""
    jobs = [timed(f"j{i}", 0, 10_000, gpu_utilisation_percent=30) for i in range(5)]
    standing = round_at(simulate(scenario(jobs, physics={"interference": "curve"}), PLACEOPT), 1)
    assert standing.policy.share_mode == "overcommit"
    assert len(standing.running) == 5
    plan = solve(standing)
    assert violations(standing, plan) == []


@pytest.mark.parametrize("physics", [{}, {"restart_ms": 500}], ids=["whole", "each"])
def test_runs_repeat(tmp_path: Path, physics: dict[str, Any]) -> None:
    """The same bytes and the same history twice."""
    made = random_scenario(3, **physics)
    several = tuple(Arrival(job=shapes(f"shapes-{i}", arrival_ms=100 * i)) for i in range(4))
    made = made.model_copy(update={"arrivals": (*made.arrivals, *several)})
    histories = [simulate(made, PLACEOPT, log=tmp_path / f"{i}.jsonl") for i in range(2)]
    assert (tmp_path / "0.jsonl").read_bytes() == (tmp_path / "1.jsonl").read_bytes()
    assert histories[0].jobs == histories[1].jobs
    assert all(done.end_ms is not None for done in histories[0].jobs)


def cpu_jobs(*cores: int, apart_ms: int = 0) -> list[Job]:
    """Build jobs without GPUs that run for 9 s, of so many cores each."""
    fields = {"gpus": 0, "kind": "cpu"}
    return [timed(f"c{i}", apart_ms * i, 9000, cpu_millicores=1000 * n, **fields) for i, n in enumerate(cores)]


def gpu_job(cores: int) -> Job:
    """Build a job on a GPU that comes last."""
    return timed("gpu", 10, 100, kind="training", cpu_millicores=1000 * cores)


LONG_SHORT = [timed("long", 0, 10 * MINUTE, gpus=4), timed("short", 1, MINUTE, gpus=4)]
FULL = [timed(f"long-{i}", 0, (10 + i) * MINUTE, gpu_utilisation_percent=100) for i in range(4)]
FULL.append(timed("short", 1, MINUTE, gpu_utilisation_percent=100))
SERVED = {"endpoints": (endpoint(),)}
ALL_CORES = timed("cpu", 0, MINUTE, gpus=0, cpu_millicores=CORES, kind="cpu")
THREE_GPUS = timed("gpu", 0, MINUTE, gpus=3, cpu_millicores=CORES, kind="training")
NOTEBOOK = Arrival(job=job("notebook", gpus=4, kind="modelling"), service=True, leaves_ms=5000)
GANG = timed("gang", 1, 10_000, workers=3, cpu_millicores=CORES // 2, spread=900)
STORIES: list[tuple[list[Any], dict[str, Any], dict[str, int], str]] = [
    # a minute against ten: stopped for a restart of a second, not for one of 100 s, nor where no price is stated
    (LONG_SHORT, {"physics": {"restart_ms": 0}}, {"short": 10 * MINUTE}, ""),
    (LONG_SHORT, {"physics": {"restart_ms": 1000}}, {"short": 1}, "long"),
    (LONG_SHORT, {"physics": {"restart_ms": 100_000}}, {"short": 10 * MINUTE}, ""),
    # full utilisation: two on a GPU get no more done, so the short job stops the longest one
    (FULL, {"physics": {"restart_ms": 1000, "interference": "curve"}}, {"short": 1}, "long-3"),
    # where there are endpoints GPUs do not stand idle for the want of cores; not the other way round
    ([ALL_CORES, THREE_GPUS.model_copy(update={"arrival_ms": 1})], SERVED, {"cpu": 0, "gpu": 1}, "cpu"),
    ([THREE_GPUS, ALL_CORES.model_copy(update={"arrival_ms": 1})], SERVED, {"gpu": 0, "cpu": MINUTE}, ""),
    # three CPU jobs at most while others wait; that of most cores first, though it is not the last submitted
    ([*cpu_jobs(8, 8, 8, 8, 8), gpu_job(16)], SERVED, {"gpu": 10}, "c0 c1"),
    ([*cpu_jobs(8, 8, 8, 8, 8), gpu_job(32)], SERVED, {}, ""),
    ([*cpu_jobs(8, 8, 8, 8), gpu_job(32)], SERVED, {"gpu": 10}, "c0 c1 c2 c3"),
    ([*cpu_jobs(20, 8, 4, apart_ms=1), gpu_job(12)], SERVED, {"gpu": 10}, "c0"),
    # a notebook without a run time starts before a job of a second
    ([timed("short", 0, 1000, gpus=4), NOTEBOOK], {}, {"notebook": 0, "short": 5000}, ""),
    # cores make a gang use two nodes, which costs more than the limit: it waits until both are idle, and runs
    ([GANG], {"nodes": 2}, {"gang": 1}, ""),
    ([*(timed(f"b{i}", 0, 10_000) for i in range(5)), GANG], {"nodes": 2}, {"gang": 10_000}, ""),
]


@pytest.mark.parametrize(("jobs", "fields", "started", "stopped"), STORIES, ids=range(len(STORIES)))
def test_who_starts_when_and_who_is_stopped(
    jobs: list[Any], fields: dict[str, Any], started: dict[str, int], stopped: str
) -> None:
    """By what the scenario states, worked by hand."""
    history = simulate(scenario(jobs, **fields), PLACEOPT)
    assert starts(history).items() >= started.items()
    assert " ".join(done.job for done in history.jobs if done.stops) == stopped
