"""Bundle groups: bundles of waiting jobs that nothing on a node can tell apart, whatever they are worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.errors import Unsupported
from placeopt.problem import UNLIMITED, BoolArray, IntArray, Problem, State
from placeopt.problem.classes import group_by_key
from placeopt.problem.free_capacity import startable_options
from placeopt.terms.costs.communication import Communication
from placeopt.terms.costs.fragmentation import Fragmentation
from placeopt.terms.costs.interference import Interference
from placeopt.terms.costs.resource import ResourceCost
from placeopt.terms.objective import Weighted, last_name_first, weight_of
from placeopt.terms.rules.minimal_utility import applies

CHARGED = (Communication, Fragmentation, Interference, ResourceCost)
"""Costs that columns and master charge."""


@dataclass(frozen=True, eq=False)
class BundleGroups:
    """K bundle groups, P profiles of interference (one more than the instance's: the last stands for none)."""

    problem: Problem
    option_bundle_group: IntArray  # (O,) bundle group of each option of a waiting job that may start somewhere, else -1
    supply: IntArray  # (K,) most bundles that can be placed
    gpus: IntArray  # (K,) of a bundle
    milli: IntArray  # (K,) share of each GPU; 1000 where a GPU has one job only
    memory: IntArray  # (K,) MiB of each GPU
    total: IntArray  # (K,) GPUs of the whole job
    demand: IntArray  # (K, R) of a bundle
    profile: IntArray  # (K,)
    class_profile: IntArray  # (job classes,) profile of each; those that disturb and are disturbed alike are one
    traffic: IntArray  # (K,) weight of a pair of GPUs x W of communication
    type_ok: BoolArray  # (K, T)
    class_ok: BoolArray  # (K, C)
    pair: IntArray  # (P, P) cost of two jobs that meet in a room, W of interference included
    weighted: tuple[Weighted, ...]  # the costs that count

    def __len__(self) -> int:
        """K."""
        return len(self.gpus)


def make_bundle_groups(state: State, weighted: tuple[Weighted, ...]) -> BundleGroups:
    """
    Fold the options of all waiting jobs into bundle groups.

    Raises ``Unsupported`` if columns cannot express a cost or rule of the round.
    """
    problem = state.problem
    _refuse(problem, weighted)
    path_weight = weight_of(weighted, Communication)
    options, (startable, jobs) = problem.options, startable_options(state)
    pair = _pairs(problem, weight_of(weighted, Interference))
    class_profile = _first_alike(pair)[problem.class_profile]  # -1, no profile, is the last

    def key(o: int) -> tuple[object, ...]:
        _refuse_option(problem, o)
        k = int(options.job_class[o])
        gpus, total = int(options.gpus[o] * options.bundle_workers[o]), int(options.workers[o] * options.gpus[o])
        return (
            gpus,
            int(options.milli[o]),
            int(options.gpu_memory_mib[o]),
            options.gpu_profile[o],
            (options.demand[o] * options.bundle_workers[o]).tobytes(),
            int(class_profile[k]),
            int(problem.class_communication[k].weight) if path_weight and total > 1 else 0,
            total if total > gpus else 0,
            options.gpu_type_ok[o].tobytes(),
            options.node_class_ok[o].tobytes(),
        )

    group, members = group_by_key(key(o) for o in startable.tolist())
    option_bundle_group = np.full(len(options), -1, dtype=np.int64)
    option_bundle_group[startable] = group
    supply = np.zeros(len(members), dtype=np.int64)
    np.add.at(supply, group, jobs * options.bundles[startable])
    first = startable[members]
    weights = np.array([c.weight for c in problem.class_communication], dtype=np.int64)
    alone = problem.jobs_per_gpu == 1
    return BundleGroups(
        problem=problem,
        option_bundle_group=option_bundle_group,
        supply=supply,
        gpus=(options.gpus * options.bundle_workers)[first],
        milli=np.where(alone, 1000, options.milli[first]),
        memory=options.gpu_memory_mib[first],
        total=(options.gpus * options.workers)[first],
        demand=(options.demand * options.bundle_workers[:, None])[first],
        profile=class_profile[options.job_class[first]],
        class_profile=class_profile,
        traffic=weights[options.job_class[first]] * path_weight,
        type_ok=options.gpu_type_ok[first],
        class_ok=options.node_class_ok[first],
        pair=pair,
        weighted=weighted,
    )


def _refuse(problem: Problem, weighted: tuple[Weighted, ...]) -> None:
    for w in last_name_first(weighted):
        if not isinstance(w.cost, CHARGED):
            raise Unsupported(f"branch and price does not support the cost {w.cost.name!r} of this policy")
    if applies(problem):
        raise Unsupported("branch and price does not support minimal utility")
    if problem.changeable:
        raise Unsupported("branch and price leaves running jobs as they are, and some may be changed")
    if problem.jobs_per_gpu != 1 and not problem.shares_bind:
        raise Unsupported("branch and price needs shares that bind, or GPUs with one job each")


def _refuse_option(problem: Problem, o: int) -> None:
    options = problem.options
    if not options.gpus[o]:
        raise Unsupported("branch and price places jobs with GPUs only")
    if options.lies[o] or options.part_level[o] is not None:
        raise Unsupported("branch and price does not support splits")
    workers, bundles, gpus = (int(a[o]) for a in (options.workers, options.bundles, options.gpus))
    if workers > 1 and problem.class_communication[int(options.job_class[o])].edges:
        raise Unsupported("branch and price does not support traffic graphs between workers")
    if bundles > 1:
        largest = int(np.diff(problem.node_gpu_start).max(initial=0))
        if 2 * gpus <= largest:  # then columns would have to say whose workers they hold
            raise Unsupported("branch and price needs gangs whose workers take more than half of a node")
        links = (problem.link_mbps < UNLIMITED).any()
        if options.network_mbps[o] and links:
            raise Unsupported("branch and price does not support limits of uplinks")


def _pairs(problem: Problem, weight: int) -> IntArray:
    """Shape (P, P): what two jobs that meet cost together, at the levels inside a room, where all must be equal."""
    if weight and problem.policy.interference.model != "pairwise":
        raise Unsupported("branch and price supports pairwise interference only")
    closest = problem.slowdown[0]
    out = np.zeros((len(closest) + 1, len(closest) + 1), dtype=np.int64)
    out[:-1, :-1] = weight * (closest + closest.T)
    return out


def _first_alike(pair: IntArray) -> IntArray:
    """Shape (P,): the first profile whose jobs cost the same beside those of every profile."""
    _, first, group = np.unique(pair, axis=0, return_index=True, return_inverse=True)
    return first[group.reshape(-1)]
