"""Checks everything that a benchmark has stored again: instances, solutions, objectives, verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from placeopt.benchmark.journal import Kind, Row, known_at_run, read_journal
from placeopt.benchmark.linear_files import read_model
from placeopt.benchmark.sets import entry_of
from placeopt.benchmark.solu import COST, Known, Number
from placeopt.benchmark.verdicts import NO_ANSWER, contradiction, judge
from placeopt.documents.files import parse_json, read_bytes
from placeopt.errors import BadInput, PlaceoptError
from placeopt.linear import LinearModel, Sense
from placeopt.parallel import run_parallel


class RecheckedRow(NamedTuple):
    """A row, and what is wrong with it; nothing if ``faults`` is empty."""

    row: Row
    faults: tuple[str, ...]


def recheck(
    folder: Path,
    known: Mapping[str, Known] | None = None,
    *,
    older: Mapping[str, Known] | None = None,
    jobs: int | None = 1,
    cancelled: Callable[[], bool] | None = None,
    on_news: Callable[[int, int], None] | None = None,
) -> list[RecheckedRow]:
    """
    Check every row of a folder again, from the files.

    ``known`` and ``older`` as of `known_at_run`: a row that contradicts the known values is wrong, whatever its
    verdict. ``jobs``: rows side by side, in processes. ``cancelled`` is called between rows; true ends the check with
    the rows done. ``on_news`` gets the number of rows done and their total.
    """
    _, rows = read_journal(folder)
    task = partial(_check, folder=folder, then=known_at_run(rows.values(), older, known))
    checked_rows = []
    for checked in run_parallel(task, list(rows.values()), jobs, cancelled=cancelled):
        checked_rows.append(checked)
        if on_news is not None:
            on_news(len(checked_rows), len(rows))
    order = {key: number for number, key in enumerate(rows)}
    return sorted(checked_rows, key=lambda checked: order[checked.row.case.key])


def improve_known(known: Mapping[str, Known], checked: list[RecheckedRow]) -> dict[str, Known]:
    """
    Return the known values improved by the rows without faults; values and bounds only get better.

    A value is the optimum only if a bound meets it and the referee has checked its solution. A round's cost is known as
    that of ``<name>.cost``, from plans whose value is proven. Raises `BadInput` with the instance's name if a value
    contradicts a bound.
    """
    out = dict(known)
    for row, faults in checked:
        if faults or row.verdict in NO_ANSWER:
            continue
        answer, name = row.answer, row.case.instance
        _improve(out, name, answer.objective, answer.bound, answer.sense, _found_by(row))
        of = out.get(name, Known())
        if answer.cost is not None and of.optimal and answer.objective == of.value:
            proven = answer.cost_bound if answer.objective == answer.bound else None  # else it is about other plans
            _improve(out, f"{name}{COST}", answer.cost, proven, "min", _found_by(row))
    return out


def _improve(
    known: dict[str, Known], name: str, value: Number | None, bound: Number | None, sense: Sense, by: str
) -> None:
    try:
        new = known.get(name, Known()).improved(value, bound, sense, by=by)
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from None
    if new != Known():
        known[name] = new


def _found_by(row: Row) -> str:
    """Return what found a row's value: solver, limit, seed, day."""
    seed = f", seed {row.case.seed}" if row.case.seed else ""
    return f"{row.case.solver}, {row.case.time_limit_s:g} s{seed}, {row.began[:10]}"


def _check(row: Row, folder: Path, then: Mapping[str, Known]) -> RecheckedRow:
    """Return one row with its faults."""
    try:
        faults = _faults(row, folder)
    except PlaceoptError as error:
        faults = [str(error)]
    against = contradiction(row.answer, then[row.case.key])
    if against:
        faults.append(against)
    wrong = judge(row.answer, Known()) == "fail"
    if wrong and not faults:
        faults = list(row.answer.refused) or ["failed when it was run"]
    return RecheckedRow(row, tuple(faults))


def _faults(row: Row, folder: Path) -> list[str]:
    item = entry_of(Path(row.case.path))
    if item.sha256() != row.case.sha256:
        return [f"{row.case.path}: the instance has changed since; run it again"]
    if row.solution is None:
        return [] if row.answer.objective is None else ["an objective without a solution"]
    return JUDGES[row.case.kind](row, folder / row.solution)


def _plan_faults(row: Row, path: Path) -> list[str]:
    from placeopt.benchmark.placement_case import shuffled
    from placeopt.check import violations
    from placeopt.documents.documents import read_instance, read_plan
    from placeopt.solving.audit import audit

    instance, plan = read_instance(row.case.path), read_plan(path)
    if row.case.permuted:
        instance = shuffled(instance, row.case.seed)
    faults = [str(violation) for violation in violations(instance, plan)] or audit(instance, plan)
    level = plan.levels[0]
    if (level.objective, level.bound) != (row.answer.objective, row.answer.bound):
        faults.append(
            f"the row says {row.answer.objective} and {row.answer.bound}, the plan {level.objective}, {level.bound}"
        )
    return faults


def _value_faults(row: Row, path: Path) -> list[str]:
    from placeopt.benchmark.linear_case import misfits

    data, model = read_bytes(path), read_model(Path(row.case.path))
    try:
        whole = isinstance(model, LinearModel)
        values = np.asarray(parse_json(data, str(path))["values"], dtype=np.int64 if whole else np.float64)
    except (BadInput, ValueError, KeyError, TypeError, OverflowError):
        return [f"{path}: no list of numbers under 'values'"]
    return misfits(model, values, row.answer.objective)


def _order_faults(row: Row, path: Path) -> list[str]:
    from placeopt.benchmark.quadratic_case import order_faults
    from placeopt.rank_mapping.qaplib import parse_qaplib

    flows, distances = parse_qaplib(read_bytes(row.case.path), row.case.path)
    try:
        order = np.asarray(parse_json(read_bytes(path), str(path))["values"], dtype=np.int64)
    except (BadInput, ValueError, KeyError, TypeError, OverflowError):
        return [f"{path}: no list of numbers under 'values'"]
    return order_faults(flows, distances, order, row.answer.objective)


JUDGES: Mapping[Kind, Callable[[Row, Path], list[str]]] = MappingProxyType(
    {"placement": _plan_faults, "linear": _value_faults, "quadratic": _order_faults}
)
"""What finds the faults of a stored solution, by the kind of its instance."""
