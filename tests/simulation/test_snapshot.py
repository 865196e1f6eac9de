"""A moment of a simulation as a round, by hand."""

import pytest

from helpers.scenarios import policy, scenario, timed
from placeopt import BadInput, solve
from placeopt.check import violations
from placeopt.scheduling import CoreCurve, named_policy
from placeopt.simulation import longest_queue_ms, round_at, simulate
from placeopt.whatif import running_as_plan

WORLD = scenario([timed("a", 0, 100_000, gpus=4), timed("b", 10_000, 50_000, gpus=4), timed("c", 20_000, 50_000)])
"""One node of four GPUs: a to 100 s, b to 150 s, c to 200 s."""


def test_a_moment() -> None:
    """At 30 s a runs and two wait; at 120 s b runs; at 300 s all has ended."""
    history = simulate(WORLD, named_policy("fcfs"))
    early = round_at(history, 30_000)
    assert [held.job for held in early.running] == ["a"]
    assert [job.id for job in early.jobs] == ["a", "b", "c"]
    assert (early.now_ms, early.running[0].expected_end_ms) == (30_000, 100_000)
    assert violations(*running_as_plan(early)) == []
    later = round_at(history, 120_000)
    assert [held.job for held in later.running] == ["b"]
    assert [job.id for job in later.jobs] == ["b", "c"]
    with pytest.raises(BadInput, match="nothing"):
        round_at(history, 300_000)
    assert longest_queue_ms(history) == 20_000


def test_a_moment_in_which_a_job_was_stopped() -> None:
    """A job that was stopped waits; when it runs again it is where it restarted."""
    world = scenario([timed("low", 0, 50_000, gpus=4), timed("high", 10_000, 20_000, gpus=3, priority=1)])
    history = simulate(world, policy("best-fit", order="priority", preempts="priority"))
    assert [held.job for held in round_at(history, 5000).running] == ["low"]
    between = round_at(history, 20_000)
    assert ([held.job for held in between.running], [job.id for job in between.jobs]) == (["high"], ["low", "high"])
    assert round_at(history, 40_000).running[0].started_ms == 30_000


def test_a_moment_on_shared_gpus() -> None:
    """Six jobs hold all of a GPU each, and there are four: allowed under ``obp``, so the round must allow it."""
    jobs = [timed(f"j{i}", 0, 100_000, gpu_memory_mib=4000, gpu_utilisation_percent=20) for i in range(6)]
    found = round_at(simulate(scenario(jobs, physics={"interference": "curve"}), named_policy("obp")), 1000)
    assert len(found.running) == 6
    assert (found.policy.share_mode, found.policy.interference.model) == ("overcommit", "curve")
    assert violations(*running_as_plan(found)) == []
    assert solve(found, method="fcfs").unplaced == ()


def test_a_moment_under_a_policy_that_chooses_cores() -> None:
    """The job asked for one core and got the three that its curve is fastest with; who waits has asked for one."""
    curve = CoreCurve(profile="slow", category="vision", speed_thousandths=(250, 500, 1000, 1000))
    jobs = [timed(name, 0, 100_000, gpus=4, cpu_millicores=1000, profile="slow") for name in ("a", "b")]
    found = round_at(simulate(scenario(jobs, core_curves=(curve,)), policy("best-fit", cores="best_fit")), 1000)
    held, waits = found.jobs
    assert found.running[0].assignments[0].cpu_millicores == held.options[0].demand.cpu_millicores > 1000
    assert waits.options[0].demand.cpu_millicores == 1000
    assert violations(*running_as_plan(found)) == []


def test_a_moment_under_a_policy_that_overlooks_bandwidth() -> None:
    """Two jobs use more than the node may give; under a policy that ignores it that breaks no rule."""
    jobs = [timed(name, 0, 100_000, memory_bandwidth_mbps=60_000) for name in ("a", "b")]
    world = scenario(jobs, machine={"memory_bandwidth_mbps": 100_000})
    found = round_at(simulate(world, policy("best-fit", bandwidth="ignore")), 1000)
    assert len(found.running) == 2
    assert violations(*running_as_plan(found)) == []
