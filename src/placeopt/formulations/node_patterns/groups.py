"""What is alike: bundles that ask the same of a node, jobs that are worth the same, nodes that offer the same."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cached_property
from itertools import count, pairwise

import numpy as np

from placeopt.errors import Unsupported
from placeopt.problem import BoolArray, IntArray, Problem, State
from placeopt.problem.classes import group_by_key

CPU_ONLY = -1
"""Level of bundle groups that hold no GPU."""


@dataclass(frozen=True, eq=False)
class MergedBundles:
    """M ways of options to put bundles of a job onto one node together."""

    option: IntArray  # (M,)
    together: IntArray  # (M,) bundles of the job on each of its nodes
    allowed: BoolArray  # (M, C) node classes on which so many fit while they are idle


NOTHING_MERGED = MergedBundles(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=bool))


@dataclass(frozen=True, eq=False)
class BundleGroups:
    """D bundle groups. Shares nest: each size divides the next larger one, so GPUs never waste room between sizes."""

    sizes: tuple[int, ...]  # thousandths of a GPU, descending; one a level
    level: IntArray  # (D,) index in ``sizes``, or CPU_ONLY
    units: IntArray  # (D,) shares of its size that a bundle holds
    demand: IntArray  # (D, R) of a bundle
    allowed: BoolArray  # (D, C) node classes on which a bundle fits while they are idle
    of_option: IntArray  # (O,) bundle group of each option's bundles
    merged: MergedBundles
    of_merged: IntArray  # (M,) bundle group of each of ``merged``

    def __len__(self) -> int:
        """D."""
        return len(self.level)


def shares_nest(problem: Problem) -> bool:
    """Return whether each share of a GPU that jobs ask for divides the next larger one, as far as shares matter."""
    options = problem.options
    if not problem.shares_bind or problem.jobs_per_gpu == 1:
        return True
    sizes = np.unique(options.milli[options.gpus > 0]).tolist()
    return all(larger % smaller == 0 for smaller, larger in pairwise(sizes))


def bundle_groups_of(problem: Problem, merged: MergedBundles = NOTHING_MERGED) -> BundleGroups:
    """
    Return the bundle groups of all options, and of bundles of gangs that are to lie on one node together.

    Where at most one job may hold a GPU every share counts as a whole one; under ``overcommit`` every job as one of
    the jobs that a GPU may hold.

    Raises ``Unsupported`` if the shares that jobs ask for do not divide one another.
    """
    options = problem.options
    share = options.milli if problem.shares_bind and problem.jobs_per_gpu != 1 else np.full(len(options), 1000)
    units = options.gpus * options.bundle_workers
    share = np.where(units > 0, share, 0)
    demand = options.demand * options.bundle_workers[:, None]
    together = merged.together
    units, share = (
        np.concatenate(pair) for pair in ((units, units[merged.option] * together), (share, share[merged.option]))
    )
    demand = np.concatenate([demand, demand[merged.option] * together[:, None]])
    classes = options.node_class_ok.shape[1]
    allowed = np.concatenate([options.node_class_ok, merged.allowed.reshape(len(together), classes)])
    sizes = tuple(int(size) for size in np.unique(share[share > 0])[::-1])
    if not shares_nest(problem):
        larger, smaller = next(pair for pair in pairwise(sizes) if pair[0] % pair[1])
        raise Unsupported(
            f"shares of {larger} and {smaller} thousandths of a GPU: none divides the other, so fillings of whole "
            "nodes are too many"
        )
    rows = np.column_stack((share, units, demand, allowed))
    distinct, of_row = np.unique(rows, axis=0, return_inverse=True)
    resources = demand.shape[1]
    level = np.searchsorted(-np.array(sizes, dtype=np.int64), -distinct[:, 0])
    return BundleGroups(
        sizes=sizes,
        level=np.where(distinct[:, 1] > 0, level, CPU_ONLY),
        units=distinct[:, 1],
        demand=distinct[:, 2 : 2 + resources],
        allowed=distinct[:, 2 + resources :].astype(bool),
        of_option=of_row.reshape(-1)[: len(options)],
        merged=merged,
        of_merged=of_row.reshape(-1)[len(options) :],
    )


CHARGES = 1000
"""Parts of a unit of value in which charges are stated."""
FINEST = 20
"""Binary digits of a price behind the point, where they fit."""


@dataclass(frozen=True, eq=False)
class JobGroups:
    """
    W starts of groups of waiting jobs: a job of the group runs as a number of bundles of one bundle group.

    ``jobs`` are those of each job group, by arrival as in the file; ``place`` tells for which option of every job a
    start stands. Where ``together`` is more than 1, a bundle of the start is so many of the job's on one node.
    """

    jobs: tuple[IntArray, ...]
    job_group: IntArray  # (W,)
    place: IntArray  # (W,) position among the options of a job
    bundle_group: IntArray  # (W,)
    bundles: IntArray  # (W,)
    value: IntArray  # (W,)
    charge: IntArray  # (W,) by which the mix prefers jobs that cost less, in 1 / CHARGES of a value; no proof counts it
    together: IntArray  # (W,)

    @cached_property
    def scale(self) -> int:
        """Parts of a unit of value in which prices are whole numbers: as fine as sums in 64 bits allow."""
        most = np.zeros(len(self.jobs), dtype=np.int64)
        np.maximum.at(most, self.job_group, self.value)
        total = sum(m * n for m, n in zip(most.tolist(), self.size.tolist(), strict=True))
        return 1 << max(0, min(FINEST, 61 - int(total).bit_length()))

    @cached_property
    def size(self) -> IntArray:
        """Shape (job groups,): number of jobs."""
        return np.array([len(jobs) for jobs in self.jobs], dtype=np.int64)


def job_groups_of(state: State, bundle_groups: BundleGroups, charge: IntArray | None = None) -> JobGroups:
    """
    Return the job groups of the jobs that are not placed in ``state``; starts that are worth nothing are left out.

    ``charge``, shape (O + M,), is what jobs are charged in each option, and in each with merged bundles, in 1 / CHARGES
    of a value; None for nothing.
    """
    problem, options = state.problem, state.problem.options
    waiting = np.array([placement is None for placement in state.placements], dtype=bool)
    waiting[list(problem.running)] = False
    jobs = np.flatnonzero(waiting)
    merged = bundle_groups.merged
    option = np.concatenate([np.arange(len(options)), merged.option])
    together = np.concatenate([np.ones(len(options), dtype=np.int64), merged.together])
    group = np.concatenate([bundle_groups.of_option, bundle_groups.of_merged])
    charge = np.zeros_like(option) if charge is None else charge
    table = np.stack([group, options.bundles[option] // together, options.value[option], charge, together], axis=1)
    ways: list[list[tuple[int, ...]]] = [[] for _ in range(len(options))]
    for o, row in zip(option.tolist(), table.tolist(), strict=True):
        ways[o].append(tuple(row))
    classes, of_job = np.unique(problem.job_class[jobs], return_inverse=True)
    begin, end = problem.class_option_start[classes].tolist(), problem.class_option_start[classes + 1].tolist()
    keys = [tuple(map(tuple, ways[a:b])) for a, b in zip(begin, end, strict=True)]
    group_of_class, first = group_by_key(keys)
    job_group = np.array(group_of_class, dtype=np.int64)[of_job]
    order = np.argsort(job_group, kind="stable")
    members = np.split(jobs[order], np.cumsum(np.bincount(job_group, minlength=len(first)))[:-1]) if first else []
    starts = [
        (c, i, *start) for c, k in enumerate(first) for i, way in enumerate(keys[k]) for start in way if start[2] > 0
    ]
    columns = np.array(starts, dtype=np.int64).reshape(len(starts), 7)
    return JobGroups(tuple(members), *columns.T)


@dataclass(frozen=True, eq=False)
class NodeStates:
    """S states of the nodes on which anything can run."""

    nodes: tuple[IntArray, ...]  # of each state, ascending
    count: IntArray  # (S,)
    room: IntArray  # (S, levels) shares of each size that fit, if nothing else is there
    free: IntArray  # (S, R) node resources; no more than bundle groups could use together
    mask: IntArray  # (S,) row in ``allowed``
    allowed: BoolArray  # (M, D) bundle groups that may run on nodes of the state
    binding: IntArray  # (R,) number of nodes that have less of a resource than bundles could ask for
    num_nodes: int  # N, those on which nothing can run too

    def __len__(self) -> int:
        """S."""
        return len(self.nodes)


def node_states_of(state: State, bundle_groups: BundleGroups) -> NodeStates:
    """Return the states of the nodes beside what ``state`` holds."""
    problem = state.problem
    masks, of_class = np.unique(bundle_groups.allowed.T, axis=0, return_inverse=True)
    mask = of_class.reshape(-1)[problem.node_class]
    room = _room(state, bundle_groups)
    free = np.maximum(state.node_free, 0)
    used = np.minimum(_most_used(bundle_groups, masks, mask, room, free), _asked(problem))
    fits: BoolArray = np.asarray(masks.any(axis=1))[mask]
    binding = ((free < used) & fits[:, None]).sum(axis=0)
    free = np.minimum(free, used)
    rows = np.column_stack((mask, room, free))[fits]
    distinct, of_node = np.unique(rows, axis=0, return_inverse=True)
    order = np.argsort(of_node.reshape(-1), kind="stable")
    count = np.bincount(of_node.reshape(-1), minlength=len(distinct))
    nodes = np.split(np.flatnonzero(fits)[order], np.cumsum(count)[:-1]) if len(distinct) else []
    levels = len(bundle_groups.sizes)
    return NodeStates(
        nodes=tuple(nodes),
        count=count,
        room=distinct[:, 1 : 1 + levels],
        free=distinct[:, 1 + levels :],
        mask=distinct[:, 0],
        allowed=masks,
        binding=binding,
        num_nodes=problem.num_nodes,
    )


def _room(state: State, bundle_groups: BundleGroups) -> IntArray:
    """Shape (N, levels): shares of each size that the GPUs of a node could hold."""
    problem, most = state.problem, state.problem.jobs_per_gpu
    if problem.shares_bind and most != 1:
        free = np.maximum(state.gpu_free_milli, 0)
        if most is not None:
            free = np.where(state.gpu_jobs < most, free, 0)
    else:
        free = 1000 * np.maximum((most or 1) - state.gpu_jobs, 0)
    room = np.zeros((problem.num_nodes, len(bundle_groups.sizes)), dtype=np.int64)
    for level, size in enumerate(bundle_groups.sizes):
        np.add.at(room[:, level], problem.gpu_node, free // size)
    return room


def _asked(problem: Problem) -> IntArray:
    """Shape (R,): the demand of all jobs together, each in its most demanding option."""
    options = problem.options
    most = np.zeros((len(problem.class_communication), options.demand.shape[1]), dtype=np.int64)
    np.maximum.at(most, options.job_class, options.demand * options.workers[:, None])
    jobs = np.bincount(problem.job_class, minlength=len(most)).astype(float)
    asked: IntArray = np.minimum(jobs @ most * 1.001, 2.0**60).astype(np.int64) + 1  # generous, and within 64 bits
    return asked


def _most_used(
    bundle_groups: BundleGroups, masks: BoolArray, mask: IntArray, room: IntArray, free: IntArray
) -> IntArray:
    """
    Shape (N, R): as much of each resource as bundles on the GPUs of a node could ask for together.

    What a node has beyond that tells it from no other. Where bundle groups without GPU ask for a resource, all of it
    counts, and more.
    """
    out = np.zeros(free.shape, dtype=np.int64)
    with_gpus = bundle_groups.level != CPU_ONLY
    sizes = np.array([*bundle_groups.sizes, 1], dtype=np.int64)  # the last one is for bundle groups without GPU
    shares = np.maximum(
        bundle_groups.units * sizes[bundle_groups.level] // sizes[len(bundle_groups.sizes) - 1], 1
    )  # of the smallest size
    each = -(-bundle_groups.demand // shares[:, None])  # (D, R) per such share, rounded up
    for m, allowed in enumerate(masks):
        here = np.flatnonzero(mask == m)
        if (allowed & with_gpus).any():
            out[here] = each[allowed & with_gpus].max(axis=0) * room[here, -1:]
        alone = (bundle_groups.demand[allowed & ~with_gpus] > 0).any(axis=0)
        out[here[:, None], np.flatnonzero(alone)] = free[here][:, alone] + 1
    return out


MOST_GROUPS = 500
"""
State groups of a round; ours. With 60, programs are smaller, but twice as many are needed and rounding loses more; with
1000 they take twice as long.
"""


def state_groups_of(states: NodeStates, most: int = MOST_GROUPS) -> IntArray:
    """
    Return the group of each state, shape (S,): single states if there are no more than ``most``.

    Else states of one mask with similar room and resources: the group with the largest variance is divided at the mean
    of the quantity that varies most, until there are ``most`` or all states of a group are equal.
    """
    size = np.column_stack([states.room, states.free]).astype(float)
    size /= np.maximum(size.max(axis=0, initial=0), 1)
    if len(states) <= most:
        return np.arange(len(states), dtype=np.int64)
    number = count()
    heap: list[tuple[float, int, int, IntArray]] = []  # -variance, ties apart, the quantity that varies most, states

    def add(members: IntArray) -> None:
        nodes = states.count[members, None]
        mean = (size[members] * nodes).sum(axis=0) / nodes.sum()
        variance = ((size[members] - mean) ** 2 * nodes).sum(axis=0) * (np.ptp(size[members], axis=0) > 0)
        heapq.heappush(heap, (-float(variance.max()), next(number), int(variance.argmax()), members))

    for m in np.unique(states.mask).tolist():
        add(np.flatnonzero(states.mask == m))
    while len(heap) < most and heap[0][0] < 0:
        _, _, quantity, members = heapq.heappop(heap)
        amount = size[members, quantity]
        mean = np.average(amount, weights=states.count[members])
        large = amount > np.clip(mean, amount.min(), np.nextafter(amount.max(), 0))  # both parts hold a state
        add(members[~large])
        add(members[large])
    group = np.zeros(len(states), dtype=np.int64)
    for g, (*_, members) in enumerate(sorted(heap, key=lambda entry: int(entry[3][0]))):
        group[members] = g
    return group
