"""What any plan in hindsight could have placed of jobs one at a time, and quotas by a horizon."""

from __future__ import annotations

import numpy as np
import pytest

from placeopt import BadInput, PlaceoptError, Policy
from placeopt.build import instance, job, machine, running
from placeopt_papers.one_at_a_time.arrivals import Arrivals, arrivals_of
from placeopt_papers.one_at_a_time.hindsight import hindsight, placeable
from placeopt_papers.one_at_a_time.horizon import quota_until
from placeopt_papers.one_at_a_time.online_placer import OnlinePlacer


def halves() -> Arrivals:
    """Eight GPUs; jobs of 600, of which one fits on each."""
    return arrivals_of(instance(2, [job(f"j{i}", gpu_milli=600) for i in range(12)]))


def in_turns() -> Arrivals:
    """Four GPUs; four whole ones and four times 810 in turns."""
    jobs = [job(f"j{i}", gpu_milli=1000 if i % 2 else 810) for i in range(8)]
    return arrivals_of(instance(1, jobs, policy=Policy(share_mode="fraction")))


def test_hindsight_is_what_fits_or_what_came() -> None:
    """After five of them 3,000 (37.5 %), after twelve never more than 4,800; the same from another process."""
    arrivals, order = halves(), np.arange(12)
    assert placeable(arrivals, order[:5], isolation="thread") == 3000
    assert placeable(arrivals, order) == 4800
    assert hindsight(arrivals, order, 38, isolation="thread") == 37.5
    assert hindsight(arrivals, order, 90, isolation="thread") == 60.0


def test_nothing_is_placeable_where_nothing_fits() -> None:
    """GPUs of a model that is not there."""
    arrivals = arrivals_of(instance(1, [job("a", gpu_models=("H100",))]))
    assert placeable(arrivals, np.arange(1)) == 0


def test_hindsight_chooses_among_what_came() -> None:
    """One GPU; first a job of 600, then one of 1000 in whose place it would be left out."""
    arrivals = arrivals_of(instance(1, [job("a", gpu_milli=600), job("b")], machines=[machine(gpus=1)]))
    assert placeable(arrivals, np.arange(2), isolation="thread") == 1000


def test_hindsight_counts_a_job_as_often_as_it_came() -> None:
    """The same job three times is three jobs."""
    assert placeable(halves(), np.array([0, 0, 0]), isolation="thread") == 1800


def test_what_runs_keeps_its_place() -> None:
    """One of two GPUs is taken, so of two jobs that are expected the plan places one; what runs is nobody's demand."""
    there = job("there", cpu_millicores=1000)
    made = instance(1, [job("a"), there], machines=[machine(gpus=2)], running=[running(there, [("n0", [0])])])
    arrivals = arrivals_of(made)
    assert placeable(arrivals, np.array([0, 0]), isolation="thread") == 1000
    quota = quota_until(arrivals, 100, isolation="thread")
    k = int(arrivals.problem.job_class[0])
    assert (quota.expected[k], quota.planned[k], quota.expected.sum()) == (2, 1, 2)


@pytest.mark.parametrize("percent", [100, 170])
def test_the_quota_is_the_plans_part(percent: int) -> None:
    """
    Whole ones and 810, as many of each, come to the percentage; four GPUs take whole ones first.

    100 % is 2.2 of each, so two, and four GPUs have room for all; 170 % is 3.8 of each, so four: only whole ones fit.
    """
    arrivals = in_turns()
    quota = quota_until(arrivals, percent, isolation="thread")
    small, whole = arrivals.problem.job_class[:2].tolist()
    count = {100: 2, 170: 4}[percent]
    assert quota.expected[[small, whole]].tolist() == [count, count]
    assert quota.planned[[small, whole]].round(6).tolist() == {100: [2, 2], 170: [0, 4]}[percent]


def test_a_known_horizon_excludes_jobs_that_pack_badly() -> None:
    """Only whole ones are taken; by prices alone whoever comes first."""
    arrivals = in_turns()
    game = OnlinePlacer(arrivals.problem, quota=quota_until(arrivals, 181, isolation="thread"))
    assert [game.arrive(i) is not None for i in range(8)] == [False, True] * 4
    assert game.refused == [0, 2, 4, 6]
    free = OnlinePlacer(arrivals.problem)
    assert [free.arrive(i) is not None for i in range(8)] == [True] * 4 + [False] * 4
    assert free.refused == []


def test_a_class_of_which_none_is_expected_is_refused() -> None:
    """A hundredth of four GPUs is no whole job."""
    arrivals = in_turns()
    quota = quota_until(arrivals, 1, isolation="thread")
    assert quota.planned.tolist() == [0, 0]
    assert OnlinePlacer(arrivals.problem, quota=quota).arrive(1) is None


def test_what_cannot_be_asked_is_refused_in_words() -> None:
    """Percentages that nothing rounds to, no time, another isolation, no GPUs asked for."""
    arrivals, order = halves(), np.arange(12)
    with pytest.raises(BadInput, match=r"percent: 91, but .* up to 90 %"):
        hindsight(arrivals, order, 91)
    with pytest.raises(BadInput, match="time_limit_s: 0"):
        placeable(arrivals, order, time_limit_s=0)
    with pytest.raises(BadInput, match="isolation: 'fork'"):
        placeable(arrivals, order, isolation="fork")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="percent: 0"):
        quota_until(arrivals, 0)
    with pytest.raises(BadInput, match="percent: float"):
        quota_until(arrivals, 1.3)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="no job that waits asks for a GPU"):
        quota_until(arrivals_of(instance(1, [job("cpu", gpus=0, cpu_millicores=1000)])), 100)


def test_too_little_time_is_said() -> None:
    """Instead of a quota that nothing stands behind."""
    with pytest.raises(PlaceoptError, match="allow more by time_limit_s"):
        placeable(halves(), np.arange(12), time_limit_s=1e-9, isolation="thread")
