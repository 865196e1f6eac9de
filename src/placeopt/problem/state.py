"""What is used by which job: an allocation as arrays, and the mutable side of a problem, with apply and undo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

import numpy as np

from placeopt.problem.arrays import Allocation, BaseLoad, IntArray, Placement, Room, Tenant
from placeopt.problem.gpu_slots import slot_loads
from placeopt.problem.problem import Problem
from placeopt.problem.relations import DomainCounts


@dataclass(frozen=True, eq=False)
class Holdings:
    """H grants, one a job and GPU, and W workers, in the order of the jobs given and of their ranks."""

    job: IntArray  # (H,)
    gpu: IntArray  # (H,)
    option: IntArray  # (H,) the job's
    milli: IntArray  # (H,) thousandths requested
    worker_node: IntArray  # (W,)
    worker_option: IntArray  # (W,) the job's


_option_of, _gpus_of, _nodes_of = attrgetter("option"), attrgetter("gpus"), attrgetter("nodes")


def holdings(problem: Problem, placed: Iterable[tuple[int, Placement]]) -> Holdings:
    """Write (job, placement) pairs, of different jobs, as arrays."""
    jobs, placements = [], []
    for job, placement in placed:
        jobs.append(job)
        placements.append(placement)
    gpus_held, nodes = list(map(_gpus_of, placements)), list(map(_nodes_of, placements))
    option = np.array(list(map(_option_of, placements)), dtype=np.int64)
    gpus = np.array(list(map(len, gpus_held)), dtype=np.int64)
    workers = np.array(list(map(len, nodes)), dtype=np.int64)
    of_grant = np.repeat(option, gpus)
    return Holdings(
        job=np.repeat(np.array(jobs, dtype=np.int64), gpus),
        gpu=np.array(list(chain.from_iterable(gpus_held)), dtype=np.int64),
        option=of_grant,
        milli=problem.options.milli[of_grant],
        worker_node=np.array(list(chain.from_iterable(nodes)), dtype=np.int64),
        worker_option=np.repeat(option, workers),
    )


@dataclass(frozen=True, slots=True)
class Move:
    """Put ``job`` to ``placement``, or take it away where that is None."""

    job: int
    placement: Placement | None


class State(Room):
    """
    Free capacity and placements under construction.

    Starts with the running jobs in place, or from a whole ``allocation``, which is quicker than ``load``. ``apply``
    returns the move that undoes it. Nothing here judges whether a move is allowed: rules do (``placeopt.terms``), and
    the referee after them.
    """

    def __init__(self, problem: Problem, allocation: Allocation | None = None) -> None:
        n, g = problem.num_nodes, problem.num_gpus
        if problem.base_load is None:
            super().__init__(
                node_free=problem.node_capacity.copy(),
                gpu_free_milli=np.full(g, 1000, dtype=np.int64),
                gpu_free_memory=problem.gpu_memory_mib.copy(),
                gpu_jobs=np.zeros(g, dtype=np.int64),
                gpu_utilisation=np.zeros(g, dtype=np.int64),
                gpu_slots=np.zeros(g, dtype=np.int64),
                level_free=[level.total.copy() for level in problem.levels],
                link_load=np.zeros((len(problem.link_mbps), 2), dtype=np.int64),
                queue_used=problem.queue_tree.idle.copy(),
            )
        else:
            super().__init__(**problem.base_load.room.arrays())
        self.problem = problem
        self.placements: list[Placement | None] = [None] * problem.num_jobs
        self.node_jobs: list[dict[int, None]] = [{} for _ in range(n)]  # jobs with a GPU there, in order of arrival
        self._tenants: list[dict[Tenant, int]] | None = None
        self.relations = [DomainCounts(relation) for relation in problem.relations.every]
        self.settled: dict[int, Placement] = {}
        """Placements that count as running ones in relations, beside those of the problem."""
        if allocation is None:
            self._begin(list(problem.running.items()))
        else:
            self._begin([(job, placement) for job, placement in enumerate(allocation) if placement is not None])

    def _begin(self, placed: list[tuple[int, Placement]]) -> None:
        """Place jobs in an empty state: as ``apply`` would one by one, but all at once."""
        problem, options = self.problem, self.problem.options
        held = holdings(problem, placed)
        np.subtract.at(self.node_free, held.worker_node, options.demand[held.worker_option])
        np.subtract.at(self.gpu_free_milli, held.gpu, held.milli)
        np.subtract.at(self.gpu_free_memory, held.gpu, options.gpu_memory_mib[held.option])
        np.add.at(self.gpu_utilisation, held.gpu, options.utilisation[held.option])
        busy = self.gpu_jobs == 0
        self.gpu_jobs += np.bincount(held.gpu, minlength=problem.num_gpus)
        busy &= self.gpu_jobs > 0  # by these jobs
        for level, free in zip(problem.levels, self.level_free, strict=True):
            free -= np.bincount(level.gpu_to_domain[busy & (level.gpu_to_domain >= 0)], minlength=len(free))
        for job, placement in placed:
            self.placements[job] = placement
            for node in dict.fromkeys(placement.nodes) if placement.gpus else ():
                self.node_jobs[node][job] = None
            self._change_shared(job, placement, 1)

    def apply(self, move: Move) -> Move:
        """Carry out ``move`` and return the one that takes it back."""
        job, before, after = move.job, self.placements[move.job], move.placement
        if before is not None:
            self.take(job, before, -1)
            for node in dict.fromkeys(before.nodes) if before.gpus else ():
                del self.node_jobs[node][job]
        if after is None:
            self.placements[job] = None
        else:
            self.place(job, after)
        return Move(job, before)

    def place(self, job: int, placement: Placement) -> None:
        """Put a job that is nowhere to ``placement``: ``apply``, of which nothing has to be undone."""
        self.take(job, placement)
        for node in dict.fromkeys(placement.nodes) if placement.gpus else ():
            self.node_jobs[node][job] = None
        self.placements[job] = placement

    def base_load(self) -> BaseLoad:
        """Return a copy of what is held, for a problem that does not list who holds it."""
        return BaseLoad(Room(**self.arrays()), [dict(here) for here in self.tenants])

    def placed(self, jobs: Iterable[int]) -> dict[int, Placement]:
        """Return the placements of those of some jobs that are placed."""
        return {job: placement for job in jobs if (placement := self.placements[job]) is not None}

    def allocation(self) -> Allocation:
        """Return the placements as they stand."""
        return tuple(self.placements)

    def load(self, allocation: Allocation) -> None:
        """Move every job to where ``allocation`` has it."""
        for job, placement in enumerate(allocation):
            if placement is not self.placements[job] and placement != self.placements[job]:
                self.apply(Move(job, placement))

    def take(self, job: int, placement: Placement, sign: int = 1) -> None:
        """Take from what is free what a job like ``job`` holds at ``placement``; ``sign`` -1 gives it back."""
        options, option = self.problem.options, placement.option
        demand = options.demand[option] * sign
        for node in placement.nodes:
            free = self.node_free[node]
            free -= demand
        if placement.gpus:
            self._change_gpus(placement, sign)
            if self._tenants:
                self._change_tenants(placement, sign)
        self._change_shared(job, placement, sign)

    def _change_shared(self, job: int, placement: Placement, sign: int) -> None:
        """Change what is counted of slots, queues, uplinks and relations, of which most rounds have none."""
        problem, option = self.problem, placement.option
        if problem.has_geometry:
            for gpu, load in slot_loads(problem, placement):
                self.gpu_slots[gpu] += sign * load
        if len(self.queue_used) and (queue := problem.class_queue[problem.job_class[job]]) >= 0:
            problem.queue_tree.change(self.queue_used, queue, sign * problem.queue_use[option])
        if problem.options.network_mbps[option]:
            self.load_links(placement, sign)
        if self.relations:
            self._change_relations(job, placement, sign)

    def _change_gpus(self, placement: Placement, sign: int) -> None:
        milli, memory, utilisation = self.problem.options.grants[placement.option]
        turns = 1 if sign > 0 else 0  # jobs on a GPU that just became busy, or free
        free_milli, held = self.gpu_free_milli, self.gpu_jobs
        for gpu in placement.gpus:
            free_milli[gpu] -= sign * milli
            if memory:
                self.gpu_free_memory[gpu] -= sign * memory
            if utilisation:
                self.gpu_utilisation[gpu] += sign * utilisation
            jobs = held.item(gpu) + sign
            held[gpu] = jobs
            if jobs == turns:
                for level, free in zip(self.problem.levels, self.level_free, strict=True):
                    domain = level.domain_of_gpu[gpu]
                    if domain >= 0:
                        free[domain] -= sign

    @property
    def tenants(self) -> list[dict[Tenant, int]]:
        """On each node, profile and GPUs of jobs that hold some, and how many are alike; empty where none disturbs."""
        # Followed from the first read on: until then whatever is taken must be in ``placements``.
        if self._tenants is None:
            base = self.problem.base_load
            if base is None:
                self._tenants = [{} for _ in range(self.problem.num_nodes if self.problem.slowdown.any() else 0)]
            else:
                self._tenants = [dict(here) for here in base.tenants]
            for placement in self.placements if self._tenants else ():
                if placement is not None and placement.gpus:
                    self._change_tenants(placement, 1)
        return self._tenants

    @tenants.setter
    def tenants(self, tenants: list[dict[Tenant, int]]) -> None:
        self._tenants = tenants

    def _change_tenants(self, placement: Placement, sign: int) -> None:
        problem, tenants = self.problem, self.tenants
        profile = int(problem.class_profile[problem.options.job_class[placement.option]])
        for node in dict.fromkeys(placement.nodes):
            first, end = problem.node_gpu_start[node], problem.node_gpu_start[node + 1]
            key = profile, tuple(gpu for gpu in placement.gpus if first <= gpu < end)
            here = tenants[node]
            here[key] = here.get(key, 0) + sign
            if not here[key]:
                del here[key]

    def _change_relations(self, job: int, placement: Placement, sign: int) -> None:
        k = int(self.problem.job_class[job])
        concerned = self.problem.relations.of_class[k]
        stays = bool(concerned) and self.stays(job, placement)
        for r in concerned:
            ran = job in self.problem.running or job in self.settled
            self.relations[r].add(k, placement, ran=ran, stays=stays, sign=sign)

    def settle(self) -> None:
        """Let all that is placed count as running in relations: of a problem that leaves out what runs."""
        placed = [(job, held) for job, held in enumerate(self.placements) if held is not None]
        self.relations = [DomainCounts(counts.relation) for counts in self.relations]
        self.settled = dict(placed)
        for job, held in placed if self.relations else ():
            self._change_relations(job, held, 1)

    def stays(self, job: int, placement: Placement) -> bool:
        """Return whether a placement leaves a running job where it is, whole or shrunk."""
        from placeopt.problem.changes import change_of  # only here: changes of a problem look at states

        if self.settled.get(job) is placement:
            return True
        return job in self.problem.running and change_of(self.problem, job, placement) != "moved"

    def load_links(self, placement: Placement, sign: int = 1) -> None:
        """Load uplinks with the traffic of a placement; ``sign`` -1 takes it off."""
        options = self.problem.options
        if options.network_mbps[placement.option] and len(placement.nodes) > 1:
            kind = 0 if options.gpus[placement.option] else 1
            for link, mbps in hose_loads(self.problem, placement).items():
                self.link_load[link, kind] += sign * mbps


def hose_loads(problem: Problem, placement: Placement) -> dict[int, int]:
    """
    Return the load, MB/s, that a placement puts on uplinks by the hose model; those without any are left out.

    That is ``min(k_in, k - k_in) x`` its bandwidth per worker, k_in of its k workers being below the uplink.
    """
    k, mbps = len(placement.nodes), int(problem.options.network_mbps[placement.option])
    inside = Counter(link for node in placement.nodes for link in problem.topology.node_links(node))
    return {link: min(k_in, k - k_in) * mbps for link, k_in in inside.items() if k_in < k}
