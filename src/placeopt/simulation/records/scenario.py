"""A scenario: a cluster, the jobs that arrive over time, and the rules by which they really run."""

import hashlib
import os
import re
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator

from placeopt.documents.documents import read_document
from placeopt.documents.files import MAX_BYTES
from placeopt.edits import RemoveJobs
from placeopt.errors import BadInput
from placeopt.model.base import (
    MAX_JOBS,
    FormatVersion,
    Mib,
    Milliseconds,
    Name,
    Percent,
    PositiveCount,
    Record,
    Thousandths,
    refuse_repeats,
)
from placeopt.model.cluster import Cluster
from placeopt.model.instance import FORMAT_VERSION, Instance, Slowdown
from placeopt.model.job import Job, Option
from placeopt.model.placement import Running
from placeopt.model.policy import Curve
from placeopt.model.templates import JobsDocument
from placeopt.scheduling.core_curve import CoreCurve
from placeopt.scheduling.estimate import Estimate, believed
from placeopt.scheduling.setting import Setting
from placeopt.simulation.records.endpoint import Endpoint
from placeopt.simulation.records.event import ScenarioEvent, all_hardware, clusters_of


class Physics(Record):
    """
    How long jobs really take, whatever a policy believes.

    Alone and with its GPUs as close together as can be, a job takes its actual run time. Apart, it is slowed by its
    spread slowdown, in proportion to the path between its GPUs; beside others, by the slowdowns of their profiles, and
    on a shared GPU at least by what the jobs there use of it together beyond 100 %.
    """

    rule: Literal["rate", "sc17"] = "rate"
    """
    ``rate``: at any moment the job goes on at the pace of its place and neighbours of then. ``sc17``: the run time is
    the longest it ever looked like since the start, that of its place alone or that beside its worst neighbour; nothing
    is prorated (the simulator of SC'17's artifact).
    """
    interference: Literal["pairwise", "worst", "curve"] = "pairwise"
    """With ``rate``: sum over co-runners, the worst of them, or by the utilisation of shared GPUs (Horus fig. 4)."""
    curve: Curve = "rtx-2080"
    """Slowdown by the utilisation of a shared GPU, for ``interference`` ``curve``."""
    spread_slowdown_thousandths: Thousandths = 300
    """Of jobs that state none: excess run time with GPUs as far apart as a machine allows."""
    step_ms: Annotated[int, Field(ge=1, le=86_400_000)] | None = None
    """
    Time goes in such steps (SC'17's artifact: 1100): arrivals are taken in at the next step, a job ends at the first
    step by which it is done, and its GPUs are free for the round of the step after. None: no steps.
    """
    memory_bandwidth_percent: Annotated[Percent, Field(ge=1)] | None = None
    """
    With ``rate``: part of a node's memory bandwidth that its jobs may use together without a slowdown (SODA V-E: 75).
    Above it, all jobs that use any are slowed in proportion. None: no job is slowed by bandwidth.
    """
    restart_ms: Milliseconds = 0
    """Time that a stopped or moved job holds its new GPUs before it makes progress again."""
    resize_ms: Milliseconds = 0
    """Time without progress of a job whose number of workers changes in place."""
    keeps_work: bool = True
    """Whether a stopped or moved job keeps the work that it has done; false: it begins again."""
    checkpoint_ms: Annotated[Milliseconds, Field(ge=1)] | None = None
    """It keeps whole multiples of this much work (of undisturbed run time); None: all of it."""
    core_trial_ms: Milliseconds = 0
    """How long a job runs with each number of cores that a policy tries for it (SODA VI-H: 60 s)."""
    core_trial_noise_thousandths: Annotated[Thousandths, Field(le=1000)] = 0
    """Standard deviation of the relative error with which such a trial measures the job's speed."""
    memory_failure_ms: Annotated[Milliseconds, Field(ge=1)] = 10_000
    """
    A job that finds less free GPU memory than it needs fails after this time on its GPUs; all work since is lost.
    """
    memory_retry_percent: Annotated[int, Field(ge=101, le=10_000)] = 120
    """
    Its next request: at least this part of the former one, and more than was free where it failed (Horus 4.2.3); at
    most the memory of a whole GPU.
    """

    telemetry: bool = False
    """
    Whether what jobs use and how fast they go on is measured by their ends: policies then correct by it what they
    believe of jobs of the same profile that have not started.
    """

    @model_validator(mode="after")
    def _work(self) -> Self:
        if self.checkpoint_ms is not None and not self.keeps_work:
            raise ValueError("checkpoint_ms: goes with keeps_work; without it nothing is kept")
        return self


