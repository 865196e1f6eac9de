"""How fast jobs actually run: distance of their GPUs, neighbours, shares, CPU cores and memory bandwidth."""

from __future__ import annotations

from fractions import Fraction

from placeopt.model import Job, Placement
from placeopt.problem import Placement as Indexed
from placeopt.problem.grants import grants
from placeopt.scheduling.host_rules import Throttle
from placeopt.scheduling.occupancy import Occupancy
from placeopt.scheduling.placement_amounts import Shares, amounts_of, gpus_of, workers_of
from placeopt.scheduling.spread import Spread
from placeopt.simulation.held_resources import HeldResources
from placeopt.simulation.memory_bandwidth import MemoryBandwidthUse
from placeopt.simulation.records.scenario import Scenario
from placeopt.terms.costs.slowdown_curves import excess_table

DOMAIN_KINDS = ("gpu", "switch", "socket", "node")


class PerformanceModel:
    """
    How much each job is slowed by what it holds and by what others hold.

    ``occupancy``: What has happened, which is independent of the engine's state, since decisions are judged by it.
    ``throttle``: how jobs of kind ``cpu`` are held back where memory bandwidth runs short; None: they are not.
    ``shares``: what jobs may hold under a policy that grants more than their requests; None: shares slow no job.
    ``in_parts``: whether a part of a gang may be placed.
    """

    def __init__(
        self,
        scenario: Scenario,
        occupancy: Occupancy[HeldResources],
        *,
        throttle: Throttle | None = None,
        shares: Shares | None = None,
        in_parts: bool = False,
    ) -> None:
        self._physics, self._occupancy = scenario.physics, occupancy
        self._arrivals = {arrival.job.id: arrival for arrival in scenario.arrivals}
        usual, jobs = self._physics.spread_slowdown_thousandths, (arrival.job for arrival in scenario.arrivals)
        self._spread = Spread(scenario.hardware, jobs, usual, in_parts=in_parts)
        problem = self._spread.problem
        self._kinds = [
            list(range(problem.num_gpus)),
            problem.gpu_switch.tolist(),
            problem.gpu_socket.tolist(),
            problem.gpu_node.tolist(),
        ]
        self._excess: dict[tuple[str, str], tuple[int, ...]] = {
            (s.profile, s.beside): tuple(getattr(s, f"{kind}_thousandths") for kind in DOMAIN_KINDS)
            for s in scenario.slowdowns
        }
        self._neighbours_matter = bool(self._excess) or self._physics.interference == "curve"
        self._curves = {curve.profile: curve for curve in scenario.core_curves}
        self._bandwidth: MemoryBandwidthUse | None = None
        if self._physics.memory_bandwidth_percent is not None:
            self._bandwidth = MemoryBandwidthUse(_usable_mbps(scenario), occupancy, throttle=throttle)
            occupancy.follow(self._bandwidth)
        self._shares = shares if shares is not None and shares.granting else None

    def held(self, placement: Placement) -> HeldResources:
        """Translate a placement of one of the scenario's jobs; raises ``BadInput`` where it does not fit the job."""
        arrival, needs = self._arrivals[placement.job], self._arrivals[placement.job].actual_gpu_memory_mib
        job, gpus, node_ids = arrival.job, tuple(gpus_of(placement)), self._spread.problem.node_ids
        option = job.option(placement.option)
        # a CPU job has no GPUs that could be apart, and perhaps other workers than it asks for
        where = Indexed(0, (), ()) if job.kind == "cpu" and not gpus else self._spread.indexed(placement)
        domains = tuple(frozenset(kind[gpu] for gpu in where.gpus) - {-1} for kind in self._kinds)
        return HeldResources(
            job=job.id,
            profile=job.profile,
            placement=placement,
            gpus=gpus,
            gpu_nodes=tuple(node_ids[node] for node in sorted(domains[3])),
            utilisation_percent=option.demand.gpu_utilisation_percent,
            gpu_memory_mib=option.demand.gpu_memory_mib if needs is None else needs,
            domains=domains,
            apart_thousandths=self._spread.thousandths(job.id, where) if where.gpus else 0,
            cores_thousandths=self._by_cores(job, placement),
            mbps=self._mbps(job, placement),
            throttled=job.kind == "cpu",
            bounds=(1000, 1000) if self._shares is None else self._shares.bounds(placement),
            most_percent=min(option.demand.gpu_utilisation_percent, option.demand.gpu_milli // 10),
        )

    def _by_cores(self, job: Job, placement: Placement) -> int:
        """
        Return the excess by too few cores: of jobs with GPUs by those of the worker with the fewest for each GPU.

        A CPU job goes at the part of its pace that it has of the cores that it asks for.
        """
        if job.kind == "cpu":
            return max(0, -(-1000 // self._part_of_cores(job, placement)) - 1000)
        curve = self._curves.get(job.profile or "")
        served = [
            assignment.cpu_millicores // len(assignment.gpus) for assignment in placement.assignments if assignment.gpus
        ]
        if curve is None or not served:
            return 0
        return -(-1_000_000 // curve.speed(min(served))) - 1000

    @staticmethod
    def _part_of_cores(job: Job, placement: Placement) -> Fraction:
        """Return the part that a CPU job has of the cores that its workers ask for; 1 where it asks for none."""
        option = job.option(placement.option)
        workers = option.workers if option.workers_min is None else workers_of(placement)
        asked, (_, held, _) = workers * option.demand.cpu_millicores, amounts_of(placement)
        return Fraction(held, asked) if asked and held else Fraction(1)

    def _mbps(self, job: Job, placement: Placement) -> dict[str, int]:
        """Return the memory bandwidth of a job on each node; that of a CPU job goes with its cores."""
        option = job.option(placement.option)
        each = option.demand.memory_bandwidth_mbps
        if self._bandwidth is None or not each:
            return {}
        asked = option.demand.cpu_millicores if job.kind == "cpu" else 0
        return {
            at.node: -(-each * at.cpu_millicores // asked) if asked else each * len(at.workers)
            for at in sorted(placement.assignments, key=lambda at: self._spread.node_numbers[at.node])
        }

    def neighbours(self, held: HeldResources) -> dict[str, None]:
        """Return the jobs whose pace may have changed since a job has just started or ended."""
        on_gpu, on_node = self._occupancy.on_gpu, self._occupancy.on_node
        jobs: dict[str, None] = {}
        if self._neighbours_matter:
            jobs = {job: None for node in held.gpu_nodes for job, other in on_node[node].items() if other.gpus}
        elif held.most_percent and any(on_gpu[gpu].keys() - {held.job} for gpu in held.gpus):
            others = ((job, other) for node in held.gpu_nodes for job, other in on_node[node].items())
            jobs = {job: None for job, other in others if not held.domains[0].isdisjoint(other.domains[0])}
        if self._bandwidth is not None:
            jobs |= self._bandwidth.jobs_with_new_pace(held)
        if self._shares is not None:
            jobs |= {job: None for gpu in held.gpus for job in on_gpu[gpu]}
        return jobs

    def share_excess(self, held: HeldResources) -> int:
        """
        Return the excess run time in thousandths, rounded up, by the shares of other jobs on its GPUs.

        Alone a job is granted its limit; with a share s, the least on its GPUs, it takes limit / s of that time
        (token scheduler of DynamoML 3.1: GPU time in proportion to the share).
        """
        request, limit = held.bounds
        if self._shares is None or request == limit or not held.gpus:
            return 0
        sharing = ({job: other.bounds for job, other in self._occupancy.on_gpu[gpu].items()} for gpu in held.gpus)
        least = min(grants(bounds)[held.job] for bounds in sharing)
        return -(-1000 * limit // least) - 1000

    def host_excess(self, held: HeldResources) -> int:
        """
        Return the present excess run time in thousandths by too few CPU cores and too little memory bandwidth.

        The two add up, but for CPU jobs: fewer cores that wait for memory take longer in proportion.
        """
        cores = held.cores_thousandths
        if self._bandwidth is None or not held.mbps:
            return cores
        bandwidth = self._bandwidth.excess(held)
        return cores + bandwidth + (-(-cores * bandwidth // 1000) if held.throttled else 0)

    def excess(self, held: HeldResources, model: str) -> int:
        """
        Return the present excess run time in thousandths by neighbours, by a model of interference.

        At least what the jobs on one of its GPUs ask for together beyond all of it: 100 and 100 % take twice as long.
        """
        on_gpu = [self._occupancy.on_gpu[gpu].values() for gpu in held.gpus]
        if model == "curve":
            shared = [sum(other.utilisation_percent for other in there) for there in on_gpu if len(there) > 1]
            table = excess_table(self._physics.curve, max(shared, default=0))
            return max((int(table[percent]) for percent in shared), default=0)
        beyond = 10 * max((sum(other.most_percent for other in there) - 100 for there in on_gpu), default=0)
        return max(0, beyond, self._by_profiles(held, model))

    def _by_profiles(self, held: HeldResources, model: str) -> int:
        if not self._excess or held.profile is None:
            return 0
        on_node = self._occupancy.on_node
        others = {name: other for node in held.gpu_nodes for name, other in on_node[node].items()}
        excesses = [self._between(held, other) for name, other in others.items() if name != held.job]
        return sum(excesses) if model == "pairwise" else max(excesses, default=0)

    def _between(self, held: HeldResources, other: HeldResources) -> int:
        """Return the excess that one job causes another, at the closest domain that they share."""
        if held.profile is None or other.profile is None:
            return 0
        stated = self._excess.get((held.profile, other.profile))
        if stated is None:
            return 0
        for mine, theirs, excess in zip(held.domains, other.domains, stated, strict=True):
            if not mine.isdisjoint(theirs):
                return excess
        return 0


def _usable_mbps(scenario: Scenario) -> dict[str, int]:
    """Return the memory bandwidth that each node's jobs can use before they slow each other, where it is known."""
    percent = scenario.physics.memory_bandwidth_percent or 0
    of_node = {node.id: scenario.hardware.machine_of(node).memory_bandwidth_mbps for node in scenario.hardware.nodes}
    return {node: max(1, mbps * percent // 100) for node, mbps in of_node.items() if mbps is not None}
