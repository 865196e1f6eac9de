"""The input of a scheduler at its beginning: the cluster, known jobs, and what it costs to change them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from placeopt.model import Cluster, Instance, Job, Option
from placeopt.model.base import Milliseconds, Thousandths
from placeopt.scheduling.core_curve import CoreCurve


class ArrivingJob(Protocol):
    """A job as a scheduler sees it, whoever submits it."""

    @property
    def job(self) -> Job:
        """What it asks for, with predictions in place of what is true."""

    @property
    def may_change(self) -> bool:
        """Whether it may be stopped, moved and resized."""

    @property
    def service(self) -> bool:
        """Whether it has no end of its own."""

    def asked(self, option: Option) -> int:
        """Return the number of workers that it asks for in an option."""


@dataclass(frozen=True)
class SubmittedJob:
    """A job of a live cluster."""

    job: Job
    may_change: bool = True
    service: bool = False

    def asked(self, option: Option) -> int:
        """Return the number of workers that it asks for in an option: all."""
        return option.workers


@dataclass(frozen=True)
class Setting:
    """
    The input of a scheduler at its beginning.

    ``beginning``: the cluster, its time and what runs; jobs that wait arrive later. ``hardware``: all nodes that the
    cluster ever has. ``known``: the jobs that run, and those of which a policy may know before they arrive: parts of
    arrays and the mechanisms of a policy that adapts go by them.
    """

    beginning: Instance
    hardware: Cluster
    known: Sequence[ArrivingJob] = ()
    core_curves: tuple[CoreCurve, ...] = ()
    overcommits: bool = True
    """Whether the host gives a GPU to several jobs that ask for all of it."""
    restart_ms: Milliseconds = 0
    """How long a stopped job takes to start again."""
    keeps_work: bool = True
    """Whether a stopped job keeps the work that it has done."""
    prorates: bool = True
    """Whether a job goes on at the pace of its place and neighbours of the moment, so that changes of it can pay."""
    in_parts: bool = False
    """Whether a part of a gang may hold its place and wait; a plan of a round states gangs whole."""
    serves: bool = False
    """Whether replicas answer requests here."""
    spread_slowdown_thousandths: Thousandths = 300
    """Of jobs that state none: excess run time with GPUs as far apart as a machine allows."""
    memory_bandwidth_percent: int | None = None
    """Part of a node's memory bandwidth that jobs can use before they slow each other; None: no use is measured."""
    sets_cores: bool = False
    """Whether jobs without GPUs may get fewer cores than they ask for, and others while they run."""
    core_trial_ms: Milliseconds = 0
    """How long a job runs with each number of cores that is tried for it."""
    core_trial_noise_thousandths: Thousandths = 0
    """Standard deviation of the relative error of such a trial."""

    @property
    def cluster(self) -> Cluster:
        """The cluster at the beginning."""
        return self.beginning.cluster
