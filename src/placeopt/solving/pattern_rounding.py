"""The relaxation over GPU patterns made integer: what the solver is asked for, and what nodes then shall take."""

from __future__ import annotations

import numpy as np

from placeopt.formulations.gpu_patterns import GpuPatterns
from placeopt.formulations.node_rows import price_full_nodes
from placeopt.heuristics.bundles import BundleQuota
from placeopt.linear import IntArray
from placeopt.problem import Problem
from placeopt.solvers.result import Rounding


def rounding_of(problem: Problem, patterns: GpuPatterns) -> Rounding:
    """Return how the relaxation is rounded: jobs of several GPUs first, then patterns, then the rest."""
    options = problem.options
    several = (options.gpus * options.bundle_workers)[patterns.start_option[patterns.bundle_start]] > 1
    return Rounding(
        objective=price_full_nodes(patterns.model, patterns.loads, problem),
        groups=(patterns.bundle[several], patterns.gpu_pattern, patterns.bundle[~several]),
    )


def quotas(patterns: GpuPatterns, values: IntArray) -> list[BundleQuota]:
    """Return what each class of nodes takes by ``values``: jobs in the order of the file, and patterns of its GPUs."""
    jobs: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
    filled: dict[int, list[tuple[int, int, tuple[int, ...]]]] = {}
    used: dict[int, int] = {}
    for i in np.flatnonzero(values[patterns.bundle]).tolist():
        s, count = int(patterns.bundle_start[i]), int(values[patterns.bundle[i]])
        jobs_of_group = patterns.start_jobs[s]
        first = used.get(jobs_of_group[0], 0)
        used[jobs_of_group[0]] = first + count
        entry = (int(patterns.start_option[s]), jobs_of_group[first : first + count])
        jobs.setdefault(int(patterns.bundle_class[i]), []).append(entry)
    shares = patterns.sizes.tolist()
    for i in np.flatnonzero(values[patterns.gpu_pattern]).tolist():
        slots = tuple(size for size, n in zip(shares, patterns.slots[i].tolist(), strict=True) for _ in range(n))
        filling = (int(values[patterns.gpu_pattern[i]]), int(patterns.pattern_share[i]), slots)
        filled.setdefault(int(patterns.pattern_class[i]), []).append(filling)
    return [BundleQuota(c, tuple(jobs[c]), tuple(filled.get(c, ()))) for c in sorted(jobs)]
