"""How many bundles of an option nodes and classes of nodes can take, each node at most by any one resource."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from placeopt.problem.arrays import IntArray
from placeopt.problem.classes import group_by_key, numbered
from placeopt.problem.free_capacity import jobs_that_fit, usable_gpus
from placeopt.problem.state import State

MANY = 1 << 20
"""More bundles than any node takes: the room where no resource is needed."""
CELLS = 1 << 16
"""Options x nodes of an array of rooms: half a megabyte."""


class BundleRooms:
    """The rooms of the nodes of a state."""

    def __init__(self, state: State) -> None:
        self.state, self._problem = state, state.problem
        self._gpus: dict[int, tuple[IntArray, IntArray]] = {}  # by what is asked of a GPU

    def per_node(self, option: int) -> tuple[IntArray, IntArray]:
        """Return the nodes that can take a bundle of ``option``, and how many each can."""
        room = self.of(np.array([option]), np.arange(self.state.problem.num_nodes))[0]
        nodes = np.flatnonzero(room)
        return nodes, room[nodes]

    def of(self, options: IntArray, nodes: IntArray) -> IntArray:
        """Shape (o, n): rooms of ``nodes``, (n,), for bundles of ``options``, (o,)."""
        problem, table = self._problem, self._problem.options
        free, need = self.state.node_free[nodes], table.demand[options] * table.bundle_workers[options][:, None]
        rooms = np.full((len(options), len(nodes)), MANY, dtype=np.int64)
        for r in range(free.shape[1]):
            asks = np.flatnonzero(need[:, r])
            rooms[asks] = np.minimum(rooms[asks], free[:, r] // need[asks, r][:, None])
        gpus, request = table.bundle_gpus[options], self._request[options]
        for number in np.unique(request[gpus > 0]).tolist():
            alike = np.flatnonzero((request == number) & (gpus > 0))
            usable, jobs = self._gpus_of_nodes(int(options[alike[0]]))
            each = gpus[alike][:, None]
            rooms[alike] = np.where(usable[nodes] >= each, np.minimum(rooms[alike], jobs[nodes] // each), 0)
        return np.where(table.node_class_ok[options][:, problem.node_class[nodes]], np.maximum(rooms, 0), 0)

    @cached_property
    def _request(self) -> IntArray:
        """Shape (O,): equal for options that ask the same of a GPU."""
        table = self._problem.options
        return numbered(np.column_stack((table.milli, table.gpu_memory_mib, table.profile_number, table.gpu_type_ok)))

    def _gpus_of_nodes(self, option: int) -> tuple[IntArray, IntArray]:
        """Return usable GPUs of each node, (N,), and jobs in the option that they can hold together."""
        request, number = int(self._request[option]), self._problem.num_nodes
        known = self._gpus.get(request)
        if known is None:
            usable = usable_gpus(self.state, option)
            nodes, jobs = self._problem.gpu_node[usable], jobs_that_fit(self.state, option)[usable]
            together = np.bincount(nodes, weights=jobs, minlength=number).astype(np.int64)
            known = self._gpus[request] = np.bincount(nodes, minlength=number), together
        return known


class ClassRooms:
    """The rooms of the classes of nodes of a state; nodes of a class that are alike are asked once."""

    def __init__(self, state: State, cells: int = CELLS) -> None:
        """``cells``: options x nodes that are asked for at once."""
        problem = state.problem
        of_gpus = (state.gpu_free_milli, state.gpu_free_memory, state.gpu_jobs, state.gpu_slots, problem.gpu_type)
        gpus = np.column_stack(of_gpus)
        bounds = zip(problem.first_gpu[:-1], problem.first_gpu[1:], strict=True)
        keys = zip(problem.node_class.tolist(), state.node_free, bounds, strict=True)
        alike, first = group_by_key((c, free.tobytes(), gpus[slice(*at)].tobytes()) for c, free, at in keys)
        order = np.argsort(problem.node_class[first], kind="stable")
        self._nodes, self._count = np.array(first)[order], np.bincount(alike)[order]
        self._classes, self._start = np.unique(problem.node_class[self._nodes], return_index=True)
        self._bundles, self._num_options = BundleRooms(state), len(problem.options)
        self._at_once = max(cells // len(self._nodes), 1)
        self._known: dict[int, list[dict[int, int]]] = {}

    def of(self, option: int) -> dict[int, int]:
        """Return node class -> bundles of the option that it could take, classes without room left out."""
        block, row = divmod(option, self._at_once)
        if block not in self._known:
            options = np.arange(block * self._at_once, min((block + 1) * self._at_once, self._num_options))
            rooms = np.add.reduceat(self._bundles.of(options, self._nodes) * self._count, self._start, axis=1)
            self._known[block] = [
                {int(self._classes[k]): int(room[k]) for k in np.flatnonzero(room).tolist()} for room in rooms
            ]
        return self._known[block][row]
