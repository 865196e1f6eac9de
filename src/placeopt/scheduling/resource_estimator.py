"""What a policy requests for a job: cores by search, no bandwidth that it ignores, one option (field ``choice``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from placeopt.heuristics.job_orders import latency_of
from placeopt.model import Cluster, Job, Option
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.rules import CORES, OPTION_CHOICES, Rule
from placeopt.scheduling.setting import Setting
from placeopt.scheduling.urgency_queue import Goals


class ResourceEstimator:
    """
    Jobs with the cores that a policy chooses, and without the bandwidth that it ignores.

    Attributes
    ----------
    steps, search_ms
        Those of its `CoreFinder`; empty without one.
    """

    def __init__(self, setting: Setting, scheduling: Scheduling) -> None:
        search = CORES[scheduling.cores]
        self._search = None if search is None or not setting.core_curves else search(setting)
        self._bandwidth = scheduling.bandwidth.rule
        self._known: dict[tuple[tuple[Option, ...], int, bool], tuple[Option, ...]] = {}
        self._most_cores = 0 if self._search is None else self._search.node_cores
        self.steps: list[int] = [] if self._search is None else self._search.steps
        self.search_ms: dict[str, int] = {} if self._search is None else self._search.search_ms

    def of(self, job: Job) -> Job:
        """Return the job as it is requested; the same object where nothing changes."""
        no_bandwidth = self._ignores_bandwidth(job)
        if self._search is None and not no_bandwidth:
            return job
        cores = 0 if self._search is None else self._search.cores(job)
        key = (job.options, cores, no_bandwidth)
        options = self._known.get(key)
        if options is None:
            options = tuple(self._option(option, cores, no_bandwidth) for option in job.options)
            self._known[key] = options = job.options if options == job.options else options
        return job if options is job.options else job.model_copy(update={"options": options})

    def of_running(self, job: Job) -> Job:
        """Return a job that runs at the beginning, with the cores that it has."""
        if not self._ignores_bandwidth(job):
            return job
        return job.model_copy(update={"options": tuple(self._option(option, 0, True) for option in job.options)})

    def _ignores_bandwidth(self, job: Job) -> bool:
        return self._bandwidth == "ignore" or (self._bandwidth == "throttle" and job.kind != "inference")

    def _option(self, option: Option, cores: int, no_bandwidth: bool) -> Option:
        demand = option.demand
        update: dict[str, int] = {}
        if cores and demand.gpus:
            update["cpu_millicores"] = 1000 * min(cores * demand.gpus, self._most_cores)
        if no_bandwidth:
            update["memory_bandwidth_mbps"] = 0
        return option.model_copy(update={"demand": demand.model_copy(update=update)})


class CoreFinder(Protocol):
    """
    Finds the cores of jobs.

    Attributes
    ----------
    node_cores
        The most cores that a job can have on a node.
    steps
        Numbers of cores tried, for each search.
    search_ms
        Job -> the time that it loses by its search.
    """

    node_cores: int
    steps: list[int]
    search_ms: dict[str, int]

    def cores(self, job: Job) -> int:
        """Return the cores for each GPU of a job; 0: it keeps what it asks for."""
        ...


CORES.register("asked", None)

OptionScore = Callable[[Option], float]
OptionChoice = Callable[[Cluster], OptionScore]
"""The score of options on a cluster, of which the highest is kept."""


class ByUrgency(Rule):
    """Any option, tried in the order of what they cost the goals of the order ``urgency``."""

    def check(self, scheduling: Scheduling) -> None:
        if not isinstance(scheduling.order, Goals):
            raise ValueError("choice: 'urgency' goes with the order 'urgency', whose goals it reads")


OPTION_CHOICES.register("any", None)
OPTION_CHOICES.register("urgency", None, ByUrgency)


def best_option(options: tuple[Option, ...], score: OptionScore) -> Option:
    """Return the option of the highest score; ties by the lower latency, then by the order of the file."""
    return max(options, key=lambda option: (score(option), -latency_of(option)))
