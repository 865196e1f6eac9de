"""``placeopt predict``: what systems predict of jobs, fitted to a table of one's own and applied to their rounds."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.files import (
    check_sources,
    check_target,
    read_round_or_scenario,
    read_scheduling,
    say,
    write_document,
    write_made,
)
from placeopt.cli.output import ExitCode
from placeopt.errors import BadArgument, BadInput

if TYPE_CHECKING:
    from placeopt.predict import Fitted

Table = Annotated[str, typer.Argument(metavar="TABLE", help="CSV with a line of column names.")]


def fit(
    predictor: Annotated[str, typer.Argument(metavar="NAME", help="Of a predictor; any other word lists them.")],
    table: Table,
    out: Annotated[str, typer.Option(metavar="MODEL", help="Write what is fitted.")],
    source: Annotated[str, typer.Option(metavar="TEXT", help="Where the table is from; by default its name.")] = "",
    licence: Annotated[str, typer.Option(metavar="TEXT", help="Licence of the table.")] = "",
) -> int:
    """Fit a predictor to a table, and print its errors."""
    check_sources({"TABLE": table})
    check_target(out, [table])
    from placeopt.documents.documents import dumps
    from placeopt.systems.predictors import as_document, fit_predictor

    fitted = fit_predictor(predictor, _rows(table), source=source or table, licence=licence)
    write_document(out, dumps(as_document(predictor, fitted)))
    held_out = f"; {fitted.held_out}" if fitted.held_out else ""
    say(f"{predictor}: {fitted.provenance.rows} rows; {fitted.errors}{held_out}", out)
    return ExitCode.DONE


def apply(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A file of predict fit, or the name of a predictor without one.")
    ],
    document: Annotated[str, typer.Argument(metavar="DOCUMENT", help="A round or a scenario.")],
    out: Annotated[str, typer.Option(metavar="DOCUMENT", help="Write it with what is predicted.")],
    table: Annotated[
        str | None, typer.Option(metavar="TABLE", help="CSV of what is known of profiles, by the column profile.")
    ] = None,
) -> int:
    """
    Give the jobs of a round what is predicted of them; of a scenario policies see it, and what is true stays.

    Jobs whose profile is not in the table keep what they state.
    """
    check_sources({"DOCUMENT": document, "--table": table})
    check_target(out, [document, table])
    from placeopt.systems.predictors import applied

    rows = [] if table is None else _rows(table)
    name, fitted = _predictor(model)
    made, jobs = applied(name, fitted, rows, read_round_or_scenario(document))
    write_made(out, made)
    say(f"{name}: predicted for {jobs:,} jobs", out)
    return ExitCode.DONE


def policy(
    given: Annotated[str, typer.Argument(metavar="POLICY", help="A scheduling policy by name, or in a file.")],
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A file of predict fit, or the name of a predictor without one.")
    ],
    table: Annotated[str, typer.Option(metavar="TABLE", help="CSV of what is known of profiles.")],
    out: Annotated[str, typer.Option(metavar="POLICY", help="Write the policy that believes it.")],
) -> int:
    """
    Write a policy that believes of jobs what is predicted of their profiles: wherever a policy may be named.

    Its name is that of the given one and ``-predicted``; several predictions follow each other.
    """
    check_sources({"--table": table})
    check_target(out, [given, table])
    from placeopt.documents.documents import dumps
    from placeopt.scheduling.predictions import rows_by_profile
    from placeopt.systems.predictors import with_prediction

    rules, rows = read_scheduling(given), _rows(table)
    name, fitted = _predictor(model)
    rows_by_profile(rows)
    made = with_prediction(rules, name, fitted, rows, f"{rules.name.removesuffix('-predicted')}-predicted")
    write_document(out, dumps(made))
    say(f"{made.name}: believes {name} of {len(rows):,} profiles", out)
    return ExitCode.DONE


def features(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="ONNX files; each names a profile.")],
    out: Annotated[str, typer.Option(metavar="TABLE", help="Write a CSV with a row for each.")],
    batch: Annotated[int, typer.Option(metavar="N", help="Size of the batch.")] = 1,
) -> int:
    """Read the features of models from ONNX files: operations, parameters, activations, operators (Horus table 3)."""
    check_target(out, models)
    from placeopt.systems.horus.onnx_file import onnx_features

    rows = [{"profile": Path(path).stem, **onnx_features(path, batch=batch)} for path in models]
    _write_table(out, rows)
    say(f"features of {len(rows)} models", out)
    return ExitCode.DONE


def table(
    form: Annotated[str, typer.Argument(metavar="FORM", help="lucid-jobs, lucid-pairs or gpumemnet.")],
    source: Annotated[str, typer.Argument(metavar="FILE", help="The CSV file that was published.")],
    out: Annotated[str, typer.Option(metavar="TABLE", help="Write the table.")],
) -> int:
    """Make a table for predict fit of measurements that others publish, which are for you to fetch."""
    check_sources({"FILE": source})
    check_target(out, [source])
    from placeopt.systems.horus.public_tables import table_of

    rows = table_of(form, _rows(source))
    _write_table(out, rows)
    say(f"{form}: {len(rows):,} rows", out)
    return ExitCode.DONE


def _predictor(model: str) -> tuple[str, Fitted | None]:
    """Return the name of a predictor, and what was fitted, of a file or of a name."""
    from placeopt.scheduling.predictions import named_predictor, predictors

    if model in predictors():
        if named_predictor(model).fit:
            raise BadArgument(f"MODEL: {model!r} has to be fitted first, by placeopt predict fit")
        return model, None
    from placeopt.documents.documents import read_document
    from placeopt.systems.predictors import FittedPredictor, model_of

    stored = read_document(FittedPredictor, model)
    return stored.predictor, model_of(stored, model)


def _write_table(path: str, rows: Sequence[Mapping[str, object]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_document(path, text.getvalue().encode())


def _rows(path: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file, without empty cells."""
    from placeopt.documents.files import as_text, label, read_bytes

    source = label(path)
    rows = csv.DictReader(io.StringIO(as_text(read_bytes(path), source, "CSV")), strict=True)
    try:
        found = [{name: text for name, text in row.items() if name and text} for row in rows]
    except csv.Error as error:
        raise BadInput(f"{source}, line {rows.line_num}: no CSV: {error}") from None
    if not found:
        raise BadInput(f"{source}: no rows; expected a line of column names and at least one row")
    return found
