"""
Twin GPU groups: several that hold the same columns at the same costs, folded into one for an integer model.

Otherwise a solver proves the same for every way to exchange what twins hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from placeopt.formulations.branch_and_price.master import ColumnMaster, MasterModel
from placeopt.formulations.branch_and_price.pricing import Column
from placeopt.linear import NO_UPPER, LinearModel
from placeopt.problem import IntArray


@dataclass(frozen=True, eq=False)
class _Twins:
    """Variables of the same columns for two GPU groups; one move takes a column, whichever, to the second group."""

    kept: IntArray
    folded: IntArray


@dataclass(frozen=True, eq=False)
class FoldedModel:
    """
    A model with the columns of one GPU group of each set of twins, and a variable for moves to each other.

    Its solutions are those of the original model, but for exchanges between twins.
    """

    model: LinearModel
    variables: IntArray  # of the original model that are left
    twins: tuple[_Twins, ...]

    def fold(self, values: IntArray) -> IntArray:
        """Return the values of the folded model for those of the original one."""
        values = values.copy()
        moves = [int(values[twins.folded].sum()) for twins in self.twins]
        for twins in self.twins:
            values[twins.kept] += values[twins.folded]
        return np.append(values[self.variables], np.array(moves, dtype=np.int64))

    def unfold(self, values: IntArray, size: int) -> IntArray:
        """Return values of the original model, which has ``size`` variables."""
        out = np.zeros(size, dtype=np.int64)
        out[self.variables] = values[: len(self.variables)]
        for twins, moves in zip(self.twins, values[len(self.variables) :].tolist(), strict=True):
            held = out[twins.kept]
            taken = np.clip(moves - (np.cumsum(held) - held), 0, held)
            out[twins.kept] -= taken
            out[twins.folded] += taken
        return out


def fold_twins(master: ColumnMaster, columns: Sequence[Column], layout: MasterModel) -> FoldedModel:
    """Fold the GPU groups that have the same columns, at the same costs, in the model."""
    model = layout.model
    twins = _twins(master, columns, layout.column)
    if not twins:
        return FoldedModel(model, np.arange(model.num_variables), ())
    row, column, coefficient = model.row_of_nonzero, model.columns, model.coefficients
    upper, left = model.upper.copy(), np.ones(model.num_variables, dtype=bool)
    rows, entries, coefficients = [], [], []
    for number, pair in enumerate(twins):
        upper[pair.kept] += model.upper[pair.folded]
        left[pair.folded] = False
        # the columns differ in the rows of their groups only, and there every one by the same
        for variable, sign in ((pair.folded[0], 1), (pair.kept[0], -1)):
            of = np.flatnonzero(column == variable)
            rows.append(row[of])
            entries.append(np.full(len(of), model.num_variables + number))
            coefficients.append(sign * coefficient[of])
    moves = model.num_variables + np.arange(len(twins))
    for extra, first in enumerate(sorted({int(pair.kept[0]) for pair in twins})):  # no more moves than columns
        from_here = [number for number, pair in enumerate(twins) if pair.kept[0] == first]
        kept = twins[from_here[0]].kept
        rows.append(np.full(len(kept) + len(from_here), model.num_rows + extra))
        entries.append(np.append(kept, moves[from_here]))
        coefficients.append(np.append(np.ones(len(kept), dtype=np.int64), np.full(len(from_here), -1)))
    sources = len({int(pair.kept[0]) for pair in twins})
    stay = left[column]
    all_rows = np.concatenate([row[stay], *rows])
    all_columns = np.concatenate([column[stay], *entries])
    all_coefficients = np.concatenate([coefficient[stay], *coefficients])
    variables = np.flatnonzero(left)
    size = model.num_variables + len(twins)
    key, place = np.unique(all_rows * size + all_columns, return_inverse=True)
    sums = np.zeros(len(key), dtype=np.int64)
    np.add.at(sums, place.reshape(-1), all_coefficients)
    key, sums = key[sums != 0], sums[sums != 0]
    number_of = np.cumsum(np.append(left, np.ones(len(twins), dtype=bool))) - 1
    none = np.zeros(len(twins), dtype=np.int64)
    folded = replace(
        model,
        lower=np.append(model.lower[variables], none),
        upper=np.append(upper[variables], [int(model.upper[pair.folded].max()) for pair in twins]),
        objective=np.append(model.objective[variables], none),
        row_start=np.searchsorted(key, np.arange(model.num_rows + sources + 1) * size),
        columns=number_of[key % size],
        coefficients=sums,
        row_lower=np.append(model.row_lower, np.zeros(sources, dtype=np.int64)),
        row_upper=np.append(model.row_upper, np.full(sources, NO_UPPER)),
        row_divisor=np.append(model.row_divisor, np.ones(sources, dtype=np.int64)),
    )
    return FoldedModel(folded, variables, twins)


def _twins(master: ColumnMaster, columns: Sequence[Column], variables: IntArray) -> tuple[_Twins, ...]:
    """Pairs of GPU groups with the same contents at the same costs, the first of each set with every other."""
    gpu_groups = master.gpu_groups
    bound = {g for g, _ in master.scarce}  # their rows tell one column from another
    held: dict[int, dict[tuple[bytes, int], int]] = {}
    for variable, column in zip(variables.tolist(), columns, strict=True):
        if column.open_group >= 0 and int(gpu_groups.node_group_of[column.open_group]) not in bound:
            held.setdefault(column.open_group, {})[column.group_counts[0], column.cost] = variable
    first: dict[frozenset[tuple[bytes, int]], int] = {}
    twins = []
    for open_group, contents in sorted(held.items()):
        kept = first.setdefault(frozenset(contents), open_group)
        if kept != open_group:
            both = [(held[kept][content], variable) for content, variable in contents.items()]
            twins.append(_Twins(*np.array(both, dtype=np.int64).T))
    return tuple(twins)
