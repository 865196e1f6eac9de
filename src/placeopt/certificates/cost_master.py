"""The linear program behind prices of costs: jobs start in ways, nodes have contents at what these cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.certificates.master import Branch, Column, Counted, counts_of, times_of
from placeopt.certificates.room import Room
from placeopt.linear import NO_LOWER, NO_UPPER, IntArray, LinearModel, ModelBuilder


@dataclass(frozen=True, eq=False)
class CostDuals:
    """Of the rows: a bundle, an amount of a node of a state, a unit of value, a branch, a node of a state."""

    bundle: np.ndarray
    amounts: np.ndarray
    value: float
    branches: tuple[float, ...]
    states: np.ndarray

    def halfway(self, other: CostDuals) -> CostDuals:
        """Return the mean of two, with the states of the first."""
        branches = tuple((a + b) / 2 for a, b in zip(self.branches, other.branches, strict=True))
        bundle, amounts = (self.bundle + other.bundle) / 2, (self.amounts + other.amounts) / 2
        return CostDuals(bundle, amounts, (self.value + other.value) / 2, branches, self.states)


class CostMaster:
    """
    The program over ``columns``, each with its cost, of plans that are worth ``value`` and in all ``branches``.

    A unit of value that is missing costs ``penalty``, and so does what a branch lacks, so it has a solution.
    """

    def __init__(
        self,
        room: Room,
        columns: Mapping[Column, int],
        value: int,
        branches: Sequence[Branch],
        penalty: int,
        deadline: float,
    ) -> None:
        self._room = room
        builder = ModelBuilder(deadline)
        self._ways = [(g, way) for g, group in enumerate(room.groups) for way in group.ways]
        group, size = _ints([g for g, _ in self._ways]), _ints([len(group.jobs) for group in room.groups])
        count, kinds = _ints([len(state.nodes) for state in room.states]), len(room.amounts)
        self._start = start = builder.add_variables(0, size[group])
        of_state = _ints([column.state for column in columns])
        filled = builder.add_variables(0, count[of_state])
        alone = [
            (s, fit.bundle, fit.most * len(state.nodes))
            for s, state in enumerate(room.states)
            for fit in state.fitting
            if not room.bundles[fit.bundle].gpus
        ]
        single = builder.add_variables(0, _ints([most for *_, most in alone]))
        missing = builder.add_variables(0, max(value, 0), count=1)
        lacks = builder.add_variables(0, _ints([0 if branch.at_most else branch.limit for branch in branches]))
        builder.add_rows(group, start, 1, NO_LOWER, size)
        held = [
            (s, variable, b, n)
            for (s, filling), variable in zip(columns, filled.tolist(), strict=True)
            for b, n in filling
        ]
        held += [(s, variable, b, 1) for (s, b, _), variable in zip(alone, single.tolist(), strict=True)]
        state, variable, bundle, number = np.array(held, dtype=np.int64).reshape(len(held), 4).T
        self._bundle_rows = builder.num_rows
        taken = (_ints([way.bundle for _, way in self._ways]), start, _ints([way.bundles for _, way in self._ways]))
        builder.add_parts(NO_LOWER, 0, taken, (bundle, variable, -number), count=len(room.bundles))
        self._state_rows = builder.num_rows
        builder.add_parts(NO_LOWER, count, (of_state, filled, 1), count=len(count))
        self._amount_rows = builder.num_rows
        demand = _ints([bundle.amounts for bundle in room.bundles]).reshape(-1, kinds)[bundle] * number[:, None]
        entry, kind = np.nonzero(demand)
        free = _ints([state.free for state in room.states]).reshape(-1, kinds) * count[:, None]
        takes = (state[entry] * kinds + kind, variable[entry], demand[entry, kind])
        builder.add_parts(NO_LOWER, free.reshape(-1), takes, count=free.size)
        self._value_row = builder.num_rows
        worth = _ints([way.value for _, way in self._ways])
        builder.add_row(np.append(start, missing), np.append(worth, 1), value - room.held, NO_UPPER)
        self._branch_rows = builder.num_rows
        for branch, lack in zip(branches, lacks.tolist(), strict=True):
            times = times_of(self._ways, branch.counted)
            sides = (NO_LOWER, branch.limit) if branch.at_most else (branch.limit, NO_UPPER)
            builder.add_row(np.append(start[times > 0], lack), np.append(times[times > 0], 1), *sides)
        self._priced = np.concatenate([filled, missing, lacks])
        self._prices = np.append(_ints(list(columns.values())), np.full(1 + len(branches), penalty))
        builder.set_objective(self._priced, self._prices, "min")
        self.model: LinearModel = builder.build()

    def counts(self, values: np.ndarray) -> dict[Counted, float]:
        """Return what `counts_of` counts in a solution."""
        return counts_of(self._ways, values[self._start])

    def cost(self, values: np.ndarray) -> float:
        """Return the cost of a solution: no prices prove more under these branches."""
        return float(self._prices @ values[self._priced])

    def duals(self, duals: np.ndarray) -> CostDuals:
        """Return the duals of a solution by what their rows are about, none below 0."""
        exact = np.abs(np.nan_to_num(duals) / self.model.row_divisor)
        amounts = exact[self._amount_rows : self._value_row].reshape(-1, len(self._room.amounts))
        branches = tuple(exact[self._branch_rows :].tolist())
        bundle, states = exact[self._bundle_rows : self._state_rows], exact[self._state_rows : self._amount_rows]
        return CostDuals(bundle, amounts, float(exact[self._value_row]), branches, states)


def _ints(values: object) -> IntArray:
    return np.array(values, dtype=np.int64)
