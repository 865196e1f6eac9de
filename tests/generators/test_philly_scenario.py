"""Philly's arrivals as a scenario: read, cut to a window, put on a cluster of the right size."""

from pathlib import Path

import pytest

from placeopt import BadInput
from placeopt.formats import read_philly
from placeopt.generators import philly_scenario

HEADER = "timestamp,duration,num_gpus,gpu_time,cluster\n"
TRACE = HEADER + (
    "2017-10-02 00:00:10,100.0,16,1600.0,vc-b\n"
    "2017-10-01 00:00:00,50.5,1,50.5,vc-a\n"
    "2017-10-01 00:16:40,1000.0,8,8000.0,vc-a\n"
    "2017-10-02 00:00:00,0.0,12,0.0,vc-b\n"
    "\n"
)


def trace(folder: Path, text: str = TRACE) -> Path:
    """Write a trace."""
    path = folder / "philly.csv"
    path.write_text(text)
    return path


def test_jobs_in_the_order_of_submission(tmp_path: Path) -> None:
    """The file is in no order; the line is the only name."""
    assert [(job.line, job.duration_ms, job.gpus) for job in read_philly(trace(tmp_path))] == [
        (3, 50_500, 1),
        (4, 1_000_000, 8),
        (5, 0, 12),
        (2, 100_000, 16),
    ]


def test_the_scenario_by_hand(tmp_path: Path) -> None:
    """
    First day: 50.5 + 8 x 1000 GPU-seconds within 1000 s: 8.05 GPUs, at a load of 0.9 8.95, so two nodes of 8.

    A job of 16 GPUs is two workers of a node each, one of 12 twelve of a GPU.
    """
    jobs = read_philly(trace(tmp_path))
    day = philly_scenario(jobs, days=1)
    assert len(day.cluster.nodes) == 2
    assert [one.job.arrival_ms for one in day.arrivals] == [0, 1_000_000]
    whole = philly_scenario(jobs)
    shapes = [(one.job.options[0].workers, one.job.options[0].demand.gpus) for one in whole.arrivals]
    assert shapes == [(1, 1), (1, 8), (12, 1), (2, 8)]
    assert [one.actual_run_time_ms for one in whole.arrivals] == [50_500, 1_000_000, 1, 100_000]
    assert [one.job.user for one in whole.arrivals] == ["vc-a", "vc-a", "vc-b", "vc-b"]
    assert len(whole.cluster.nodes) == 2  # the load would do with one; the largest job would not


def test_the_seed_draws_profiles_and_errors(tmp_path: Path) -> None:
    """The same seed the same scenario; exact predictions unless asked otherwise."""
    jobs = read_philly(trace(tmp_path))
    assert philly_scenario(jobs, seed=3, interference="sc17") == philly_scenario(jobs, seed=3, interference="sc17")
    drawn = (philly_scenario(jobs, seed=s, interference="sc17") for s in range(5))
    profiles = {tuple(one.job.profile for one in scenario.arrivals) for scenario in drawn}
    assert len(profiles) > 1
    exact = philly_scenario(jobs).arrivals[1]
    assert exact.job.options[0].run_time_ms == exact.actual_run_time_ms
    guessed = philly_scenario(jobs, prediction_error=0.5).arrivals[1]
    assert guessed.job.options[0].run_time_ms != guessed.actual_run_time_ms == 1_000_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n", ":1: no column timestamp"),
        (HEADER + "2017-10-01 00:00:00,1,1,1\n", ":2: 4 fields in .*, expected 5"),
        (HEADER + "yesterday,1,1,1,a\n", ":2: column 'timestamp': 'yesterday'"),
        (HEADER + "2017-10-01 00:00:00,1,0,1,a\n", ":2: column 'num_gpus': '0'"),
        (HEADER + "2017-10-01 00:00:00,nan,1,1,a\n", ":2: column 'duration': 'nan'"),
        (HEADER + "2017-10-01 00:00:00,inf,1,1,a\n", ":2: column 'duration': 'inf'"),
        (HEADER + "2017-10-01 00:00:00,1e12,1,1,a\n", ":2: column 'duration': '1e12'"),
        (HEADER + "2017-10-01 00:00:00,1,1,1,a\0\n", ":2: .*no control characters"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, text: str, words: str) -> None:
    """With the line."""
    with pytest.raises(BadInput, match=words):
        read_philly(trace(tmp_path, text))


def test_empty_windows_and_numbers_out_of_range(tmp_path: Path) -> None:
    """In words."""
    jobs = read_philly(trace(tmp_path))
    with pytest.raises(BadInput, match="0 jobs were submitted"):
        philly_scenario(jobs, from_day=5)
    with pytest.raises(BadInput, match="load"):
        philly_scenario(jobs, load=0)
    with pytest.raises(BadInput, match="jobs: none"):
        philly_scenario([])
