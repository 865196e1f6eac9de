"""Arrivals drawn from a trace: as many, with the rate over time and the jobs of the trace."""

from __future__ import annotations

import numpy as np

from placeopt.errors import BadInput
from placeopt.model import Job
from placeopt.model.scenario import Arrival, Scenario
from placeopt.whatif.instance_edit import job_arriving_at


def with_drawn_arrivals(scenario: Scenario, seed: int) -> Scenario:
    """
    Return the scenario with arrivals drawn by a seed.

    Each new arrival is a job drawn from the trace with replacement, at an independent time: uniform between a drawn
    arrival of the trace and the next one. That keeps the rate over the day and the mix of jobs, but not that users
    submit similar jobs in a row. Jobs that run at the beginning stay.

    Raises
    ------
    BadInput
        If fewer than two jobs arrive.
    """
    begin = {held.job for held in scenario.running}
    arriving = [arrival for arrival in scenario.arrivals if arrival.job.id not in begin]
    if len(arriving) < 2:
        raise BadInput(f"{scenario.name}: {len(arriving)} jobs arrive; arrivals are drawn from two or more")
    times = np.sort(np.array([arrival.job.arrival_ms for arrival in arriving], dtype=np.int64))
    rng = np.random.default_rng(seed)
    gap = rng.integers(len(times) - 1, size=len(arriving))
    moments = times[gap] + np.floor(rng.random(len(arriving)) * (times[gap + 1] - times[gap])).astype(np.int64)
    chosen = rng.integers(len(arriving), size=len(arriving))
    copies = [
        _moved(arriving[job], moment, f"{arriving[job].job.id}~{number}")
        for number, (job, moment) in enumerate(zip(chosen.tolist(), np.sort(moments).tolist(), strict=True))
    ]
    stay = [arrival for arrival in scenario.arrivals if arrival.job.id in begin]
    return scenario.model_copy(update={"arrivals": (*stay, *copies)})


def _moved(arrival: Arrival, moment: int, name: str) -> Arrival:
    """Return a job at another time, under another name."""
    return with_job(arrival, job_arriving_at(arrival.job, moment).model_copy(update={"id": name}))


def with_job(arrival: Arrival, job: Job) -> Arrival:
    """Return the arrival of a changed job; a service stays as long as before, whenever it comes."""
    by, leaves_ms = job.arrival_ms - arrival.job.arrival_ms, arrival.leaves_ms
    return arrival.model_copy(update={"job": job, "leaves_ms": None if leaves_ms is None else leaves_ms + by})
