"""
Predictors of systems, fitted to a user's table and applied to jobs.

A table is a list of rows, column -> text. ``fit(rows, source=, licence=)`` returns a fitted record.
``estimates(model, row, options, cluster)`` returns an `Estimate` for each option of jobs of the profile of ``row``.
``slowdowns(model, rows, profiles)`` returns how jobs slow each other, of the profiles of a round among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pkgutil import resolve_name
from typing import Any, Literal

from placeopt.documents.documents import as_record
from placeopt.errors import BadArgument, BadInput
from placeopt.model import Instance
from placeopt.model.base import FormatVersion, Id, Record
from placeopt.predict import Fitted
from placeopt.scheduling.estimate import believed
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.predictions import PROFILE, Prediction, Row, estimates_by, named_predictor
from placeopt.simulation.records.scenario import Scenario


class FittedPredictor(Record):
    """A predictor that was fitted, as a document."""

    document: Literal["predictor"] = "predictor"
    """What the file is."""
    format_version: FormatVersion = 2
    """Version of the file format."""
    predictor: Id
    """Name of the predictor."""
    model: dict[str, Any]
    """What was fitted, with its source and its errors."""


def fit_predictor(name: str, rows: Sequence[Row], *, source: str, licence: str = "") -> Fitted:
    """
    Fit a predictor to a table.

    Parameters
    ----------
    name
        Of a predictor of an installed system.
    rows
        The table; columns as the predictor states them.
    source, licence
        Of the table: they go into the fitted record.

    Returns
    -------
    Fitted
        With its errors on rows that were left out of the fit, where the predictor says so.

    Raises
    ------
    BadInput
        If there is no such predictor, it needs no fit, a column is missing or a cell is no number.
    """
    chosen = named_predictor(name)
    if not chosen.fit:
        raise BadArgument(f"predictor: {name!r} needs no fit; apply it by its name")
    for column in chosen.columns:
        if not rows or column not in rows[0]:
            there = ", ".join(rows[0]) if rows else "no rows"
            raise BadInput(f"table: no column {column!r}; expected {', '.join(chosen.columns)}, found {there}")
    fitted: Fitted = resolve_name(chosen.fit)(rows, source=source, licence=licence)
    return fitted


def as_document(name: str, fitted: Fitted) -> FittedPredictor:
    """Return a fitted predictor as a document."""
    return FittedPredictor(predictor=name, model=fitted.model_dump(mode="json"))


def model_of(document: FittedPredictor, source: str) -> Fitted:
    """Return what a document says was fitted; ``source`` names it in messages."""
    fitted: Fitted = as_record(resolve_name(named_predictor(document.predictor).model), document.model, source)
    return fitted


def applied(
    name: str, fitted: Fitted | None, rows: Sequence[Row], document: Instance | Scenario
) -> tuple[Instance | Scenario, int]:
    """
    Return a round or a scenario in which policies see what is predicted, and how many jobs that changes.

    Parameters
    ----------
    name, fitted
        The predictor, and what was fitted; None where it needs no fit.
    rows
        What is known of profiles: the column ``profile``, and those that the predictor reads. Jobs of other profiles
        keep what they state; how they slow each other is predicted without a row, too.
    document
        In a round what jobs state is replaced; in a scenario what policies believe, and not what is true.

    Returns
    -------
    tuple
        The document, and the number of jobs.

    Raises
    ------
    BadInput
        If a column is missing, a cell is no number, or a scenario would be given slowdowns.
    """
    chosen = named_predictor(name)
    if not chosen.estimates:
        return _slowed(name, fitted, rows, document)
    estimates = estimates_by(chosen, fitted, rows, document.cluster)
    if isinstance(document, Instance):
        found = [estimates(job) for job in document.jobs]
        jobs = tuple(believed(job, said) for job, said in zip(document.jobs, found, strict=True))
        return document.model_copy(update={"jobs": jobs}), sum(map(bool, found))
    said = [estimates(one.job) for one in document.arrivals]
    arrivals = tuple(
        one.model_copy(update={"estimates": each}) if each else one
        for one, each in zip(document.arrivals, said, strict=True)
    )
    return document.model_copy(update={"arrivals": arrivals}), sum(map(bool, said))


def with_prediction(
    scheduling: Scheduling, name: str, fitted: Fitted | None, rows: Sequence[Row], as_name: str
) -> Scheduling:
    """Return a policy, under another name, that believes of jobs what a predictor says."""
    model = None if fitted is None else fitted.model_dump(mode="json")
    one = Prediction(predictor=name, model=model, table=tuple(dict(row) for row in rows))
    fields = {**dict(scheduling), "name": as_name, "predictions": (*scheduling.predictions, one)}
    return Scheduling.model_validate(fields)


def _slowed(name: str, fitted: Any, rows: Sequence[Row], document: Instance | Scenario) -> tuple[Instance, int]:
    if not isinstance(document, Instance):
        raise BadInput(f"{name}: the slowdowns of a scenario are what is true in it; apply them to a round")
    profiles = sorted({job.profile for job in document.jobs if job.profile is not None})
    slowdowns = resolve_name(named_predictor(name).slowdowns)(fitted, rows, profiles)
    slowed = {one.profile for one in slowdowns}
    jobs = sum(job.profile in slowed for job in document.jobs)
    return document.model_copy(update={"slowdowns": slowdowns}), jobs


def number_in(row: Row, column: str) -> float:
    """Return a cell as a number of at least 0; raises `BadInput` where it is none."""
    text = row.get(column)
    try:
        number = float(text or "")
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        where = f"profile {row[PROFILE]!r}: " if row.get(PROFILE) else ""
        raise BadInput(f"table: {where}{column}: {text!r}; expected a number of at least 0")
    return number
