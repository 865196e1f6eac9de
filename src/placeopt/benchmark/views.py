"""Answers of a benchmark as views: what ran, how solvers compare, what a check finds, which sets there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

import pandas as pd

from placeopt.benchmark import curves, instance_tables, tables
from placeopt.benchmark.journal import Row, RunRecord, read_journal
from placeopt.benchmark.rechecked import RecheckedRow
from placeopt.benchmark.scores import common, score_rows
from placeopt.benchmark.sets import SetEntry
from placeopt.benchmark.solu import Known
from placeopt.errors import BadArgument, BadInput
from placeopt.readable import plural
from placeopt.view import Chart, Figure, Table, View

KINDS = {"placement": "rounds", "linear": "models", "quadratic": "quadratic assignment"}
"""Words for kinds of instances."""
READING = (
    "wall, spent, CPU: shifted geometric means, shift {:g} s; wall counts the limit where nothing was proven; scaled: "
    "wall over the best solver's; PAR2, PAR10: mean of wall, without proof 2 and 10 limits; gap: to the best known "
    "value; primal: its integral over time; primal-dual: that of value to bound; of rounds, all of the first level"
)
DRAWN = 6
"""Solvers that are drawn, besides the baseline: more cannot be told apart by colour."""


def report_views(
    folder: Path,
    known: Mapping[str, Known] | None = None,
    *,
    older: Mapping[str, Known] | None = None,
    shift_s: float = 1.0,
    baseline: str | None = None,
) -> tuple[View, ...]:
    """
    Return how the solvers of a benchmark's folder compare: all tables first, then a view for each chart.

    Parameters
    ----------
    folder
        That `run_cases` has written.
    known, older
        As of `known_at_run`; values found by the rows count beside them.
    shift_s
        Of the shifted geometric means.
    baseline
        Solver that the others of its kind are compared with; None: the first by name.

    Returns
    -------
    tuple of View
        Tables of several kinds of instances end in the kind.

    Raises
    ------
    BadInput
        If the folder has no rows.
    BadArgument
        If none of them is of the baseline.
    """
    runs, by_key = read_journal(folder)
    if not by_key:
        raise BadInput(f"{folder}: no rows yet; 'bench run' writes them")
    # cases that ran side by side ended in any order
    rows = sorted(by_key.values(), key=lambda row: (row.case.instance, row.case.solver, row.case.seed, row.case.key))
    cases = score_rows(rows, known, older)
    solvers = sorted(cases.solver.unique())
    if baseline is not None and baseline not in solvers:
        raise BadArgument(f"baseline {baseline!r} is not a solver of {folder}; its solvers: {', '.join(solvers)}")
    parts = [_Kind(of, f", {KINDS[kind]}", shift_s, baseline) for kind, of in cases.groupby("kind", sort=False)]
    if len(parts) == 1:
        parts = [_Kind(cases, "", shift_s, baseline)]
    wrong = int(cases.verdict.isin(("fail", "abort")).sum())
    counts = {
        "cases": len(cases),
        "compared": sum(len(part.shared) for part in parts),
        "solvers": len(solvers),
        "instances": cases.instance.nunique(),
    }
    drawn = [chart for part in parts for chart in part.charts()]
    main = View(
        title=". ".join(part.title for part in parts if part.names) or "No case is compared.",
        verdict="bad" if wrong else "good",
        figures=(
            *(Figure(name=name, value=count) for name, count in counts.items()),
            Figure(name="wrong or without an answer", value=wrong, better="less"),
        ),
        notes=(READING.format(shift_s), *_conditions(runs, rows)),
        tables=(
            *(table for part in parts for table in part.tables()),
            tables.verdict_table(cases),
            tables.wrong_table(cases),
            instance_tables.instance_table(cases),
            instance_tables.settings_table(runs, sorted({row.case.solver for row in rows})),
            instance_tables.case_table(cases),
        ),
    )
    return main, *drawn


class _Kind:
    """The cases of one kind of instances."""

    def __init__(self, cases: pd.DataFrame, suffix: str, shift_s: float, baseline: str | None) -> None:
        self._cases, self._suffix, self._shift_s = cases, suffix, shift_s
        self.shared = common(cases)
        self.names = tables.ranked(self.shared) if len(self.shared) else []
        self._baseline = baseline if baseline in self.names else min(self.names, default="")

    @property
    def title(self) -> str:
        """Which solver is best."""
        return f"{self.names[0]} is the best of {plural(len(self.names), 'solver')}{self._suffix}"

    def tables(self) -> list[Table]:
        """Return the solvers side by side, against the baseline, and by instance."""
        if not self.names:
            return []
        all_names = tables.ranked(self._cases[self._cases.supported])
        made = [tables.solver_table(self.shared, self.names, self._shift_s, self._suffix)]
        if len(self.names) > 1:
            of = self.shared, self.names, self._baseline, self._shift_s, self._suffix
            made.append(tables.comparison_table(*of))
        made.append(instance_tables.seconds_table(self._cases, all_names, self._suffix))
        made.append(instance_tables.best_table(self._cases, self._suffix))
        return made

    def charts(self) -> list[View]:
        """Return a view of each curve, of the best solvers and the baseline."""
        if not self.names:
            return []
        best = [name for name in self.names if name != self._baseline][:DRAWN]
        names = [name for name in self.names if name in best or name == self._baseline]
        makers = curves.profile_table, curves.gap_table, curves.course_table
        made = [make(self.shared, names, self._suffix) for make in makers]
        return [_curve(table) for table in made if table.rows]


def _curve(table: Table) -> View:
    solver, x, y = (column.name for column in table.columns)
    chart = Chart(kind="steps", table=table.name, x=x, y=(y,), label=solver)
    return View(title=table.name, tables=(table,), chart=chart)


def _conditions(runs: Sequence[RunRecord], rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the conditions of the measurements, one sentence each."""
    limits, threads, seeds = (
        ", ".join(f"{value:.15g}" for value in sorted({getattr(row.case, name) for row in rows}))
        for name in ("time_limit_s", "threads", "seed")
    )
    loads = [load for row in rows for load in (row.load_before, row.load_after)]
    shuffled = "; orders shuffled by seed" * any(row.case.permuted for row in rows)
    out = [
        f"{limits} s a case; threads {threads}; seeds {seeds}{shuffled}; load {min(loads):.1f} to {max(loads):.1f}",
        *(_runs_text(list(alike)) for _, alike in groupby(runs, lambda run: (run.command, run.versions, run.machine))),
    ]
    if len({tuple(run.versions.items()) for run in runs}) > 1:
        out.append("versions differ between the runs: compare with care")
    return tuple(out)


