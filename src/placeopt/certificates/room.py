"""What proofs of value are made of: bundles, the groups of jobs that ask for them, and the states of nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placeopt.certificates.clock import check_time
from placeopt.certificates.places import Place, Places, Traffic, suitable
from placeopt.problem import BundleRooms, Problem, State
from placeopt.problem.arrays import RESOURCES

WHOLE = 1000
"""Thousandths of a GPU."""


class Bundle(NamedTuple):
    """What lands on one node together. Amounts are in the order of ``Problem``'s resources."""

    gpus: int
    share: int
    """Of each GPU, in units of `Room.full`."""
    amounts: tuple[int, ...]
    where: bytes
    """What decides on which nodes it fits, amounts aside."""
    held_on: tuple[int, ...] = ()
    """Of a running job that stays as it is: numbers of the kinds of nodes on which it is."""
    traffic: Traffic | None = None
    """Where costs count and it has GPUs."""


class Way(NamedTuple):
    """A job of a group in an option, with a number of bundles."""

    option: str
    bundle: int
    """Index in `Room.bundles`."""
    bundles: int
    """How many."""
    on_a_node: int
    """Bundles of one job that one node may have."""
    value: int
    """Less the price of the change that it is to a running job."""
    stays: bool = False
    """Whether it is the way of a running job that keeps its place."""


@dataclass(frozen=True)
class JobGroup:
    """Jobs that are worth the same and ask for the same: waiting ones, or a running one that may be changed."""

    jobs: tuple[int, ...]
    ways: tuple[Way, ...]
    idle: int | None = 0
    """What a job is worth that does not run; None: it runs in one of the ways."""


class Fitting(NamedTuple):
    """A bundle of which one fits on a node, and how many of it the node may have by the jobs that there are."""

    bundle: int
    most: int


@dataclass(frozen=True, eq=False)
class NodeState:
    """Nodes that offer the same."""

    nodes: tuple[int, ...]
    units: tuple[int, ...]
    """Left of each GPU, ascending."""
    free: tuple[int, ...]
    """Amounts left, shape (R,)."""
    fitting: tuple[Fitting, ...]
    suits: tuple[tuple[int, ...], ...] = ()
    """Where costs count, of each of ``fitting``: GPUs that it may have."""


@dataclass(frozen=True, eq=False)
class Room:
    """A round as proofs of value see it: sums of shares and amounts on nodes; no places, domains or uplinks."""

    problem: Problem
    amounts: tuple[str, ...]
    """Names of the amounts of nodes; R."""
    held: int
    """Value of the running jobs that stay."""
    full: int
    """Units of a GPU; 1 where they are jobs."""
    bundles: tuple[Bundle, ...]
    groups: tuple[JobGroup, ...]
    states: tuple[NodeState, ...]

    def is_large(self, units: int) -> bool:
        """Return whether no two shares of so many units are on one GPU, or a GPU with so many left takes one such."""
        return self.full == WHOLE < 2 * units

    @property
    def penalty(self) -> int:
        """More value than all jobs have."""
        return 1 + sum(len(group.jobs) * max((way.value for way in group.ways), default=0) for group in self.groups)


def is_as_stated(problem: Problem, job: int) -> bool:
    """Return whether what a running job holds is as its option says, on nodes and GPUs that there are."""
    placement, options = problem.running[job], problem.options
    record = problem.instance.jobs[job].option(options.name[placement.option])
    nodes = set(placement.nodes)
    lost = problem.type_lost[problem.gpu_type[list(placement.gpus)]].any()
    together = record.single_node or record.part_level is not None
    return not (lost or max(nodes) >= len(problem.given.cluster.nodes) or (together and len(nodes) > 1))


def units_of(problem: Problem) -> int:
    """Return the units of a GPU: 1 where they are jobs."""
    return WHOLE if problem.shares_bind and problem.jobs_per_gpu != 1 else 1


def room_of(state: State, deadline: float = float("inf"), places: Places | None = None) -> Room:
    """
    Return what jobs ask for that are not placed in ``state``, and what nodes leave to them beside what it holds.

    ``places``: The nodes of the state, where costs count. Raises ``OutOfTime`` after ``deadline``.
    """
    return _Reader(state, deadline, places).room()


