"""The page of a benchmark's report, in Markdown: how to read it, tables, pictures, faults, conditions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from placeopt.benchmark.comparison import RANK
from placeopt.benchmark.records import Row, RunRecord
from placeopt.formats.figure import Figure
from placeopt.formats.table import Table, readable

KINDS = {"placement": "Rounds of GPU placement", "linear": "Integer models"}
READING = f"""\
A case is one solver on one instance with one seed: of a round a method of `placeopt solve`, of an integer model a
solver. Best first: {RANK}.

- **proven**: cases in which the solver has proven that nothing better exists; of a round value and cost both.
- **wall s**, **spent s**, **CPU s**: shifted geometric means; *wall* counts the whole limit where nothing was proven,
  *spent* what it took until the solver ended, *CPU* the same on all processors. Reading and judging do not count.
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
SHOWN = (SUMMARY, COMPARISON, BEST, VERDICT, WRONG)
"""Tables on the page; the others are long and only written as CSV."""


def page(tables: Sequence[Table], figures: Sequence[Figure], conditions: Sequence[str], *, brief: bool = False) -> str:
    """
    Return the page.

    Parameters
    ----------
    tables
        All tables; where there are several kinds of instances, a table's name ends in its kind.
    figures
        Figures that are drawn; named like the tables.
    conditions
        Conditions of the measurements, one sentence each.
    brief
        Whether links to files that a brief report leaves out are omitted.
    """
    by_name = {table.name: table for table in tables}
    ends = [f"-{kind}" for kind in KINDS if f"{SUMMARY}-{kind}" in by_name] or [""]
    parts = ["# Benchmark\n", f"{conditions[0]}.\n", "## How to read it\n", READING]
    for end in ends:
        own = [figure for figure in figures if figure.name.endswith(end)]
        parts += [f"## {KINDS[end[1:]]}\n"] if end else []
        parts += _part(by_name, end, own, "###" if end else "##", brief=brief)
    parts += ["## Verdicts\n", VERDICTS, by_name[VERDICT].markdown(), "## Wrong, or without an answer\n"]
    wrong = by_name[WRONG]
    parts.append(wrong.markdown() if wrong.rows else "None of all cases.\n")
    parts += ["## How it came about\n", "".join(f"- {line}\n" for line in conditions)]
    return "\n".join(parts)


def _part(tables: dict[str, Table], end: str, figures: Sequence[Figure], level: str, *, brief: bool) -> list[str]:
    """Return the part of the page about one kind of instances."""
    out = []
    for name in (SUMMARY, COMPARISON):
        if table := tables.get(name + end):
            text = _intervals(table) if name == COMPARISON else table
            out += [_heading(level, table), text.markdown()]
    for figure in figures:
        title, pdf = figure.title, "" if brief else f" ([PDF]({figure.name}.pdf))"
        out.append(f"![{title}]({figure.name}.svg)\n\n{title}{pdf}. In colours the best six and the baseline.\n")
    if table := tables.get(BEST + end):
        out += [_heading(level, table), table.markdown()]
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
