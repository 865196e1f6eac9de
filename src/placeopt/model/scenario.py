"""A scenario: a cluster, the jobs that arrive over time, and the rules by which they really run."""

import hashlib
import re
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator

from placeopt.model.base import (
    MAX_JOBS,
    FormatVersion,
    Id,
    Milliseconds,
    Name,
    Percent,
    Record,
    Thousandths,
)
from placeopt.model.cluster import Cluster
from placeopt.model.host import CoreCurve
from placeopt.model.instance import FORMAT_VERSION, Instance, Slowdown
from placeopt.model.job import Job
from placeopt.model.placement import Running


class Physics(Record):
    """
    How long jobs really take, whatever a policy believes.

    Alone and with its GPUs as close together as can be, a job takes its actual run time. Apart, it is slowed by its
    spread slowdown, in proportion to the path between its GPUs; beside others, by the slowdowns of their profiles.
    """

    rule: Literal["rate", "sc17"] = "rate"
    """
    ``rate``: at any moment the job goes on at the pace of its place and neighbours of then. ``sc17``: the run time is
    the longest it ever looked like since the start, that of its place alone or that beside its worst neighbour; nothing
    is prorated (the simulator of SC'17's artifact).
    """
    interference: Literal["pairwise", "worst", "curve"] = "pairwise"
    """With ``rate``: sum over co-runners, the worst of them, or by the utilisation of shared GPUs (Horus fig. 6)."""
    curve: Id = "rtx-2080"
    spread_slowdown_thousandths: Thousandths = 300
    """Of jobs that state none: excess run time with GPUs as far apart as a machine allows."""
    step_ms: Annotated[int, Field(ge=1, le=86_400_000)] | None = None
    """
    Time goes in such steps (SC'17's artifact: 1100): arrivals are taken in at the next step, a job ends at the first
    step by which it is done, and its GPUs are free for the round of the step after. None: no steps.
    """
    memory_bandwidth_percent: Annotated[Percent, Field(ge=1)] | None = None
    """
    With ``rate``: how much of a node's memory bandwidth its jobs may use together before they slow each other (SODA
    V-E: 75). Above it, all that use any are slowed in proportion. None: bandwidth slows nobody.
    """


class Arrival(Record):
    """A job of a trace: what is told to schedulers, and what is true."""

    job: Job
    """With ``arrival_ms`` and the run times that schedulers believe."""
    actual_run_time_ms: Milliseconds | None = None
    """Of the first option, alone and well placed; others in proportion. None: as its ``run_time_ms`` says."""

    @model_validator(mode="after")
    def _length(self) -> Self:
        predicted = self.job.options[0].run_time_ms
        if self.actual_run_time_ms is None and predicted is None:
            raise ValueError("actual_run_time_ms: must be stated where the job's first option has no run_time_ms")
        for i, option in enumerate(self.job.options):
            if option.workers_min is not None:
                raise ValueError(f"job.options[{i}].workers_min: elastic jobs cannot be simulated yet; leave it out")
            if i and (option.run_time_ms is None or not predicted):
                raise ValueError(f"job.options[{i}].run_time_ms: all options state one where there are several")
        return self

    def actual_ms(self, option: str) -> int:
        """Return the true run time in an option, at least 1 ms; rounded up."""
        first = self.job.options[0]
        chosen = next(one for one in self.job.options if one.id == option)
        if self.actual_run_time_ms is None:
            return max(1, chosen.run_time_ms or 0)
        if chosen is first:
            return max(1, self.actual_run_time_ms)
        return max(1, -(-self.actual_run_time_ms * (chosen.run_time_ms or 0) // (first.run_time_ms or 1)))


class Scenario(Record):
    """A cluster and what happens on it, as a file; ``placeopt simulate`` plays it."""

    format_version: FormatVersion = FORMAT_VERSION
    name: Name = "unnamed"
    note: Annotated[str, Field(max_length=10_000)] = ""
    """Source and licence of the data, or how it was made."""
    cluster: Cluster
    physics: Physics = Physics()
    slowdowns: Annotated[tuple[Slowdown, ...], Field(max_length=100_000)] = ()
    """True ones; schedulers are told the same."""
    core_curves: Annotated[tuple[CoreCurve, ...], Field(max_length=10_000)] = ()
    """With physics ``rate``: jobs of these profiles are slowed where they have too few cores; no others are."""
    slowed_thousandths: Thousandths = 1100
    """A job that ran so much longer than alone and well placed, or more, counts as slowed (SLO violated)."""
    arrivals: Annotated[tuple[Arrival, ...], Field(max_length=MAX_JOBS)] = ()
    running: Annotated[tuple[Running, ...], Field(max_length=MAX_JOBS)] = ()
    """What runs when the scenario begins, at time 0; each is one of the ``arrivals``, with ``arrival_ms`` 0."""

    @model_validator(mode="after")
    def _references(self) -> Self:
        try:
            self.instance()
        except ValidationError as error:
            told = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
            raise ValueError(re.sub(r"^jobs(\[\d+\])", r"arrivals\1.job", told)) from None
        profiles = [curve.profile for curve in self.core_curves]
        for i, name in enumerate(profiles):
            if name in profiles[:i]:
                raise ValueError(f"core_curves[{i}].profile: {name!r} stands twice; one curve per profile")
        if self.physics.rule != "rate" and (profiles or self.physics.memory_bandwidth_percent is not None):
            raise ValueError(
                f"physics.rule: {self.physics.rule!r} knows neither core_curves nor memory_bandwidth_percent; expected "
                "'rate', or leave those out"
            )
        begin = {held.job for held in self.running}
        for i, arrival in enumerate(self.arrivals):
            if arrival.job.id in begin and arrival.job.arrival_ms:
                raise ValueError(
                    f"arrivals[{i}].job.arrival_ms: {arrival.job.arrival_ms}, but the job runs from the beginning; "
                    "expected 0"
                )
        return self

    def instance(self) -> Instance:
        """Return cluster, all jobs and what runs at the beginning as a round; references are checked by it."""
        jobs = tuple(arrival.job for arrival in self.arrivals)
        return Instance(name=self.name, cluster=self.cluster, jobs=jobs, running=self.running, slowdowns=self.slowdowns)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON form: what a log says it is of."""
        return hashlib.sha256(self.model_dump_json(exclude_defaults=True).encode()).hexdigest()
