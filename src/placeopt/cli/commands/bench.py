"""``placeopt bench``: methods and solvers on sets of instances."""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.arguments import MAX_SEED
from placeopt.cli.files import check_target, say, write_document
from placeopt.cli.options import Plots, check_jobs, check_seconds, check_time_limit, expect
from placeopt.cli.output import ExitCode, UsageError, show, write_out
from placeopt.cli.progress import Interruption, Ticker
from placeopt.errors import BadInput

if TYPE_CHECKING:
    from placeopt.benchmark.sets import SetEntry
    from placeopt.benchmark.solu import Known

INSTANCES = "instances"
SOLU = "best.solu"
MAX_SEEDS = 10_000
SELECTIONS = ("all", "tiny")
"""Sets made of others' instances: they come last on the page of statistics."""

InstancesFolder = Annotated[
    str, typer.Option("--instances", metavar="DIR", help="Folder of the named sets and of best.solu, the known values.")
]

KnownFolder = Annotated[
    str | None,
    typer.Option(
        "--instances",
        metavar="DIR",
        help="Take known values from best.solu there; by default those that the run used.",
        show_default=False,
    ),
]

SoluFile = Annotated[
    str | None,
    typer.Option("--solu", metavar="FILE", help="File of known values, instead of best.solu in that folder."),
]


def run(
    sets: Annotated[str, typer.Option("--set", metavar="S,...", help="Named sets, .test lists, or instance files.")],
    solvers: Annotated[
        str,
        typer.Option(
            metavar="A,B,...", help="Methods for rounds, solvers (highs, cpsat, ...) for MPS and GAP, or all."
        ),
    ],
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Folder of results; cases with a row there are not run again.")
    ],
    time_limit: Annotated[float, typer.Option(metavar="S", help="Time limit of a case in seconds.")] = 10.0,
    seeds: Annotated[str, typer.Option(metavar="N-M,...", help="Seeds, such as 0-4 or 0,7.")] = "0",
    threads: Annotated[int, typer.Option(metavar="N", help="Threads of a case.")] = 1,
    jobs: Annotated[int, typer.Option(metavar="N", help="Cases to run in parallel.")] = 1,
    memory_limit: Annotated[
        int | None, typer.Option(metavar="MIB", help="MiB that a solve may use beyond the loaded data.")
    ] = None,
    permute: Annotated[
        bool, typer.Option("--permute", help="Each seed also shuffles jobs and nodes, or rows and columns.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="Skip cases that have a row, or run all again.")
    ] = True,
    instances: InstancesFolder = INSTANCES,
    solu: SoluFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print neither table nor progress.")] = False,
) -> int:
    """
    Run every solver on every instance of the sets with every seed, each case in a process that can be killed.

    Rows are appended to DIR/results.jsonl as cases end; the same command continues where it was stopped.

    Verdicts: ok (proven, equal to the known optimum), solved (proven), better (than the best known), timeout (ended
    without a proof), fail (wrong), abort (no answer), unsupported (the solver cannot take the instance; it is in
    no mean). Exit code 1: a case has the verdict fail or abort.
    """
    started = time.monotonic()
    _check(time_limit, threads, jobs, memory_limit)
    numbers = parse_seeds(seeds)
    from placeopt.benchmark.campaign import CampaignProgress, plan_cases, run_cases

    with Ticker(started, quiet=quiet) as ticker, Interruption("the rows so far") as interruption:
        plan = plan_cases(
            _words(sets, "--set"),
            _words(solvers, "--solvers"),
            time_limit_s=time_limit,
            seeds=numbers,
            threads=threads,
            permute=permute,
            memory_limit_mib=memory_limit,
            instances=Path(instances),
        )

        def news(outlook: CampaignProgress) -> None:
            done = outlook.done + outlook.kept
            last = "" if outlook.row is None else f"; {outlook.row.case.instance} {outlook.row.case.solver}: "
            verdict = "" if outlook.row is None else outlook.row.verdict
            ticker.doing(f"{done:,} of {outlook.total:,} cases{last}{verdict}")

        rows = run_cases(
            plan.cases,
            Path(out),
            jobs=jobs,
            resume=resume,
            solu=_solu(solu, instances),
            command=shlex.join(["placeopt", *sys.argv[1:]]),
            cancelled=interruption.event.is_set,
            on_news=news,
        )
    from placeopt.report.text.benchmark import counts_json, counts_page

    if as_json:
        write_out(counts_json(rows, len(plan.cases), out) + "\n")
    elif not quiet:
        show(*counts_page(rows, len(plan.cases), out, plan.left_out))
    wrong = any(row.verdict in ("fail", "abort") for row in rows)
    return interruption.code or (ExitCode.NO if wrong else ExitCode.DONE)


