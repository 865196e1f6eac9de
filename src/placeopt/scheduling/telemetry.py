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

UTILISATION, MEMORY = "gpu_utilisation_percent", "gpu_memory_mib"
MEASURES = (UTILISATION, MEMORY)
"""What may be measured of a job: mean utilisation of its GPUs, and the most memory that it holds on one of them."""
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
        """Return a measure of a job, of several workers the mean utilisation and the most memory; None: unknown."""
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
"""Changes of a utilisation up to this are noise: each one that counts makes a job another one to a scheduler."""


class Measured:
    """What was measured of jobs while they ran: by it the estimates of later ones of their profile are corrected."""

    def __init__(self) -> None:
        self._runs: dict[str, tuple[str | None, dict[str, float]]] = {}
        """Running job -> its profile, and its measures: utilisation as it counts, the most memory."""
        self._of_profile: dict[str, dict[str, float]] = {}
        """The last measures of each profile."""

    def correct(self, now: Instance, usage: Usage) -> Instance:
        """
        Return a reading in which utilisation is as measured, of what runs and of waiting jobs of measured profiles.

        Waiting jobs also ask for no less memory than jobs of their profile were seen to hold, if all GPUs state how
        much they have: those that do not would take none of them. What runs keeps what it asked for, since it holds
        that.
        """
        stated = all(gpu.memory_mib for machine in now.cluster.machines for gpu in machine.gpus)
        running = {held.job for held in now.running}
        for gone in self._runs.keys() - running:
            del self._runs[gone]
        jobs = tuple(self._noted(job, usage) if job.id in running else job for job in now.jobs)
        return now.model_copy(
            update={"jobs": tuple(job if job.id in running else self._corrected(job, memory=stated) for job in jobs)}
        )

    def _noted(self, job: Job, usage: Usage) -> Job:
        """Take what is measured of a running job, and return it with its utilisation."""
        _, figures = self._runs.setdefault(job.id, (job.profile, {}))
        percent, mib = usage.of(job, UTILISATION), usage.of(job, MEMORY)
        if percent is not None and abs(percent - figures.get(UTILISATION, -math.inf)) > NOISE_PERCENT:
            figures[UTILISATION] = percent
        if mib is not None:
            figures[MEMORY] = max(mib, figures.get(MEMORY, 0.0))
        if job.profile is not None and figures:
            self._of_profile[job.profile] = dict(figures)
        return _with(job, {UTILISATION: figures[UTILISATION]}) if UTILISATION in figures else job

    def _corrected(self, job: Job, *, memory: bool) -> Job:
        known = self._of_profile.get(job.profile or "", {})
        figures = {name: value for name, value in known.items() if memory or name != MEMORY}
        return _with(job, figures) if figures else job


def _with(job: Job, figures: Figures) -> Job:
    """Return a job with measured demands in all of its options that have GPUs."""
    options = []
    for option in job.options:
        demand, update = option.demand, dict[str, int]()
        if UTILISATION in figures and demand.gpus:
            update[UTILISATION] = min(100, round(figures[UTILISATION]))
        if MEMORY in figures and demand.gpus:
            update[MEMORY] = max(demand.gpu_memory_mib, math.ceil(figures[MEMORY]))
        options.append(option.model_copy(update={"demand": demand.model_copy(update=update)}) if update else option)
    return job.model_copy(update={"options": tuple(options)})
