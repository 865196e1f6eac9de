"""Column generation over whole jobs: a column is a job of a bundle group with the nodes that its bundles lie on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from placeopt.formulations.cost_relaxation.model import CostRelaxation
from placeopt.formulations.cost_relaxation.whole_jobs import JobLayout
from placeopt.linear import NO_LOWER, IntArray, LinearModel

Way = tuple[int, tuple[tuple[int, int], ...]]
"""Number of a bundle group, and bundles by class of nodes: what tells columns apart."""
MOST_SHORT = 1_000_000
"""Units that a row of room may be short of."""


@dataclass(frozen=True, eq=False)
class JobColumn:
    """Jobs of a bundle group that lie alike: rows and coefficients of the column."""

    group: int
    layout: JobLayout
    rows: IntArray
    coefficients: IntArray
    most: int  # jobs


class JobMaster:
    """
    The relaxation with columns of whole jobs in place of the flows of their bundles (Dantzig and Wolfe 1960).

    A column stands in the rows where the bundles it is made of stand, with their sum: so duals are prices of the
    relaxation's own rows, which ``with_whole_jobs`` makes columns and a certificate of. Columns only get more, so
    that a basis of before stays one.

    - ``groups``: Bundle groups whose flows are replaced.
    - ``columns``: The columns so far.
    """

    def __init__(self, relaxation: CostRelaxation, groups: list[int]) -> None:
        self._relaxation, self.groups = relaxation, frozenset(groups)
        model = relaxation.model
        flows = [relaxation.bundle_columns[q].columns for q in groups]
        kept = np.ones(model.num_variables, dtype=bool)
        kept[np.concatenate([np.zeros(0, dtype=np.int64), *flows])] = False
        self._kept = np.flatnonzero(kept)
        self._room = np.concatenate(relaxation.capacity_rows)
        self._order = np.argsort(model.columns, kind="stable")
        self._start = np.searchsorted(model.columns[self._order], np.arange(model.num_variables + 1))
        self._row_of = model.row_of_nonzero[self._order]
        self._known: dict[Way, int] = {}
        self.columns: list[JobColumn] = []

    @property
    def first(self) -> int:
        """Number of the first column of whole jobs in the models."""
        return len(self._kept) + len(self._room)

    def add(self, group: int, layout: JobLayout) -> tuple[int, bool]:
        """Return the number in ``columns`` of the job that lies so, and whether it is new."""
        by_class = layout.by_class
        way = (group, tuple(sorted(by_class.items())))
        if way in self._known:
            return self._known[way], False
        bundle_columns, model = self._relaxation.bundle_columns[group], self._relaxation.model
        entries: dict[int, int] = {}
        for place, bundles in by_class.items():
            column = int(bundle_columns.columns[np.searchsorted(bundle_columns.place, place)])
            for z in range(self._start[column], self._start[column + 1]):
                row = int(self._row_of[z])
                entries[row] = entries.get(row, 0) + bundles * int(model.coefficients[self._order[z]])
        most = int(model.upper[bundle_columns.jobs].sum())
        rows, coefficients = (np.array(list(part), dtype=np.int64) for part in (entries.keys(), entries.values()))
        self._known[way] = len(self.columns)
        self.columns.append(JobColumn(group, layout, rows, coefficients, most))
        return len(self.columns) - 1, True

    def model(
        self, chosen: IntArray | None = None, fixed: IntArray | None = None, short_price: int | None = None
    ) -> LinearModel:
        """
        Return the linear program of the columns so far.

        - ``chosen``: Shape (Y,): how many jobs run in each option, whatever they are worth; None: those of least cost.
        - ``fixed``: Shape (columns,): how many jobs lie so at least; None: 0.
        - ``short_price``: Price of a unit of room that is missing; None: none may be.
        """
        model, kept, room, columns = self._relaxation.model, self._kept, self._room, self.columns
        number = np.full(model.num_variables, -1, dtype=np.int64)
        number[kept] = np.arange(len(kept))
        here = number[model.columns] >= 0
        sizes = [len(column.rows) for column in columns]
        none = np.zeros(0, dtype=np.int64)
        row = np.concatenate([model.row_of_nonzero[here], room, *(column.rows for column in columns)])
        at = np.concatenate(
            [
                number[model.columns[here]],
                len(kept) + np.arange(len(room)),
                np.repeat(self.first + np.arange(len(columns)), sizes) if columns else none,
            ]
        )
        entry = np.concatenate(
            [model.coefficients[here], np.full(len(room), -1), *(column.coefficients for column in columns)]
        )
        order = np.lexsort((at, row))
        lower = np.concatenate([model.lower[kept], np.zeros(len(room) + len(columns), dtype=np.int64)])
        short = np.full(len(room), 0 if short_price is None else MOST_SHORT)
        upper = np.concatenate(
            [model.upper[kept], short, np.array([column.most for column in columns], dtype=np.int64)]
        )
        cost = np.array([column.layout.cost for column in columns], dtype=np.int64)
        objective = np.concatenate([model.objective[kept], np.full(len(room), short_price or 0), cost])
        row_lower = model.row_lower.copy()
        if chosen is not None:
            lower[: len(chosen)] = upper[: len(chosen)] = chosen
            row_lower[list(self._relaxation.value_rows)] = NO_LOWER
        if fixed is not None:
            lower[self.first : self.first + len(fixed)] = fixed
        return replace(
            model,
            lower=lower,
            upper=upper,
            row_start=np.searchsorted(row[order], np.arange(model.num_rows + 1)),
            columns=at[order],
            coefficients=entry[order],
            row_lower=row_lower,
            objective=objective,
        )

    def jobs(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return shape (columns,): how many jobs lie so in a solution of the last model."""
        return values[self.first :]

    def room_left(self, fixed: IntArray) -> IntArray:
        """Return shape (m,): what rows of room leave beside the jobs ``fixed``, by column; others leave much."""
        model = self._relaxation.model
        left = np.full(model.num_rows, np.iinfo(np.int64).max // 2)
        left[self._room] = model.row_upper[self._room]
        for x in np.flatnonzero(fixed).tolist():
            left[self.columns[x].rows] -= fixed[x] * self.columns[x].coefficients
        return left
