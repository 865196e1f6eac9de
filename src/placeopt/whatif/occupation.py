"""The domains of a level and the running jobs on them: which are empty, and which could be."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from fractions import Fraction
from itertools import accumulate

import numpy as np

from placeopt.edits import edit_instance
from placeopt.edits.levels import nodes_under
from placeopt.errors import BadInput
from placeopt.feasibility.free_capacity import free_capacity_of
from placeopt.feasibility.requirement import requirements_of
from placeopt.model import Instance
from placeopt.problem import State, compile_problem
from placeopt.problem.hardware import find_lost
from placeopt.problem.running import placed_in
from placeopt.whatif.placements import only_running
from placeopt.whatif.round_solving import placing_only


class Occupation:
    """
    The domains of a level with their running jobs: empty ones, and those that may be emptied.

    Empty domains are ``free``; ``candidates`` have the jobs on each domain all of which may move. ``problem`` is the
    round without running jobs but those with groups, since a rule would keep those where they are, and ``state`` has
    all running jobs placed.
    """

    def __init__(self, instance: Instance, level: str, exempt: Collection[str], *, everyone: bool) -> None:
        base = only_running(instance)
        runs = {held.job: held for held in base.running}
        missing = next((name for name in exempt if name not in runs), None)
        if missing is not None:
            raise BadInput(f"exempt: job {missing!r} is not running")
        gpus = base.cluster.gpus_by_node
        self._gpus = sum(gpus.values())  # of all nodes, including nodes under no such domain
        under = nodes_under(base, level)
        self._capacity = {name: sum(gpus[node] for node in nodes) for name, nodes in under.items()}
        self.under = {name: nodes for name, nodes in under.items() if self._capacity[name]}
        at = {node: name for name, nodes in self.under.items() for node in nodes}
        on: dict[str, set[str]] = {name: set() for name in self.under}
        for held in base.running:
            for name in {at[part.node] for part in held.assignments if part.node in at}:
                on[name].add(held.job)
        grouped = {job.id for job in base.jobs if any(option.groups for option in job.options)}
        may = {name for name, held in runs.items() if everyone or held.movable} - {*exempt, *grouped}
        self.free = tuple(name for name, jobs in on.items() if not jobs)
        self.candidates = {name: frozenset(jobs) for name, jobs in on.items() if jobs and jobs <= may}
        self.milli = {job.id: job.gpu_milli for job in base.jobs}
        self.base = placing_only(base, lambda job: int(job.id not in grouped))
        stay = tuple(held for held in base.running if held.job in grouped)
        self.problem = compile_problem(edit_instance(self.base, running=stay), lost=find_lost(self.base))
        placed = placed_in(self.problem, base.running, self.problem.running_records)
        self.state = State(self.problem, tuple(placed.get(job) for job in range(self.problem.num_jobs)))

    def jobs_on(self, domains: Collection[str]) -> frozenset[str]:
        """Return the jobs on some domains."""
        return frozenset().union(*(self.candidates[name] for name in domains))

    def size(self, jobs: Collection[str]) -> tuple[int, int]:
        """Return the number of jobs and the GPU-milli that they request together."""
        return len(jobs), sum(self.milli[job] for job in jobs)

    def least_moves(self, count: int) -> int:
        """Return a lower bound of the moves that empty ``count`` more domains."""
        spans = Counter(job for jobs in self.candidates.values() for job in jobs)
        sums = sorted(sum((Fraction(1, spans[job]) for job in jobs), Fraction(0)) for jobs in self.candidates.values())
        return math.ceil(sum(sums[:count], Fraction(0)))

    def cannot_move(self, domains: Collection[str], jobs: Collection[str]) -> bool:
        """Return whether one of the jobs does not fit outside of these and the empty domains, even alone."""
        excluded = {node for name in (*self.free, *domains) for node in self.under[name]}
        stays = np.array([name not in excluded for name in self.problem.node_ids])
        records = {job.id: job for job in self.base.jobs if job.id in jobs}
        for job in records.values():
            free = free_capacity_of(self.state, job)
            if all(
                int(free.workers(requirement)[stays].sum()) < requirement.fewest
                for requirement in requirements_of(self.problem, job)
            ):
                return True
        return False

    def most(self) -> int:
        """Return the maximum of empty domains: where shares bind, the others must hold all running jobs."""
        if self.base.policy.share_mode == "overcommit":
            return len(self.free) + len(self.candidates)
        spare = 1000 * self._gpus - self.base.running_gpu_milli
        sizes = sorted(1000 * self._capacity[name] for name in (*self.free, *self.candidates))
        return sum(size <= spare for size in accumulate(sizes))
