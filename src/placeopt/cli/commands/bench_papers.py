"""``placeopt bench papers``: the figures that five papers report, beside ours."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.commands.bench import INSTANCES, parse_seeds
from placeopt.cli.files import write_document
from placeopt.cli.options import Plots, check_jobs
from placeopt.cli.output import ExitCode, UsageError, write_out
from placeopt.cli.progress import Interruption, Ticker
from placeopt.environment import find_papers

if TYPE_CHECKING:
    from placeopt_papers.records import PaperRow, PaperSetting


def papers(
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of results; cases with a row there are not run again.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Papers or settings; by default all. 'list' names them.")
    ] = None,
    seeds: Annotated[str, typer.Option(metavar="N-M,...", help="Seeds of the drawn scenarios, such as 0-4.")] = "0-4",
    jobs: Annotated[int, typer.Option(metavar="N", help="Simulations to run in parallel.")] = 1,
    full: Annotated[
        bool, typer.Option("--full", help="Simulate in full size the settings that are reduced by default.")
    ] = False,
    figures: Annotated[
        bool, typer.Option("--figures", help="Only simulations that the papers' figures and orders use.")
    ] = False,
    run: Annotated[
        bool, typer.Option("--run/--no-run", help="Run the simulations, or only write the report of earlier runs.")
    ] = True,
    plots: Plots = None,
    instances: Annotated[
        str, typer.Option("--instances", metavar="DIR", help="Folder that contains papers/, the stored scenarios.")
    ] = INSTANCES,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print neither page nor progress.")] = False,
) -> int:
    """
    Simulate the settings of five papers, and compare their figures with ours in one table.

    Writes DIR/papers.md, a CSV file of each table, and pictures. Runs are appended to DIR/results.jsonl as they end;
    the same command continues where it was stopped.
    """
    started = time.monotonic()
    check_jobs(jobs)
    numbers = parse_seeds(seeds)
    require_papers()
    from placeopt_papers import campaign, catalogue
    from placeopt_papers.journal import read_results
    from placeopt_papers.report import listing, make_report, write_report

    if only == "list":
        write_out(listing() + "\n")
        return ExitCode.DONE
    if out is None:
        raise UsageError("--out: missing, expected a folder for the results; only --only list does without")
    names, settings = catalogue.select([] if only is None else [name.strip() for name in only.split(",")])
    cases = campaign.plan_cases(settings, numbers, whole=full, instances=Path(instances), figures=figures)
    folder = Path(out)
    code: int = ExitCode.DONE
    if run:
        with Ticker(started, quiet=quiet) as ticker, Interruption("the runs that are there") as interruption:

            def news(now: campaign.CampaignProgress) -> None:
                last = "" if now.row is None else f"; {now.row.case.setting} {now.row.case.policy}"
                ticker.doing(f"{now.done + now.kept:,} of {now.total:,} simulations{last}")

            campaign.run_cases(
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
    current = [rows[case] for case in cases if campaign.is_current(case, rows.get(case), Path(instances))]
    report = make_report(names, settings, current, starts)
    written = write_report(report, folder)
    number = len(written)
    if not code:
        number += _draw(names, settings, current, folder, Path(instances), wanted=plots)
    if not quiet:
        write_out(report.page)
        write_out(f"\n{number} files in {out}; begin with papers.md\n")
    return code


def require_papers() -> None:
    """Make the package ``placeopt_papers`` importable; raises `UsageError` where placeopt runs outside a checkout."""
    try:
        find_papers()
    except ModuleNotFoundError as error:
        raise UsageError(str(error)) from None


def _draw(
    names: Sequence[str],
    settings: Sequence[PaperSetting],
    rows: Sequence[PaperRow],
    folder: Path,
    instances: Path,
    *,
    wanted: bool | None,
) -> int:
    """Write pictures into ``DIR/pictures`` and return how many files; none without matplotlib, unless asked for."""
    from placeopt.formats.figure import can_draw
    from placeopt.formats.files import make_folder
    from placeopt.report.html import gantt, read_log
    from placeopt_papers.campaign import write_log
    from placeopt_papers.catalogue import PAPERS
    from placeopt_papers.figures import paper_figures, setting_figures
    from placeopt_papers.tables import CampaignRows

    if wanted is False or (wanted is None and not can_draw()):
        return 0
    campaign = CampaignRows(rows)
    figures = [
        figure for key in names for figure in paper_figures(key, PAPERS[key].title, PAPERS[key].figures, campaign)
    ]
    for setting in settings:
        figures += setting_figures(setting, campaign)
    target = make_folder(folder / "pictures")
    for row in rows:
        if any(setting.name == row.case.setting and setting.timeline for setting in settings):
            log = target / f"{row.case.setting}-{row.case.policy}.jsonl"
            write_log(row.case, log, instances=instances)
            figures.append(replace(gantt(read_log(log), 0), name=log.stem))
    for figure in figures:
        for name, data in figure.files(("svg", "png")).items():
            write_document(str(target / name), data)
    return 3 * len(figures)