class Arrival(Record):
    """A job of a trace: what schedulers see, and what is true."""

    job: Job
    """With ``arrival_ms`` and the run times that schedulers believe."""
    actual_run_time_ms: Milliseconds | None = None
    """
    Run time of the first option, alone and well placed; others in proportion. None: its ``run_time_ms``. Of an elastic
    option (``workers_min``) both are with all its workers.
    """
    speedup_thousandths: Annotated[tuple[Annotated[int, Field(ge=1, le=10**9)], ...], Field(max_length=1000)] = ()
    """
    Of elastic options: speed with 1, 2, ... workers, in any unit, up to all of them. Empty: in proportion to workers.
    """
    workers_asked: PositiveCount | None = None
    """
    Of elastic options: how many workers the job asks for, where a policy does not change them or begins with them.
    None: all.
    """
    changeable: bool | None = None
    """
    Whether policies may stop, move and resize the job. None: training and CPU jobs, not inference and modelling. Jobs
    that run from the beginning state it in ``running``.
    """
    service: bool = False
    """
    A job without an end of its own, such as a notebook: it leaves at ``leaves_ms``, or with the last job that is none.
    """
    leaves_ms: Milliseconds | None = None
    """Time at which a service leaves, running or waiting; None: with the last other job."""
    actual_gpu_memory_mib: Mib | None = None
    """Memory that it really needs on each of its GPUs; None: what its options request."""
    estimates: Annotated[tuple[Estimate, ...], Field(max_length=1000)] = ()
    """
    What policies see instead of what the job's options state, for each option; empty: what they state. What happens
    follows the options, and the fields ``actual_`` where they are stated.
    """

    @model_validator(mode="after")
    def _length(self) -> Self:
        if self.estimates and len(self.estimates) != len(self.job.options):
            raise ValueError(
                f"estimates: {len(self.estimates)}, but the job has {len(self.job.options)} options; expected one for "
                "each, or none"
            )
        predicted = self.job.options[0].run_time_ms
        if self.service:
            return self._as_service()
        if self.leaves_ms is not None:
            raise ValueError("leaves_ms: goes with service; other jobs end when their work is done")
        if self.actual_run_time_ms is None and predicted is None:
            raise ValueError("actual_run_time_ms: must be stated where the job's first option has no run_time_ms")
        for i, option in enumerate(self.job.options):
            if i and (option.run_time_ms is None or not predicted):
                raise ValueError(f"job.options[{i}].run_time_ms: all options state one where there are several")
            if option.workers_min is None:
                continue
            if self.speedup_thousandths and len(self.speedup_thousandths) != option.workers:
                raise ValueError(
                    f"speedup_thousandths: {len(self.speedup_thousandths)} speeds, but job.options[{i}] has up to "
                    f"{option.workers} workers; one for each number of them"
                )
            if self.workers_asked is not None and not option.workers_min <= self.workers_asked <= option.workers:
                raise ValueError(
                    f"workers_asked: {self.workers_asked}, but job.options[{i}] runs with {option.workers_min} to "
                    f"{option.workers} workers"
                )
        return self

    def _as_service(self) -> Self:
        if self.actual_run_time_ms is not None or any(option.workers_min is not None for option in self.job.options):
            raise ValueError("service: has no run time of its own, and no elastic options; leave them out")
        if self.leaves_ms is not None and self.leaves_ms <= self.job.arrival_ms:
            raise ValueError(
                f"leaves_ms: {self.leaves_ms}, but the job arrives at {self.job.arrival_ms}; expected later"
            )
        return self

    @property
    def may_change(self) -> bool:
        """Whether policies may stop, move and resize the job."""
        return self.job.kind in ("training", "cpu") if self.changeable is None else self.changeable

    @property
    def seen(self) -> Job:
        """The job as policies see it."""
        return believed(self.job, self.estimates)

    def asked(self, option: Option) -> int:
        """Return the number of workers that the job asks for in an option."""
        if option.workers_min is None:
            return option.workers
        return self.workers_asked or option.workers

    def alone_ms(self, option: Option) -> int:
        """Return the true run time in an option, alone and well placed, with as many workers as the job asks for."""
        return self.actual_ms(option.id, self.asked(option))

    def actual_ms(self, option: str, workers: int | None = None) -> int:
        """
        Return the true run time in an option, at least 1 ms; rounded up.

        ``workers``: number of workers of an elastic option, by ``speedup_thousandths``; None: all.
        """
        first = self.job.options[0]
        chosen = self.job.option(option)
        if self.actual_run_time_ms is None:
            whole = chosen.run_time_ms or 0
        elif chosen is first:
            whole = self.actual_run_time_ms
        else:
            whole = -(-self.actual_run_time_ms * (chosen.run_time_ms or 0) // (first.run_time_ms or 1))
        if workers is not None and workers != chosen.workers:
            speed = self.speedup_thousandths or range(1, chosen.workers + 1)
            whole = -(-whole * speed[chosen.workers - 1] // speed[workers - 1])
        return max(1, whole)


class Scenario(JobsDocument):
    """A cluster and what happens on it, as a file; ``placeopt simulate`` plays it."""

    JOBS = ("arrivals", "job")

    document: Literal["scenario"] = "scenario"
    """What the file is."""
    format_version: FormatVersion = FORMAT_VERSION
    """Version of the file format."""
    name: Name = "unnamed"
    """Name of the scenario."""
    note: Annotated[str, Field(max_length=10_000)] = ""
    """Source and licence of the data, or how it was made."""
    cluster: Cluster
    """Machine types, network and nodes."""
    physics: Physics = Physics()
    """Rules of the actual run times."""
    slowdowns: Annotated[tuple[Slowdown, ...], Field(max_length=100_000)] = ()
    """True slowdowns, which schedulers see too."""
    core_curves: Annotated[tuple[CoreCurve, ...], Field(max_length=10_000)] = ()
    """With physics ``rate``: jobs of these profiles are slowed where they have too few cores; no others are."""
    slowed_thousandths: Thousandths = 1100
    """A job that is in its places for more than this part of its run time alone counts as slowed (SLO violated)."""
    arrivals: Annotated[tuple[Arrival, ...], Field(max_length=MAX_JOBS)] = ()
    """Jobs with their actual properties."""
    endpoints: Annotated[tuple[Endpoint, ...], Field(max_length=10_000)] = ()
    """Services that answer requests; their replicas come and leave as the policy lets them follow the load."""
    running: Annotated[tuple[Running, ...], Field(max_length=MAX_JOBS)] = ()
    """What runs when the scenario begins, at time 0; each is one of the ``arrivals``, with ``arrival_ms`` 0."""
    events: Annotated[tuple[ScenarioEvent, ...], Field(max_length=100_000)] = ()
    """What happens to the cluster, to waiting and running jobs and to the policy, in the order of time."""

    @model_validator(mode="after")
    def _references(self) -> Self:
        try:
            self.instance()
        except ValidationError as error:
            message = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
            raise ValueError(re.sub(r"^jobs(\[\d+\])", r"arrivals\1.job", message)) from None
        try:
            self.clusters  # noqa: B018 - made here once, or refused
        except BadInput as error:
            raise ValueError(str(error)) from None
        gone = [
            job for event in self.events for step in event.steps if isinstance(step, RemoveJobs) for job in step.jobs
        ]
        refuse_repeats("events[].steps[].jobs", gone, "a job is withdrawn once")
        if unknown := set(gone).difference(arrival.job.id for arrival in self.arrivals):
            raise ValueError(f"events: remove_jobs: no job {min(unknown)!r} among the arrivals")
        if self.events and self.endpoints:
            raise ValueError("events: not beside endpoints, whose replicas follow the GPUs of the beginning")
        refuse_repeats("endpoints[].id", (endpoint.id for endpoint in self.endpoints), "ids are unique")
        refuse_repeats("core_curves[].profile", (curve.profile for curve in self.core_curves), "one curve per profile")
        if self.physics.rule != "rate" and (self.core_curves or self.physics.memory_bandwidth_percent is not None):
            raise ValueError(
                f"physics.rule: {self.physics.rule!r} supports neither core_curves nor memory_bandwidth_percent; "
                "expected 'rate', or leave those out"
            )
        begin = {held.job for held in self.running}
        for i, arrival in enumerate(self.arrivals):
            if any(option.is_tree for option in arrival.job.options):
                raise ValueError(
                    f"arrivals[{i}].job.options: job {arrival.job.id!r} has groups or preferred levels, which a "
                    "simulation does not place; expected options of alike workers"
                )
            if arrival.job.id in begin and arrival.job.arrival_ms:
                raise ValueError(
                    f"arrivals[{i}].job.arrival_ms: {arrival.job.arrival_ms}, but the job runs from the beginning; "
                    "expected 0"
                )
        for i, arrival in enumerate(self.arrivals):
            if arrival.actual_gpu_memory_mib is not None:
                fault = self._memory_fault(arrival, arrival.actual_gpu_memory_mib)
                if fault is not None:
                    raise ValueError(
                        f"arrivals[{i}].actual_gpu_memory_mib: {arrival.actual_gpu_memory_mib}, but {fault}"
                    )
            if arrival.service and any(estimate.gpu_memory_mib is not None for estimate in arrival.estimates):
                raise ValueError(f"arrivals[{i}].estimates: of gpu_memory_mib, but a service must not understate it")
        return self

    def _memory_fault(self, arrival: Arrival, need_mib: int) -> str | None:
        """Return why a job can never get the memory that it really needs; None if it can."""
        for option in arrival.job.options:
            if need_mib > largest_gpu_mib(self.hardware, option):
                return f"no GPU allowed to option {option.id!r} has as much: it would fail every time"
            if arrival.service and need_mib > option.demand.gpu_memory_mib:
                return f"the service states {option.demand.gpu_memory_mib}; services must not understate their memory"
        return None

    @cached_property
    def clusters(self) -> tuple[tuple[int, Cluster], ...]:
        """The cluster at the beginning and after each event, each with its time in ms."""
        return tuple(clusters_of(self.cluster, self.events))

    @cached_property
    def hardware(self) -> Cluster:
        """All nodes, machine types and domains that the cluster has at any time."""
        return all_hardware(self.clusters) if self.events else self.cluster

    def instance(self) -> Instance:
        """Return cluster, all jobs and what runs at the beginning as a round; references are checked by it."""
        return self._round(tuple(arrival.job for arrival in self.arrivals))

    def _round(self, jobs: tuple[Job, ...]) -> Instance:
        return Instance(name=self.name, cluster=self.cluster, jobs=jobs, running=self.running, slowdowns=self.slowdowns)

    def as_seen(self) -> Self:
        """Return the scenario as policies see it: with estimates in place of what is true."""
        if not any(arrival.estimates for arrival in self.arrivals):
            return self
        arrivals = tuple(
            arrival.model_copy(update={"job": arrival.seen, "estimates": ()}) if arrival.estimates else arrival
            for arrival in self.arrivals
        )
        return self.model_copy(update={"arrivals": arrivals})

    def setting(self) -> Setting:
        """Return the input of a scheduler at the beginning of the scenario."""
        seen, physics = self.as_seen(), self.physics
        runs = {held.job for held in self.running}
        there = tuple(arrival.job for arrival in seen.arrivals if arrival.job.id in runs) if runs else ()
        return Setting(
            beginning=self._round(there),
            hardware=self.hardware,
            known=seen.arrivals,
            core_curves=self.core_curves,
            restart_ms=physics.restart_ms,
            keeps_work=physics.keeps_work,
            prorates=physics.rule == "rate",
            in_parts=True,
            serves=bool(self.endpoints),
            spread_slowdown_thousandths=physics.spread_slowdown_thousandths,
            memory_bandwidth_percent=physics.memory_bandwidth_percent,
            sets_cores=True,
            core_trial_ms=physics.core_trial_ms,
            core_trial_noise_thousandths=physics.core_trial_noise_thousandths,
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON form, which a log states."""
        return hashlib.sha256(self.model_dump_json(exclude_defaults=True).encode()).hexdigest()


def read_scenario(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Scenario:
    """Read a scenario, as `placeopt.documents.read_document` does."""
    return read_document(Scenario, path, max_bytes=max_bytes)


def largest_gpu_mib(cluster: Cluster, option: Option) -> int:
    """Return the memory of the largest GPU of the models that an option allows; 0 where there is none."""
    models = option.demand.gpu_models
    gpus = (gpu for machine in cluster.machines for gpu in machine.gpus)
    return max((gpu.memory_mib for gpu in gpus if not models or gpu.model in models), default=0)
