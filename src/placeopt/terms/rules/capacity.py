"""Rules: what fits into GPUs, nodes, places (domains, the cluster, nodes beside holds) and uplinks."""

from __future__ import annotations

from collections import Counter

import numpy as np

from placeopt.errors import Unsupported
from placeopt.linear import ModelBuilder
from placeopt.problem import UNLIMITED, Placement, State, hose_loads
from placeopt.terms.linearized_costs import unary_digits
from placeopt.terms.standing import add_limits
from placeopt.terms.variables import Variables


class GpuCapacity:
    """
    What the jobs on a GPU take of it together.

    Guaranteed shares of at most 1000, but under ``overcommit`` (Horus); at most m jobs, of which m = 1 is
    ``exclusive``; memory.
    """

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether every GPU has share and memory free, and can take one more job."""
        del job
        problem, most = state.problem, state.problem.jobs_per_gpu
        milli, memory, _ = problem.options.grants[placement.option]
        return all(
            (state.gpu_free_milli[gpu] >= milli or not problem.shares_bind)
            and (most is None or state.gpu_jobs[gpu] < most)
            and (not memory or state.gpu_free_memory[gpu] >= memory)
            for gpu in placement.gpus
        )

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """Rows for each cell; in one of several GPUs each has one job, whose memory the mask has compared with it."""
        v, problem = variables, variables.problem
        rows, none = [], np.zeros(problem.num_gpus, dtype=np.int64)
        if problem.shares_bind:
            rows.append((v.grant_milli, v.state.gpu_free_milli, none))
        if problem.jobs_per_gpu is not None:
            jobs, free = np.ones(len(v.grant), dtype=np.int64), problem.jobs_per_gpu - v.state.gpu_jobs
            rows.append((jobs, free, v.excess["gpu_jobs"]))
        if problem.options.gpu_memory_mib.any():
            memory = problem.options.gpu_memory_mib[v.grant_option]
            rows.append((memory, v.state.gpu_free_memory, v.excess["gpu_free_memory"]))
        inside = np.concatenate([np.zeros(0, dtype=np.int64), *v.cell_gpus])
        first = np.cumsum([0, *v.cell_size])[:-1]
        for use, free, excess in rows:
            room, more = (np.add.reduceat(of_gpu[inside], first) if len(first) else none for of_gpu in (free, excess))
            add_limits(builder, v.grant_cell, v.grant, use, v.starts_new[v.grant_start], room, more)


class NodeCapacity:
    """Horus eq. 5; bandwidths up to their usable part (SC'17 section 4.3, SODA V-E); named resources."""

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
        v, need = variables, variables.bundle_demand
        for r in range(need.shape[1]):
            uses = need[:, r] > 0
            nodes, row = np.unique(v.bundle_node[uses], return_inverse=True)
            starts = v.starts_new[v.bundle_start[uses]]
            free, excess = v.state.node_free[nodes, r], v.excess["node_free"][nodes, r]
            add_limits(builder, row, v.bundle[uses], need[uses, r], starts, free, excess)


class PlaceAmounts:
    """Named amounts of domains and of the cluster, such as power and licences, and holds that some jobs may use."""

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether every place has what the placement takes of it."""
        del job
        for place in state.problem.places:
            need = place.taken(state.problem, placement)
            if need.any() and bool((need > place.room(state))[need > 0].any()):
                return False
        return True

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """One row per place and resource that can bind at all."""
        v, need = variables, variables.bundle_demand
        everything = State(v.problem) if v.problem.places else v.state
        for place in v.problem.places:
            inside = np.isin(v.bundle_node, place.nodes) & place.counted[v.problem.options.job_class[v.bundle_option]]
            room, excess = place.room(v.state), np.maximum(-place.room(everything), 0)
            for r in np.flatnonzero(need[inside].any(axis=0)).tolist():
                mine = np.flatnonzero(inside & (need[:, r] > 0))
                row, new = np.zeros(len(mine), dtype=np.int64), v.starts_new[v.bundle_start[mine]]
                add_limits(builder, row, v.bundle[mine], need[mine, r], new, room[[r]], excess[[r]])


class Uplink:
    """
    A job with k workers, k_in of them inside a domain, loads its uplink with ``min(k_in, k - k_in)`` x its bandwidth.

    GPU jobs may use one part of a link, CPU jobs another (SODA V-E: 75 and 25 %).
    """

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether every uplink has room in the part of the job's kind."""
        del job
        problem, o = state.problem, placement.option
        if not problem.options.network_mbps[o] or len(placement.nodes) == 1:
            return True
        kind = 0 if problem.options.gpus[o] else 1
        return all(
            state.link_load.item(link, kind) + mbps <= problem.link_mbps.item(link, kind)
            for link, mbps in hose_loads(problem, placement).items()
        )

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """
        The load is a function of k_in alone, so unary digits of k_in make it linear: exact.

        Raises ``Unsupported`` if an option that loads a limited link was folded with others into one unit.
        """
        v, problem, options = variables, variables.problem, variables.problem.options
        talks = (options.network_mbps > 0) & (options.workers > 1) & (options.bundles > 1)
        bundles = np.flatnonzero(talks[v.bundle_option])
        if (v.unit_size[v.start_unit[v.bundle_start[bundles]]] > 1).any():
            raise Unsupported("uplink: jobs that load uplinks cannot be counted together; use method 'assignment'")
        inside: dict[tuple[int, int], list[int]] = {}  # uplink and start: the bundles below it
        for bundle, s, node in zip(
            *(of[bundles].tolist() for of in (v.bundle, v.bundle_start, v.bundle_node)), strict=True
        ):
            for link in problem.topology.node_links(node):
                if problem.link_mbps[link, 0] < UNLIMITED:
                    inside.setdefault((link, s), []).append(bundle)
        if not inside:
            return
        link, start = np.array(list(inside), dtype=np.int64).T
        option = v.start_option[start]
        most = options.workers[option]
        digits = unary_digits(builder, list(zip(map(np.array, inside.values()), most.tolist(), strict=True)))
        i = np.concatenate([np.arange(k) for k in most.tolist()])  # each digit is a worker more below the uplink
        k, mbps = np.repeat(most, most), np.repeat(options.network_mbps[option], most)
        amounts = (np.minimum(i + 1, k - i - 1) - np.minimum(i, k - i)) * mbps
        limit, row = np.unique(np.repeat(2 * link + (options.gpus[option] == 0), most), return_inverse=True)
        room, excess = (of.ravel()[limit] for of in (problem.link_mbps - v.state.link_load, v.excess["link_load"]))
        new = np.repeat(v.starts_new[start], most)
        add_limits(builder, row, np.concatenate(digits), amounts, new, room, excess)
