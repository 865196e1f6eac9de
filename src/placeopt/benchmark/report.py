"""A benchmark's report: a Markdown page, a CSV file of every table, plots, in one folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from placeopt.benchmark.comparison import (
    by_solver,
    case_table,
    common,
    comparison_table,
    gap_shares,
    instance_table,
    profiles,
    steps_table,
    summary_table,
    verdict_table,
)
from placeopt.benchmark.journal import read_journal
from placeopt.benchmark.plots import can_plot, draw, mean_gaps
from placeopt.benchmark.records import Row, Run
from placeopt.benchmark.samples import Sample, samples_of
from placeopt.benchmark.tables import Table
from placeopt.errors import BadInput, Unsupported
from placeopt.formats.files import write_bytes
from placeopt.formats.solu import Known


@dataclass(frozen=True)
class Report:
    """
    A report before it is written.

    Attributes
    ----------
    conditions
        How the figures came about, a sentence each.
    tables
        For people and for CSV.
    curves
        Tables of points, for CSV only.
    plots
        Files by name, with their captions.
    """

    conditions: tuple[str, ...]
    tables: tuple[Table, ...]
    curves: tuple[Table, ...]
    plots: tuple[tuple[str, str, bytes], ...]

    def markdown(self) -> str:
        """Return the page."""
        parts = ["# Benchmark\n", "".join(f"- {line}\n" for line in self.conditions)]
        parts += [f"## {table.title}\n\n{table.markdown()}" for table in self.tables if table.name != "cases"]
        shown = [(name, caption) for name, caption, _ in self.plots if name.endswith(".svg")]
        if shown:
            parts.append("## Plots\n")
            parts += [f"![{caption}]({name})\n\n{caption} ([PDF]({Path(name).stem}.pdf)).\n" for name, caption in shown]
        return "\n".join(parts)


def make_report(
    folder: Path,
    known: Mapping[str, Known],
    *,
    shift_s: float = 1.0,
    baseline: str | None = None,
    plots: bool | None = None,
) -> Report:
    """
    Return the report of a benchmark's folder.

    Parameters
    ----------
    known
        Best known values, from a ``.solu`` file; what the rows have found counts beside them.
    shift_s
        Of the shifted geometric means, in seconds.
    baseline
        What the others of its kind are compared with; left out, the first solver by name.
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
    if plots and not can_plot():
        raise Unsupported(
            "plots need matplotlib, which is not installed; pip install 'placeopt[plot]', or leave them out"
        )
    # cases that ran side by side ended in any order
    ordered = sorted(rows.values(), key=lambda row: (row.case.instance, row.case.solver, row.case.seed, row.case.key))
    samples = samples_of(ordered, known)
    solvers = by_solver(samples)
    if baseline is not None and baseline not in solvers:
        raise BadInput(f"baseline {baseline!r} is no solver of {folder}; there are: {', '.join(solvers)}")
    kinds = list(dict.fromkeys(sample.row.case.kind for sample in samples))
    parts = []
    for kind in kinds:
        own = [sample for sample in samples if sample.row.case.kind == kind]
        suffix = f"-{kind}" if len(kinds) > 1 else ""
        parts.append(_part(own, suffix, shift_s, baseline, draws=can_plot() if plots is None else plots))
    tables = [verdict_table(samples), *(table for part in parts for table in part.tables)]
    return Report(
        _conditions(runs, list(rows.values()), sum(part.shared for part in parts)),
        (*tables, instance_table(samples), case_table(samples)),
        tuple(curve for part in parts for curve in part.curves),
        tuple(plot for part in parts for plot in part.plots),
    )


class _Part(NamedTuple):
    """Rounds or models: what is compared within them, over how many shared cases."""

    shared: int
    tables: list[Table]
    curves: list[Table]
    plots: list[tuple[str, str, bytes]]


def _part(samples: Sequence[Sample], suffix: str, shift_s: float, baseline: str | None, *, draws: bool) -> _Part:
    shared = common(samples)
    if not shared:
        return _Part(0, [], [], [])
    solvers = by_solver(shared)
    tables = [summary_table(shared, shift_s)]
    if len(solvers) > 1:
        chosen = baseline if baseline in solvers else next(iter(solvers))
        tables.append(comparison_table(shared, chosen, shift_s))
    curves, plots = [], []
    for name, curve, x, y, caption in (
        (
            "profile",
            profiles(shared),
            "times the fastest",
            "share of cases",
            "Cases proven within a factor of the fastest",
        ),
        ("gaps", gap_shares(shared), "primal gap, %", "share of cases", "Cases that end within a primal gap"),
        ("course", mean_gaps(shared), "time, s", "mean primal gap", "Mean primal gap over time"),
    ):
        title = caption + (f" ({suffix[1:]})" if suffix else "")
        curves.append(steps_table(name + suffix, title, x, y, curve))
        if draws:
            drawn = draw(curve, x=x, y=y, logarithmic=name == "profile")
            plots += [(f"{name}{suffix}.{ending}", title, data) for ending, data in drawn.items()]
    named = [replace(t, name=t.name + suffix, title=t.title + (f" ({suffix[1:]})" if suffix else "")) for t in tables]
    return _Part(len(shared), named, curves, plots)


def write_report(report: Report, out: Path) -> list[Path]:
    """
    Write the page, the tables and the plots, each whole or not at all, and return their paths.

    Raises
    ------
    BadInput
        If the folder cannot be made or written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{out}: cannot be made: {error.strerror or error}") from None
    files = {f"{table.name}.csv": table.csv().encode() for table in (*report.tables, *report.curves)}
    files.update({name: data for name, _, data in report.plots})
    files["report.md"] = report.markdown().encode()
    for name, data in files.items():
        write_bytes(out / name, data)
    return [out / name for name in files]


def _conditions(runs: Sequence[Run], rows: Sequence[Row], shared: int) -> tuple[str, ...]:
    """Say how the figures came about, and what about them differs from run to run."""
    limits = sorted({row.case.time_limit_s for row in rows})
    threads = sorted({row.case.threads for row in rows})
    seeds = sorted({row.case.seed for row in rows})
    loads = [load for row in rows for load in (row.load_before, row.load_after)]
    out = [
        f"{len(rows):,} cases, {shared:,} of them of (instance, seed) pairs that every solver of their kind has run",
        f"time limit {', '.join(f'{limit:g}' for limit in limits)} s; threads {', '.join(map(str, threads))}; "
        f"seeds {', '.join(map(str, seeds))}"
        + ("; orders shuffled by seed" if any(r.case.permuted for r in rows) else ""),
        "seconds are of the solve, without starting and reading; unsolved cases count their whole limit; "
        f"the machine's load was {min(loads):.1f} to {max(loads):.1f}",
        "gaps and integrals are of the first level of a round's objective; integrals in seconds up to the limit",
    ]
    for run in runs:
        packages = ", ".join(f"{name} {version}" for name, version in run.versions.items())
        machine = ", ".join(f"{name} {value}" for name, value in run.machine.items())
        out.append(f"run {run.number}, {run.began}: `{run.command}`; {machine}; {packages}; {run.jobs} side by side")
    if len({tuple(run.versions.items()) for run in runs}) > 1:
        out.append("versions differ between the runs: compare with care")
    return tuple(out)
