"""Which nodes can take a bundle of an option now, how good each is, and which GPUs it would get there."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from placeopt.errors import OutOfTime
from placeopt.heuristics.option_shapes import option_shapes
from placeopt.heuristics.scores.score import FloatArray, Score
from placeopt.heuristics.scores.table import table_of
from placeopt.problem import BoolArray, IntArray, Move, Problem, State
from placeopt.problem.free_capacity import gpus_with_room, times_by_resources
from placeopt.problem.gpu_slots import with_room


def never() -> bool:
    """Return false: no deadline, and no cancellation."""
    return False


class _Bundle(NamedTuple):
    """What one bundle of an option needs, as plain integers: reading them from arrays takes longer than using them."""

    demand: IntArray  # (R,) of the bundle
    gpus: int
    milli: int
    memory_mib: int
    most: int  # bundles of the job
    limit: int  # bundles on one node
    any_type: bool  # whether every type of GPU will do
    any_class: bool  # whether it fits on idle nodes of every class


class Candidates:
    """
    Scores of nodes per shape of option, kept up to date as nodes change.

    When a shape is needed again, only nodes that changed since are scored again. So a queue of many jobs of few classes
    costs one node's worth of work a job, not a cluster's. ``for_many`` jobs a score that computes whole columns keeps
    them in a table, for the options that it serves.
    """

    def __init__(self, state: State, score: Score, over: Callable[[], bool] = never, *, for_many: bool = False) -> None:
        """
        Rank the nodes of ``state`` by ``score``.

        ``over`` is polled before every choice of GPUs, of which one job may need as many as it has bundles; once it is
        true, that call raises ``OutOfTime``.
        """
        self.state = state
        self._over = over
        self.problem: Problem = state.problem
        self._score = score
        self._shape = option_shapes(self.problem, score.option_features(self.problem))
        self._bundles: dict[int, _Bundle] = {}
        self._changes = 0
        self._changed_at = np.full(self.problem.num_nodes, -1, dtype=np.int64)  # number of each node's last change
        self._known: dict[int, tuple[int, FloatArray, IntArray]] = {}  # by shape: changes taken in, scores, rooms
        start = self.problem.node_gpu_start
        per_node = np.diff(start)
        width = int(per_node.max(initial=0))
        slots = start[:-1, None] + np.arange(width)[None, :]
        self.slot_exists: FloatArray = slots < start[1:, None]  # (N, width)
        self.slot_gpu: IntArray = np.where(self.slot_exists, slots, 0)  # (N, width) global GPU of each slot
        self._equal_nodes = bool((per_node == width).all())  # then the slots of a node are a row of the state's arrays
        self._each_slot = np.ones(width, dtype=np.int64)
        self._table = table_of(score, state) if for_many else None
        self.restricted_to: BoolArray | None = None
        """Shape (N,): the only nodes that have finite scores for now; None: all."""
        self._usable_of: tuple[int, IntArray, FloatArray] | None = None

    def changed(self, node: int) -> None:
        """Note that the free capacity of ``node`` changed."""
        if self._table is not None:
            self._table.changed(node)
        self._changed_at[node] = self._changes
        self._changes += 1

    def apply(self, move: Move) -> Move:
        """Carry out a move in the state, note the nodes that it changes, and return the move that takes it back."""
        undo = self.state.apply(move)
        for placement in (undo.placement, move.placement):
            for node in dict.fromkeys(placement.nodes) if placement is not None else ():
                self.changed(node)
        return undo

    def scores(self, option: int) -> FloatArray:
        """Shape (N,): the lower the better, infinite where a bundle of ``option`` does not fit now."""
        row = self._row(option)
        scores = self._up_to_date(option)[0] if row is None else row
        if self.restricted_to is not None:
            scores = np.where(self.restricted_to, scores, np.inf)
        return self._score.randomize(scores)

    def room_is_all(self, option: int) -> bool:
        """Return whether it is known that no rule for ``option`` looks beyond room."""
        return self._table is not None and self._table.has(option) and not self.problem.relations.hard

    def free_rooms(self, option: int) -> IntArray:
        """Shape (N,): ``rooms`` of every node; 0 where the job may not run."""
        return self._up_to_date(option)[1]

    def has_room(self, option: int) -> bool:
        """Return whether the nodes together could take all bundles of ``option``, each as many as it could alone."""
        return int(self.free_rooms(option).sum()) >= int(self.problem.options.bundles[option])

    def shape(self, option: int) -> int:
        """Return a number that is equal for options which scores and room do not tell apart."""
        return int(self._shape[option])

    def _up_to_date(self, option: int) -> tuple[FloatArray, IntArray]:
        row = self._row(option)
        if row is not None:
            return row, (row < np.inf).astype(np.int64)  # of one worker: once or not at all
        shape, number = self._shape[option], self.problem.num_nodes
        seen, scores, rooms = self._known.get(shape) or (-1, np.full(number, np.inf), np.zeros(number, dtype=np.int64))
        if seen == self._changes:
            return scores, rooms
        nodes = np.flatnonzero(self._changed_at >= seen)
        if not self._bundle(option).any_class:
            nodes = nodes[self.problem.options.node_class_ok[option][self.problem.node_class[nodes]]]
        if len(nodes):
            scores[nodes], rooms[nodes] = self.evaluate(option, nodes)
        self._known[shape] = (self._changes, scores, rooms)
        return scores, rooms

    def _row(self, option: int) -> FloatArray | None:
        return None if self._table is None else self._table.row(option)

    def _bundle(self, option: int) -> _Bundle:
        bundle = self._bundles.get(option)
        if bundle is None:
            options, workers = self.problem.options, int(self.problem.options.bundle_workers[option])
            bundle = self._bundles[option] = _Bundle(
                demand=options.demand[option] * workers,
                gpus=int(options.bundle_gpus[option]),
                milli=int(options.milli[option]),
                memory_mib=int(options.gpu_memory_mib[option]),
                most=int(options.bundles[option]),
                limit=int(options.workers_per_node[option]) // workers,
                any_type=bool(options.gpu_type_ok[option].all()),
                any_class=bool(options.node_class_ok[option].all()),
            )
        return bundle

    def evaluate(self, option: int, nodes: IntArray) -> tuple[FloatArray, IntArray]:
        """Return the scores and the rooms of ``nodes``, on all of which a bundle fits while they are idle."""
        scores = np.full(len(nodes), np.inf)
        rooms, usable = self._rooms(option, nodes)
        fits = rooms > 0
        found = np.count_nonzero(fits)
        if found == len(nodes):
            return self._scored(option, nodes, usable), rooms
        if found:
            scores[fits] = self._scored(option, nodes[fits], None if usable is None else usable[fits])
        return scores, rooms

    def _scored(self, option: int, nodes: IntArray, usable: FloatArray | None) -> FloatArray:
        """Return the scores of nodes with room; ``usable`` spares the score what was just asked."""
        self._usable_of = None if usable is None else (option, nodes, usable)
        scores = self._score(self, option, nodes)
        self._usable_of = None
        return scores

    def rooms(self, option: int, nodes: IntArray) -> IntArray:
        """Shape (len(nodes),): how many bundles of ``option`` each node could take by its resources and GPUs."""
        return self._rooms(option, nodes)[0]

    def _rooms(self, option: int, nodes: IntArray) -> tuple[IntArray, FloatArray | None]:
        """Return ``rooms``, and ``usable`` where the option has GPUs."""
        bundle = self._bundle(option)
        rooms = times_by_resources(self.state.node_free.take(nodes, axis=0), bundle.demand, bundle.most)
        usable = None
        if bundle.gpus:
            usable = self.usable(option, nodes)
            rooms = np.minimum(rooms, usable @ self._each_slot // bundle.gpus)  # a job never holds a GPU twice
        return np.minimum(np.maximum(rooms, 0), bundle.limit), usable

    def usable(self, option: int, nodes: IntArray) -> FloatArray:
        """Shape (len(nodes), width): slots whose GPU could take one more job in ``option``; not to be changed."""
        asked = self._usable_of
        if asked is not None and asked[1] is nodes and asked[0] == option:
            return asked[2]
        problem, bundle, state = self.problem, self._bundle(option), self.state
        usable = gpus_with_room(
            problem,
            self._of_slots(state.gpu_free_milli, nodes),
            self._of_slots(state.gpu_free_memory, nodes) if bundle.memory_mib else None,
            None if problem.jobs_per_gpu is None else self._of_slots(state.gpu_jobs, nodes),
            milli=bundle.milli,
            memory_mib=bundle.memory_mib,
            jobs_per_gpu=problem.jobs_per_gpu,
        )
        if not self._equal_nodes:
            usable &= self.slot_exists[nodes]
        if not bundle.any_type:
            usable &= problem.options.gpu_type_ok[option][self._of_slots(problem.gpu_type, nodes)]
        if problem.has_geometry:
            profile = problem.options.gpu_profile[option]
            loads = self._of_slots(state.gpu_slots, nodes)
            usable &= with_room(problem.type_geometry, profile, self._of_slots(problem.gpu_type, nodes), loads)
        if self._score.excludes_gpus and usable.any():
            gpus = self.slot_gpu[nodes]
            usable &= ~np.isin(gpus, self._score.excluded_gpus(self, option, gpus[usable].tolist()))
        return usable

    def _of_slots(self, of_gpus: IntArray, nodes: IntArray) -> IntArray:
        """Shape (len(nodes), width): what ``of_gpus``, (G,), says of every slot; of anything where a slot has none."""
        if self._equal_nodes:
            return of_gpus.reshape(self.slot_gpu.shape).take(nodes, axis=0)
        return of_gpus[self.slot_gpu[nodes]]

    def free_milli(self, nodes: IntArray) -> IntArray:
        """Shape (len(nodes), width): thousandths free of every GPU, at least 0; 0 where a slot has none."""
        left: IntArray = np.maximum(self._of_slots(self.state.gpu_free_milli, nodes), 0)
        if not self._equal_nodes:
            left[~self.slot_exists[nodes]] = 0
        return left

    def choose_gpus(self, option: int, node: int, held: frozenset[int] = frozenset()) -> tuple[int, ...]:
        """
        Return the GPUs that one bundle gets on ``node``, none of them in ``held``; fewer than needed: no room.

        Raises ``OutOfTime`` once ``over()`` is true.
        """
        if self._over():
            raise OutOfTime("no time left to choose GPUs")
        need = self._bundle(option).gpus
        if not need:
            return ()
        if self.room_is_all(option):
            start, end = self.problem.first_gpu[node], self.problem.first_gpu[node + 1]
            left, milli = self.state.gpu_free_milli[start:end].tolist(), self._bundle(option).milli
            gpus = [gpu for gpu, free in enumerate(left, start) if free >= milli]
        else:
            gpus = self.slot_gpu[node][self.usable(option, np.array([node]))[0]].tolist()
        if held:
            gpus = [gpu for gpu in gpus if gpu not in held]
        return tuple(gpus) if len(gpus) <= need else self._score.pick(self, option, gpus, need)
