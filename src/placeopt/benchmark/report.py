"""A benchmark's report in one folder: a Markdown page with tables and pictures, and a CSV file per table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from placeopt.benchmark import comparison, solver_tables
from placeopt.benchmark.figure import Figure, can_draw
from placeopt.benchmark.figures import report_figures
from placeopt.benchmark.journal import Row, RunRecord, read_journal
from placeopt.benchmark.scored_cases import ScoredCase, score_rows
from placeopt.benchmark.solu import Known
from placeopt.benchmark.table import Table, readable
from placeopt.documents.files import make_folder, write_bytes
from placeopt.errors import BadArgument, BadInput, Unsupported

CASES = "cases"
PICTURES = ("svg", "pdf")
"""Formats of the figures."""


KINDS = {
    "placement": "Rounds of GPU placement",
    "linear": "Integer models",
    "quadratic": "Quadratic assignment problems",
}
READING = f"""\
A case is one solver on one instance with one seed: of a round a method of `placeopt solve`, of an integer model a
solver. Best first: {comparison.RANK}.

- **proven**: cases in which the solver has proven that nothing better exists; of a round value and cost both.
- **wall s**, **spent s**, **CPU s**: shifted geometric means; *wall* counts the whole limit where nothing was proven,
  *spent* what it took until the solver ended, *CPU* the same on all processors. Reading and judging do not count.
- **s, shift 1**, **s, shift 10**: shifted geometric means of *spent*; **scaled**: over the best solver's. The *virtual
  best* takes of every case the fastest solver.
- **PAR2 s**, **PAR10 s**: mean of wall seconds, a case without proof counted as 2 or 10 times its limit.
- **gap %**: how far the value found is from the best one known, mean; 100 where there is none.
- **primal s**: mean area under that gap over time, up to the limit: 0 the best at once, the limit never anything.
  **primal-dual s**: the same of the gap between value and proven bound. A dash: the solver reports nothing before its
  end, so there is no area.
- **time ratio**, **gap points**: against the baseline, an instance a pair; below 1 is faster, below 0 is better. In
  brackets the 95 % interval (bootstrap over instances); a difference whose interval holds 1, or 0, is none.
- **better / equal / worse**: instances on which the gap is smaller than, equal to, or larger than the baseline's.
"""
VERDICTS = """\
*ok* proven and equal to the known optimum; *solved* proven, no optimum was known; *better* than the best known;
*timeout* ended without a proof, by a limit or since the method has nothing more to try; *fail* wrong; *abort* no
answer; *unsupported* the solver cannot take the instance, which then enters no mean.
"""
SUMMARY, COMPARISON, BEST, VERDICT = "summary", "comparison", "best", "verdicts"
WRONG = "wrong"
SCALED, SECONDS, SETTINGS = "scaled", "seconds", "settings"


@dataclass(frozen=True)
class BenchmarkReport:
    """
    A report before it is written.

    ``conditions`` of the measurements, one sentence each; all ``tables``, of which the page shows the short ones;
    ``figures``, whose numbers are always written, and their pictures where ``draws``.
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

    ``known`` and ``older`` as of `known_at_run`; values found by the rows count beside them. ``shift_s``: of the
    shifted geometric means. ``baseline``: solver that the others of its kind are compared with; None: the first by
    name. ``plots``: whether to draw; None: if matplotlib is installed.
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
    solvers = comparison.by_solver(scored_cases)
    if baseline is not None and baseline not in solvers:
        raise BadArgument(f"baseline {baseline!r} is not a solver of {folder}; its solvers: {', '.join(solvers)}")
    kinds = list(dict.fromkeys(scored.row.case.kind for scored in scored_cases))
    parts = []
    for kind in kinds:
        of_kind = [scored for scored in scored_cases if scored.row.case.kind == kind]
        suffix = f"-{kind}" if len(kinds) > 1 else ""
        parts.append(_kind_part(of_kind, suffix, shift_s, baseline))
    tables = [comparison.verdict_table(scored_cases), *(table for part in parts for table in part.tables)]
    return BenchmarkReport(
        conditions_of(runs, list(rows.values()), sum(part.shared for part in parts)),
        (
            *tables,
            solver_tables.settings_table(runs, scored_cases),
            solver_tables.ipet_table(scored_cases),
            comparison.wrong_table(scored_cases),
            comparison.instance_table(scored_cases),
            comparison.case_table(scored_cases),
        ),
        tuple(figure for part in parts for figure in part.figures),
        can_draw() if plots is None else plots,
    )


class _KindPart(NamedTuple):
    """Tables and figures of one kind of instances, with the number of cases that all its solvers share."""

    shared: int
    tables: list[Table]
    figures: list[Figure]


def _kind_part(scored_cases: Sequence[ScoredCase], suffix: str, shift_s: float, baseline: str | None) -> _KindPart:
    names = comparison.ranked(comparison.common(scored_cases))
    shared = sorted(comparison.common(scored_cases), key=lambda scored: names.index(scored.solver))
    if not shared:
        return _KindPart(0, [], [])
    chosen = baseline if baseline in names else min(names)
    tables = [comparison.summary_table(shared, shift_s)]
    if len(names) > 1:
        tables.append(comparison.comparison_table(shared, chosen, shift_s))
    tables += [solver_tables.scaled_table(shared), solver_tables.seconds_table(scored_cases)]
    tables.append(comparison.best_table(scored_cases))
    named = [replace(t, name=t.name + suffix, title=t.title + (f" ({suffix[1:]})" if suffix else "")) for t in tables]
    return _KindPart(len(shared), named, report_figures(shared, chosen, suffix))


