"""Sia's samples: read, and what our table makes of them."""

from pathlib import Path

import pytest

from placeopt import BadInput
from placeopt.formats import read_sia
from placeopt.generators import sia_scenario

HEAD = "name,time,application,num_replicas,batch_size\n"


def workload(folder: Path, rows: str) -> Path:
    """Write a workload."""
    path = folder / "workload.csv"
    path.write_text(HEAD + rows)
    return path


def test_jobs_in_order_of_arrival(tmp_path: Path) -> None:
    """Gangs of single GPUs, with the run time of their work at a step of that size."""
    jobs = read_sia(workload(tmp_path, "b,20.5,cifar10,4,2048\na,3,yolov3,4,64\nc,30,cifar10,8,2048\n"))
    assert [(job.name, job.arrival_ms) for job in jobs] == [("a", 3_000), ("b", 20_500), ("c", 30_000)]
    made = sia_scenario(jobs, name="x")
    yolo, cifar, wide = (arrival.job for arrival in made.arrivals)
    assert cifar.options[0].workers == 4
    steps = 50_000 * 100 / 2048
    assert (cifar.options[0].run_time_ms or 0) / 1000 == pytest.approx(
        steps * (0.02252 + 0.00062 * 512 + 0.0077 + 0.00396)
    )
    assert yolo.communication.spread_slowdown_thousandths == pytest.approx(493, abs=5)
    assert wide.communication.spread_slowdown_thousandths == 0  # on several nodes in any case
    assert len(made.cluster.nodes) == 16


def test_gpu_hours_are_about_the_classes_of_pollux(tmp_path: Path) -> None:
    """Small, medium, medium, large, extra large: 0-1, 1-10, 1-10, 10-100, 100-1000 GPU hours, give or take."""
    kinds = {"cifar10": (6, 2048), "bert": (8, 384), "deepspeech2": (6, 320), "yolov3": (4, 64), "imagenet": (10, 1600)}
    rows = "".join(f"{name},{i},{name},{gpus},{batch}\n" for i, (name, (gpus, batch)) in enumerate(kinds.items()))
    hours = {}
    for arrival in sia_scenario(read_sia(workload(tmp_path, rows)), name="x").arrivals:
        (option,) = arrival.job.options
        hours[arrival.job.id] = option.workers * (option.run_time_ms or 0) / 3_600_000
    assert hours["cifar10"] < 1.5 < hours["bert"] < hours["deepspeech2"] < 12
    assert 10 < hours["yolov3"] < 100 < hours["imagenet"] < 1000


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("a,1,cifar10,x,64\n", ":2: column 'num_replicas': 'x'"),
        ("a,-1,cifar10,4,64\n", ":2: column 'time': '-1'"),
        ("a,1,gpt,4,64\n", "no application 'gpt'"),
        ("a,1e12,cifar10,4,64\n", ":2: column 'time'"),
        (",1,cifar10,4,64\n", ":2: column 'name': '', expected 1 to 253 printable"),
        ("a b,1,cifar10,4,64\n", ":2: column 'name': 'a b', expected 1 to 253 printable"),
        ("x" * 200_000, ":2: 1 fields in"),
        ("", "no row under the header"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, rows: str, words: str) -> None:
    """Line and field, or the application that the table lacks."""
    with pytest.raises(BadInput, match=words):
        sia_scenario(read_sia(workload(tmp_path, rows)), name="x")
    (tmp_path / "other.csv").write_text("name\nx\n")
    with pytest.raises(BadInput, match="no column time"):
        read_sia(tmp_path / "other.csv")


def test_jobs_larger_than_the_cluster_are_refused(tmp_path: Path) -> None:
    """They would wait for ever."""
    with pytest.raises(BadInput, match="asks for 16"):
        sia_scenario(read_sia(workload(tmp_path, "a,1,cifar10,16,4096\n")), name="x", nodes=3)
