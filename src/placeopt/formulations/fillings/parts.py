"""Parts of nodes as units, and the nodes that they make up: alike in what is free, and in what a job costs there."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from placeopt.errors import Unsupported
from placeopt.formulations.cost_relaxation.node_classes import LeastPaths
from placeopt.formulations.fillings.disturbance import Disturbance
from placeopt.formulations.fillings.groups import BundleGroups, nest
from placeopt.problem import GPU_MILLI, UNLIMITED, BoolArray, FragmentationLevel, IntArray, Problem, State
from placeopt.problem.classes import group_by_key
from placeopt.problem.free_capacity import gpu_milli_left


@dataclass(frozen=True, eq=False)
class Parts:
    """
    U units: states of parts of nodes, or of what jobs that lie in several parts leave of one. D bundle groups.

    Each GPU that becomes busy saves ``saves``, where its domains are in use, but all together no more than
    ``most_saved``; the first job of a part costs ``opening``, which is its whole size in free GPUs where it was idle.
    """

    room: IntArray  # (U, M) how often what is free holds each share, ascending, or larger ones in its place
    saves: IntArray  # (U,)
    most_saved: IntArray  # (U,)
    opening: IntArray  # (U,)
    allowed: BoolArray  # (U, D) bundles that fit as a whole
    own: IntArray  # (U, D) cost of the paths inside a bundle, at least
    beside: IntArray  # (U, Q) cost of a job of each profile beside what is there

    def __len__(self) -> int:
        """U."""
        return len(self.saves)

    def take(self, units: IntArray) -> Parts:
        """Return some of the units, each as often as it is listed."""
        return Parts(*(getattr(self, field.name)[units] for field in fields(self)))

    def joined(self, other: Parts) -> Parts:
        """Return these units and others."""
        return Parts(*(np.concatenate([getattr(p, field.name) for p in (self, other)]) for field in fields(self)))

    def beside_crossing(self, units: IntArray, gpus: IntArray, beside: IntArray, groups: BundleGroups) -> Parts:
        """
        Return what is left of ``units``, shape (n,), beside jobs that lie in them and in other parts.

        ``gpus``, shape (n,), are those that these take, ``beside``, shape (n, Q), what they cost a job of each profile.
        """
        now, shares = self.take(units), shares_of(groups)
        room = now.room - gpus[:, None] * (GPU_MILLI // shares)
        whole = room[:, -1] * shares[-1] // GPU_MILLI
        fits = np.where(groups.milli == GPU_MILLI, whole[:, None] >= groups.gpus, room[:, :1] > 0)
        opening = np.where(gpus > 0, 0, now.opening)
        saved = np.maximum(now.most_saved - now.saves * gpus, 0)
        return Parts(room, now.saves, saved, opening, now.allowed & fits, now.own, now.beside + beside)


@dataclass(frozen=True, eq=False)
class Nodes:
    """N states of nodes with room for anything."""

    nodes: tuple[IntArray, ...]  # of each state, ascending
    machine: IntArray  # (N,)
    units: tuple[tuple[int, ...], ...]  # of each part
    places: tuple[tuple[tuple[int, ...], ...], ...]  # positions in the machine of the GPUs of each part
    free: tuple[tuple[tuple[int, ...], ...], ...]  # and of the idle ones
    able: BoolArray  # (N, D) bundles that may lie on the nodes
    opening: IntArray  # (N,) cost of the first job on a node, where its parts are charged for none
    residents: tuple[tuple[tuple[int, int], ...], ...]  # profile, and parts as a mask, of jobs that disturb

    def __len__(self) -> int:
        """N."""
        return len(self.nodes)

    @property
    def count(self) -> IntArray:
        """Shape (N,): number of nodes."""
        return np.array([len(nodes) for nodes in self.nodes], dtype=np.int64)


def shares_of(groups: BundleGroups) -> IntArray:
    """Shares of a GPU that bundles ask for, ascending, the whole one among them. Each divides the next, or is one."""
    shares = np.unique(np.append(groups.milli[groups.gpus > 0], GPU_MILLI))
    return shares if nest(shares) else np.array([np.gcd.reduce(shares)])


def parts_of(
    state: State, disturbance: Disturbance, groups: BundleGroups, path_weight: int, fragmentation: int
) -> tuple[Parts, Nodes]:
    """
    Return the parts of nodes and the nodes beside what ``state`` holds.

    ``path_weight``, ``fragmentation``: The weights W of communication and of fragmentation, 0 where that costs nothing.

    Raises ``Unsupported`` where shares of GPUs do not bind, or there are no GPUs.
    """
    problem = state.problem
    if not problem.shares_bind:
        raise Unsupported("fillings of parts count shares of GPUs, which do not bind in this round")
    if not problem.num_gpus:
        raise Unsupported("fillings of parts need GPUs, and there are none")
    _, first, part_of = np.unique(disturbance.part, return_index=True, return_inverse=True)
    part_of = part_of.reshape(-1)
    left, shares, node_of = gpu_milli_left(state), shares_of(groups), problem.gpu_node[first]
    idle = (state.gpu_jobs == 0) & (left > 0)
    room = np.stack([np.bincount(part_of, left // share) for share in shares.tolist()], axis=1).astype(np.int64)
    fits = np.zeros((len(first), len(groups)), dtype=bool)
    for fitting, gpus, milli in zip(fits.T, groups.gpus, groups.milli, strict=True):
        fitting[:] = np.bincount(part_of, left >= milli) >= gpus
    able = groups.allowed[:, problem.node_class].T  # (nodes, D)
    saves, most_saved, opening, node_opening = _fragmentation(state, part_of, idle, fragmentation)
    parts = Parts(
        room=room,
        saves=saves,
        most_saved=most_saved,
        opening=opening,
        allowed=fits & able[node_of] & (groups.gpus > 0),
        own=path_weight * groups.traffic * _inside(problem, part_of, groups.gpus),
        beside=_beside(state, disturbance, part_of),
    )
    keys = np.column_stack([column if column.ndim > 1 else column[:, None] for column in vars(parts).values()])
    _, representative, unit = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    paths_count = bool(path_weight * groups.traffic.any())
    return parts.take(representative), _nodes_of(
        state, disturbance, part_of, unit.reshape(-1), idle & (left == GPU_MILLI), able, node_opening, paths_count
    )


def _nodes_of(
    state: State,
    disturbance: Disturbance,
    part_of: IntArray,
    unit: IntArray,
    idle: BoolArray,
    able: BoolArray,
    opening: IntArray,
    paths_count: bool,
) -> Nodes:
    """Group the nodes; which GPUs are idle tells nodes of several parts apart where paths count."""
    problem, keys, rows = state.problem, [], []
    for n in range(problem.num_nodes):
        here = slice(int(problem.node_gpu_start[n]), int(problem.node_gpu_start[n + 1]))
        of_gpu = part_of[here]
        parts = list(dict.fromkeys(of_gpu.tolist()))
        places = tuple(tuple(np.flatnonzero(of_gpu == p).tolist()) for p in parts)
        free = tuple(tuple(g for g in place if idle[here][g]) for place in places)
        residents = [
            (profile, sum({1 << parts.index(int(part_of[gpu])) for gpu in gpus}))
            for profile, gpus in (disturbance.residents(state, n) if len(parts) > 1 else ())
        ]
        row = int(problem.topology.node_machine[n]), tuple(unit[parts].tolist()), places, free, tuple(sorted(residents))
        rows.append(row)
        apart = free if len(parts) > 1 and paths_count else ()
        keys.append((row[0], row[1], apart, row[4], int(opening[n]), able[n].tobytes()))
    group, first = group_by_key(keys)
    machine, units, places_of, free_of, residents_of = zip(*(rows[n] for n in first), strict=True)
    of_node = np.array(group, dtype=np.int64)
    return Nodes(
        nodes=tuple(np.flatnonzero(of_node == g) for g in range(len(first))),
        machine=np.array(machine, dtype=np.int64),
        units=units,
        places=places_of,
        free=free_of,
        able=able[first],
        opening=opening[first],
        residents=residents_of,
    )


def _fragmentation(
    state: State, part_of: IntArray, idle: BoolArray, weight: int
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """
    What a GPU that becomes busy saves in each part, all together, and what the first one of a part, and a node, costs.

    Domains that are idle and neither a part nor a node cost nothing, which is no more than they do.
    """
    problem = state.problem
    size, node_size = np.bincount(part_of), np.diff(problem.node_gpu_start)
    node_of = np.zeros(len(size), dtype=np.int64)
    node_of[part_of] = problem.gpu_node
    saves, most_saved, opening = np.zeros_like(size), np.zeros_like(size), np.zeros_like(size)
    node_opening = np.zeros(problem.num_nodes, dtype=np.int64)
    for level, free in zip(problem.levels, state.level_free, strict=True):
        price, domain, fresh = weight * level.weight, level.gpu_to_domain, free == level.total
        in_use = (domain >= 0) & ~fresh[domain]
        of_part, of_node = (
            _whole_domain(domain, part_of, size, level),
            _whole_domain(domain, problem.gpu_node, node_size, level),
        )
        own = (of_part >= 0) & fresh[of_part]
        shared = (of_node >= 0) & fresh[of_node]
        shared &= np.bincount(node_of, own, minlength=len(shared)) == 0
        counts = in_use | own[part_of] | shared[problem.gpu_node]
        saves += price * (np.bincount(part_of, counts) > 0)
        most_saved += price * np.bincount(part_of, counts & idle).astype(np.int64)
        opening += price * size * own
        node_opening += price * node_size * shared
    return saves, most_saved, opening, node_opening


def _whole_domain(domain: IntArray, group: IntArray, size: IntArray, level: FragmentationLevel) -> IntArray:
    """Domain of each group of GPUs that is as large as it; -1 where there is none."""
    out = np.full(len(size), -1, dtype=np.int64)
    out[group] = domain
    other = np.zeros(len(size), dtype=bool)
    other[group[domain != out[group]]] = True
    return np.where(other | (out < 0) | (level.total[out] != size), -1, out)


def _inside(problem: Problem, part_of: IntArray, gpus: IntArray) -> IntArray:
    """Shape (parts, D): length of the paths between so many GPUs of a part, at least; 0 where it has fewer."""
    out = np.zeros((int(part_of.max(initial=-1)) + 1, len(gpus)), dtype=np.int64)
    known: dict[tuple[int, bytes], IntArray] = {}
    machines: dict[int, LeastPaths] = {}
    for n, machine in enumerate(problem.topology.node_machine.tolist()):
        of_gpu = part_of[problem.node_gpu_start[n] : problem.node_gpu_start[n + 1]]
        if machine not in machines:
            machines[machine] = LeastPaths(problem.topology.distance[machine])
        for part in dict.fromkeys(of_gpu.tolist()):
            here = of_gpu == part
            if (machine, here.tobytes()) not in known:
                least = machines[machine].of(here)
                each = np.pad(least, (0, max(int(gpus.max(initial=0)) + 1 - len(least), 0)), constant_values=UNLIMITED)
                known[machine, here.tobytes()] = np.where(each[gpus] < UNLIMITED, each[gpus], 0)
            out[part] = known[machine, here.tobytes()]
    return out


def _beside(state: State, disturbance: Disturbance, part_of: IntArray) -> IntArray:
    """Shape (parts, Q): cost of a job of each profile beside the jobs that hold a GPU of the part."""
    out = np.zeros((int(part_of.max(initial=-1)) + 1, len(disturbance.pair)), dtype=np.int64)
    for node in range(state.problem.num_nodes):
        for profile, gpus in disturbance.residents(state, node):
            out[list({int(part_of[gpu]) for gpu in gpus})] += disturbance.pair[profile]
    return out
