"""What a policy believes of a job where that is not what is true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from placeopt.model.base import Mib, Milliseconds, Percent, Record
from placeopt.model.job import Job, Option

OF_DEMAND = ("gpu_memory_mib", "gpu_utilisation_percent")
"""Fields of an estimate that stand for fields of the option's demand; the others stand for fields of the option."""


class Estimate(Record):
    """Predictions of one option of a job; None: what the option states."""

    run_time_ms: Milliseconds | None = None
    """Run time alone and well placed."""
    latency_ms: Milliseconds | None = None
    """Latency; GENIE's policy reads it as the time until a task is done."""
    rate_milli: Annotated[int, Field(ge=0, le=10**12)] | None = None
    """Rate in thousandths a second."""
    gpu_memory_mib: Mib | None = None
    """Memory on each GPU: what is requested."""
    gpu_utilisation_percent: Percent | None = None
    """Utilisation of each GPU (Horus)."""


def believed(job: Job, estimates: Sequence[Estimate]) -> Job:
    """Return the job as policies see it, by an estimate for each of its options; the same job without estimates."""
    if not estimates:
        return job
    options = tuple(_believed(option, one) for option, one in zip(job.options, estimates, strict=True))
    return job.model_copy(update={"options": options})


def _believed(option: Option, estimate: Estimate) -> Option:
    stated = {name: value for name, value in estimate if value is not None}
    demand = {name: stated.pop(name) for name in OF_DEMAND if name in stated}
    if demand:
        stated["demand"] = option.demand.model_copy(update=demand)
    return option.model_copy(update=stated) if stated else option
