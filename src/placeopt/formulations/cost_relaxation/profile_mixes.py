"""
Interference that no plan avoids: what starting jobs meet beside running ones, and beside each other in any mix.

Only where the policy counts pairs. A *domain* is a node, or a socket where jobs disturb each other only there.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from placeopt.formulations.cost_relaxation.cost_lower_bounds import FAR
from placeopt.formulations.cost_relaxation.node_classes import NodeClasses
from placeopt.linear import NO_LOWER, NO_UPPER, ModelBuilder
from placeopt.problem import BoolArray, IntArray, Problem
from placeopt.problem.free_capacity import gpu_milli_left
from placeopt.terms.costs.interference import nested_domains

SOCKET = 2
"""Level of ``interference.nested_domains``; what is closer shares it."""
MOST_MIXES = 8_000
"""Mixes of profiles that domains of all pools may hold; where there are more, similar profiles count as one."""


def both_ways(problem: Problem) -> IntArray:
    """Shape (4, P, P): excess of a pair of jobs together, in thousandths, by the closest level that they share."""
    if problem.policy.interference.model != "pairwise":
        return np.zeros_like(problem.slowdown)
    return problem.slowdown + problem.slowdown.transpose(0, 2, 1)


def distinct_profiles(problem: Problem) -> IntArray:
    """Shape (P + 1,): the first profile that is like each one beside all others; -1 where none disturbs, and at -1."""
    pairs = both_ways(problem)
    rows = pairs.transpose(1, 0, 2).reshape(pairs.shape[1], -1)
    _, first, group = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return np.append(np.where(rows.any(axis=1), first[group.reshape(-1)], -1), -1)


def beside_running(node_classes: NodeClasses) -> IntArray:
    """
    Shape (P, classes): least excess of a job of each profile and the running jobs on its node, by class of nodes.

    A job is in some domain with room. Those that hold a GPU there are as close as that, or closer.
    """
    state, problem = node_classes.state, node_classes.problem
    pairs, domain = both_ways(problem), nested_domains(problem)[SOCKET]
    inside, anywhere = pairs[: SOCKET + 1].min(axis=0), pairs.min(axis=0)  # (P, P)
    room = (gpu_milli_left(state) > 0) | (not problem.shares_bind)
    out = np.full((problem.num_nodes, len(anywhere)), FAR, dtype=np.int64)
    for n, tenants in enumerate(state.tenants):
        first, end = problem.node_gpu_start[n], problem.node_gpu_start[n + 1]
        held = [
            (profile, set(domain[list(gpus)].tolist()), k) for (profile, gpus), k in tenants.items() if profile >= 0
        ]
        for d in np.unique(domain[first:end][room[first:end]]).tolist():
            excess = np.zeros(len(anywhere), dtype=np.int64)
            for profile, domains, jobs in held:
                excess += jobs * (inside if d in domains else anywhere)[:, profile]
            out[n] = np.minimum(out[n], excess)
    return np.stack([node_classes.least(of_profile, FAR) for of_profile in out.T])


@dataclass(frozen=True, eq=False)
class MixedBundles:
    """B columns of bundles on classes of nodes, each of jobs alike in profile and GPUs."""

    column: IntArray
    place: IntArray  # class of nodes
    profile: IntArray  # -1 where they disturb no other
    bundles: IntArray  # of one job
    gpus: IntArray  # of a bundle
    milli: IntArray  # of each GPU


def add_mixes(
    builder: ModelBuilder, node_classes: NodeClasses, bundles: MixedBundles, weight: int
) -> tuple[IntArray, IntArray]:
    """
    Add how many domains hold which mix of jobs, and return the columns of mixes and what each costs.

    A mix says how many jobs of each type, which is profile and slots, have most of their GPUs on a node in the domain;
    two of them are that close, or closer. A slot is the least share of a GPU that such a job holds. Jobs of several
    bundles meet others in several places, but each counts once: so they and those without profile only fill slots.
    Mixes are counted by pools of node classes whose domains have as many slots.
    """
    problem, pairs = node_classes.problem, both_ways(node_classes.problem)
    domain, excess = problem.gpu_node, pairs.min(axis=0)
    if not excess.any():
        domain, excess = nested_domains(problem)[SOCKET], pairs[: SOCKET + 1].min(axis=0)
    columns, costs = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    able = excess.any() and problem.shares_bind
    counted = _finest(node_classes, bundles, domain, excess) if able else None
    if counted is None:
        return columns[0], costs[0]
    types, typed = counted.types, counted.typed
    of_class = node_classes.summed(np.ones(problem.num_nodes, dtype=np.int64))
    nodes = np.bincount(counted.pool, weights=of_class).astype(np.int64)
    for number, own_sizes in enumerate(counted.sizes):
        builder.check_time()
        here = counted.pool[bundles.place] == number
        mixes = _mixes(types.slots, int(own_sizes.max()))
        used = mixes @ types.slots
        column = builder.add_variables(0, nodes[number] * len(own_sizes), count=len(mixes))
        mix, kind = np.nonzero(mixes)
        jobs = (types.of_bundle[here[typed]], bundles.column[typed & here], -1)
        builder.add_parts(0, NO_UPPER, (kind, column[mix], mixes[mix, kind]), jobs, count=len(types.slots))
        least = np.unique(np.append(own_sizes, 0))[:-1]  # a mix of more slots than that needs a domain of more
        size, larger = np.nonzero(used[None, :] > least[:, None])
        domains = nodes[number] * (own_sizes[None, :] > least[:, None]).sum(axis=1)
        builder.add_rows(size, column[larger], 1, NO_LOWER, domains)
        rest = np.append(bundles.column[here], column), np.append((counted.slots - counted.own)[here], used)
        builder.add_row(*rest, NO_LOWER, int(nodes[number] * own_sizes.sum()))
        met = ((mixes @ types.excess * mixes).sum(axis=1) - mixes @ types.excess.diagonal()) // 2
        columns.append(column)
        costs.append(weight * met)
    return np.concatenate(columns), np.concatenate(costs)


@dataclass(frozen=True, eq=False)
class _Types:
    """T types of jobs: the slots of each, the excess of a pair, (T, T), and the type of each bundle column."""

    slots: IntArray
    excess: IntArray
    of_bundle: IntArray


@dataclass(frozen=True, eq=False)
class _Counted:
    """B bundle columns in slots of one size, and the pools of node classes with as many of them."""

    typed: BoolArray  # (B,) whether jobs of the column are of a type
    types: _Types  # of those
    slots: IntArray  # (B,) of a bundle
    own: IntArray  # (B,) of these in the domain with most of them; 0 where jobs have no type
    pool: IntArray  # (classes,)
    sizes: IntArray  # (pools, domains of a node) slots of each domain


def _finest(node_classes: NodeClasses, bundles: MixedBundles, domain: IntArray, excess: IntArray) -> _Counted | None:
    """
    Return bundles in the smallest slots at which mixes are few, else in the largest with profiles merged; None: none.

    Jobs of smaller shares than a slot have no type.
    """
    meets = (bundles.profile >= 0) & (bundles.bundles == 1)
    units = np.unique(bundles.milli[meets]).tolist()
    for unit in units:
        capacity = _capacity(node_classes, domain, unit)
        first, pool = np.unique(capacity, axis=0, return_index=True, return_inverse=True)[1:]
        sizes, each = capacity[first], bundles.milli // unit
        typed = meets & (each > 0)
        own = np.where(typed, -(-bundles.gpus // capacity.shape[1]) * each, 0)
        most, merge = sizes.max(axis=1), unit == units[-1]
        types = _types(excess, bundles.profile[typed], own[typed], most, merge=merge)
        if types is not None:
            return _Counted(typed, types, bundles.gpus * each, own, pool.reshape(-1), sizes)
    return None


def _types(excess: IntArray, profile: IntArray, slots: IntArray, most: IntArray, *, merge: bool) -> _Types | None:
    """
    Return the types of bundle columns, None where mixes are too many; ``merge``: profiles until they are few.

    Merged profiles disturb as little as either does. ``most``: slots of the largest domain of each pool.
    """
    slots = np.clip(slots, 1, max(int(most.max(initial=0)), 1))
    groups = [[p] for p in np.unique(profile).tolist()]
    least = excess[np.ix_([g[0] for g in groups], [g[0] for g in groups])]
    while True:
        of_profile = np.zeros(len(excess), dtype=np.int64)
        for g, members in enumerate(groups):
            of_profile[members] = g
        keys = np.column_stack((of_profile[profile], slots))
        kinds, of_bundle = np.unique(keys, axis=0, return_inverse=True)
        if sum(_count(kinds[:, 1], size) for size in most.tolist()) <= MOST_MIXES:
            return _Types(kinds[:, 1], least[np.ix_(kinds[:, 0], kinds[:, 0])], of_bundle.reshape(-1))
        if not merge or len(groups) == 1:
            return None
        pairs = combinations(range(len(groups)), 2)
        a, b = min(pairs, key=lambda pair: int(np.abs(least[pair[0]] - least[pair[1]]).sum()))
        groups[a] += groups.pop(b)
        least[a] = least[:, a] = np.minimum(least[a], least[b])
        least[a, a] = min(least[a, a], least[b, b])
        least = np.delete(np.delete(least, b, axis=0), b, axis=1)


def _count(slots: IntArray, most: int) -> int:
    """Return the number of mixes that fill at most ``most`` slots."""
    ways = [1] + [0] * most
    for size in slots.tolist():
        for used in range(size, most + 1):
            ways[used] += ways[used - size]
    return sum(ways)


def _mixes(slots: IntArray, most: int) -> IntArray:
    """Shape (M, T): all mixes that fill at most ``most`` slots."""
    mixes, used = np.zeros((1, 0), dtype=np.int64), np.zeros(1, dtype=np.int64)
    for size in slots.tolist():
        number = np.arange(most // size + 1)
        row, jobs = np.nonzero(used[:, None] + size * number[None, :] <= most)
        mixes, used = np.column_stack((mixes[row], jobs)), used[row] + size * jobs
    return mixes


def _capacity(node_classes: NodeClasses, domain: IntArray, unit: int) -> IntArray:
    """
    Shape (classes, domains of a node): slots of ``unit`` thousandths left on GPUs of each domain, the largest first.

    Of all nodes of a class the most.
    """
    problem = node_classes.problem
    _, first, of_gpu = np.unique(domain, return_index=True, return_inverse=True)
    left = np.bincount(of_gpu.reshape(-1), weights=gpu_milli_left(node_classes.state) // unit).astype(np.int64)
    node = problem.gpu_node[first]
    order = np.lexsort((-left, node))
    turn = np.arange(len(order)) - np.searchsorted(node[order], node[order])
    table = np.zeros((problem.num_nodes, int(turn.max(initial=0)) + 1), dtype=np.int64)
    table[node[order], turn] = left[order]
    return np.stack([-node_classes.least(-of_rank, 0) for of_rank in table.T], axis=1)
