"""GPU groups: parts of nodes whose GPUs are alike to every cost; nodes in the same state are counted together."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from placeopt.errors import Unsupported
from placeopt.formulations.branch_and_price.bundle_groups import BundleGroups
from placeopt.problem import BoolArray, IntArray, Problem, State
from placeopt.problem.free_capacity import gpu_milli_left
from placeopt.terms.costs.fragmentation import Fragmentation
from placeopt.terms.objective import weight_of

NO_ROOM = "no waiting job fits into a room"


@dataclass(frozen=True, eq=False)
class OpenGroups:
    """A GPU groups as they are, with what may be added to each and at what price; M shares that bundle groups need."""

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
        """Return some of the GPU groups."""
        return OpenGroups(*(getattr(self, name)[index] for name in self.__dataclass_fields__))


@dataclass(eq=False)
class NodeGroup:
    """
    Nodes in the same state. Rooms of equal number in ``open_groups`` are alike and counted together, of any groups.
    """

    nodes: list[int]
    parts: tuple[tuple[int, ...], ...]  # positions in the machine of each room's GPUs
    free: tuple[tuple[int, ...], ...]  # positions of its idle ones
    jobs: tuple[tuple[int, frozenset[int]], ...]  # profile and GPU groups of each running job that may disturb
    opening: int  # cost of the first job on the node, if it is idle
    wider: tuple[int, ...]  # idle domains above the node whose first job costs
    leave: int  # distance from any GPU to the network domain above the node
    binding: tuple[int, ...]  # resources that may run out before the GPUs
    room: list[int] = field(default_factory=list)  # row in ``open_groups`` of each part


@dataclass(frozen=True, eq=False)
class GpuGroups:
    """All nodes with room for anything, by group."""

    bundle_groups: BundleGroups
    state: State
    node_groups: list[NodeGroup]
    open_groups: OpenGroups
    node_group_of: IntArray  # (A,) node group of each room; their number where several share it: nothing ties it then
    multiplicity: IntArray  # (A,) GPU groups counted together
    shares: IntArray  # (M,)
    demand: IntArray  # (M, K) slots of each share that a bundle fills
    wider: dict[int, int]  # idle domain above nodes -> cost of its first job

    @property
    def problem(self) -> Problem:
        """The compiled round."""
        return self.bundle_groups.problem


def make_gpu_groups(state: State, bundle_groups: BundleGroups) -> GpuGroups:
    """
    Partition every node into GPU groups (its sockets, or the whole) and group nodes in the same state.

    Raises ``Unsupported`` if costs tell GPUs of one room apart, reach from one room to the next, or GPUs of a room are
    not alike.
    """
    problem = bundle_groups.problem
    shares = _shares(bundle_groups)
    use = np.where(
        bundle_groups.milli >= shares[:, None], bundle_groups.gpus * (bundle_groups.milli // shares[:, None]), 0
    )
    free_milli = gpu_milli_left(state)
    _refuse_memory(state, bundle_groups, free_milli)
    charges = _CostTables(state, bundle_groups)
    node_group_of_key: dict[tuple[object, ...], NodeGroup] = {}
    rows: dict[tuple[object, ...], int] = {}
    columns: list[dict[str, object]] = []
    node_group_of: list[int] = []
    smallest = int(shares.min(initial=1001))
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
        if key in node_group_of_key:
            node_group_of_key[key].nodes.append(n)
            continue
        node_group_of_key[key] = group
        for r in range(len(group.parts)):
            open_group = charges.open_group(n, group, r, free, shares)
            tied = len(node_group_of_key) - 1 if group.opening or group.wider or group.binding else -1
            same = (tied, tuple(np.asarray(value).tobytes() for value in open_group.values()))
            if same not in rows:
                rows[same] = len(rows)
                node_group_of.append(tied)
                columns.append(open_group)
            group.room.append(rows[same])
    if not rows:
        raise Unsupported(NO_ROOM)
    node_groups, multiplicity = list(node_group_of_key.values()), np.zeros(len(rows), dtype=np.int64)
    for group in node_groups:
        np.add.at(multiplicity, group.room, len(group.nodes))
    open_groups = OpenGroups(
        **{
            name: np.array([column[name] for column in columns], dtype=bool if name == "ok" else np.int64)
            for name in columns[0]
        }
    )
    owner = np.array([len(node_groups) if tied < 0 else tied for tied in node_group_of], dtype=np.int64)
    return GpuGroups(
        bundle_groups, state, node_groups, open_groups, owner, multiplicity, shares, use, charges.wider_cost
    )


def _shares(bundle_groups: BundleGroups) -> IntArray:
    """Shares that bundle groups need, ascending. Each divides the next, so the slots of each size say what fits."""
    if (bundle_groups.gpus[bundle_groups.milli < 1000] > 1).any():
        raise Unsupported("branch and price supports shares on single GPUs only")
    shares = np.unique(np.append(bundle_groups.milli, 1000))
    fractions = shares[shares < 1000]
    if (fractions[1:] % fractions[:-1]).any():
        raise Unsupported(f"branch and price needs shares that divide each other, not {fractions.tolist()}")
    return shares


def _refuse_memory(state: State, bundle_groups: BundleGroups, free_milli: IntArray) -> None:
    """Memory and the number of jobs must not run out on a GPU before its share does."""
    problem = bundle_groups.problem
    most = problem.jobs_per_gpu
    smallest = int(bundle_groups.milli.min(initial=1000))
    if most not in (None, 1) and ((free_milli // smallest) > most - state.gpu_jobs).any():
        raise Unsupported("branch and price needs GPUs whose share runs out before their number of jobs")
    bundle_group, gpu = np.nonzero(
        bundle_groups.type_ok[:, problem.gpu_type] & (bundle_groups.milli[:, None] <= free_milli[None, :])
    )
    if (
        bundle_groups.memory[bundle_group] * free_milli[gpu]
        > bundle_groups.milli[bundle_group] * state.gpu_free_memory[gpu]
    ).any():
        raise Unsupported("branch and price needs GPUs whose share runs out before their memory")


class _CostTables:
    """What the costs charge on a node, and whether GPU groups are all they look at."""

    def __init__(self, state: State, bundle_groups: BundleGroups) -> None:
        self.state, self.bundle_groups, self.problem = state, bundle_groups, bundle_groups.problem
        self.interference_matters = bundle_groups.pair.any()
        self.fragmentation_weight = weight_of(bundle_groups.weighted, Fragmentation)
        self.traffic_matters = bool(bundle_groups.traffic.any())
        self.wider_cost: dict[int, int] = {}
        self._partitions: dict[int, tuple[tuple[int, ...], ...]] = {}

    def group(self, n: int, free: IntArray) -> NodeGroup:
        """Return the node as a group of its own."""
        problem, state = self.problem, self.state
        a, b = int(problem.node_gpu_start[n]), int(problem.node_gpu_start[n + 1])
        parts = self._parts(n)
        room_of = {p: r for r, part in enumerate(parts) for p in part}
        jobs = []
        for job in state.node_jobs[n]:
            profile, placement = int(self.bundle_groups.class_profile[problem.job_class[job]]), state.placements[job]
            if self.bundle_groups.pair[profile].any() and placement is not None:
                jobs.append((profile, frozenset(room_of[g - a] for g in placement.gpus if a <= g < b)))
        opening, wider = 0, []
        if self.fragmentation_weight:
            for number, (level, level_free) in enumerate(zip(problem.levels, state.level_free, strict=True)):
                inside = np.unique(level.gpu_to_domain[a:b])
                domain = int(inside[0])
                if len(inside) == 1 and domain >= 0 and level_free[domain] == level.total[domain]:
                    cost = self.fragmentation_weight * level.weight * int(level.total[domain])
                    if level.total[domain] == b - a and len(parts) > 1:
                        opening += cost
                    elif level.total[domain] > b - a:
                        self.wider_cost[number << 40 | domain] = cost
                        wider.append(number << 40 | domain)
        topology = problem.topology
        machine = int(topology.node_machine[n])
        root = topology.root[machine]
        if (
            self.traffic_matters
            and (self.bundle_groups.total > self.bundle_groups.gpus).any()
            and len(set(root.tolist())) > 1
        ):
            raise Unsupported("branch and price needs machines whose GPUs are equally far from the network")
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
        """Return at which levels of fragmentation each GPU's domain is in use already, and lies in one at all."""
        a, b = int(self.problem.node_gpu_start[n]), int(self.problem.node_gpu_start[n + 1])
        out: list[bool] = []
        for level, free in zip(self.problem.levels, self.state.level_free, strict=True):
            domain = level.gpu_to_domain[a:b]
            out.extend((domain >= 0).tolist())
            out.extend((free[domain] == level.total[domain]).tolist())
        return tuple(out)

    def open_group(self, n: int, group: NodeGroup, r: int, free: IntArray, shares: IntArray) -> dict[str, object]:
        """Return the fields of one row of ``OpenGroups``."""
        problem, bundle_groups = self.problem, self.bundle_groups
        a, part = int(problem.node_gpu_start[n]), np.array(group.parts[r], dtype=np.int64)
        types = np.unique(problem.gpu_type[a + part])
        ok = bundle_groups.type_ok[:, types]
        if (ok != ok[:, :1]).any():
            raise Unsupported("branch and price needs rooms whose GPUs are alike to every job")
        busy, opening = 0, 0
        for level, level_free in (
            zip(problem.levels, self.state.level_free, strict=True) if self.fragmentation_weight else ()
        ):
            domain = int(level.gpu_to_domain[a + part[0]])
            if domain >= 0:
                busy += self.fragmentation_weight * level.weight
                if level.total[domain] == len(part) and level_free[domain] == level.total[domain]:
                    opening += self.fragmentation_weight * level.weight * int(level.total[domain])
        near = self._distance_inside(n, part)
        pairs, crossing = (
            bundle_groups.gpus * (bundle_groups.gpus - 1) // 2,
            bundle_groups.gpus * (bundle_groups.total - bundle_groups.gpus),
        )
        beside = sum(
            (bundle_groups.pair[profile] for profile, gpu_groups in group.jobs if r in gpu_groups),
            np.zeros(len(bundle_groups.pair), dtype=np.int64),
        )
        return {
            "slots": (free[part][None, :] // shares[:, None]).sum(axis=1),
            "units": int(free[part].sum()),
            "idle": len(group.free[r]),
            "opening": opening,
            "busy": busy,
            "beside": beside,
            "fixed": bundle_groups.traffic * (pairs * near + crossing * group.leave),
            "ok": ok[:, 0] & bundle_groups.class_ok[:, problem.node_class[n]],
        }

    def _parts(self, n: int) -> tuple[tuple[int, ...], ...]:
        """Return the GPU groups of a node's machine, after a look at whether the costs see nothing finer or wider."""
        machine = int(self.problem.topology.node_machine[n])
        if machine not in self._partitions:
            self._partitions[machine] = self._make_parts(n)
        return self._partitions[machine]

    def _make_parts(self, n: int) -> tuple[tuple[int, ...], ...]:
        problem = self.problem
        a, b = int(problem.node_gpu_start[n]), int(problem.node_gpu_start[n + 1])
        socket, switch, levels = problem.gpu_socket[a:b], problem.gpu_switch[a:b], problem.slowdown
        whole = (tuple(range(b - a)),)
        sockets = tuple(tuple(np.flatnonzero(socket == s).tolist()) for s in np.unique(socket))
        parts = sockets if b > a and (socket >= 0).all() else whole
        if self.interference_matters and parts is sockets and len(sockets) > 1 and levels[3].any():
            parts = whole
        if self.interference_matters:
            seen = {0, 3 if parts is whole else 2} | ({1} if (switch >= 0).any() else set())
            seen |= {2} if (socket >= 0).any() else set()
            if any((levels[0] != levels[level]).any() for level in seen):
                raise Unsupported("branch and price needs slowdowns that are the same at all levels inside a room")
        for level in problem.levels if self.fragmentation_weight else ():
            for d in np.unique(level.gpu_to_domain[a:b]):
                inside = tuple(np.flatnonzero(level.gpu_to_domain[a:b] == d).tolist())
                if d >= 0 and inside not in parts and (len(inside) < b - a):
                    raise Unsupported(
                        f"branch and price supports fragmentation of rooms and nodes, not of each {level.name!r}"
                    )
                if (
                    d < 0
                    and len(inside) < b - a
                    and not all(set(p) <= set(inside) or not set(p) & set(inside) for p in parts)
                ):
                    raise Unsupported(f"branch and price needs rooms that lie in one {level.name!r}")
        return parts

    def _distance_inside(self, n: int, part: IntArray) -> int:
        """Distance of any two GPUs of a room."""
        distance = self.problem.topology.distance[int(self.problem.topology.node_machine[n])][np.ix_(part, part)]
        apart = np.unique(distance[~np.eye(len(part), dtype=bool)])
        if len(apart) > 1 and (self.bundle_groups.traffic[self.bundle_groups.gpus > 1] > 0).any():
            raise Unsupported("branch and price needs rooms whose GPUs are equally far from each other")
        return int(apart[0]) if len(apart) else 0

    def _binding(self, n: int, free_milli: int) -> tuple[int, ...]:
        """Resources of which jobs that fit on the free GPUs could need more than the node has."""
        bundle_groups, room = self.bundle_groups, self.state.node_free[n]
        asked = bundle_groups.demand * free_milli > room[None, :] * (bundle_groups.gpus * bundle_groups.milli)[:, None]
        return tuple(np.flatnonzero(asked.any(axis=0)).tolist())
