"""What is free of nodes and their GPUs, kept up to date as jobs start and end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import compress

from placeopt.check.amounts import Limits, Resource, on_node
from placeopt.check.directory import Directory
from placeopt.model import Cluster, Demand, Instance, Job, NodeConditions, Option, Placement, Policy
from placeopt.model.base import Milliseconds
from placeopt.problem.classes import Admission, effective_labels
from placeopt.problem.gpu_slots import taken
from placeopt.scheduling.occupancy import Follower, Held

UNLIMITED = 1 << 60
MOST_COUNTS = 1000
"""Kinds of workers that are counted on every node; beyond that all are counted again."""


@dataclass
class WorkerCount:
    """How many workers of a kind fit, each node up to the number of a job, as far as the journal is read."""

    on_node: dict[str, int]
    journal_read: int
    all_nodes: int = 0
    full_nodes: int = 0
    """Nodes on which all workers of the job fit."""


class _Free(dict[Resource, int]):
    """Free amount of each resource; of an unused one its limit."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def __missing__(self, resource: Resource) -> int:
        most = self._limits.limit(resource)
        left = self[resource] = UNLIMITED if most is None else most
        return left


class FreeResources(Follower[Held]):
    """
    What is free of nodes and GPUs under a policy: the amounts of the referee, kept while jobs start and end.

    The one account of free resources in a simulation: growth of elastic jobs, preemption and the retry filter read it.
    A check looks at GPUs (share, number of jobs, model, memory), all that a node limits, workers per node, and the
    nodes that a job admits. It leaves uplinks, splits and queues to the referee, which may still refuse.

    `placeopt.problem.free_capacity` answers the same for one compiled round, as arrays over all nodes. A simulation
    changes a few nodes between two checks and tries hypothetical evictions in between, so numbers by resource, changed
    in place, take less time than arrays that are rebuilt.
    """

    def __init__(self, cluster: Cluster, policy: Policy) -> None:
        self._policy = policy
        self.use(cluster)

    def use(self, cluster: Cluster) -> None:
        """Begin anew with the nodes of a cluster, on which nothing runs yet."""
        directory = Directory(Instance(cluster=cluster))
        self._limits = Limits(directory, self._policy)
        self._free = _Free(self._limits)
        self._gpus = {name: [gpu.model for gpu in machine.gpus] for name, machine in directory.machine_of.items()}
        machines = directory.machine_of.items()
        self._profiles = {
            name: [{one.id: one for one in gpu.profiles} for gpu in machine.gpus]
            for name, machine in machines
            if any(gpu.profiles for gpu in machine.gpus)
        }
        self._slots: Counter[tuple[str, str]] = Counter()
        """Slots of a GPU that shares take, as bits."""
        self._of_gpus: dict[tuple[str, str], list[Resource]] = {}
        self._admission = Admission(cluster.nodes, effective_labels(Instance(cluster=cluster)))
        self._num_jobs = {name: [0] * len(gpus) for name, gpus in self._gpus.items()}
        self.gpu_milli = 1000 * sum(map(len, self._gpus.values()))
        """What no job requests of all GPUs; below 0 where they are overcommitted."""
        self._overcommits = self._policy.share_mode == "overcommit"
        self._admitting: dict[NodeConditions, list[str]] = {}
        self._counts: dict[tuple[object, ...], WorkerCount] = {}
        self._journal: list[str] = []
        """Nodes whose free amounts have changed, in order."""

    def take(self, placement: Placement, demand: Demand, sign: int = 1) -> None:
        """Account for a placement that starts or, with ``sign`` -1, ends; nodes and GPUs that are not listed do not."""
        amounts: list[tuple[Resource, int]] = []
        for assignment in placement.assignments:
            node, jobs = assignment.node, self._num_jobs.get(assignment.node)
            if jobs is None:
                continue
            self._journal.append(node)
            listed = [gpu for gpu in assignment.gpus if int(gpu) < len(jobs)]
            amounts += self._limits.of_workers(demand, node, len(assignment.workers), listed)
            self.gpu_milli -= sign * demand.gpu_milli * len(listed)
            for gpu in listed:
                jobs[int(gpu)] += sign
            for gpu, start in assignment.starts.items():
                width = self._profiles[node][int(gpu)][demand.gpu_profile].width
                self._slots[node, gpu] += sign * taken(width, start)
        for resource, amount in amounts:
            self._free[resource] -= sign * amount
        if len(self._journal) > 4 * len(self._gpus) + 1000:  # what fell behind that far is counted again
            self._journal.clear()
            self._counts.clear()

    def started(self, held: Held) -> None:
        self.take(held.placement, held.option.demand)

    def ended(self, held: Held, now_ms: Milliseconds) -> None:
        del now_ms
        self.take(held.placement, held.option.demand, -1)

    def exchange(self, before: Placement | None, after: Placement | None, demand: Demand) -> None:
        """Account for ``after`` in place of ``before``."""
        if before is not None:
            self.take(before, demand, -1)
        if after is not None:
            self.take(after, demand)

    def fits(self, job: Job, option: Option, workers: int, *, idle: bool = False) -> bool:
        """Return whether a number of workers of an option fits; with ``idle``, overcommitted GPUs must be idle."""
        shape = (option.demand, option.single_node, option.workers_per_node_max)
        key = (shape, workers, idle, job.conditions)
        count = self._counts.get(key)
        if count is None:
            if len(self._counts) >= MOST_COUNTS:
                self._counts.clear()
            count = self._counts[key] = WorkerCount(dict.fromkeys(self.admitting(job), 0), len(self._journal))
            changed: Iterable[str] = count.on_node
        else:
            changed = dict.fromkeys(self._journal[count.journal_read :])
            count.journal_read = len(self._journal)
        for node in changed:
            before = count.on_node.get(node)
            if before is not None:
                here = self.workers_on(node, option, workers, idle=idle)
                count.on_node[node] = here
                count.all_nodes += here - before
                count.full_nodes += (here == workers) - (before == workers)
        return count.full_nodes > 0 or (not option.single_node and count.all_nodes >= workers)

    def admitting(self, job: Job) -> list[str]:
        """Return the nodes that admit a job, in the order of the file."""
        known = self._admitting.get(job.conditions)
        if known is None:
            admitted = self._admission.admitted(job).tolist()
            known = self._admitting[job.conditions] = list(compress(self._gpus, admitted))
        return known

    def worker(
        self, option: Option, nodes: Iterable[str], placed: Placement
    ) -> tuple[str, dict[int, int | None]] | None:
        """
        Return node and GPUs for one more worker of a placed job, on the first possible of ``nodes``, or None.

        With the first slot of each, None where GPUs have no profiles.
        """
        assignments = {assignment.node: assignment for assignment in placed.assignments}
        demand = option.demand
        for node in nodes:
            mine = assignments.get(node)
            most = option.workers_per_node_max
            if most is not None and mine is not None and len(mine.workers) >= most:
                continue
            if self._times(node, demand, 1) < 1:
                continue
            held = set() if mine is None else {int(gpu) for gpu in mine.gpus}
            free = [gpu for gpu in self._usable(node, demand) if gpu not in held]
            if len(free) >= demand.gpus:
                return node, {gpu: self._first_slot(node, gpu, demand.gpu_profile) for gpu in free[: demand.gpus]}
        return None

    def cpu_millicores(self, node: str) -> int:
        """Return the free millicores of a node."""
        return self._free["cpu", node]

    def idle_gpus(self, node: str) -> int:
        """Return how many GPUs of a node no job holds."""
        return sum(not jobs for jobs in self._num_jobs[node])

    def num_idle_gpus(self) -> dict[str, int]:
        """Return how many GPUs of each node no job holds."""
        return {node: self.idle_gpus(node) for node in self._num_jobs}

    def is_idle(self, node: str) -> bool:
        """Return whether no job holds a GPU of a node."""
        return not any(self._num_jobs[node])

    def workers_on(self, node: str, option: Option, most: int, *, idle: bool = False) -> int:
        """Return how many workers of an option fit on a node, at most ``most``; ``idle`` as in ``fits``."""
        demand = option.demand
        here = most if option.workers_per_node_max is None else min(most, option.workers_per_node_max)
        here = self._times(node, demand, here)
        if demand.gpus and here > 0:  # last, as it takes longest
            here = min(here, len(self._usable(node, demand, idle=idle)) // demand.gpus)
        return max(0, here)

    def _times(self, node: str, demand: Demand, most: int) -> int:
        """Return how often what a worker takes of a node is free, at most ``most``."""
        for rule, each in self._limits.of_node(demand):
            most = min(most, self._free[on_node(rule, node)] // each)
        return most

    def _usable(self, node: str, demand: Demand, *, idle: bool = False) -> list[int]:
        """Return the GPUs of a node that can take a worker's share; ``idle`` as in ``fits``."""
        usable: Iterable[int] = range(len(self._gpus[node]))
        if demand.gpu_models:
            usable = [gpu for gpu in usable if self._gpus[node][gpu] in demand.gpu_models]
        if idle and self._overcommits:
            usable = [gpu for gpu in usable if not self._num_jobs[node][gpu]]
        for rule, each in self._limits.of_gpu(demand):
            left, keys = self._free, self._resources_of_gpus(rule, node)
            usable = [gpu for gpu in usable if left[keys[gpu]] >= each]
        name, divided = demand.gpu_profile, self._profiles.get(node)
        if divided is None:
            return list(usable) if name is None else []
        return [
            gpu
            for gpu in usable
            if self._first_slot(node, gpu, name) is not None or (name is None and not divided[gpu])
        ]

    def _first_slot(self, node: str, gpu: int, profile: str | None) -> int | None:
        """Return the first slot that one more share of a profile may take on a GPU; None: there is none."""
        known = self._profiles[node][gpu].get(profile) if node in self._profiles else None
        if known is None:
            return None
        held = self._slots[node, str(gpu)]
        return next((start for start in known.starts if not held & taken(known.width, start)), None)

    def _resources_of_gpus(self, rule: str, node: str) -> list[Resource]:
        """Return what a rule limits on each GPU of a node, made once."""
        known = self._of_gpus.get((rule, node))
        if known is None:
            known = self._of_gpus[rule, node] = [(rule, node, str(gpu)) for gpu in range(len(self._gpus[node]))]
        return known
