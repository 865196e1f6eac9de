"""What a policy requests for a job: cores by search, no bandwidth that it ignores, one option (field ``choice``)."""

from __future__ import annotations

import random
from collections.abc import Callable

from placeopt.heuristics.job_orders import cost_of, latency_of, nodes_of, rate_of
from placeopt.model import Cluster, Job, Option
from placeopt.scheduling.core_curve import CoreCurve
from placeopt.scheduling.core_search import best_fit_cores, first_cores
from placeopt.scheduling.policy import CHOICE_NAMES, Scheduling
from placeopt.scheduling.rule_registry import RuleRegistry
from placeopt.scheduling.setting import Setting


class ResourceEstimator:
    """
    Jobs with the cores that a policy chooses, and without the bandwidth that it ignores.

    Cores are found by SODA's search, which begins with the most cores per GPU that the user's earlier jobs of the
    category got. It measures on the setting's curve, as exactly as ``core_trial_noise_thousandths`` says.

    Attributes
    ----------
    steps
        Numbers of cores tried, for each search.
    search_ms
        Job -> the time that it loses by its search, which takes place when it has started: each trial lasts
        ``core_trial_ms`` at the speed of its cores, instead of that of the cores found. Nothing is gained by a
        trial with more cores than are found.
    """

    def __init__(self, setting: Setting, scheduling: Scheduling) -> None:
        self._curves = {curve.profile: curve for curve in setting.core_curves}
        self._best_fit = scheduling.cores == "best_fit" and bool(self._curves)
        self._bandwidth = scheduling.bandwidth
        self._node_cores = max(
            setting.hardware.machine_of(node).cpu_millicores // 1000 for node in setting.hardware.nodes
        )
        self._earlier: dict[tuple[str | None, str], int] = {}
        self._known: dict[tuple[tuple[Option, ...], int, bool], tuple[Option, ...]] = {}
        self._trial_ms = setting.core_trial_ms
        self._noise = setting.core_trial_noise_thousandths / 1000
        self.steps: list[int] = []
        self.search_ms: dict[str, int] = {}
        self._setting = setting.beginning.name

    def of(self, job: Job) -> Job:
        """Return the job as it is requested; the same object where nothing changes."""
        no_bandwidth = self._ignores_bandwidth(job)
        if not self._best_fit and not no_bandwidth:
            return job
        curve = self._curves.get(job.profile or "") if self._best_fit else None
        cores = (
            self._cores(job, curve) if curve is not None and any(option.demand.gpus for option in job.options) else 0
        )
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
            update["cpu_millicores"] = 1000 * min(cores * demand.gpus, self._node_cores)
        if no_bandwidth:
            update["memory_bandwidth_mbps"] = 0
        return option.model_copy(update={"demand": demand.model_copy(update=update)})

    def _cores(self, job: Job, curve: CoreCurve) -> int:
        """Return the cores for each GPU of a job, found by the search."""
        gpus = max(option.demand.gpus for option in job.options)
        most = max(1, self._node_cores // gpus)
        owner = (job.user, curve.category or curve.profile)
        earlier = self._earlier.get(owner)
        if earlier is None and curve.category is None:
            earlier = max(
                1,
                max(option.demand.cpu_millicores // option.demand.gpus for option in job.options if option.demand.gpus)
                // 1000,
            )
        start = min(most, first_cores(curve.category, largest_before=earlier))
        tried: list[int] = []

        def measured(number: int) -> float:
            tried.append(number)
            speed = curve.speed(1000 * number)
            return speed * (1 + self._error(job.id, number)) if self._noise else speed

        cores, steps = best_fit_cores(measured, start, most=most)
        self.steps.append(steps)
        full = curve.speed(1000 * cores)
        lost = sum(max(0, full - curve.speed(1000 * number)) for number in tried)
        if self._trial_ms and lost:
            self.search_ms.setdefault(job.id, self._trial_ms * lost // full)
        self._earlier[owner] = max(cores, earlier or 0)
        return cores

    def _error(self, job: str, cores: int) -> float:
        """Draw the relative error of a trial: the same for the same setting, job and cores."""
        return random.Random(f"{self._setting} {job} {cores}").gauss(0, self._noise)  # noqa: S311


OptionScore = Callable[[Option], float]


def _rate(option: Option) -> float:
    return rate_of(option, option.workers * option.demand.gpus)


def by_rate(cluster: Cluster) -> OptionScore:
    """Score options by their rate; one without a rate as in `placeopt.problem.allowance`."""
    del cluster
    return _rate


def by_rate_over_cost(cluster: Cluster) -> OptionScore:
    """Score options by rate over cost (CER; GENIE eq. 10 and 11)."""
    sizes = cluster.gpus_by_node.values()
    num_gpus, num_nodes, largest = sum(sizes), sum(size > 0 for size in sizes), max(1, *sizes)

    def score(option: Option) -> float:
        nodes = nodes_of(option, option.workers, largest)
        return _rate(option) / cost_of(option, option.workers * option.demand.gpus, nodes, num_gpus, num_nodes)

    return score


OPTION_CHOICES: RuleRegistry[Callable[[Cluster], OptionScore] | None] = RuleRegistry(
    CHOICE_NAMES, {"any": None, "urgency": None, "rate": by_rate, "cer": by_rate_over_cost}
)
"""Name -> score of options on a cluster, the highest is kept; None: all options are kept."""


def best_option(options: tuple[Option, ...], score: OptionScore) -> Option:
    """Return the option of the highest score; ties by the lower latency, then by the order of the file."""
    return max(options, key=lambda option: (score(option), -latency_of(option)))
