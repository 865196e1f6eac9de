"""Rooms: parts of nodes whose GPUs are alike to every cost; nodes in the same state are counted together."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from placeopt.errors import Unsupported
from placeopt.formulations.branch_and_price.bundle_groups import BundleGroups
from placeopt.problem import BoolArray, IntArray, Problem, State
from placeopt.terms.costs.fragmentation import Fragmentation
from placeopt.terms.objective import weight_of


@dataclass(frozen=True, eq=False)
class OpenGroups:
    """A rooms as they stand, with what may be added to each and at what price; M shares that kinds ask for."""

    slots: IntArray  # (A, M) how many grants of each share, ascending, or of more fit into what is free
    units: IntArray  # (A,) free share in thousandths, summed
    idle: IntArray  # (A,) idle GPUs
    opening: IntArray  # (A,) cost of the first GPU that becomes busy
    busy: IntArray  # (A,) what each GPU that becomes busy saves
    beside: IntArray  # (A, P) cost of a job of each profile beside the jobs that are there
    fixed: IntArray  # (A, K) cost of a bundle by itself
    ok: BoolArray  # (A, K)

    def __len__(self) -> int:
        """A."""
        return len(self.idle)

    def take(self, index: IntArray) -> OpenGroups:
        """Return some of the rooms."""
        return OpenGroups(*(getattr(self, name)[index] for name in self.__dataclass_fields__))


@dataclass(eq=False)
class NodeGroup:
    """Nodes in the same state. Rooms of equal number in ``places`` are alike and counted together, of any groups."""

    nodes: list[int]
    parts: tuple[tuple[int, ...], ...]  # positions in the machine of each room's GPUs
    free: tuple[tuple[int, ...], ...]  # positions of its idle ones
    jobs: tuple[tuple[int, frozenset[int]], ...]  # profile and rooms of each running job that may disturb
    opening: int  # cost of the first job on the node, if it is idle
    wider: tuple[int, ...]  # idle domains above the node whose first job costs
    leave: int  # distance from any GPU to the network domain above the node
    binding: tuple[int, ...]  # resources that may run out before the GPUs
    room: list[int] = field(default_factory=list)  # row in ``places`` of each part


@dataclass(frozen=True, eq=False)
class GpuGroups:
    """All nodes with room for anything, by group."""

    kinds: BundleGroups
    state: State
    groups: list[NodeGroup]
    places: OpenGroups
    place_group: IntArray  # (A,) node group of each room; their number where groups share it, which nothing then ties
    place_count: IntArray  # (A,) rooms counted together
    shares: IntArray  # (M,)
    demand: IntArray  # (M, K) slots of each share that a bundle fills
    wider: dict[int, int]  # idle domain above nodes -> cost of its first job

    @property
    def problem(self) -> Problem:
        """The compiled round."""
        return self.kinds.problem


def make_gpu_groups(state: State, kinds: BundleGroups) -> GpuGroups:
    """
    Partition every node into rooms (its sockets, or the whole) and group nodes in the same state.

    Raises
    ------
    Unsupported
        If costs tell GPUs of one room apart, reach from one room to the next, or GPUs of a room are not alike.
    """
    problem = kinds.problem
    shares = _shares(kinds)
    use = np.where(kinds.milli >= shares[:, None], kinds.gpus * (kinds.milli // shares[:, None]), 0)
    free_milli = np.where(state.gpu_jobs > 0, 0, 1000) if problem.jobs_per_gpu == 1 else state.gpu_free_milli
    _refuse_memory(state, kinds, free_milli)
    charges = _Charges(state, kinds)
    found: dict[tuple[object, ...], NodeGroup] = {}
    rows: dict[tuple[object, ...], int] = {}
    columns: dict[str, list[object]] = {name: [] for name in OpenGroups.__dataclass_fields__}
    place_group: list[int] = []
    place_count: list[int] = []
    smallest = int(shares.min(initial=1001))
    groups: list[NodeGroup] = []
    for n in range(problem.num_nodes):
        a, b = int(problem.node_gpu_start[n]), int(problem.node_gpu_start[n + 1])
        free = free_milli[a:b]
        if free.max(initial=0) < smallest:
            continue
        group = charges.group(n, free)
        key = (
            int(problem.topology.node_machine[n]),
            int(problem.node_class[n]),
            tuple(free.tolist()),
            tuple(problem.gpu_type[a:b].tolist()),
            group.jobs,
            group.wider,
            charges.opened(n),
            n if group.binding else -1,
        )
        if key in found:
            found[key].nodes.append(n)
            continue
        found[key] = group
        groups.append(group)
        for r in range(len(group.parts)):
            place = charges.place(n, group, r, free, shares)
            tied = len(groups) - 1 if group.opening or group.wider or group.binding else -1
            same = (tied, tuple(np.asarray(value).tobytes() for value in place.values()))
            if same not in rows:
                rows[same] = len(place_group)
                place_group.append(tied)
                place_count.append(0)
                for name, value in place.items():
                    columns[name].append(value)
            group.room.append(rows[same])
    for group in groups:
        for row in group.room:
            place_count[row] += len(group.nodes)
    places = OpenGroups(
        **{
            name: np.array(values, dtype=bool if name == "ok" else np.int64).reshape(len(place_group), *shape)
            for (name, values), shape in zip(
                columns.items(),
                [(len(shares),), (), (), (), (), (len(kinds.pair),), (len(kinds),), (len(kinds),)],
                strict=True,
            )
        }
    )
    counts = np.array(place_count, dtype=np.int64)
    owner = np.array([len(groups) if tied < 0 else tied for tied in place_group], dtype=np.int64)
    return GpuGroups(kinds, state, groups, places, owner, counts, shares, use, charges.wider_cost)


def _shares(kinds: BundleGroups) -> IntArray:
    """Shares that kinds ask for, ascending. Where each divides the next, slots of each size tell what fits."""
    if (kinds.gpus[kinds.milli < 1000] > 1).any():
        raise Unsupported("arrangements know shares on single GPUs only")
    shares = np.unique(np.append(kinds.milli, 1000))
    fractions = shares[shares < 1000]
    if (fractions[1:] % fractions[:-1]).any():
        raise Unsupported(f"arrangements need shares that divide each other, not {fractions.tolist()}")
    return shares


def _refuse_memory(state: State, kinds: BundleGroups, free_milli: IntArray) -> None:
    """Memory and the number of jobs must not run out on a GPU before its share does."""
    problem = kinds.problem
    most = problem.jobs_per_gpu
    smallest = int(kinds.milli.min(initial=1000))
    if most not in (None, 1) and ((free_milli // smallest) > most - state.gpu_jobs).any():
        raise Unsupported("arrangements need GPUs whose share runs out before their number of jobs")
    kind, gpu = np.nonzero(kinds.type_ok[:, problem.gpu_type] & (kinds.milli[:, None] <= free_milli[None, :]))
    if (kinds.memory[kind] * free_milli[gpu] > kinds.milli[kind] * state.gpu_free_memory[gpu]).any():
        raise Unsupported("arrangements need GPUs whose share runs out before their memory")


class _Charges:
    """What the costs charge on a node, and whether rooms are all they look at."""

    def __init__(self, state: State, kinds: BundleGroups) -> None:
        self.state, self.kinds, self.problem = state, kinds, kinds.problem
        self.meets = kinds.pair.any()
        self.fragments = weight_of(kinds.weighted, Fragmentation)
        self.talks = bool(kinds.traffic.any())
        self.wider_cost: dict[int, int] = {}
        self._seen: dict[int, tuple[tuple[int, ...], ...]] = {}

    def group(self, n: int, free: IntArray) -> NodeGroup:
        """Return the node as a group of its own."""
        problem, state = self.problem, self.state
        a, b = int(problem.node_gpu_start[n]), int(problem.node_gpu_start[n + 1])
        parts = self._parts(n)
        room_of = {p: r for r, part in enumerate(parts) for p in part}
        jobs = []
        for job in state.node_jobs[n]:
            profile, placement = int(problem.class_profile[problem.job_class[job]]), state.placements[job]
            if profile >= 0 and self.kinds.pair[profile].any() and placement is not None:
                jobs.append((profile, frozenset(room_of[g - a] for g in placement.gpus if a <= g < b)))
        opening, wider = 0, []
        if self.fragments:
            for number, (level, level_free) in enumerate(zip(problem.levels, state.level_free, strict=True)):
                inside = np.unique(level.gpu_to_domain[a:b])
                domain = int(inside[0])
                if len(inside) == 1 and domain >= 0 and level_free[domain] == level.total[domain]:
                    cost = self.fragments * level.weight * int(level.total[domain])
                    if level.total[domain] == b - a and len(parts) > 1:
                        opening += cost
                    elif level.total[domain] > b - a:
                        self.wider_cost[number << 40 | domain] = cost
                        wider.append(number << 40 | domain)
        topology = problem.topology
        machine = int(topology.node_machine[n])
        root = topology.root[machine]
        if self.talks and (self.kinds.total > self.kinds.gpus).any() and len(set(root.tolist())) > 1:
            raise Unsupported("arrangements need machines whose GPUs are equally far from the network")
        return NodeGroup(
            nodes=[n],
            parts=parts,
            free=tuple(tuple(p for p in part if free[p] == 1000 and state.gpu_jobs[a + p] == 0) for part in parts),
            jobs=tuple(sorted(jobs, key=lambda job: (job[0], sorted(job[1])))),
            opening=opening,
            wider=tuple(wider),
            leave=int(root.min(initial=0)) + int(topology.node_uplink[n]),
            binding=self._binding(n, int(free.sum())),
        )

    def opened(self, n: int) -> tuple[bool, ...]:
        """Tell at which levels of fragmentation each GPU's domain is in use already, and lies in one at all."""
        a, b = int(self.problem.node_gpu_start[n]), int(self.problem.node_gpu_start[n + 1])
        out: list[bool] = []
        for level, free in zip(self.problem.levels, self.state.level_free, strict=True):
            domain = level.gpu_to_domain[a:b]
            out.extend((domain >= 0).tolist())
            out.extend((free[domain] == level.total[domain]).tolist())
        return tuple(out)

    def place(self, n: int, group: NodeGroup, r: int, free: IntArray, shares: IntArray) -> dict[str, object]:
        """Return the fields of one row of ``OpenGroups``."""
        problem, kinds = self.problem, self.kinds
        a, part = int(problem.node_gpu_start[n]), np.array(group.parts[r], dtype=np.int64)
        types = np.unique(problem.gpu_type[a + part])
        ok = kinds.type_ok[:, types]
        if (ok != ok[:, :1]).any():
            raise Unsupported("arrangements need rooms whose GPUs are alike to every job")
        busy, opening = 0, 0
        for level, level_free in zip(problem.levels, self.state.level_free, strict=True) if self.fragments else ():
            domain = int(level.gpu_to_domain[a + part[0]])
            if domain >= 0:
                busy += self.fragments * level.weight
                if level.total[domain] == len(part) and level_free[domain] == level.total[domain]:
                    opening += self.fragments * level.weight * int(level.total[domain])
        near = self._near(n, part)
        pairs, crossing = kinds.gpus * (kinds.gpus - 1) // 2, kinds.gpus * (kinds.total - kinds.gpus)
        beside = sum(
            (kinds.pair[profile] for profile, rooms in group.jobs if r in rooms),
            np.zeros(len(kinds.pair), dtype=np.int64),
        )
        return {
            "slots": (free[part][None, :] // shares[:, None]).sum(axis=1),
            "units": int(free[part].sum()),
            "idle": len(group.free[r]),
            "opening": opening,
            "busy": busy,
            "beside": beside,
            "fixed": kinds.traffic * (pairs * near + crossing * group.leave),
            "ok": ok[:, 0] & kinds.class_ok[:, problem.node_class[n]],
        }

    def _parts(self, n: int) -> tuple[tuple[int, ...], ...]:
        """Return the rooms of a node's machine, after a look at whether the costs see nothing finer or wider."""
        machine = int(self.problem.topology.node_machine[n])
        if machine not in self._seen:
            self._seen[machine] = self._make_parts(n)
        return self._seen[machine]

    def _make_parts(self, n: int) -> tuple[tuple[int, ...], ...]:
        problem = self.problem
        a, b = int(problem.node_gpu_start[n]), int(problem.node_gpu_start[n + 1])
        socket, switch, levels = problem.gpu_socket[a:b], problem.gpu_switch[a:b], problem.slowdown
        whole = (tuple(range(b - a)),)
        sockets = tuple(tuple(np.flatnonzero(socket == s).tolist()) for s in np.unique(socket))
        parts = sockets if b > a and (socket >= 0).all() else whole
        if self.meets and parts is sockets and len(sockets) > 1 and levels[3].any():
            parts = whole
        if self.meets:
            seen = {0, 3 if parts is whole else 2} | ({1} if (switch >= 0).any() else set())
            seen |= {2} if (socket >= 0).any() else set()
            if any((levels[0] != levels[level]).any() for level in seen):
                raise Unsupported("arrangements need slowdowns that are the same at all levels inside a room")
        for level in problem.levels if self.fragments else ():
            for d in np.unique(level.gpu_to_domain[a:b]):
                inside = tuple(np.flatnonzero(level.gpu_to_domain[a:b] == d).tolist())
                if d >= 0 and inside not in parts and (len(inside) < b - a):
                    raise Unsupported(f"arrangements know fragmentation of rooms and nodes, not of each {level.name!r}")
                if (
                    d < 0
                    and len(inside) < b - a
                    and not all(set(p) <= set(inside) or not set(p) & set(inside) for p in parts)
                ):
                    raise Unsupported(f"arrangements need rooms that lie in one {level.name!r}")
        return parts

    def _near(self, n: int, part: IntArray) -> int:
        """Distance of any two GPUs of a room."""
        distance = self.problem.topology.distance[int(self.problem.topology.node_machine[n])][np.ix_(part, part)]
        apart = np.unique(distance[~np.eye(len(part), dtype=bool)])
        if len(apart) > 1 and (self.kinds.traffic[self.kinds.gpus > 1] > 0).any():
            raise Unsupported("arrangements need rooms whose GPUs are equally far from each other")
        return int(apart[0]) if len(apart) else 0

    def _binding(self, n: int, free_milli: int) -> tuple[int, ...]:
        """Resources of which jobs that fit on the free GPUs could ask for more than the node has."""
        kinds, room = self.kinds, self.state.node_free[n]
        asked = kinds.demand * free_milli > room[None, :] * (kinds.gpus * kinds.milli)[:, None]
        return tuple(np.flatnonzero(asked.any(axis=0)).tolist())
