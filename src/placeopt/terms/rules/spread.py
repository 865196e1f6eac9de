"""Rule: how a job's workers lie over nodes and domains (single node, anti-affinity, exact and layered splits)."""

from __future__ import annotations

from collections import Counter

import numpy as np

from placeopt.linear import NO_LOWER, ModelBuilder
from placeopt.problem import IntArray, Placement, Problem, State, change_of
from placeopt.terms.variables import STAY, Variables


class Spread:
    """Single node, at most so many workers a node, exactly so many domains of a level with so many workers each."""

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
        size, rows = v.unit_size[v.start_unit[v.bundle_start]], np.arange(int(binds.sum()))
        builder.add_rows(
            rows,
            v.bundle[binds],
            np.ones(len(rows), dtype=np.int64),
            np.full(len(rows), NO_LOWER, dtype=np.int64),
            (limit * size)[binds],
        )
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
            builder.add_row(v.bundle[nowhere], np.ones(len(nowhere), dtype=np.int64), 0, 0)
        mine, domain_of_bundle = mine[domain_of_bundle >= 0], domain_of_bundle[domain_of_bundle >= 0]
        numbers, row = np.unique(domain_of_bundle, return_inverse=True)
        used = builder.add_variables(np.zeros(len(numbers), dtype=np.int64), np.ones(len(numbers), dtype=np.int64))
        builder.define(used, lambda values: np.bincount(row, values[v.bundle[mine]], len(numbers)) > 0)
        per_bundle = int(v.problem.options.bundle_workers[option])
        total = int(v.problem.options.workers[option])
        least, most = (workers, workers) if workers is not None else (1, total)
        each, ones = np.arange(len(numbers)), np.ones(len(numbers), dtype=np.int64)
        counted = np.full(len(mine), per_bundle, dtype=np.int64)
        unbounded, zero = np.full(len(numbers), NO_LOWER, dtype=np.int64), np.zeros(len(numbers), dtype=np.int64)
        builder.add_rows(  # workers in the domain <= most x used
            np.concatenate([row, each]),
            np.concatenate([v.bundle[mine], used]),
            np.concatenate([counted, -most * ones]),
            unbounded,
            zero,
        )
        builder.add_rows(  # and >= least x used
            np.concatenate([row, each]),
            np.concatenate([v.bundle[mine], used]),
            np.concatenate([-counted, least * ones]),
            unbounded,
            zero,
        )
        builder.add_row(np.append(used, v.start[s]), np.append(ones, -domains), 0, 0)
        if v.problem.options.bundles[option] > 1:  # the same node by node: tight even where ``used`` is a fraction
            each, ones = np.arange(len(mine)), np.ones(len(mine), dtype=np.int64)
            builder.add_rows(
                np.concatenate([each, each]),
                np.concatenate([v.bundle[mine], used[row]]),
                np.concatenate([ones, -v.bundle_most[mine]]),
                np.full(len(mine), NO_LOWER, dtype=np.int64),
                np.zeros(len(mine), dtype=np.int64),
            )


def domain_of_nodes(problem: Problem, level: str) -> IntArray:
    """Shape (N,): the domain of ``level``, which some split names, above each node (or the node itself), -1 without."""
    return problem.split_domain[level]
