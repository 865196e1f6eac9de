"""What a host of a simulation measures of jobs: what is true of them at the moment, as telemetry of a live one says."""

from __future__ import annotations

from collections.abc import Iterable

from placeopt.scheduling.telemetry import MEMORY, RATE, UTILISATION, Usage
from placeopt.simulation.job_state import JobState


def usage_of(states: Iterable[JobState]) -> Usage:
    """Return the utilisation, memory and rate of running jobs; what their options leave out is unknown."""
    measured: dict[str, dict[str, float]] = {UTILISATION: {}, MEMORY: {}, RATE: {}}
    for state in states:
        run, placement = state.standing()
        option = state.arrival.job.option(placement.option)
        needs = state.arrival.actual_gpu_memory_mib
        figures: dict[str, float] = {
            UTILISATION: option.demand.gpu_utilisation_percent,
            MEMORY: option.demand.gpu_memory_mib if needs is None else needs,
            RATE: (option.rate_milli or 0) * 1000 / run.slowdown,
        }
        for measure, figure in figures.items():
            if figure:
                measured[measure][state.job.id] = figure
    return Usage(measured)
