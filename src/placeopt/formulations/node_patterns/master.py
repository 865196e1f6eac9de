"""The master: which mix of fillings known so far is worth most, as a linear program."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from placeopt.formulations.node_patterns.bundle_groups import BundleGroups
from placeopt.formulations.node_patterns.job_groups import JobGroups
from placeopt.formulations.node_patterns.node_states import NodeStates
from placeopt.formulations.node_patterns.pricing import NodePattern
from placeopt.linear import NO_LOWER, IntArray, LinearModel, ModelBuilder

EXACT = 1e-6
LARGE = 0.6
"""Part of a filling from which it is used once more without being the largest; ours."""

Key = tuple[int, tuple[tuple[int, int], ...]]


class Master:
    """
    Starts of crowds, and fillings of states: bundles that start lie in fillings, and a state has so many nodes.

    Columns: one per way to start, then one per filling in the order in which they were added, so a basis stays valid
    when fillings are added. Rows: bundles by kind, nodes by state, then jobs by crowd where a job has several ways.
    """

    def __init__(self, kinds: BundleGroups, states: NodeStates, crowds: JobGroups, held: int) -> None:
        self._kinds, self._states, self._crowds, self._held = kinds, states, crowds, held
        self.fillings: list[Key] = []
        """State, and (kind, number) pairs of every filling."""
        self._known: set[Key] = set()
        self.least: IntArray = np.zeros(len(crowds.crowd), dtype=np.int64)
        self.most: IntArray = crowds.size[crowds.crowd]
        """Shapes (W,): limits on the jobs that start each way."""

    def add(self, fillings: Iterable[tuple[int, NodePattern]]) -> int:
        """Add fillings of states, those that are known or empty left out. Returns how many were new."""
        before = len(self.fillings)
        for state, filling in fillings:
            key = (state, tuple(sorted(filling.items())))
            if filling and key not in self._known:
                self._known.add(key)
                self.fillings.append(key)
        return len(self.fillings) - before

    def model(self, fixed: IntArray, deadline: float = float("inf")) -> LinearModel:
        """
        Build the linear program; its duals of the first rows, by ``prices``, are what bundles are worth.

        ``fixed``: how often each of the first fillings is used at least.

        Raises
        ------
        OutOfTime
            If ``deadline``, of ``time.monotonic()``, passes meanwhile.
        """
        crowds, states = self._crowds, self._states
        builder = ModelBuilder(deadline)
        ways = builder.add_variables(self.least, self.most, count=len(crowds.crowd))
        state = np.array([s for s, _ in self.fillings], dtype=np.int64)
        least = np.zeros(len(state), dtype=np.int64)
        least[: len(fixed)] = fixed
        columns = builder.add_variables(least, states.count[state], count=len(state))
        entries = [len(filling) for _, filling in self.fillings]
        pairs = np.array([pair for _, filling in self.fillings for pair in filling], dtype=np.int64).reshape(-1, 2)
        none = np.full(len(self._kinds), NO_LOWER, dtype=np.int64)
        builder.add_rows(
            np.concatenate([crowds.kind, pairs[:, 0]]),
            np.concatenate([ways, np.repeat(columns, entries)]),
            np.concatenate([crowds.bundles, -pairs[:, 1]]),
            none,
            np.zeros(len(self._kinds), dtype=np.int64),
        )
        ones = np.ones(len(columns), dtype=np.int64)
        builder.add_rows(state, columns, ones, np.full(len(states), NO_LOWER, dtype=np.int64), states.count)
        several = np.bincount(crowds.crowd, minlength=len(crowds.jobs)) > 1
        mine = several[crowds.crowd]
        row = np.cumsum(several) - 1
        builder.add_rows(
            row[crowds.crowd[mine]],
            ways[mine],
            np.ones(int(mine.sum()), dtype=np.int64),
            np.full(int(several.sum()), NO_LOWER, dtype=np.int64),
            crowds.size[several],
        )
        builder.set_objective(ways, crowds.value, "max", self._held)
        return builder.build()

    def prices(self, model: LinearModel, duals: np.ndarray) -> IntArray:
        """Shape (D,): what a bundle of each kind is worth by the duals of ``model``, in parts of ``crowds.scale``."""
        own = len(self._kinds)
        exact = duals[:own] / model.row_divisor[:own] * self._crowds.scale
        return np.rint(np.clip(np.nan_to_num(exact), 0, 2.0**61)).astype(np.int64)

    def settle_gangs(self, values: np.ndarray, *, down: bool) -> bool:
        """
        Let jobs of several bundles start as often as the relaxation says, in whole jobs: rounded, or rounded down.

        Parts of a job are worth nothing, but would be given fillings. Returns whether any was used in part.
        """
        gangs = np.flatnonzero(self._crowds.bundles > 1)
        used = values[: len(self._crowds.crowd)][gangs]
        low = np.floor(used + EXACT)
        number = low if down else np.where(used - low > 0.5, low + 1, low)
        self.least[gangs] = 0 if down else number.astype(np.int64)
        self.most[gangs] = number.astype(np.int64)
        return bool((used - low > EXACT).any())

    def free_gangs(self) -> bool:
        """Let jobs of several bundles wait again: whole fillings may have left no room. Tells if some had to run."""
        forced = bool(self.least.any())
        self.least[:] = 0
        return forced

    def whole(self, values: np.ndarray) -> tuple[IntArray, np.ndarray]:
        """Shapes (fillings,): how often the relaxation uses each filling, in whole nodes, and what is left of that."""
        used = np.maximum(values[len(self._crowds.crowd) :], 0)
        whole: IntArray = np.floor(used + EXACT).astype(np.int64)
        return whole, np.maximum(used - whole, 0)

    def round_up(self, whole: IntArray, rest: np.ndarray) -> IntArray:
        """
        Use fillings once more that the relaxation uses in large part: all of LARGE, at least the largest.

        A filling that is used without need only leaves room, so no more than the nodes of each state limit this.
        """
        state = np.array([s for s, _ in self.fillings[: len(whole)]], dtype=np.int64)
        free = self._states.count.copy()
        np.subtract.at(free, state, whole)
        out = whole.copy()
        for c in np.argsort(-rest, kind="stable").tolist():
            if rest[c] <= EXACT or (rest[c] < LARGE and (out > whole).any()):
                break
            if free[state[c]] > 0:
                out[c] += 1
                free[state[c]] -= 1
        return out
