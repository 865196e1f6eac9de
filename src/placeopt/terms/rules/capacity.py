"""Rules: capacity of GPUs (shares, number of jobs, memory), of nodes (CPU, bandwidths, named resources)."""

from __future__ import annotations

from collections import Counter

import numpy as np

from placeopt.linear import ModelBuilder
from placeopt.problem import IntArray, Placement, State
from placeopt.terms.standing import add_limits
from placeopt.terms.variables import Variables


class GpuShare:
    """Guaranteed shares on a GPU sum to at most 1000; no such rule under ``overcommit`` (Horus)."""

    name = "gpu_share"

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether every GPU has the share free."""
        del job
        if not state.problem.shares_bind:
            return True
        milli = int(state.problem.options.milli[placement.option])
        return all(left >= milli for left in state.gpu_free_milli[list(placement.gpus)].tolist())

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """One row a cell."""
        if variables.problem.shares_bind:
            free = variables.state.gpu_free_milli
            _cell_rows(builder, variables, variables.grant_milli, free, np.zeros_like(free))


class JobsPerGpu:
    """At most m jobs on a GPU; m = 1 is ``exclusive``."""

    name = "jobs_per_gpu"

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether every GPU can take one more job."""
        del job
        most = state.problem.jobs_per_gpu
        return most is None or all(state.gpu_jobs[gpu] < most for gpu in placement.gpus)

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """One row a cell."""
        most = variables.problem.jobs_per_gpu
        if most is not None:
            ones = np.ones(len(variables.grant), dtype=np.int64)
            _cell_rows(builder, variables, ones, most - variables.state.gpu_jobs, variables.excess.gpu_jobs)


class GpuMemoryCapacity:
    """The jobs on a GPU need no more memory than it has."""

    name = "gpu_memory"

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether every GPU has the memory free."""
        del job
        memory = state.problem.options.gpu_memory_mib[placement.option]
        return not memory or all(state.gpu_free_memory[gpu] >= memory for gpu in placement.gpus)

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """One row a cell; in a cell of several GPUs each has one job, and the mask has compared the two."""
        memory = variables.problem.options.gpu_memory_mib
        if memory.any():
            use, free = memory[variables.grant_option], variables.state.gpu_free_memory
            _cell_rows(builder, variables, use, free, variables.excess.gpu_memory)


def _cell_rows(builder: ModelBuilder, v: Variables, use: IntArray, free: IntArray, excess: IntArray) -> None:
    """For every cell: sum of what grants use, shape (Q,) a GPU, <= what its GPUs have free together."""
    room, more = (
        np.array([sum(int(of_gpu[gpu]) for gpu in gpus) for gpus in v.cell_gpus], dtype=np.int64)
        for of_gpu in (free, excess)
    )
    add_limits(builder, v.grant_cell, v.grant, use, v.starts_new[v.grant_start], room, more)


class NodeCapacity:
    """Horus eq. 5; bandwidths up to their usable part (SC'17 section 4.3, SODA V-E); named resources."""

    name = "node_capacity"

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether every node has room for the workers that land there."""
        del job
        demand = state.problem.options.demand[placement.option].tolist()
        workers = Counter(placement.nodes)
        free = state.node_free[list(workers)].tolist()
        return all(
            each * count <= left or not each
            for row, count in zip(free, workers.values(), strict=True)
            for each, left in zip(demand, row, strict=True)
        )

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """One row per node and resource that can bind at all."""
        v, options = variables, variables.problem.options
        need = (options.demand * options.bundle_workers[:, None])[v.bundle_option]  # (B, R)
        for r in range(need.shape[1]):
            uses = need[:, r] > 0
            nodes, row = np.unique(v.bundle_node[uses], return_inverse=True)
            starts = v.starts_new[v.bundle_start[uses]]
            free, excess = v.state.node_free[nodes, r], v.excess.node[nodes, r]
            add_limits(builder, row, v.bundle[uses], need[uses, r], starts, free, excess)
