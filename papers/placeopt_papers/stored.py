"""Scenarios that are read: stored ones, traces of others below the folder of instances, and openb one pod at a time."""

from __future__ import annotations

from pathlib import Path

from placeopt import BadInput, read_scenario
from placeopt.simulation import Physics, Scenario
from placeopt_papers.one_at_a_time.protocol import OneAtATime
from placeopt_papers.traces.philly import philly_scenario, read_philly
from placeopt_papers.traces.sia import read_sia, sia_scenario


def stored(*, name: str, instances: Path, by_rate: bool = False) -> Scenario:
    """Return a stored scenario; ``by_rate``: under the run-time rule ``rate`` instead of its own, and another name."""
    scenario = read_scenario(_there(instances / "papers" / name))
    if not by_rate:
        return scenario
    physics = Physics(rule="rate", interference="worst")
    return scenario.model_copy(update={"name": f"{scenario.name}-rate", "physics": physics})


def philly(*, from_day: int, seed: int, instances: Path) -> Scenario:
    """Return a day of Philly at 90 % load; the trace as Sia's simulator keeps it."""
    jobs = read_philly(_there(instances / "traces" / "philly.csv.gz"))
    return philly_scenario(jobs, from_day=from_day, days=1, load=0.9, seed=seed, interference="sc17")


def sia(*, kind: str, seed: int, instances: Path) -> Scenario:
    """Return a sample of Sia's simulator: the file of number ``seed`` + 1."""
    path = _there(instances / "traces" / "sia" / kind / f"workload-{seed + 1}.csv")
    return sia_scenario(read_sia(path), name=f"sia-{kind}-{seed + 1}")


def one_at_a_time(*, pods: str, seed: int, instances: Path) -> OneAtATime:
    """Return a list of openb in the order of arrival of a seed."""
    return OneAtATime(instances, pods, seed)


def _there(path: Path) -> Path:
    if not path.exists():
        raise BadInput(f"{path}: no such file; expected below the folder of --instances")
    return path
