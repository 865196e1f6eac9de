"""A row of the relaxation that every plan of enough value keeps: at given prices its jobs cost no less in all."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from placeopt.formulations.capacity_relaxation import CapacityRelaxation
from placeopt.formulations.cost_relaxation.model import CostRelaxation
from placeopt.formulations.cost_relaxation.whole_jobs import WholeJobs
from placeopt.linear import NO_UPPER, LinearModel
from placeopt.problem import IntArray

FINE = 1 << 24
"""Units that the largest cost of a job is cut into."""


@dataclass(frozen=True, eq=False)
class JobSetModel:
    """
    The integer model of the cheapest set of jobs that is worth enough and fits by capacity, at given prices.

    Prices of all rows but those of the value are taken from ``WholeJobs``. Each job that runs pays for its cheapest
    place at these prices; what the prices of room are worth does not depend on the jobs. So a bound on the cost of the
    cheapest set bounds the cost of all plans, where a price for the value, instead of the row, would allow fractions
    of jobs: near the greatest value few sets of jobs reach it.
    """

    model: LinearModel
    columns: IntArray  # (Y,) columns of the relaxation that count the jobs of the model's
    unit: float  # cost of one unit of the model's objective
    whole: WholeJobs

    def bound_with(self, relaxation: CostRelaxation, least: int) -> tuple[CostRelaxation, WholeJobs]:
        """
        Return the relaxation with the row, and the certificate with it.

        ``least``: Proven: no set of jobs costs less, in units.
        """
        row = (self.columns, self.model.objective, least)
        prices = _without(self.whole.multipliers, relaxation.value_rows)
        divisor = max(math.gcd(*self.model.objective.tolist()), 1)
        whole = WholeJobs(
            _with_row(self.whole.model, *row),
            np.append(prices, self.unit * divisor),
            _with_row(self.whole.raised_costs, *row),
        )
        rows = (*relaxation.value_rows, relaxation.model.num_rows)
        return replace(relaxation, model=_with_row(relaxation.model, *row), value_rows=rows), whole


def make_job_set_model(
    relaxation: CostRelaxation,
    whole: WholeJobs,
    capacity: CapacityRelaxation,
    least_value: int,
    deadline: float = float("inf"),
) -> JobSetModel:
    """
    Write the model.

    - ``whole``: Prices, and what whole jobs cost at them.
    - ``capacity``: What room says of sets of jobs; of the same state as ``relaxation``.
    - ``least_value``: What the jobs that start are worth at least.
    """
    model, jobs = relaxation.model, len(relaxation.option)
    prices = _without(whole.multipliers, relaxation.value_rows)
    paid: NDArray[np.float64] = model.objective.astype(np.float64)
    np.subtract.at(paid, model.columns, model.coefficients * prices[model.row_of_nonzero])
    price = np.zeros(len(capacity.problem.options), dtype=np.float64)
    price[relaxation.option] = paid[:jobs]
    column = np.full(len(price), -1, dtype=np.int64)
    column[relaxation.option] = np.arange(jobs)
    unit = float(np.abs(price[capacity.option]).max(initial=0.0)) / FINE
    job_set = capacity.model(price, least_value, deadline, fine=FINE)
    return JobSetModel(job_set, column[capacity.option], unit, whole)


def _without(multipliers: NDArray[np.float64], rows: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the multipliers with 0 for ``rows``: what these say, all sets of jobs of the integer model keep."""
    out = multipliers.copy()
    out[list(rows)] = 0.0
    return out


def _with_row(model: LinearModel, columns: IntArray, coefficients: IntArray, least: int) -> LinearModel:
    """Return the model with one row more: ``coefficients @ x[columns] >= least``."""
    order = np.argsort(columns)
    order = order[coefficients[order] != 0]
    divisor = max(math.gcd(*coefficients.tolist()), 1)
    return replace(
        model,
        row_start=np.append(model.row_start, model.row_start[-1] + len(order)),
        columns=np.concatenate([model.columns, columns[order]]),
        coefficients=np.concatenate([model.coefficients, coefficients[order] // divisor]),
        row_lower=np.append(model.row_lower, -(-least // divisor)),
        row_upper=np.append(model.row_upper, NO_UPPER),
        row_divisor=np.append(model.row_divisor, divisor),
    )