def list(  # noqa: A001 - the command's name
    instances: InstancesFolder = INSTANCES,
    as_json: Annotated[bool, typer.Option("--json", help="Print names and counts as JSON.")] = False,
) -> int:
    """List the named sets of instances, and how much is known of each."""
    from placeopt.benchmark.sets import known_sets
    from placeopt.benchmark.solu import Known, read_solu
    from placeopt.report.text.benchmark import sets_json, sets_page

    items_of = _items_of(known_sets(Path(instances)), instances)
    solu = read_solu(Path(instances) / SOLU)
    known = {name: [solu.get(item.name, Known()) for item in items] for name, items in items_of.items()}
    if as_json:
        write_out(sets_json(items_of, known) + "\n")
    else:
        show(*sets_page(items_of, known))
    return ExitCode.DONE


def _items_of(sets: Iterable[str], instances: str) -> Mapping[str, Sequence[SetEntry]]:
    from placeopt.benchmark.sets import read_sets

    items_of = {name: read_sets([name], Path(instances)) for name in sets}
    if not items_of:
        raise UsageError(f"--instances: no .test lists in {instances!r}; expected the folder that holds the sets")
    return items_of


def statistics(
    out: Annotated[str, typer.Option(metavar="FILE", help="Write the page: Markdown, or - for standard output.")],
    sets: Annotated[
        str | None, typer.Option("--set", metavar="S,...", help="Named sets or lists; by default all named sets.")
    ] = None,
    instances: InstancesFolder = INSTANCES,
    solu: SoluFile = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no progress.")] = False,
) -> int:
    """
    Write the properties of the instances of sets, their known values and checksums, as a Markdown page.

    Generated rounds that do not exist yet are generated first.
    """
    check_target(out, ())
    started = time.monotonic()
    from placeopt.benchmark.sets import known_sets
    from placeopt.benchmark.solu import read_solu
    from placeopt.benchmark.statistics import statistics_page
    from placeopt.readable import plural

    named = sorted(known_sets(Path(instances)), key=lambda name: (name in SELECTIONS, name))
    items_of = _items_of(named if sets is None else _words(sets, "--set"), instances)
    with Ticker(started, quiet=quiet) as ticker:
        page = statistics_page(items_of, read_solu(_solu(solu, instances)), ticker.doing)
    write_document(out, page.encode())
    count = len({item.name for items in items_of.values() for item in items})
    say(f"{plural(count, 'instance')} of {plural(len(items_of), 'set')}", out)
    return ExitCode.DONE


def report(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder that bench run has written.")],
    out: Annotated[str | None, typer.Option(metavar="DIR", help="Folder of the report; by default DIR/report.")] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Solver to compare the others with; default: the first by name."),
    ] = None,
    shift: Annotated[float, typer.Option(metavar="S", help="Shift of the geometric means, in seconds.")] = 1.0,
    plots: Plots = None,
    brief: Annotated[
        bool, typer.Option("--brief", help="Write only the page, its pictures as SVG and the cases as CSV.")
    ] = False,
    instances: KnownFolder = None,
    solu: SoluFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the tables as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> int:
    """
    Write a report: a Markdown page, a CSV file of every table, plots as SVG and PDF.

    Shifted geometric means of wall and CPU time, PAR2 and PAR10, primal and primal-dual integrals, performance
    profiles, and paired comparisons with bootstrap intervals. Gaps refer to the known values of the run,
    unless --instances or --solu names others.
    """
    check_seconds("--shift", shift)
    from placeopt.benchmark.report import make_report, write_report
    from placeopt.benchmark.solu import read_solu
    from placeopt.report.text.benchmark import report_page, tables_json

    target = Path(folder) / "report" if out is None else Path(out)
    file = _named(solu, instances)
    known = None if file is None else read_solu(file)
    older = read_solu(Path(INSTANCES) / SOLU)
    made = make_report(Path(folder), known, older=older, shift_s=shift, baseline=baseline, plots=plots)
    files = write_report(made, target, brief=brief)
    if as_json:
        write_out(tables_json(made) + "\n")
    elif not quiet:
        show(*report_page(made, str(target), len(files)))
    return ExitCode.DONE


