"""A benchmark's report: a Markdown page, a CSV file per table, and figures, in one folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from placeopt.benchmark.comparison import (
    best_table,
    by_solver,
    case_table,
    common,
    comparison_table,
    instance_table,
    ranked,
    summary_table,
    verdict_table,
    wrong_table,
)
from placeopt.benchmark.figures import report_figures
from placeopt.benchmark.journal import read_journal
from placeopt.benchmark.report_page import conditions_of, page
from placeopt.benchmark.scored_cases import ScoredCase, score_rows
from placeopt.errors import BadArgument, BadInput, Unsupported
from placeopt.formats.figure import Figure, can_draw
from placeopt.formats.files import make_folder, write_bytes
from placeopt.formats.solu import Known
from placeopt.formats.table import Table

CASES = "cases"
PICTURES = ("svg", "pdf")
"""Formats of the figures."""


@dataclass(frozen=True)
class BenchmarkReport:
    """
    A report before it is written.

    Attributes
    ----------
    conditions
        Conditions of the measurements, one sentence each.
    tables
        All tables; the page shows the short ones.
    figures
        Their numbers are always written, their pictures where ``draws``.
    draws
        Whether pictures are drawn.
    """

    conditions: tuple[str, ...]
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]
    draws: bool

    def markdown(self, *, brief: bool = False) -> str:
        """Return the page; a brief one has no links to files that a brief report leaves out."""
        return page(self.tables, self.figures if self.draws else (), self.conditions, brief=brief)


def make_report(
    folder: Path,
    known: Mapping[str, Known] | None = None,
    *,
    older: Mapping[str, Known] | None = None,
    shift_s: float = 1.0,
    baseline: str | None = None,
    plots: bool | None = None,
) -> BenchmarkReport:
    """
    Return the report of a benchmark's folder.

    Parameters
    ----------
    known
        Best known values by instance, from a ``.solu`` file; values found by the rows count beside them. None: the
        values that the runs knew, as their rows state them.
    older
        Known values for rows of journals that do not state them; used if ``known`` is None.
    shift_s
        Of the shifted geometric means, in seconds.
    baseline
        Solver that the others of its kind are compared with; left out, the first by name.
    plots
        Whether to draw; left out, if matplotlib is installed.

    Raises
    ------
    BadInput
        If the folder has no rows, or there is no such baseline.
    Unsupported
        If plots are asked for without matplotlib.
    """
    runs, rows = read_journal(folder)
    if not rows:
        raise BadInput(f"{folder}: no rows yet; 'bench run' writes them")
    if plots and not can_draw():
        raise Unsupported(
            "plots need matplotlib, which is not installed; pip install 'placeopt[plot]', or leave them out"
        )
    # cases that ran side by side ended in any order
    ordered = sorted(rows.values(), key=lambda row: (row.case.instance, row.case.solver, row.case.seed, row.case.key))
    scored_cases = score_rows(ordered, known, older)
    solvers = by_solver(scored_cases)
    if baseline is not None and baseline not in solvers:
        raise BadArgument(f"baseline {baseline!r} is no solver of {folder}; there are: {', '.join(solvers)}")
    kinds = list(dict.fromkeys(scored.row.case.kind for scored in scored_cases))
    parts = []
    for kind in kinds:
        own = [scored for scored in scored_cases if scored.row.case.kind == kind]
        suffix = f"-{kind}" if len(kinds) > 1 else ""
        parts.append(_part(own, suffix, shift_s, baseline))
    tables = [verdict_table(scored_cases), *(table for part in parts for table in part.tables)]
    return BenchmarkReport(
        conditions_of(runs, list(rows.values()), sum(part.shared for part in parts)),
        (*tables, wrong_table(scored_cases), instance_table(scored_cases), case_table(scored_cases)),
        tuple(figure for part in parts for figure in part.figures),
        can_draw() if plots is None else plots,
    )


class _Part(NamedTuple):
    """Tables and figures of one kind of instances, with the number of cases that all its solvers share."""

    shared: int
    tables: list[Table]
    figures: list[Figure]


def _part(scored_cases: Sequence[ScoredCase], suffix: str, shift_s: float, baseline: str | None) -> _Part:
    names = ranked(common(scored_cases))
    shared = sorted(common(scored_cases), key=lambda scored: names.index(scored.solver))
    if not shared:
        return _Part(0, [], [])
    chosen = baseline if baseline in names else min(names)
    tables = [summary_table(shared, shift_s)]
    if len(names) > 1:
        tables.append(comparison_table(shared, chosen, shift_s))
    tables.append(best_table(scored_cases))
    named = [replace(t, name=t.name + suffix, title=t.title + (f" ({suffix[1:]})" if suffix else "")) for t in tables]
    return _Part(len(shared), named, report_figures(shared, chosen, suffix))


def write_report(report: BenchmarkReport, out: Path, *, brief: bool = False) -> list[Path]:
    """
    Write the page, the tables and the figures, each file atomically, and return their paths.

    A brief report is the page, its pictures and the table of all cases: small enough to be kept in a repository.

    Raises
    ------
    BadInput
        If the folder cannot be made or written.
    """
    make_folder(out)
    formats = () if not report.draws else PICTURES[:1] if brief else PICTURES
    files = {f"{table.name}.csv": table.csv().encode() for table in report.tables if not brief or table.name == CASES}
    for figure in report.figures:
        files |= {name: data for name, data in figure.files(formats).items() if not brief or not name.endswith(".csv")}
    files["report.md"] = report.markdown(brief=brief).encode()
    for name, data in files.items():
        write_bytes(out / name, data)
    return [out / name for name in files]
