"""The master: which mix of known patterns is worth most, and what its prices prove."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from placeopt.formulations.node_patterns.groups import CHARGES, BundleGroups, JobGroups, NodeStates
from placeopt.formulations.node_patterns.pricing import BestPatterns, NodePattern
from placeopt.linear import NO_LOWER, LinearModel, ModelBuilder
from placeopt.problem import IntArray

EXACT = 1e-6
LARGE = 0.6
"""Part of a pattern from which it is used once more without being the largest; ours."""

Key = tuple[int, tuple[tuple[int, int], ...]]
"""A state, and (bundle group, number) pairs of a pattern."""


class PatternMaster:
    """
    Rows of a mix: the bundles of jobs that start lie in patterns, and a group of states has no more nodes than it has.

    A column gives every free node of a group of states a pattern; where a group is a single state, the same one to all,
    and then its variable counts nodes. Other variables count parts of the group in which all patterns occur alike.
    Columns: one per start to start, then those of groups in the order in which they were added, so a basis stays valid
    when columns are added. Rows: bundles by bundle group, nodes by group, then jobs by job group where a job has
    several starts.
    """

    def __init__(
        self, bundle_groups: BundleGroups, states: NodeStates, group: IntArray, job_groups: JobGroups, held: int
    ) -> None:
        self._bundle_groups, self._job_groups, self._held = bundle_groups, job_groups, held
        self._parts = CHARGES if job_groups.charge.any() else 1
        self.charged = True
        """Whether programs charge jobs; each one may."""
        order = np.argsort(group, kind="stable")
        size = np.bincount(group, weights=states.count).astype(np.int64)
        self._free = np.split(np.repeat(order, states.count[order]), np.cumsum(size)[:-1])
        """Of each group: the states of its nodes that have no pattern yet, once for each node."""
        self._single = np.bincount(group) == 1
        self._patterns: list[tuple[tuple[int, int], ...]] = [()]
        self._numbers: dict[tuple[tuple[int, int], ...], int] = {(): 0}
        self._held_by = [np.zeros(len(bundle_groups), dtype=np.int64)]  # of each pattern: its bundles of each group
        self._columns: list[_Column] = []
        self._seen: set[tuple[int, bytes]] = set()
        self._slots = np.zeros(len(bundle_groups), dtype=np.int64)
        self.used: Counter[Key] = Counter()
        """Patterns that nodes have got, and how often."""
        self.least: IntArray = np.zeros(len(job_groups.job_group), dtype=np.int64)
        self.most: IntArray = job_groups.size[job_groups.job_group]
        """Shapes (W,): limits on the jobs that start each start."""

    def copy(self) -> PatternMaster:
        """Return a master of the same columns and nodes that gives patterns by itself."""
        out = copy.copy(self)
        out._free, out._columns, out._seen = list(self._free), list(self._columns), set(self._seen)
        out.least, out.most, out._slots = self.least.copy(), self.most.copy(), self._slots.copy()
        out.used = Counter(self.used)
        return out

    @property
    def nodes_left(self) -> int:
        """Nodes that have no pattern yet."""
        return sum(map(len, self._free))

    def worth(self, values: np.ndarray) -> int:
        """Return the net value of a mix, what is held included, rounded down; ``values`` are those of the columns."""
        return self._held + int(values[: len(self.least)] @ self._job_groups.value + EXACT)

    def __len__(self) -> int:
        """Return the number of columns beside those of starts."""
        return len(self._columns)

    def add_plan(self, patterns: Iterable[tuple[int, NodePattern]]) -> int:
        """
        Add the patterns of nodes of states; what is known or empty is left out. Returns how many columns were new.

        Those of a single state make a column each; those of a group of states one together.
        """
        of_state: dict[int, list[int]] = {}
        for state, pattern in patterns:
            of_state.setdefault(state, []).append(self._number(pattern))
        new = 0
        for g, states in enumerate(self._free):
            if self._single[g]:
                for number in dict.fromkeys(of_state.get(int(states[0]), ())):
                    new += self._add(g, np.full(len(states), number, dtype=np.int64))
            else:
                rest = {state: iter(of_state.get(state, ())) for state in np.unique(states).tolist()}
                new += self._add(g, np.array([next(rest[state], 0) for state in states.tolist()], dtype=np.int64))
        return new

    def add_best(self, best: BestPatterns) -> int:
        """Add a column for each group in which all nodes have their best patterns. Returns how many were new."""
        number = np.array([self._number(pattern) for pattern in best.patterns], dtype=np.int64)[best.choice]
        return sum(self._add(g, number[states]) for g, states in enumerate(self._free))

    def _number(self, pattern: NodePattern) -> int:
        pairs = tuple(sorted(pattern.items()))
        if pairs not in self._numbers:
            self._numbers[pairs] = len(self._patterns)
            self._patterns.append(pairs)
            held = np.zeros(len(self._bundle_groups), dtype=np.int64)
            held[list(pattern)] = list(pattern.values())
            self._held_by.append(held)
        return self._numbers[pairs]

    def _add(self, group: int, choice: IntArray) -> bool:
        key = (group, choice.tobytes())
        if not choice.any() or key in self._seen:
            return False
        self._seen.add(key)
        self._columns.append(self._column(group, choice))
        return True

    def _column(self, group: int, choice: IntArray) -> _Column:
        times = np.bincount(choice)
        parts = int(np.gcd.reduce(times))
        numbers = np.flatnonzero(times)
        of_pattern = np.array([self._held_by[number] for number in numbers.tolist()], dtype=np.int64)
        held = (times[numbers] // max(parts, 1)) @ of_pattern.reshape(len(numbers), len(self._bundle_groups))
        used = np.flatnonzero(held)
        return _Column(group, choice, parts, used, held[used])

    def model(self, deadline: float = float("inf")) -> LinearModel:
        """
        Build the linear program; its duals of the first rows, by ``prices``, are what bundles are worth.

        Its objective is value, less charges, where there are any: then in 1 / CHARGES of a value.
        """
        job_groups = self._job_groups
        builder = ModelBuilder(deadline)
        starts = builder.add_variables(self.least, self.most, count=len(job_groups.job_group))
        group, parts = (
            np.array([getattr(column, name) for column in self._columns], dtype=np.int64) for name in ("group", "parts")
        )
        size = np.array([len(states) for states in self._free], dtype=np.int64)
        columns = builder.add_variables(0, parts, count=len(parts))
        entries = [len(column.used) for column in self._columns]
        none = np.zeros(0, dtype=np.int64)
        row, bundles = (
            np.concatenate([none, *(getattr(column, name) for column in self._columns)]) for name in ("used", "bundles")
        )
        started = (job_groups.bundle_group, starts, job_groups.bundles)
        held = (row, np.repeat(columns, entries), -bundles)
        builder.add_parts(NO_LOWER, self._slots, started, held)
        builder.add_rows(group, columns, size[group] // np.maximum(parts, 1), NO_LOWER, size)
        several = np.bincount(job_groups.job_group, minlength=len(job_groups.jobs)) > 1
        selected = several[job_groups.job_group]
        row = np.cumsum(several) - 1
        builder.add_rows(row[job_groups.job_group[selected]], starts[selected], 1, NO_LOWER, job_groups.size[several])
        worth = self._parts * job_groups.value - self.charged * job_groups.charge
        builder.set_objective(starts, worth, "max", self._parts * self._held)
        return builder.build()

    def prices(self, model: LinearModel, duals: np.ndarray) -> IntArray:
        """Return the worth of a bundle of each group by the duals of ``model``, (D,), unit 1 / ``job_groups.scale``."""
        own = len(self._bundle_groups)
        exact = duals[:own] / model.row_divisor[:own] * self._job_groups.scale / self._parts
        return np.rint(np.clip(np.nan_to_num(exact), 0, 2.0**61)).astype(np.int64)

    def fix_gangs(self, values: np.ndarray, *, down: bool) -> bool:
        """
        Let jobs of several bundles start as often as the relaxation says, in whole jobs: rounded, or rounded down.

        Parts of a job are worth nothing, but would be given patterns. Returns whether any was used in part.
        """
        job_groups = self._job_groups
        gangs = np.flatnonzero(job_groups.bundles * job_groups.together > 1)
        used = values[: len(job_groups.job_group)][gangs]
        low = np.floor(used + EXACT)
        number, rest = low.copy(), np.maximum(used - low, 0)
        # starts that differ in merged bundles alone are rounded together: the job runs in the one used most
        alike = np.column_stack([job_groups.job_group, job_groups.place])[gangs]
        _, row = np.unique(alike, axis=0, return_inverse=True)
        row = row.reshape(-1)
        parts = np.bincount(row, weights=rest)
        more = np.floor(parts + EXACT) if down else np.where(parts % 1 > 0.5, np.ceil(parts), np.floor(parts + EXACT))
        for i in np.argsort(-rest, kind="stable").tolist():
            if more[row[i]] >= 1 and rest[i] > EXACT:
                number[i] += 1
                more[row[i]] -= 1
        self.least[gangs] = 0 if down else number.astype(np.int64)
        self.most[gangs] = number.astype(np.int64)
        return bool((rest > EXACT).any())

    def release_gangs(self) -> bool:
        """Let jobs of several bundles wait again: whole patterns may have left no room. Tells if some had to run."""
        forced = bool(self.least.any())
        self.least[:] = 0
        return forced

    def take(self, values: np.ndarray, *, large: bool = True) -> bool:
        """
        Give nodes the patterns that the relaxation uses: in whole nodes, and once more where it does so in large part.

        Large parts, left alone unless ``large``, are those from LARGE on, at least the largest. A pattern that is used
        without need only leaves room, so no more than the nodes of each group limit this. Nodes that take the patterns
        of one column lie evenly among all of a group, so that they are like it. Returns whether any part was left.
        """
        size = np.array([len(states) for states in self._free], dtype=np.int64)
        group, parts = np.array([(column.group, column.parts) for column in self._columns], dtype=np.int64).T
        used = np.zeros(len(group))  # columns added since are not used
        used[: len(values) - len(self._job_groups.job_group)] = values[len(self._job_groups.job_group) :]
        nodes = np.maximum(used, 0) * (size[group] / np.maximum(parts, 1))
        number = np.floor(nodes + EXACT).astype(np.int64)
        rest = np.maximum(nodes - number, 0)
        free = size - np.bincount(group, weights=number, minlength=len(size)).astype(np.int64)
        rounded = False
        for c in np.argsort(-rest, kind="stable").tolist() if large else ():
            if rest[c] <= EXACT or (rest[c] < LARGE and rounded):
                break
            if free[group[c]] > 0:
                number[c] += 1
                free[group[c]] -= 1
                rounded = True
        for g in np.unique(group[number > 0]).tolist():
            here = np.flatnonzero(group == g)
            self._give(g, here, number[here], int(free[g]))
        return bool((rest > EXACT).any())

    def _give(self, group: int, columns: IntArray, number: IntArray, free: int) -> None:
        """Give nodes of a group the patterns of its columns, ``number`` of each; ``free`` ones stay free."""
        times = np.array([*number.tolist(), free], dtype=np.int64)
        which = np.repeat(np.arange(len(times)), times)
        position = (np.arange(len(which)) - np.repeat(np.cumsum(times) - times, times) + 0.5) / times[which]
        which = which[np.argsort(position, kind="stable")]
        states, left = self._free[group], which == len(columns)
        self._free[group] = states[left]
        for i, c in enumerate(columns.tolist()):
            choice, here = self._columns[c].choice, which == i
            for state, p in zip(states[here].tolist(), choice[here].tolist(), strict=True):
                self.used[state, self._patterns[p]] += 1
                for k, bundles in self._patterns[p]:
                    self._slots[k] += bundles
            self._columns[c] = self._column(group, choice[left])


@dataclass(frozen=True)
class _Column:
    """A pattern for every free node of a group; in each of ``parts`` equal parts they hold ``bundles`` of ``used``."""

    group: int
    choice: IntArray
    """Shape (free nodes,): numbers of patterns."""
    parts: int
    used: IntArray
    """Bundle groups; ``bundles``, of the same shape: how many."""
    bundles: IntArray


RELAXES = (
    "where the workers of a job are, and which GPUs and sockets they hold",
    "node resources but the two that bind on most nodes, and what rounding the demand for these down leaves",
    "GPU memory, queues and uplinks",
)


def proven_bound(job_groups: JobGroups, price: IntArray, best: IntArray, count: IntArray, held: int) -> int:
    """
    Bound on the net value of every plan that keeps what is held.

    - ``price``: Shape (D,): what a bundle of each bundle group pays, in parts of ``job_groups.scale``, not negative.
      Any prices will do.
    - ``best``: Shape (S,): no pattern of a state pays more than this at these prices, in the same parts.
    - ``count``: Shape (S,): nodes in each state.
    - ``held``: Value of what is held.

    A plan's value is what its jobs are worth less what their bundles pay, plus what the bundles pay. The first is at
    most the sum over job groups of its jobs x the best of its starts, or 0; the second is paid by the patterns of the
    nodes. Workers of a job may be anywhere, on as many nodes as there are bundles.
    """
    over = job_groups.value * job_groups.scale - job_groups.bundles * price[job_groups.bundle_group]
    margin = np.zeros(len(job_groups.jobs), dtype=np.int64)
    np.maximum.at(margin, job_groups.job_group, over)
    total = sum(m * n for m, n in zip(margin.tolist(), job_groups.size.tolist(), strict=True))
    total += sum(b * n for b, n in zip(best.tolist(), count.tolist(), strict=True))
    bound: int = held + total // job_groups.scale
    return bound
