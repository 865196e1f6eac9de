"""``placeopt bench``: methods and solvers on sets of instances."""

from __future__ import annotations

import re
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.arguments import MAX_SEED, MAX_TIME_LIMIT_S
from placeopt.cli.files import check_target
from placeopt.cli.options import check_jobs, check_seconds, deliver, expect
from placeopt.cli.output import ExitCode, UsageError
from placeopt.cli.progress import Interruption, Ticker
from placeopt.errors import BadInput

if TYPE_CHECKING:
    from placeopt.benchmark.campaign import CampaignProgress
    from placeopt.benchmark.solu import Known
    from placeopt.view import View

INSTANCES = "instances"
SOLU = "best.solu"
MAX_SEEDS = 10_000

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
    sets: Annotated[
        str | None,
        typer.Option("--set", metavar="S,...", help="Named sets, .test lists, or instance files; left out: list them."),
    ] = None,
    solvers: Annotated[
        str,
        typer.Option(
            metavar="A,B,...", help="Methods for rounds, solvers (highs, cpsat, ...) for MPS and GAP, or all."
        ),
    ] = "all",
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of results; cases with a row there are not run again.")
    ] = None,
    case_limit: Annotated[float, typer.Option(metavar="S", help="Time limit of each case in seconds.")] = 10.0,
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

    Rows are appended to DIR/results.jsonl as cases end; the same command continues where it was stopped. Without --set
    it lists the named sets, and what is known of each.

    Verdicts: ok (proven, equal to the known optimum), solved (proven), better (than the best known), timeout (ended
    without a proof), fail (wrong), abort (no answer), unsupported (the solver cannot take the instance; it is in
    no mean). Exit code 1: a case has the verdict fail or abort.
    """
    started = time.monotonic()
    if sets is None:
        return _list(instances, as_json=as_json, quiet=quiet)
    if out is None:
        raise UsageError("--out: left out, expected a folder for the results")
    most = f"seconds above 0 and up to {MAX_TIME_LIMIT_S}"
    expect(0 < case_limit <= MAX_TIME_LIMIT_S, "--case-limit", case_limit, most)
    check_jobs(jobs)
    for option, value in (("--threads", threads), ("--memory-limit", memory_limit)):
        expect(value is None or value >= 1, option, value, "1 or more")
    numbers = parse_seeds(seeds)
    from placeopt.benchmark import plan_cases, run_cases, run_view

    with Ticker(started, quiet=quiet) as ticker, Interruption("the rows so far") as interruption:
        plan = plan_cases(
            _words(sets, "--set"),
            _words(solvers, "--solvers"),
            time_limit_s=case_limit,
            seeds=numbers,
            threads=threads,
            permute=permute,
            memory_limit_mib=memory_limit,
            instances=Path(instances),
        )

        def news(outlook: CampaignProgress) -> None:
            row, done = outlook.row, outlook.done + outlook.kept
            last = "" if row is None else f"; {row.case.instance} {row.case.solver}: {row.verdict}"
            ticker.doing(f"{done:,} of {outlook.total:,} cases{last}")

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
    view = run_view(rows, len(plan.cases), Path(out), plan.left_out)
    deliver(view, as_json=as_json, quiet=quiet)
    return interruption.code or (ExitCode.NO if view.verdict == "bad" else ExitCode.DONE)


def _list(instances: str, *, as_json: bool, quiet: bool) -> int:
    from placeopt.benchmark import known_sets, read_sets, read_solu, sets_view

    items_of = {name: read_sets([name], instances) for name in known_sets(instances)}
    if not items_of:
        raise UsageError(f"--instances: no .test lists in {instances!r}; expected the folder that holds the sets")
    deliver(sets_view(items_of, read_solu(Path(instances) / SOLU)), as_json=as_json, quiet=quiet)
    return ExitCode.DONE


def report(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder that bench run has written.")],
    baseline: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Solver to compare the others with; default: the first by name."),
    ] = None,
    shift: Annotated[float, typer.Option(metavar="S", help="Shift of the geometric means, in seconds.")] = 1.0,
    check: Annotated[
        bool, typer.Option("--check", help="Check every stored plan and solution again, instead of comparing.")
    ] = False,
    update: Annotated[
        bool, typer.Option("--update", help="Check, and write better values and bounds into the file of known values.")
    ] = False,
    jobs: Annotated[int, typer.Option(metavar="N", help="Rows to check in parallel.")] = 1,
    instances: KnownFolder = None,
    solu: SoluFile = None,
    page: Annotated[
        str | None, typer.Option(metavar="HTML", help="Write a page with all tables and curves, which opens offline.")
    ] = None,
    csv: Annotated[str | None, typer.Option(metavar="FILE", help="Write all tables as CSV.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all tables as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> int:
    """
    Compare the solvers of a benchmark, or check its results.

    Shifted geometric means of wall and CPU time, PAR2 and PAR10, primal and primal-dual integrals, performance
    profiles, and paired comparisons with bootstrap intervals. Known values are those of the run, unless --instances or
    --solu names others.

    With --check every plan and solution is read again and compared with its row; exit code 1 says that something is
    wrong. With --update what stands enters the file of known values, the run's own unless another is named; it only
    ever gets better, and a value is called optimal there only where a bound meets it.
    """
    check_seconds("--shift", shift)
    check_jobs(jobs)
    for target in (page, csv):
        check_target(target)
    from placeopt.benchmark import read_solu, report_views

    if check or update:
        view, code = _checked(Path(folder), instances, solu, update=update, jobs=jobs, quiet=quiet)
        deliver(view, as_json=as_json, quiet=quiet, page=page, csv=csv)
        return code
    file = _named(solu, instances)
    if file is not None and not file.exists() and solu is not None:
        raise BadInput(f"--solu: {solu}: no such file; left out, best.solu of --instances counts")
    known, older = None if file is None else read_solu(file), read_solu(Path(INSTANCES) / SOLU)
    first, *beside = report_views(Path(folder), known, older=older, shift_s=shift, baseline=baseline)
    deliver(first, beside=beside, as_json=as_json, quiet=quiet, page=page, csv=csv)
    return ExitCode.DONE


def _checked(
    folder: Path, instances: str | None, solu: str | None, *, update: bool, jobs: int, quiet: bool
) -> tuple[View, int]:
    """Return what a check finds, and the exit code."""
    started = time.monotonic()
    from placeopt.benchmark import checked_view, improve_known, read_solu, recheck, write_solu

    file = _named(solu, instances)
    path = _run_solu(folder) if file is None else file
    known = read_solu(path)
    with Ticker(started, quiet=quiet) as ticker, Interruption("what is checked") as interruption:
        checked = recheck(
            folder,
            None if file is None else known,
            older=known,
            jobs=jobs,
            cancelled=interruption.event.is_set,
            on_news=lambda done, total: ticker.doing(f"{done:,} of {total:,} rows"),
        )
    better = improve_known(known, checked)
    new = {name: entry for name, entry in better.items() if entry != known.get(name)}
    has_new_source = any(_finders(entry) != _finders(known.get(name)) for name, entry in better.items())
    writes = update and (bool(new) or has_new_source) and not interruption.code
    if writes:
        write_solu(path, better)
    view = checked_view(checked, new, path, updated=writes)
    return view, interruption.code or (ExitCode.NO if view.verdict == "bad" else ExitCode.DONE)


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


def _solu(solu: str | None, instances: str) -> Path:
    """Return the file of known values that a run goes by; one that is named must be there."""
    if solu is not None and not Path(solu).exists():
        raise BadInput(f"--solu: {solu}: no such file; left out, best.solu of --instances counts")
    return Path(instances) / SOLU if solu is None else Path(solu)


def _named(solu: str | None, instances: str | None) -> Path | None:
    """Return the file of known values that the command line names; None if it names none."""
    return Path(solu) if solu is not None else None if instances is None else Path(instances) / SOLU


def _run_solu(folder: Path) -> Path:
    """Return the file of known values that the last run went by; that of ``instances/`` where it states none."""
    from placeopt.benchmark import read_journal

    runs, _ = read_journal(folder)
    stated = [run.solu for run in runs if run.solu is not None]
    return Path(stated[-1]) if stated else Path(INSTANCES) / SOLU


def _words(text: str, option: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(","))
    if not all(words):
        raise UsageError(f"{option}: {text!r}, expected names separated by commas")
    return words
