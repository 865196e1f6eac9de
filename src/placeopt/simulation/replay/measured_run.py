"""One run of a scenario under a policy, and its measures."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from placeopt import __version__
from placeopt.model.scenario import Scenario
from placeopt.model.scheduling import Scheduling
from placeopt.simulation import History, simulate, summarise
from placeopt.simulation.replay.drawn_arrivals import with_drawn_arrivals
from placeopt.simulation.replay.goals import OVER_JOBS, STATISTICS
from placeopt.simulation.replay.series import MeasuredRun

PERCENT = {"median": 50, "p90": 90, "p95": 95, "p99": 99, "max": 100}


@dataclass(frozen=True)
class ReplayLimits:
    """Limits of every round of every run."""

    seed: int = 0
    time_limit_s: float = 60.0


@dataclass(frozen=True)
class RunSetup:
    """A run to carry out; arrivals are drawn in the process that carries it out."""

    scenario: Scenario
    scheduling: Scheduling
    draw: int | None
    limits: ReplayLimits

    @property
    def key(self) -> str:
        """A digest of the run: runs of equal keys have equal results."""
        parts = (
            self.scenario.digest,
            self.scheduling.digest,
            str(self.draw),
            str(self.limits.seed),
            f"{self.limits.time_limit_s:g}",
            __version__,
        )
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def play(setup: RunSetup, cancel: threading.Event | None = None) -> MeasuredRun | None:
    """Carry out a run; None if it was cancelled."""
    began = time.monotonic()
    scenario = setup.scenario if setup.draw is None else with_drawn_arrivals(setup.scenario, setup.draw)
    history = simulate(
        scenario, setup.scheduling, seed=setup.limits.seed, time_limit_s=setup.limits.time_limit_s, cancel=cancel
    )
    if not history.finished:
        return None
    return MeasuredRun(
        key=setup.key,
        scenario=setup.scenario.name,
        policy=setup.scheduling.name,
        draw=setup.draw,
        nodes=len(scenario.cluster.nodes),
        jobs=len(history.jobs),
        stranded=len(history.stranded),
        cut=history.rounds.cut,
        measures=measures_of(history),
        seconds=time.monotonic() - began,
    )


def measures_of(history: History) -> dict[str, float | None]:
    """
    Return every measure of a finished run, see `placeopt.simulation.replay.goals`.

    Jobs that never start wait without end; services do not count.
    """
    endless = float("inf")
    jobs = [job for job in history.jobs if not job.service]
    of_jobs: dict[str, list[float]] = {name: [] for name in OVER_JOBS}
    for job in jobs:
        wait = endless if job.start_ms is None else (job.start_ms - job.arrival_ms) / 1000
        of_jobs["wait"].append(wait)
        of_jobs["completion"].append(endless if job.completion_ms is None else job.completion_ms / 1000)
        of_jobs["slowdown"].append(endless if job.slowdown_with_wait is None else job.slowdown_with_wait)
    found = {
        f"{statistic}_{name}": _statistic(values, statistic)
        for name, values in of_jobs.items()
        for statistic in STATISTICS
    }
    due = [(job.end_ms, job.due_ms) for job in jobs if job.due_ms is not None]
    step = history.scenario.physics.step_ms or 0
    at_once = sum(wait <= step / 1000 for wait in of_jobs["wait"])
    summary = summarise(history, reasons=False)
    found["makespan"] = summary.makespan_s if not history.stranded else None
    found["in_time"] = 100 * sum(end is not None and end <= by for end, by in due) / len(due) if due else None
    found["at_once"] = 100 * at_once / len(jobs) if jobs else None
    for name, count in (("slowed", summary.slowed), ("delayed", summary.delayed)):
        found[name] = None if history.stranded else float(count)  # unknown for jobs that never end
    return found


def _statistic(values: Sequence[float], name: str) -> float | None:
    """Return a statistic, with linearly interpolated percentiles; None where it is infinite, or without values."""
    if not values:
        return None
    if name == "mean":
        return None if max(values) == float("inf") else sum(values) / len(values)
    ordered = sorted(values)
    at = PERCENT[name] * (len(ordered) - 1) / 100
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    part = at - low
    if ordered[high if part else low] == float("inf"):
        return None
    return ordered[low] + part * (ordered[high] - ordered[low]) if part else ordered[low]
