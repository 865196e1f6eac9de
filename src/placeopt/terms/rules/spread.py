"""Rules: all of a job runs or nothing; how its workers lie over nodes and domains (anti-affinity, splits)."""

from __future__ import annotations

from collections import Counter

import numpy as np

from placeopt.linear import NO_LOWER, ModelBuilder
from placeopt.problem import IntArray, Placement, Problem, State, change_of
from placeopt.terms.variables import STAY, Variables


class Gang:
    """Horus eq. 4, DynamoML: exactly the option's workers and GPUs; no GPU twice; at most one option a job."""

    name = "gang"

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether the placement is one of the job's options in full, each GPU on its worker's node."""
        problem, o = state.problem, placement.option
        options = problem.options
        gpus = int(options.gpus[o])
        return (
            o in problem.options_of(job)
            and len(placement.nodes) == options.workers[o]
            and len(placement.gpus) == gpus * len(placement.nodes)
            and len(set(placement.gpus)) == len(placement.gpus)
            and problem.gpu_node[list(placement.gpus)].tolist()
            == [node for node in placement.nodes for _ in range(gpus)]
        )

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """Link units to starts, starts to bundles (all of the option), and bundles to grants (all their GPUs)."""
        v, options = variables, variables.problem.options
        builder.add_rows(v.start_unit, v.start, 1, v.unit_least, v.unit_size)
        starts = (np.arange(len(v.start)), v.start, -options.bundles[v.start_option])
        builder.add_parts(0, 0, (v.bundle_start, v.bundle, 1), starts, count=len(v.start))
        per_bundle = (options.gpus * options.bundle_workers)[v.bundle_option]
        has_gpus = per_bundle > 0
        rows = np.cumsum(has_gpus) - 1
        bundles = (rows[has_gpus], v.bundle[has_gpus], -per_bundle[has_gpus])
        builder.add_parts(0, 0, (rows[v.grant_bundle], v.grant, 1), bundles, count=int(has_gpus.sum()))


class Spread:
    """Single node, most workers per node, an exact number of domains of a level, with an exact number of workers."""

    name = "spread"

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether the workers lie as the option asks; a running job may stay as it lies."""
        problem, o = state.problem, placement.option
        if job in problem.running and change_of(problem, job, placement) == "kept":
            return True
        if len(placement.nodes) == 1 and not problem.options.splits[o]:
            return bool(problem.options.workers_per_node[o] >= 1)
        per_node = Counter(placement.nodes)
        if problem.options.bundles[o] == 1 and len(per_node) > 1:
            return False
        if max(per_node.values()) > problem.options.workers_per_node[o]:
            return False
        for split in problem.options.splits[o]:
            domain = domain_of_nodes(problem, split.level)
            per_domain = Counter(int(domain[node]) for node in placement.nodes)
            if -1 in per_domain or len(per_domain) != split.domains:
                return False
            if split.workers is not None and any(count != split.workers for count in per_domain.values()):
                return False
        return True

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """Limits per node as rows; splits with a binary per domain. Single-node options have one bundle: no row."""
        v, options = variables, variables.problem.options
        limit = options.workers_per_node[v.bundle_option]
        binds = (options.bundles[v.bundle_option] > 1) & (limit < options.workers[v.bundle_option])
        binds &= v.start_kind[v.bundle_start] != STAY
        size = v.unit_size[v.start_unit[v.bundle_start]]
        builder.add_rows(np.arange(int(binds.sum())), v.bundle[binds], 1, NO_LOWER, (limit * size)[binds])
        for s, option in enumerate(v.start_option):
            for split in options.splits[option] if v.start_kind[s] != STAY else ():
                self._add_split(builder, v, s, split.level, split.domains, split.workers)

    def _add_split(
        self, builder: ModelBuilder, v: Variables, s: int, level: str, domains: int, workers: int | None
    ) -> None:
        """The start is of a unit of one job: formulations do not fold options with splits."""
        option = int(v.start_option[s])
        mine = np.flatnonzero(v.bundle_start == s)
        domain_of_bundle = domain_of_nodes(v.problem, level)[v.bundle_node[mine]]
        nowhere = mine[domain_of_bundle < 0]
        if len(nowhere):
            builder.add_row(v.bundle[nowhere], 1, 0, 0)
        mine, domain_of_bundle = mine[domain_of_bundle >= 0], domain_of_bundle[domain_of_bundle >= 0]
        numbers, row = np.unique(domain_of_bundle, return_inverse=True)
        used = builder.add_variables(0, 1, count=len(numbers))
        builder.define(used, lambda values: np.bincount(row, values[v.bundle[mine]], len(numbers)) > 0)
        per_bundle = int(v.problem.options.bundle_workers[option])
        total = int(v.problem.options.workers[option])
        least, most = (workers, workers) if workers is not None else (1, total)
        each, count = np.arange(len(numbers)), len(numbers)
        for sign, bound in ((1, most), (-1, least)):  # workers in the domain <= most x used and >= least x used
            workers_inside = (row, v.bundle[mine], sign * per_bundle)
            builder.add_parts(NO_LOWER, 0, workers_inside, (each, used, -sign * bound), count=count)
        builder.add_row(np.append(used, v.start[s]), np.append(np.ones(count, dtype=np.int64), -domains), 0, 0)
        if v.problem.options.bundles[option] > 1:  # the same node by node: tight even where ``used`` is a fraction
            each = np.arange(len(mine))
            limits = (each, used[row], -v.bundle_most[mine])
            builder.add_parts(NO_LOWER, 0, (each, v.bundle[mine], 1), limits, count=len(mine))


def domain_of_nodes(problem: Problem, level: str) -> IntArray:
    """Shape (N,): the domain of ``level``, which some split names, above each node (or the node itself), -1 without."""
    return problem.split_domain[level]
