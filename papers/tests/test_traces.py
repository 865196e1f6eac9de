"""Traces as scenarios: openb's, Philly's and Sia's jobs are read, and put on a cluster of the right size."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from placeopt import BadInput, build
from placeopt.importers.job_table import TableJob
from placeopt_papers.traces.openb import openb_scenario, read_openb_run_times
from placeopt_papers.traces.philly import philly_scenario, read_philly
from placeopt_papers.traces.sia import read_sia, sia_scenario

PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
PHILLY, SIA = "timestamp,duration,num_gpus,gpu_time,cluster\n", "name,time,application,num_replicas,batch_size\n"
TRACE = (
    "2017-10-02 00:00:10,100.0,16,1600.0,vc-b\n2017-10-01 00:00:00,50.5,1,50.5,vc-a\n"
    "2017-10-01 00:16:40,1000.0,8,8000.0,vc-a\n2017-10-02 00:00:00,0.0,12,0.0,vc-b\n\n"
)
WAITING = [build.job(f"p{i}", gpus=2, arrival_ms=60_000 * i + 500) for i in range(4)]
TEN_S = {job.id: 10_000 for job in WAITING}


def read(reader: Callable[[Path], Any], folder: Path, text: str) -> Any:
    """Read a file of this text."""
    (folder / "trace.csv").write_text(text)
    return reader(folder / "trace.csv")


@pytest.fixture
def philly(tmp_path: Path) -> list[TableJob]:
    """Return the jobs of `TRACE`."""
    return list(read(read_philly, tmp_path, PHILLY + TRACE))


def test_openb_arrivals_are_divided_until_the_load_is_there() -> None:
    """Four jobs of 2 GPUs for 10 s that come a minute apart, on 4 GPUs: the more they overlap, the higher the load."""
    made = openb_scenario(build.instance(1, WAITING), TEN_S, load=0.9)
    assert len(made.cluster.machines[0].gpus) == 4
    at = [arrival.job.arrival_ms for arrival in made.arrivals]
    assert at[0] == 0
    assert sum(2 * min(10_000, at[-1] - one) for one in at) / (4 * at[-1]) == pytest.approx(0.9, rel=0.02)
    assert made.arrivals[0].job.options[0].run_time_ms == 10_000
    assert "divided by" in made.note


def test_openb_run_times_are_from_scheduling_to_deletion(tmp_path: Path) -> None:
    """Where a pod has no scheduling time, from its creation; at least a millisecond."""
    rows = ("a,1,1,1,1000,,LS,Running,5,25,15", "b,1,1,1,1000,,LS,Running,5,25,", "c,1,1,1,1000,,LS,Failed,5,5,5")
    assert read(read_openb_run_times, tmp_path, PODS + "\n".join(rows)) == {"a": 10_000, "b": 20_000, "c": 1}


def test_philly_by_hand(philly: list[TableJob]) -> None:
    """
    The file is in no order; the line is the only name.

    First day: 50.5 + 8 x 1000 GPU-seconds within 1000 s: 8.05 GPUs, at a load of 0.9 8.95, so two nodes of 8. A job of
    16 GPUs is two workers of a node each, one of 12 twelve of a GPU.
    """
    lines = [(job.id, job.duration_ms, job.gpus) for job in philly]
    assert lines == [("job-3", 50_500, 1), ("job-4", 1_000_000, 8), ("job-5", 0, 12), ("job-2", 100_000, 16)]
    day = philly_scenario(philly, days=1)
    assert len(day.cluster.nodes) == 2
    assert [one.job.arrival_ms for one in day.arrivals] == [0, 1_000_000]
    whole = philly_scenario(philly)
    shapes = [(one.job.options[0].workers, one.job.options[0].demand.gpus) for one in whole.arrivals]
    assert shapes == [(1, 1), (1, 8), (12, 1), (2, 8)]
    assert [one.actual_run_time_ms for one in whole.arrivals] == [50_500, 1_000_000, 1, 100_000]
    assert [one.job.user for one in whole.arrivals] == ["vc-a", "vc-a", "vc-b", "vc-b"]
    assert len(whole.cluster.nodes) == 2  # the load would do with one; the largest job would not


def test_the_seed_draws_profiles_and_errors(philly: list[TableJob]) -> None:
    """The same seed the same scenario; exact predictions unless asked otherwise."""
    drawn = [philly_scenario(philly, seed=seed, interference="sc17") for seed in (*range(5), 3)]
    assert drawn[3] == drawn[5]
    assert len({tuple(one.job.profile for one in made.arrivals) for made in drawn}) > 1
    for made, exact in ((philly_scenario(philly), True), (philly_scenario(philly, prediction_error=0.5), False)):
        arrival = made.arrivals[1]
        assert arrival.actual_run_time_ms == 1_000_000
        assert (arrival.job.options[0].run_time_ms == 1_000_000) == exact


def test_sia_jobs_in_order_of_arrival(tmp_path: Path) -> None:
    """Gangs of single GPUs, with the run time of their work at a step of that size."""
    jobs = read(read_sia, tmp_path, SIA + "b,20.5,cifar10,4,2048\na,3,yolov3,4,64\nc,30,cifar10,8,2048\n")
    assert [(job.name, job.arrival_ms) for job in jobs] == [("a", 3_000), ("b", 20_500), ("c", 30_000)]
    made = sia_scenario(jobs, name="x")
    yolo, cifar, wide = (arrival.job for arrival in made.arrivals)
    assert cifar.options[0].workers == 4
    seconds = 50_000 * 100 / 2048 * (0.02252 + 0.00062 * 512 + 0.0077 + 0.00396)
    assert (cifar.options[0].run_time_ms or 0) / 1000 == pytest.approx(seconds)
    assert yolo.communication.spread_slowdown_thousandths == pytest.approx(493, abs=5)
    assert wide.communication.spread_slowdown_thousandths == 0  # on several nodes in any case
    assert len(made.cluster.nodes) == 16


def test_gpu_hours_are_about_the_classes_of_pollux(tmp_path: Path) -> None:
    """Small, medium, medium, large, extra large: 0-1, 1-10, 1-10, 10-100, 100-1000 GPU hours, give or take."""
    kinds = {"cifar10": (6, 2048), "bert": (8, 384), "deepspeech2": (6, 320), "yolov3": (4, 64), "imagenet": (10, 1600)}
    rows = "".join(f"{name},{i},{name},{gpus},{batch}\n" for i, (name, (gpus, batch)) in enumerate(kinds.items()))
    hours = {}
    for arrival in sia_scenario(read(read_sia, tmp_path, SIA + rows), name="x").arrivals:
        (option,) = arrival.job.options
        hours[arrival.job.id] = option.workers * (option.run_time_ms or 0) / 3_600_000
    assert hours["cifar10"] < 1.5 < hours["bert"] < hours["deepspeech2"] < 12
    assert 10 < hours["yolov3"] < 100 < hours["imagenet"] < 1000


@pytest.mark.parametrize(
    ("reader", "text", "words"),
    [
        (read_philly, "a,b\n", "it lacks cluster, duration, num_gpus, timestamp"),
        (read_philly, PHILLY + "2017-10-01 00:00:00,1,1,1\n2017-10-01,1,1,1,a\n", "more or fewer fields .*row 2"),
        (read_philly, PHILLY + "yesterday,1,1,1,a\n2017-10-01,1,1,1,a\n", "submit is not a time: 1 .row 2"),
        (read_sia, "name\nx\n", "expected name, time"),
        (read_sia, SIA + "a,1,cifar10,x,64\n", "'x'"),
        (read_sia, SIA + "a,1,cifar10\n", "expected name, time"),
    ],
    ids=range(6),
)
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, reader: Callable[[Path], Any], text: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        read(reader, tmp_path, text)


def test_what_makes_no_scenario_is_refused(tmp_path: Path, philly: list[TableJob]) -> None:
    """Windows without jobs, jobs larger than the cluster, which would wait for ever, applications without a table."""
    gpt, wide = (read(read_sia, tmp_path, f"{SIA}a,1,{row}\n") for row in ("gpt,4,64", "cifar10,16,4096"))
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: openb_scenario(build.instance(40, WAITING), TEN_S, load=0.9), "more than all 4 pods"),
        (lambda: philly_scenario(philly, from_day=5), "0 jobs were submitted"),
        (lambda: philly_scenario(philly, load=0), "load"),
        (lambda: philly_scenario([]), "jobs: 0"),
        (lambda: sia_scenario(gpt, name="x"), "no application 'gpt'"),
        (lambda: sia_scenario(wide, name="x", nodes=3), "asks for 16"),
    ]
    for call, words in calls:
        with pytest.raises(BadInput, match=words):
            call()
