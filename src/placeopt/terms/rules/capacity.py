"""Rules of one GPU: shares, number of jobs, memory."""

from __future__ import annotations

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
