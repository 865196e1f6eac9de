"""The case of a quadratic assignment problem: by the search of ``placeopt map``, or linearised and by a solver."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from placeopt.benchmark.journal import MAP, Case, CaseAnswer
from placeopt.benchmark.linear_case import run_solver, status_of, store_values
from placeopt.documents.files import read_bytes
from placeopt.errors import Unsupported
from placeopt.linear import NO_UPPER, IntArray, LinearModel, ModelBuilder
from placeopt.rank_mapping.case import Mapping
from placeopt.rank_mapping.qaplib import parse_qaplib
from placeopt.rank_mapping.quadratic import solve_quadratic

if TYPE_CHECKING:
    from placeopt.benchmark.child import CaseReport

MAX_LINEARISED = 20
"""Largest n of a linearised problem: n^4 non-zeros; from n = 12 on no solver proves one in 5 s."""


def assign_items(case: Case, target: Path, report: CaseReport) -> CaseAnswer:
    """Solve a problem and store the place of each item; objectives are recomputed from these."""
    flows, distances = parse_qaplib(read_bytes(case.path), case.path)
    n = len(flows)
    items = places = np.arange(n)
    if case.permuted:
        draw = np.random.default_rng(case.seed)
        items, places = draw.permutation(n), draw.permutation(n)
    asked = flows[np.ix_(items, items)], distances[np.ix_(places, places)]
    answer, found = _search(*asked, case, report) if case.solver == MAP else _solve(*asked, case, report)
    if found is None:
        return answer
    order = np.empty(n, dtype=np.int64)
    order[items] = places[found]
    store_values(target, case, order.tolist())
    return answer.model_copy(update={"refused": tuple(order_faults(flows, distances, order, answer.objective))})


def _search(flows: IntArray, distances: IntArray, case: Case, report: CaseReport) -> tuple[CaseAnswer, IntArray]:
    began = time.monotonic()

    def on_better(found: Mapping) -> None:
        report.point((time.monotonic() - began, found.cost, found.bound, None, None))

    report.solving()
    result = solve_quadratic(flows, distances, time_limit_s=case.time_limit_s, seed=case.seed, on_better=on_better)
    report.solved()
    report.judging()
    report.point((report.wall_s or 0.0, result.cost, result.bound, None, None))
    answer = CaseAnswer(
        status="optimal" if result.optimal else "feasible",
        limit="none" if result.optimal else "time",
        sense="min",
        objective=result.cost,
        bound=result.bound,
    )
    return answer, result.order


def _solve(flows: IntArray, distances: IntArray, case: Case, report: CaseReport) -> tuple[CaseAnswer, IntArray | None]:
    solution = run_solver(linearised(flows, distances), case, report)
    order, cost = None, None
    if solution.values is not None:
        n = len(flows)
        order = solution.values[: n * n].reshape(n, n).argmax(axis=1)
        cost = order_cost(flows, distances, order)
    report.point((report.wall_s or 0.0, cost, solution.bound, None, None))
    answer = CaseAnswer(
        status=status_of(solution),
        limit=solution.limit,
        sense="min",
        objective=cost,
        bound=solution.bound,
        message=solution.message,
    )
    return answer, order


def linearised(flows: IntArray, distances: IntArray) -> LinearModel:
    """
    Return the problem as an integer model: n^2 binaries (item at place, item by item), then n^2 costs of these.

    The linearisation of Kaufman and Broeckx (1978) with the lower bounds of Xia and Yuan (2006): the cost of item i at
    place p is at least the least product of its flows and distances there, and at least what it is with the others
    where they stand. Raises `Unsupported` above `MAX_LINEARISED`.
    """
    n = len(flows)
    if n > MAX_LINEARISED:
        raise Unsupported(f"n = {n}: linearised up to {MAX_LINEARISED} only; use {MAP!r}")
    off = ~np.eye(n, dtype=bool)
    falling = -np.sort(-flows[off].reshape(n, n - 1), axis=1)
    rising = np.sort(distances[off].reshape(n, n - 1), axis=1)
    least, most = (falling @ rising.T).ravel(), (falling @ rising[:, ::-1].T).ravel()
    builder = ModelBuilder()
    places = builder.add_variables(0, 1, n * n)
    costs = builder.add_variables(0, most, n * n)
    item, place = np.divmod(np.arange(n * n), n)
    builder.add_rows(item, places, 1, np.ones(n, dtype=np.int64), 1)
    builder.add_rows(place, places, 1, np.ones(n, dtype=np.int64), 1)
    row = np.arange(n * n)
    builder.add_rows(
        np.concatenate([row, row]),
        np.concatenate([costs, places]),
        np.concatenate([np.ones(n * n, dtype=np.int64), -least]),
        np.zeros(n * n, dtype=np.int64),
        NO_UPPER,
    )
    products = np.einsum("ij,pq->ipjq", flows * off, distances * off).reshape(n * n, n * n)
    at, other = np.nonzero(products)
    builder.add_rows(
        np.concatenate([row, at, row]),
        np.concatenate([costs, places[other], places]),
        np.concatenate([np.ones(n * n, dtype=np.int64), -products[at, other], -most]),
        -most,
        NO_UPPER,
    )
    linear = np.outer(flows.diagonal(), distances.diagonal()).ravel()
    builder.set_objective(
        np.concatenate([costs, places]), np.concatenate([np.ones(n * n, dtype=np.int64), linear]), "min"
    )
    return builder.build()


def order_cost(flows: IntArray, distances: IntArray, order: IntArray) -> int:
    """Return the sum over ordered pairs of items of flow times distance."""
    return int((flows * distances[np.ix_(order, order)]).sum())


def order_faults(flows: IntArray, distances: IntArray, order: IntArray, cost: float | None) -> list[str]:
    """Return the faults of an order and of the cost stated for it; empty if there are none."""
    if order.shape != (len(flows),) or (np.sort(order) != np.arange(len(flows))).any():
        return [f"not each of {len(flows)} places once"]
    actual = order_cost(flows, distances, order)
    return [] if actual == cost else [f"objective is stated as {cost}, but it is {actual}"]
