"""The master: which mix of patterns known so far is worth most, as a linear program."""

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
"""Part of a pattern from which it is used once more without being the largest; ours."""

Key = tuple[int, tuple[tuple[int, int], ...]]


class PatternMaster:
    """
    Starts of job groups, and patterns of states: bundles that start lie in patterns, and a state has so many nodes.

    Columns: one per start to start, then one per pattern in the order in which they were added, so a basis stays valid
    when patterns are added. Rows: bundles by bundle group, nodes by state, then jobs by job group where a job has
    several starts.
    """

    def __init__(self, bundle_groups: BundleGroups, states: NodeStates, job_groups: JobGroups, held: int) -> None:
        self._bundle_groups, self._states, self._job_groups, self._held = bundle_groups, states, job_groups, held
        self.patterns: list[Key] = []
        """State, and (bundle group, number) pairs of every pattern."""
        self._seen: set[Key] = set()
        self.least: IntArray = np.zeros(len(job_groups.job_group), dtype=np.int64)
        self.most: IntArray = job_groups.size[job_groups.job_group]
        """Shapes (W,): limits on the jobs that start each start."""

    def add(self, patterns: Iterable[tuple[int, NodePattern]]) -> int:
        """Add patterns of states, those that are known or empty left out. Returns how many were new."""
        before = len(self.patterns)
        for state, pattern in patterns:
            key = (state, tuple(sorted(pattern.items())))
            if pattern and key not in self._seen:
                self._seen.add(key)
                self.patterns.append(key)
        return len(self.patterns) - before

    def model(self, fixed: IntArray, deadline: float = float("inf")) -> LinearModel:
        """
        Build the linear program; its duals of the first rows, by ``prices``, are what bundles are worth.

        ``fixed``: how often each of the first patterns is used at least.

        Raises
        ------
        OutOfTime
            If ``deadline``, of ``time.monotonic()``, passes meanwhile.
        """
        job_groups, states = self._job_groups, self._states
        builder = ModelBuilder(deadline)
        starts = builder.add_variables(self.least, self.most, count=len(job_groups.job_group))
        state = np.array([s for s, _ in self.patterns], dtype=np.int64)
        least = np.zeros(len(state), dtype=np.int64)
        least[: len(fixed)] = fixed
        columns = builder.add_variables(least, states.count[state], count=len(state))
        entries = [len(pattern) for _, pattern in self.patterns]
        pairs = np.array([pair for _, pattern in self.patterns for pair in pattern], dtype=np.int64).reshape(-1, 2)
        none = np.full(len(self._bundle_groups), NO_LOWER, dtype=np.int64)
        builder.add_rows(
            np.concatenate([job_groups.bundle_group, pairs[:, 0]]),
            np.concatenate([starts, np.repeat(columns, entries)]),
            np.concatenate([job_groups.bundles, -pairs[:, 1]]),
            none,
            np.zeros(len(self._bundle_groups), dtype=np.int64),
        )
        ones = np.ones(len(columns), dtype=np.int64)
        builder.add_rows(state, columns, ones, np.full(len(states), NO_LOWER, dtype=np.int64), states.count)
        several = np.bincount(job_groups.job_group, minlength=len(job_groups.jobs)) > 1
        selected = several[job_groups.job_group]
        row = np.cumsum(several) - 1
        builder.add_rows(
            row[job_groups.job_group[selected]],
            starts[selected],
            np.ones(int(selected.sum()), dtype=np.int64),
            np.full(int(several.sum()), NO_LOWER, dtype=np.int64),
            job_groups.size[several],
        )
        builder.set_objective(starts, job_groups.value, "max", self._held)
        return builder.build()

    def prices(self, model: LinearModel, duals: np.ndarray) -> IntArray:
        """Return the worth of a bundle of each group by the duals of ``model``, (D,), unit 1 / ``job_groups.scale``."""
        own = len(self._bundle_groups)
        exact = duals[:own] / model.row_divisor[:own] * self._job_groups.scale
        return np.rint(np.clip(np.nan_to_num(exact), 0, 2.0**61)).astype(np.int64)

    def fix_gangs(self, values: np.ndarray, *, down: bool) -> bool:
        """
        Let jobs of several bundles start as often as the relaxation says, in whole jobs: rounded, or rounded down.

        Parts of a job are worth nothing, but would be given patterns. Returns whether any was used in part.
        """
        gangs = np.flatnonzero(self._job_groups.bundles > 1)
        used = values[: len(self._job_groups.job_group)][gangs]
        low = np.floor(used + EXACT)
        number = low if down else np.where(used - low > 0.5, low + 1, low)
        self.least[gangs] = 0 if down else number.astype(np.int64)
        self.most[gangs] = number.astype(np.int64)
        return bool((used - low > EXACT).any())

    def release_gangs(self) -> bool:
        """Let jobs of several bundles wait again: whole patterns may have left no room. Tells if some had to run."""
        forced = bool(self.least.any())
        self.least[:] = 0
        return forced

    def whole(self, values: np.ndarray) -> tuple[IntArray, np.ndarray]:
        """Shapes (patterns,): how often the relaxation uses each pattern, in whole nodes, and what is left of that."""
        used = np.maximum(values[len(self._job_groups.job_group) :], 0)
        whole: IntArray = np.floor(used + EXACT).astype(np.int64)
        return whole, np.maximum(used - whole, 0)

    def round_up(self, whole: IntArray, rest: np.ndarray) -> IntArray:
        """
        Use patterns once more that the relaxation uses in large part: all of LARGE, at least the largest.

        A pattern that is used without need only leaves room, so no more than the nodes of each state limit this.
        """
        state = np.array([s for s, _ in self.patterns[: len(whole)]], dtype=np.int64)
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