def lacks_room(rooms: BundleRooms, option: int) -> str | None:
    """
    Return where an option lacks room beside what a state holds, by counting bundles on nodes and in domains.

    ``node``: all nodes together take fewer bundles than it has; the level of a split: so do the domains that it may
    use.
    None where counting finds room, which need not be there.
    """
    problem, options = rooms.state.problem, rooms.state.problem.options
    bundles = int(options.bundles[option])
    nodes, room = rooms.per_node(option)
    room = np.minimum(room, _on_a_node(problem, option))
    if int(room.sum()) < bundles:
        return "node"
    for split in options.splits[option]:
        domain = problem.split_domain[split.level][nodes]
        inside = domain >= 0
        held = np.sort(np.bincount(domain[inside], weights=room[inside]).astype(np.int64))[::-1]
        each = -(-(split.workers or 1) // int(options.bundle_workers[option]))
        most = 0 if split.domains * each > bundles else int((held >= each).sum())
        if most < split.domains or int(held[: split.domains].sum()) < bundles:
            return split.level
    return None


def _on_a_node(problem: Problem, option: int) -> int:
    """Return how many bundles of one job a node may have."""
    options = problem.options
    bundles = int(options.bundles[option])
    own = min(bundles, int(options.workers_per_node[option]))
    for split in options.splits[option]:
        if split.level == "node":
            own = min(own, split.workers or bundles - split.domains + 1)
    return own


class _Reader:
    """Reads a round."""

    def __init__(self, state: State, deadline: float, places: Places | None) -> None:
        self._state, self._problem, self._deadline, self._places = state, state.problem, deadline, places
        problem, options = state.problem, state.problem.options
        self._full = units_of(problem)
        kinds = list(zip(options.job_class.tolist(), options.name, strict=True))
        rows = Counter(kinds)
        self._together = [
            1 if rows[kind] > 1 else workers
            for kind, workers in zip(kinds, options.bundle_workers.tolist(), strict=True)
        ]
        """Workers of each option that count as one bundle: of elastic options, one, on whichever nodes."""
        self._numbers: dict[Bundle, int] = {}
        self._first: dict[int, int] = {}  # an option of each bundle
        self._bundle: list[int] = []  # of each option
        for o in range(len(options)):
            asked = (options.gpu_memory_mib[o], options.gpu_profile[o], options.gpu_type_ok[o].tobytes())
            bundle = Bundle(
                gpus=int(options.gpus[o]) * self._together[o],
                share=int(options.milli[o]) if self._full == WHOLE else 1,
                amounts=tuple((options.demand[o] * self._together[o]).tolist()),
                where=repr(asked).encode() + options.node_class_ok[o].tobytes(),
                traffic=places.traffic(o, self._together[o]) if places and options.gpus[o] else None,
            )
            number = self._number(bundle)
            self._first.setdefault(number, o)
            self._bundle.append(number)
        self._rooms = BundleRooms(state)
        self._fits = [check_time(deadline) and lacks_room(self._rooms, o) is None for o in range(len(options))]

    def _number(self, bundle: Bundle) -> int:
        return self._numbers.setdefault(bundle, len(self._numbers))

    def room(self) -> Room:
        """Return the room."""
        problem = self._problem
        held_on, kinds = self._kinds_of_nodes()
        jobs: dict[tuple[tuple[Way, ...], int | None], list[int]] = {}
        for job in range(problem.num_jobs):
            if job in problem.changeable:
                jobs.setdefault((tuple(self._changed(job, held_on[job])), self._preempted(job)), []).append(job)
            elif job not in problem.running:
                jobs.setdefault((tuple(self._starts(job)), 0), []).append(job)
        most: Counter[int] = Counter()
        for (ways, _), alike in jobs.items():
            own = {way.bundle: 0 for way in ways if not way.stays}
            for way in ways:
                if not way.stays:
                    own[way.bundle] = max(own[way.bundle], way.on_a_node)
            for bundle, count in own.items():
                most[bundle] += count * len(alike)
        states = []
        for key, nodes in kinds.items():
            check_time(self._deadline)
            fitting = [Fitting(bundle, most[bundle]) for bundle in key.fits if most[bundle]]
            fitting += [Fitting(self._numbers[bundle], count) for bundle, count in self._held_by(nodes[0], held_on)]
            if fitting:
                suits = tuple(self._suits(key.place, fit.bundle) for fit in fitting) if key.place else ()
                states.append(NodeState(tuple(nodes), key.units, key.free, tuple(fitting), suits))
        held = sum(
            int(problem.options.value[placement.option])
            for job, placement in problem.running.items()
            if job not in problem.changeable
        )
        groups = tuple(JobGroup(tuple(alike), ways, idle) for (ways, idle), alike in jobs.items())
        amounts = (*RESOURCES, *(f"resource {name}" for name in problem.named_resources))
        return Room(problem, amounts, held, self._full, tuple(self._numbers), groups, tuple(states))

    def _suits(self, place: Place, bundle: int) -> tuple[int, ...]:
        option = self._first[bundle]
        share = int(self._problem.options.milli[option]) if self._full == WHOLE else 1
        return suitable(self._problem, place, option, share)

    def _way(self, option: int, value: int) -> Way:
        problem = self._problem
        bundles = int(problem.options.workers[option]) // self._together[option]
        alone = self._together[option] == int(problem.options.bundle_workers[option])
        own = _on_a_node(problem, option) if alone else bundles
        return Way(problem.options.name[option], self._bundle[option], bundles, own, value)

    def _starts(self, job: int, price: int = 0) -> Iterator[Way]:
        """Yield the ways in which a job may start, or move at a price."""
        for option in self._problem.options_of(job):
            if self._fits[option]:
                yield self._way(option, int(self._problem.options.value[option]) - price)

    def _changed(self, job: int, own: Bundle) -> Iterator[Way]:
        """Yield the ways of a running job that may be changed: as it is, with fewer workers, moved."""
        problem, options, changes = self._problem, self._problem.options, self._problem.policy.changes
        held = problem.running[job].option
        for option in problem.options_of(job):
            if options.kinds[option] == options.kinds[held]:
                fewer = int(options.workers[held] - options.workers[option])
                if not fewer or (fewer > 0 and job in problem.may_shrink):
                    value = int(options.value[option]) - fewer * changes.shrink_price_per_worker
                    yield self._way(option, value)._replace(bundle=self._number(own), stays=True)
        if job in problem.may_move:
            yield from self._starts(job, changes.move_price)

    def _preempted(self, job: int) -> int | None:
        return -self._problem.policy.changes.preemption_price if job in self._problem.may_preempt else None

    def _kinds_of_nodes(self) -> tuple[dict[int, Bundle], dict[_Kind, list[int]]]:
        """Return what each running job that may be changed holds while it stays, and the nodes that offer the same."""
        state, problem = self._state, self._problem
        fits: list[list[int]] = [[] for _ in range(problem.num_nodes)]
        for number, option in self._first.items():
            check_time(self._deadline)
            for node in self._rooms.per_node(option)[0].tolist():
                fits[node].append(number)
        holders: list[list[tuple[int, int, int]]] = [[] for _ in range(problem.num_nodes)]
        for job in sorted(problem.changeable):
            placement = problem.running[job]
            for node, workers in Counter(placement.nodes).items():
                alone = -1 if len(set(placement.nodes)) == 1 else job
                here = (self._bundle[placement.option], workers // self._together[placement.option])
                holders[node].append((*here, alone))
        if self._full == WHOLE:
            left = np.maximum(state.gpu_free_milli, 0)
        else:
            left = np.maximum((problem.jobs_per_gpu or 1) - state.gpu_jobs, 0)
        free = np.maximum(state.node_free, 0)
        kinds: dict[_Kind, list[int]] = {}
        number_of: dict[int, int] = {}
        for node in range(len(problem.given.cluster.nodes)):
            units = left[problem.node_gpu_start[node] : problem.node_gpu_start[node + 1]]
            kind = _Kind(
                tuple(sorted(units.tolist())),
                tuple(free[node].tolist()),
                tuple(fits[node]),
                tuple(sorted(holders[node])),
                None if self._places is None else self._places.place(node),
            )
            alike = kinds.setdefault(kind, [])
            alike.append(node)
            number_of[node] = alike[0]
        bundles = tuple(self._numbers)
        held_on = {}
        for job in sorted(problem.changeable):
            nodes = sorted(set(problem.running[job].nodes))
            where = (number_of[nodes[0]],) if len(nodes) == 1 else (-1 - job,)
            held_on[job] = bundles[self._bundle[problem.running[job].option]]._replace(held_on=where)
        return held_on, kinds

    def _held_by(self, node: int, held_on: dict[int, Bundle]) -> Iterator[tuple[Bundle, int]]:
        """Yield what running jobs that may be changed hold on a node, and how much of it."""
        counts: Counter[Bundle] = Counter()
        for job, bundle in held_on.items():
            placement = self._problem.running[job]
            workers = placement.nodes.count(node)
            if workers:
                counts[bundle] += workers // self._together[placement.option]
        yield from counts.items()


class _Kind(NamedTuple):
    """What nodes offer, and what running jobs that may be changed hold there."""

    units: tuple[int, ...]
    free: tuple[int, ...]
    fits: tuple[int, ...]
    holders: tuple[tuple[int, int, int], ...]
    place: Place | None
