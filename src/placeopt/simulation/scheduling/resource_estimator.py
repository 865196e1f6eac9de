"""What a scheduler makes of a job before it asks for a place: its cores, and what it does not look at."""

from __future__ import annotations

from placeopt.model import Job, Option
from placeopt.model.host import CoreCurve
from placeopt.model.scenario import Scenario
from placeopt.model.scheduling import Scheduling
from placeopt.predict.cores import best_fit_cores, first_cores


class ResourceEstimator:
    """
    Jobs with the cores that a policy settles on, and without the bandwidth that it does not look at.

    Cores by SODA's search, which begins with the most that the user's earlier jobs of the category got, a GPU; it
    measures on the scenario's curve, and its steps take no time here.
    """

    def __init__(self, scenario: Scenario, scheduling: Scheduling) -> None:
        self._curves = {curve.profile: curve for curve in scenario.core_curves}
        self._best_fit = scheduling.cores == "best_fit" and bool(self._curves)
        self._bandwidth = scheduling.bandwidth
        machines = {machine.id: machine for machine in scenario.cluster.machines}
        self._node_cores = max(machines[node.machine].cpu_millicores // 1000 for node in scenario.cluster.nodes)
        self._before: dict[tuple[str | None, str], int] = {}
        self._known: dict[tuple[tuple[Option, ...], int, bool], tuple[Option, ...]] = {}
        self.steps: list[int] = []
        """Measurements that each search took."""

    def of(self, job: Job) -> Job:
        """Return the job as it is asked about; the same object where nothing changes."""
        blind = self._blind_to(job)
        if not self._best_fit and not blind:
            return job
        curve = self._curves.get(job.profile or "") if self._best_fit else None
        cores = self._cores(job, curve) if curve is not None and any(one.demand.gpus for one in job.options) else 0
        key = (job.options, cores, blind)
        options = self._known.get(key)
        if options is None:
            options = tuple(self._option(option, cores, blind) for option in job.options)
            self._known[key] = options = job.options if options == job.options else options
        return job if options is job.options else job.model_copy(update={"options": options})

    def of_running(self, job: Job) -> Job:
        """Return a job that runs when the scenario begins, with the cores that it has."""
        if not self._blind_to(job):
            return job
        return job.model_copy(update={"options": tuple(self._option(option, 0, True) for option in job.options)})

    def _blind_to(self, job: Job) -> bool:
        """Tell whether nobody looks at the bandwidth that a job would use."""
        return self._bandwidth == "ignore" or (self._bandwidth == "throttle" and job.kind != "inference")

    def _option(self, option: Option, cores: int, blind: bool) -> Option:
        demand = option.demand
        update: dict[str, int] = {}
        if cores and demand.gpus:
            update["cpu_millicores"] = 1000 * min(cores * demand.gpus, self._node_cores)
        if blind:
            update["memory_bandwidth_mbps"] = 0
        return option.model_copy(update={"demand": demand.model_copy(update=update)})

    def _cores(self, job: Job, curve: CoreCurve) -> int:
        """Search the cores of each GPU of a job."""
        gpus = max(option.demand.gpus for option in job.options)
        most = max(1, self._node_cores // gpus)
        owner = (job.user, curve.category or curve.profile)
        earlier = self._before.get(owner)
        if earlier is None and curve.category is None:
            earlier = max(
                1, max(one.demand.cpu_millicores // one.demand.gpus for one in job.options if one.demand.gpus) // 1000
            )
        start = min(most, first_cores(curve.category, largest_before=earlier))
        cores, steps = best_fit_cores(lambda number: curve.speed(1000 * number), start, most=most)
        self.steps.append(steps)
        self._before[owner] = max(cores, earlier or 0)
        return cores