def write_report(report: BenchmarkReport, out: Path, *, brief: bool = False) -> list[Path]:
    """
    Write the page, the tables and the figures, each file atomically, and return their paths.

    A brief report is the page, its pictures and the table of all cases: small enough to be kept in a repository.
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


def page(tables: Sequence[Table], figures: Sequence[Figure], conditions: Sequence[str], *, brief: bool = False) -> str:
    """
    Return the page.

    Where there are several kinds of instances, the name of a table or figure ends in its kind. A ``brief`` page has no
    links to files that a brief report leaves out.
    """
    by_name = {table.name: table for table in tables}
    ends = [f"-{kind}" for kind in KINDS if f"{SUMMARY}-{kind}" in by_name] or [""]
    parts = ["# Benchmark\n", f"{conditions[0]}.\n", "## How to read it\n", READING]
    for end in ends:
        drawn = [figure for figure in figures if figure.name.endswith(end)]
        parts += [f"## {KINDS[end[1:]]}\n"] if end else []
        parts += _part(by_name, end, drawn, "###" if end else "##", brief=brief)
    parts += ["## Verdicts\n", VERDICTS, by_name[VERDICT].markdown(), "## Wrong, or without an answer\n"]
    wrong = by_name[WRONG]
    parts.append(wrong.markdown() if wrong.rows else "None of all cases.\n")
    settings = by_name[SETTINGS]
    parts += [f"## {settings.title}\n", settings.markdown()]
    parts += ["## How it came about\n", "".join(f"- {line}\n" for line in conditions)]
    return "\n".join(parts)


def _part(tables: dict[str, Table], end: str, figures: Sequence[Figure], level: str, *, brief: bool) -> list[str]:
    """Return the part of the page about one kind of instances."""
    out = []
    for name in (SUMMARY, SCALED, COMPARISON):
        if table := tables.get(name + end):
            text = _intervals(table) if name == COMPARISON else table
            out += [_heading(level, table), text.markdown()]
    for figure in figures:
        title, pdf = figure.title, "" if brief else f" ([PDF]({figure.name}.pdf))"
        out.append(f"![{title}]({figure.name}.svg)\n\n{title}{pdf}. In colours the best six and the baseline.\n")
    seconds = tables.get(SECONDS + end)
    for table in (seconds if seconds and solver_tables.is_short(seconds) else None, tables.get(BEST + end)):
        out += [_heading(level, table), table.markdown()] if table else []
    return out


def _heading(level: str, table: Table) -> str:
    """Return a table's title without its kind, which the heading above states."""
    title = table.title
    for kind in KINDS:
        title = title.removesuffix(f" ({kind})")
    return f"{level} {title}\n"


def _intervals(table: Table) -> Table:
    """Return a comparison with each interval in one cell."""
    rows = []
    for row in table.rows:
        solver, instances, ratio, low, high, gap, gap_low, gap_high, *counts = map(readable, row)
        rows.append(
            (solver, instances, f"{ratio} [{low}, {high}]", f"{gap} [{gap_low}, {gap_high}]", " / ".join(counts))
        )
    columns = ("solver", "instances", "time ratio", "gap points", "better / equal / worse")
    return Table(table.name, table.title, columns, tuple(rows))


def conditions_of(runs: Sequence[RunRecord], rows: Sequence[Row], shared: int) -> tuple[str, ...]:
    """Return the conditions of the measurements, one sentence each: number of cases first, then settings and runs."""
    limits = sorted({row.case.time_limit_s for row in rows})
    threads = sorted({row.case.threads for row in rows})
    seeds = sorted({row.case.seed for row in rows})
    loads = [load for row in rows for load in (row.load_before, row.load_after)]
    solvers, instances = ({getattr(row.case, name) for row in rows} for name in ("solver", "instance"))
    out = [
        f"{len(rows):,} cases, {shared:,} of them of (instance, seed) pairs that every solver of their kind has run: "
        f"{_many(len(solvers), 'solver')}, {_many(len(instances), 'instance')}, "
        f"{', '.join(f'{limit:g}' for limit in limits)} s each",
        f"threads {', '.join(map(str, threads))}; seeds {', '.join(map(str, seeds))}"
        + ("; orders shuffled by seed" if any(r.case.permuted for r in rows) else ""),
        f"the machine's load was {min(loads):.1f} to {max(loads):.1f}",
        "gaps and integrals are of the first level of a round's objective; integrals in seconds up to the limit",
        *(_runs_text(list(alike)) for _, alike in groupby(runs, lambda run: (run.command, run.versions, run.machine))),
    ]
    if len({tuple(run.versions.items()) for run in runs}) > 1:
        out.append("versions differ between the runs: compare with care")
    return tuple(out)


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _runs_text(runs: Sequence[RunRecord]) -> str:
    """Return a line about runs of the same command on the same machine, each the continuation of the one before."""
    first, last = runs[0], runs[-1]
    packages = ", ".join(f"{name} {version}" for name, version in first.versions.items())
    machine = ", ".join(f"{name} {value}" for name, value in first.machine.items())
    number, began = str(first.number), first.began
    if len(runs) > 1:
        number, began = f"{number} to {last.number}", f"{began} and, going on, up to {last.began}"
    return f"run {number}, {began}: `{first.command}`; {machine}; {packages}; {first.jobs} side by side"