def _runs_text(runs: Sequence[RunRecord]) -> str:
    """Return a line about runs of the same command on the same machine, each the continuation of the one before."""
    first, last = runs[0], runs[-1]
    packages = ", ".join(f"{name} {version}" for name, version in first.versions.items())
    machine = ", ".join(f"{name} {value}" for name, value in first.machine.items())
    number, began = str(first.number), first.began
    if len(runs) > 1:
        number, began = f"{number} to {last.number}", f"{began} and, continued, up to {last.began}"
    return f"run {number}, {began}: {first.command}; {machine}; {packages}; {first.jobs} side by side"


def run_view(rows: Sequence[Row], total: int, folder: Path, left_out: Sequence[str] = ()) -> View:
    """Return verdicts by solver, and the cases that failed, were aborted or are unsupported."""
    cases, wrong = score_rows(rows), sum(row.verdict in ("fail", "abort") for row in rows)
    unused = f"left out, since no instance is of their kind: {', '.join(left_out)}"
    return View(
        title=f"{len(rows):,} of {plural(total, 'case')} in {folder}",
        verdict="bad" if wrong else "good" if len(rows) == total else "open",
        figures=(Figure(name="cases", value=total), Figure(name="rows", value=len(rows))),
        notes=(unused,) if left_out else (),
        tables=(tables.verdict_table(cases), tables.wrong_table(cases)) if rows else (),
    )


def sets_view(items_of: Mapping[str, Sequence[SetEntry]], known: Mapping[str, Known]) -> View:
    """Return the named sets: number and kind of their instances, and what is known of each; ``known`` by instance."""
    entries = pd.DataFrame(
        [
            (name, item.name, item.kind, str(item.path), of.value, of.bound, of.optimal)
            for name, items in items_of.items()
            for item in items
            for of in [known.get(item.name, Known())]
        ],
        columns=["set", "instance", "kind", "path", "value", "bound", "optimal"],
    )
    sets = entries.groupby("set").agg(
        instances=("instance", "size"),
        kind=("kind", lambda kinds: ", ".join(sorted(set(kinds)))),
        optimal=("optimal", "sum"),
        value=("value", "count"),
    )
    sets = sets.rename(columns={"optimal": "optimum known", "value": "value known"}).reset_index()
    return View(
        title=f"{plural(len(items_of), 'set')} of instances",
        tables=(
            tables.table("Sets", sets),
            tables.table("Instances", entries.drop(columns="optimal"), keys=2, shown=0),
        ),
    )


def checked_view(checked: Sequence[RecheckedRow], better: Mapping[str, Known], solu: Path, *, updated: bool) -> View:
    """Return the faults found by a check, and the known values that the rows improve, by instance."""
    wrong = [
        (row.case.instance, row.case.solver, row.case.seed, "; ".join(faults)) for row, faults in checked if faults
    ]
    values = [(name, entry.value, entry.bound) for name, entry in sorted(better.items())]
    rows = plural(len(checked), "row")
    return View(
        title=f"not ok: {len(wrong):,} of {rows}" if wrong else f"ok: {rows} checked",
        verdict="bad" if wrong else "good",
        figures=(
            Figure(name="rows", value=len(checked)),
            Figure(name="wrong", value=len(wrong), better="less"),
            Figure(name="better than known", value=len(values), better="more"),
        ),
        tables=(
            tables.table("Wrong", pd.DataFrame(wrong, columns=["instance", "solver", "seed", "wrong"]), keys=3),
            tables.table(
                "Better than known",
                pd.DataFrame(values, columns=["instance", "value", "bound"]),
                note=f"written to {solu}" if updated else "--update writes them",
            ),
        ),
    )
