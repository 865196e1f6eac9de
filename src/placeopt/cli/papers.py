"""``placeopt bench papers``: the figures that five papers report, beside ours."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from placeopt.cli.bench import INSTANCES, parse_seeds
from placeopt.cli.exits import ExitCode, UsageError
from placeopt.cli.output import write_out
from placeopt.cli.progress import Ticker
from placeopt.cli.signals import Interruption


def papers(
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder of results; what it holds already is not run again.")],
    only: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Papers or settings; left out, all. 'list' names them.")
    ] = None,
    seeds: Annotated[str, typer.Option(metavar="N-M,...", help="Seeds of the drawn scenarios, such as 0-4.")] = "0-4",
    jobs: Annotated[int, typer.Option(metavar="N", help="Simulations side by side.")] = 1,
    full: Annotated[bool, typer.Option("--full", help="The papers' sizes, where they are reduced otherwise.")] = False,
    run: Annotated[bool, typer.Option("--run/--no-run", help="Or only make the report of what was run.")] = True,
    timings: Annotated[
        bool, typer.Option("--timings", help="Show measured times too: on a machine without other load.")
    ] = False,
    plots: Annotated[
        bool | None,
        typer.Option("--plots/--no-plots", help="Draw; left out, if matplotlib is there.", show_default=False),
    ] = None,
    instances: Annotated[
        str, typer.Option("--instances", metavar="DIR", help="Folder that holds papers/, the stored scenarios.")
    ] = INSTANCES,
    quiet: Annotated[bool, typer.Option("--quiet", help="Neither page nor progress.")] = False,
) -> int:
    """
    Simulate the settings of five papers, and put their figures beside ours in one table.

    Writes DIR/papers.md, a CSV file of each table, and pictures. Runs are appended to DIR/results.jsonl as they end;
    the same command goes on where it was stopped.
    """
    started = time.monotonic()
    if jobs < 1:
        raise UsageError(f"--jobs: {jobs}, expected 1 or more")
    numbers = parse_seeds(seeds)
    from placeopt.papers import catalogue, runs
    from placeopt.papers.journal import read_results
    from placeopt.papers.report import listing, make_report, write_report

    if only == "list":
        write_out(listing() + "\n")
        return ExitCode.DONE
    names, settings = catalogue.chosen([] if only is None else [name.strip() for name in only.split(",")])
    cases = runs.plan(settings, numbers, whole=full)
    folder = Path(out)
    code: int = ExitCode.DONE
    if run:
        with Ticker(started, quiet=quiet) as ticker, Interruption("the runs that are there") as interruption:

            def news(now: runs.News) -> None:
                last = "" if now.row is None else f"; {now.row.case.setting} {now.row.case.policy}"
                ticker.doing(f"{now.done + now.kept:,} of {now.total:,} simulations{last}")

            runs.run(
                cases,
                folder,
                instances=Path(instances),
                jobs=jobs,
                command=shlex.join(["placeopt", *sys.argv[1:]]),
                cancel=interruption.event,
                on_news=news,
            )
            code = interruption.code or code
    starts, rows = read_results(folder)
    found = [rows[case] for case in cases if case in rows]
    report = make_report(names, settings, found, starts, timings=timings)
    written = write_report(report, folder)
    del plots
    if not quiet:
        write_out(report.page)
        write_out(f"\n{len(written)} files in {out}; begin with papers.md\n")
    return code
