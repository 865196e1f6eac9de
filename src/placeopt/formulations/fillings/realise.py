"""A mix in whole numbers as jobs on nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from placeopt.formulations.fillings.groups import BundleGroups, Starts
from placeopt.formulations.fillings.pool import Column
from placeopt.formulations.fillings.units import Units
from placeopt.problem import IntArray, Problem


def requests_of(
    problem: Problem,
    bundle_groups: BundleGroups,
    starts: Starts,
    units: Units,
    number: IntArray,
    used: Iterable[tuple[Column, int]],
) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """
    Yield (job, option, one node a bundle) of a mix, those with large bundles first, which fit worst later.

    ``number``, shape (W,), is how many jobs run in each start; ``used`` is on how many nodes each column lies. Nodes
    of a unit take their fillings rack by rack, so equal ones lie together, and with them the bundles of a job.
    Jobs that take nothing that binds are left out: they lie in no filling.
    """
    slots = _slots(problem, units, used)
    left = [iter(jobs.tolist()) for jobs in starts.jobs]
    size = (bundle_groups.gpus * bundle_groups.milli)[starts.bundle_group]
    for start in np.lexsort((-starts.bundles, -size)).tolist():
        nodes, bundles = slots.get(int(starts.bundle_group[start]), []), int(starts.bundles[start])
        for _ in range(int(number[start])):
            job = next(left[int(starts.job_group[start])])
            chosen, nodes[:bundles] = tuple(nodes[:bundles]), []
            if len(chosen) == bundles:
                yield job, problem.options_of(job)[int(starts.place[start])], chosen


def _slots(problem: Problem, units: Units, used: Iterable[tuple[Column, int]]) -> dict[int, list[int]]:
    """Nodes by bundle group, one entry a bundle, by rack."""
    rack = problem.topology.node_domain
    nodes = [iter(of_unit[np.argsort(rack[of_unit], kind="stable")].tolist()) for of_unit in units.nodes]
    out: dict[int, list[int]] = {}
    for column, times in used:
        for _ in range(times):
            node = next(nodes[column.unit])
            for group, bundles in column.filling:
                out.setdefault(group, []).extend([node] * bundles)
    for slots in out.values():
        slots.sort(key=lambda node: (int(rack[node]), node))
    return out
