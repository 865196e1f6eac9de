"""Keys for what looks alike, options and nodes, and the cache of greedy by these keys."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Generic, TypeVar

import numpy as np

from placeopt.problem import IntArray, Problem, State
from placeopt.problem.classes import group_by_key
from placeopt.problem.free_capacity import nodes_are_of_one_model

T = TypeVar("T")
View = tuple[Any, ...]


class ScoreCache(Generic[T]):
    """Cached values by key. It stops helping where keys do not repeat, so that it costs next to nothing there."""

    TRIAL = 2000
    """Questions after each of which it is judged: at least a third of all so far must have been answered."""

    MOST = 200_000
    """Values kept; beyond that the cache is cleared."""

    def __init__(self) -> None:
        self.helps = True
        self._values: dict[Hashable, T] = {}
        self._lookups = self._hits = 0

    def recall(self, key: Hashable) -> T | None:
        """Return the answer, None where none is known."""
        value = self._values.get(key)
        self._lookups += 1
        if value is not None:
            self._hits += 1
        if self._lookups % self.TRIAL == 0 and self._hits * 3 < self._lookups:
            self.helps = False
            self._values.clear()
        return value

    def keep(self, key: Hashable, value: T) -> None:
        """Remember an answer."""
        if self.helps:
            if len(self._values) >= self.MOST:
                self._values.clear()
            self._values[key] = value


class NodeViews:
    """Keys of nodes: equal for nodes in which nothing that room or scores depend on differs."""

    def __init__(self, state: State) -> None:
        problem = state.problem
        self._state = state
        self._start: list[int] = problem.node_gpu_start.tolist()
        self._class: list[int] = problem.node_class.tolist()
        self._arrays = [state.gpu_free_milli]
        if problem.jobs_per_gpu is not None:
            self._arrays.append(state.gpu_jobs)
        if problem.options.gpu_memory_mib.any():
            self._arrays.append(state.gpu_free_memory)
        if not problem.shares_bind:
            self._arrays.append(state.gpu_utilisation)
        if not nodes_are_of_one_model(problem):  # then it matters on which GPU of a node a share is left
            self._arrays.append(problem.gpu_type)
        self._states: dict[int, View] = {}
        self._has_geometry = problem.has_geometry

    @property
    def only_shares(self) -> bool:
        """Whether the free shares of its GPUs, and free resources, are all that tells nodes of a class apart."""
        return len(self._arrays) == 1 and not self._has_geometry

    def forget(self, node: int) -> None:
        """Note that ``node`` changed."""
        self._states.pop(node, None)

    def state_of(self, node: int) -> View:
        """Return class, free resources, and the free part of the GPUs, sorted."""
        cached = self._states.get(node)
        if cached is None:
            free = self._state.node_free[node].tolist()
            cached = self._states[node] = (self._class[node], *free, *sorted(self.gpus_of(node)[1:]))
        return cached

    def placed_state_of(self, node: int) -> View:
        """Return class, free resources, and the free part of every GPU."""
        return (*self.gpus_of(node), *self._state.node_free[node].tolist())

    def gpus_of(self, node: int) -> View:
        """Return class, and the free part of every GPU."""
        start, end = self._start[node], self._start[node + 1]
        if len(self._arrays) == 1:
            return (self._class[node], *self._arrays[0][start:end].tolist())
        return (self._class[node], *zip(*(array[start:end].tolist() for array in self._arrays), strict=True))

    def usable_gpus_of(self, node: int, milli: int) -> View:
        """Return class, and the free part of every GPU with so much free; 0 of the others. Where `only_shares`."""
        row = self._arrays[0][self._start[node] : self._start[node + 1]].tolist()
        return (self._class[node], *[left if left >= milli else 0 for left in row])


def option_shapes(problem: Problem, features: IntArray | None = None) -> list[int]:
    """
    Number the options: two have the same number if every node has the same room for both, and scores both alike.

    ``features``, shape (O, anything): what else of each option the score depends on.
    """
    options = problem.options
    rows = np.column_stack(
        (
            options.gpus,
            options.milli,
            options.gpu_memory_mib,
            options.bundles,
            options.workers,
            options.workers_per_node,
            options.demand,
            np.zeros((len(options), 0), dtype=np.int64) if features is None else features,
        )
    )
    masks = np.packbits(np.column_stack((options.gpu_type_ok, options.node_class_ok)), axis=1)
    kinds = zip(rows, masks, options.gpu_profile, strict=True)
    return group_by_key((row.tobytes() + mask.tobytes(), profile) for row, mask, profile in kinds)[0]
