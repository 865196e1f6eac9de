"""What is measured of the jobs on a cluster; what is not measured is unknown, and no policy reads it as nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from placeopt.errors import BadInput
from placeopt.model import Instance, Job
from placeopt.scheduling.estimate import Estimate, believed

UTILISATION, MEMORY, RATE = "gpu_utilisation_percent", "gpu_memory_mib", "rate_milli"
MEASURES = (UTILISATION, MEMORY, RATE)
"""
What may be measured of a job: mean utilisation of its GPUs, the most memory that it holds on one of them, and the rate
at which all of it goes on, in thousandths a second.
"""
Figures = Mapping[str, float]


@dataclass(frozen=True)
class Usage:
    """
    What was measured, by measure and by job: its id, or a name or identifier that its origin states.

    ``fault``: Why nothing could be read; empty where it could.
    """

    measured: Mapping[str, Figures] = field(default_factory=dict)
    fault: str = ""

    def of(self, job: Job, measure: str) -> float | None:
        """Return a measure of a job, of several workers the mean utilisation, else the most; None: unknown."""
        figures = self.measured.get(measure, {})
        names = {job.id} | (job.origin.names if job.origin is not None else set())
        found = [figures[name] for name in sorted(names) if name in figures]
        if not found:
            return None
        return sum(found) / len(found) if measure == UTILISATION else max(found)


class Telemetry(Protocol):
    """Where measures come from."""

    def read(self) -> Usage:
        """Return what is measured now; never raises for what does not answer, which is a `Usage` with a fault."""
        ...


class TelemetryFile:
    """
    Measures in a JSON file that something else keeps up to date: ``{"gpu_utilisation_percent": {"JOB": 43.5}}``.

    Raises ``BadInput`` if there is no such file when it begins; what cannot be read later is unknown.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        if not self._path.is_file():
            raise BadInput(f"telemetry: {path}: no such file; name a file, or the URL of a Prometheus server")

    def read(self) -> Usage:
        """Return what the file says now."""
        try:
            stated = json.loads(self._path.read_bytes())
            if not isinstance(stated, dict) or not all(isinstance(stated.get(name, {}), dict) for name in MEASURES):
                raise TypeError(f"expected an object with {' and '.join(MEASURES)}, objects by job")
        except (OSError, ValueError, TypeError) as error:
            return Usage(fault=f"{self._path}: {error}")
        return Usage({name: _figures(stated.get(name, {})) for name in MEASURES})


def _figures(stated: Mapping[str, Any]) -> dict[str, float]:
    return {job: float(value) for job, value in stated.items() if is_figure(value)}


def is_figure(value: object) -> bool:
    """Return whether something is a finite number of at least 0."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


NOISE_PERCENT = 10
"""Changes of a utilisation, or of a rate in percent of it, up to this are noise: others make a job another one."""


class Measured:
    """What was measured of jobs while they ran: by it the estimates of later ones of their profile are corrected."""

    def __init__(self) -> None:
        self._runs: dict[str, dict[str, float]] = {}
        """Running job -> its measures: utilisation as it counts, the most memory, measured over estimated rate."""
        self._of_kind: dict[Kind, dict[str, float]] = {}
        """The last measures of jobs of a profile."""
        self._speed: dict[tuple[Kind, str], float] = {}
        """Measured over estimated rate in the option of a profile that ran last: shapes err by different factors."""
        self._reads_memory = True
        """Whether the GPUs of the last reading state their memory."""

    def correct(self, now: Instance, usage: Usage) -> Instance:
        """
        Return a reading in which utilisation is as measured, of what runs and of waiting jobs of measured profiles.

        Waiting jobs also ask for no less memory than jobs of their profile were seen to hold, if all GPUs state how
        much they have (those that do not would take none of them), and are as much faster or slower than estimated as
        those were in the same option; what runs keeps what it asked for, since it holds that.
        """
        self._reads_memory = now.cluster.states_gpu_memory
        option = {held.job: held.option for held in now.running}
        for gone in self._runs.keys() - option.keys():
            self.forget(gone)
        for job in now.jobs:
            if job.id in option:
                self.note(job, option[job.id], usage)
        jobs = tuple(self._as_it_runs(job) if job.id in option else self.corrected(job) for job in now.jobs)
        return now.model_copy(update={"jobs": jobs})

    def note(self, job: Job, option: str, usage: Usage) -> bool:
        """Take what is measured of a job that runs in an option; return whether that changes what others believe."""
        figures = self._runs.setdefault(job.id, {})
        before = dict(figures)
        percent, mib, rate = (usage.of(job, measure) for measure in MEASURES)
        estimated = job.option(option).rate_milli
        if percent is not None and abs(percent - figures.get(UTILISATION, -math.inf)) > NOISE_PERCENT:
            figures[UTILISATION] = percent
        if mib is not None:
            figures[MEMORY] = max(mib, figures.get(MEMORY, 0.0))
        if rate and estimated and abs(rate / estimated / figures.get(RATE, math.inf) - 1) > NOISE_PERCENT / 100:
            figures[RATE] = rate / estimated
        kind = _kind(job)
        if kind is None or figures == before:
            return False
        self._of_kind[kind] = {name: figures[name] for name in figures if name != RATE}
        if RATE in figures:
            self._speed[kind, option] = figures[RATE]
        return True

    def forget(self, job: str) -> None:
        """Forget a job that runs no longer; what was measured of its profile stays."""
        self._runs.pop(job, None)

    def corrected(self, job: Job) -> Job:
        """Return a waiting job as what was measured of its profile says."""
        kind = _kind(job)
        if kind is None or kind not in self._of_kind:
            return job
        speed = {option.id: self._speed[kind, option.id] for option in job.options if (kind, option.id) in self._speed}
        figures = self._of_kind[kind]
        if not self._reads_memory:
            figures = {name: value for name, value in figures.items() if name != MEMORY}
        return _with(job, figures, speed)

    def _as_it_runs(self, job: Job) -> Job:
        figures = self._runs[job.id]
        return _with(job, {UTILISATION: figures[UTILISATION]}, {}) if UTILISATION in figures else job


Kind = tuple[str, str]
"""Profile and kind of jobs: one that infers uses a GPU otherwise than one that trains the same model."""


def _kind(job: Job) -> Kind | None:
    return None if job.profile is None else (job.profile, job.kind)


def _with(job: Job, figures: Figures, speed: Figures) -> Job:
    """Return a job with measured demands in options that have GPUs; ``speed``: by option, over the estimated one."""
    estimates = []
    for option in job.options:
        stated: dict[str, int] = {}
        if UTILISATION in figures and option.demand.gpus:
            stated[UTILISATION] = min(100, round(figures[UTILISATION]))
        if MEMORY in figures and option.demand.gpus:
            stated[MEMORY] = max(option.demand.gpu_memory_mib, math.ceil(figures[MEMORY]))
        if option.id in speed and option.rate_milli is not None:
            stated[RATE] = round(option.rate_milli * speed[option.id])
            times = {"run_time_ms": option.run_time_ms, "latency_ms": option.latency_ms}
            stated |= {name: max(1, round(ms / speed[option.id])) for name, ms in times.items() if ms}
        estimates.append(Estimate(**stated))
    return believed(job, estimates)