def check(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder that bench run has written.")],
    jobs: Annotated[int, typer.Option(metavar="N", help="Rows to check in parallel.")] = 1,
    instances: KnownFolder = None,
    solu: SoluFile = None,
    update: Annotated[
        bool, typer.Option("--update", help="Write better values and bounds into the file of known values.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all findings as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> int:
    """
    Check every stored plan and solution again, and compare them with their rows.

    Rows are compared with the known values of their run, unless --instances or --solu names others. Exit code 1 says
    that something is wrong. With --update what stands enters the file of known values, the run's own unless another is
    named; it only ever gets better, and a value is called optimal there only where a bound meets it.
    """
    started = time.monotonic()
    _check(1.0, 1, jobs, None)
    from placeopt.benchmark.rechecked import improve_known, recheck
    from placeopt.benchmark.solu import read_solu, write_solu
    from placeopt.report.text.benchmark import checked_json, checked_page

    file = _named(solu, instances, made=True)
    path = _run_solu(Path(folder)) if file is None else file
    known = read_solu(path)
    with Ticker(started, quiet=quiet) as ticker, Interruption("what is checked") as interruption:
        checked = recheck(
            Path(folder),
            None if file is None else known,
            older=known,
            jobs=jobs,
            cancelled=interruption.event.is_set,
            on_news=lambda done, total: ticker.doing(f"{done:,} of {total:,} rows"),
        )
    better = improve_known(known, checked)
    new = [name for name, entry in better.items() if entry != known.get(name)]
    has_new_source = any(_finders(entry) != _finders(known.get(name)) for name, entry in better.items())
    if update and (new or has_new_source) and not interruption.code:
        write_solu(path, better)
    if as_json:
        write_out(checked_json(checked, {name: better[name] for name in new}, updated=update) + "\n")
    elif not quiet:
        show(*checked_page(checked, {name: better[name] for name in new}, str(path), updated=update))
    wrong = any(row.faults for row in checked)
    return interruption.code or (ExitCode.NO if wrong else ExitCode.DONE)


def _finders(entry: Known | None) -> tuple[str, str]:
    """Return the sources of value and bound."""
    return ("", "") if entry is None else (entry.value_by, entry.bound_by)


def parse_seeds(text: str, option: str = "--seeds") -> tuple[int, ...]:
    """Read ``0-4``, ``7`` or ``0-2,5``; raises `UsageError` at anything else."""
    seeds: dict[int, None] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,10})(?:-(\d{1,10}))?\s*", part, re.ASCII)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last or last > MAX_SEED or last - first + len(seeds) >= MAX_SEEDS:
            raise UsageError(
                f"{option}: {text!r}, expected numbers and ranges such as 0-4 or 0,7, up to {MAX_SEED}, "
                f"at most {MAX_SEEDS:,} of them"
            )
        seeds.update(dict.fromkeys(range(first, last + 1)))
    return tuple(seeds)


def _solu(solu: str | None, instances: str, *, made: bool = False) -> Path:
    """Return the file of known values; one that is named must be there, unless it may be made."""
    if solu is not None and not made and not Path(solu).exists():
        raise BadInput(f"--solu: {solu}: no such file; left out, best.solu of --instances counts")
    return Path(instances) / SOLU if solu is None else Path(solu)


def _named(solu: str | None, instances: str | None, *, made: bool = False) -> Path | None:
    """Return the file of known values that the command line names; None if it names none."""
    return None if solu is None and instances is None else _solu(solu, instances or INSTANCES, made=made)


def _run_solu(folder: Path) -> Path:
    """Return the file of known values that the last run went by; that of ``instances/`` where it states none."""
    from placeopt.benchmark.journal import read_journal

    runs, _ = read_journal(folder)
    stated = [run.solu for run in runs if run.solu is not None]
    return Path(stated[-1]) if stated else Path(INSTANCES) / SOLU


def _words(text: str, option: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(","))
    if not all(words):
        raise UsageError(f"{option}: {text!r}, expected names separated by commas")
    return words


def _check(time_limit: float, threads: int, jobs: int, memory_limit: int | None) -> None:
    check_time_limit(time_limit)
    check_jobs(jobs)
    for option, value in (("--threads", threads), ("--memory-limit", memory_limit)):
        expect(value is None or value >= 1, option, value, "1 or more")
