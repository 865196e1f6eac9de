"""What engines are told of jobs: nothing that nobody reads, so that jobs that ask for the same are alike."""

from __future__ import annotations

import pytest

from helpers.scenarios import scenario, timed
from placeopt import Engine
from placeopt.model import Job, Slowdown
from placeopt.simulation import named_policy
from placeopt.simulation.scheduling.job_by_job import JobByJob
from placeopt.simulation.scheduling.whole_rounds import WholeRounds


def told(name: str, job: Job, *, slowdowns: tuple[Slowdown, ...] = ()) -> Job:
    """Return the job as the engine is told of it under a policy that comes with placeopt."""
    chosen = named_policy(name)
    decider = WholeRounds if chosen.rounds == "whole" else JobByJob
    with Engine() as engine:
        return decider(engine, scenario([job], slowdowns=slowdowns), chosen).engine_job(job)


def test_a_minimal_utility_is_passed_on_where_it_is_judged() -> None:
    """By the policy, or on options that state their utility; elsewhere jobs that differ in nothing else are alike."""
    job = timed("a", 0, 1000, utility_min_thousandths=400)
    assert told("topo-aware-p", job).utility_min_thousandths == 400
    assert told("placeopt", job).utility_min_thousandths is None
    assert told("placeopt-queue", job).utility_min_thousandths is None
    stated = timed("a", 0, 1000, utility_min_thousandths=400, utility_thousandths=500)
    assert told("placeopt-queue", stated).utility_min_thousandths == 400


@pytest.mark.parametrize(("slowdowns", "profile"), [((), None), ((Slowdown(profile="p", beside="p"),), "p")])
def test_a_profile_is_passed_on_where_profiles_slow_each_other(
    slowdowns: tuple[Slowdown, ...], profile: str | None
) -> None:
    """Else it tells nobody anything."""
    assert told("best-fit", timed("a", 0, 1000, profile="p"), slowdowns=slowdowns).profile == profile
