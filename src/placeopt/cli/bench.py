"""``placeopt bench``: methods and solvers on sets of instances."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Annotated

import typer

from placeopt.cli.exits import ExitCode, UsageError
from placeopt.cli.output import show, write_out
from placeopt.cli.progress import Ticker
from placeopt.cli.settings import MAX_SEED, MAX_TIME_LIMIT_S
from placeopt.cli.signals import Interruption

INSTANCES = "instances"
SOLU = "best.solu"
MAX_SEEDS = 10_000

InstancesFolder = Annotated[
    str, typer.Option("--instances", metavar="DIR", help="Folder of the named sets, and of best.solu.")
]


def run(
    sets: Annotated[str, typer.Option("--set", metavar="S,...", help="Named sets, .test lists, or instance files.")],
    solvers: Annotated[
        str,
        typer.Option(
            metavar="A,B,...", help="Methods for rounds, solvers (highs, cpsat, ...) for MPS and GAP, or all."
        ),
    ],
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder of results; what it holds already is not run again.")],
    time_limit: Annotated[float, typer.Option(metavar="S", help="Seconds a case.")] = 10.0,
    seeds: Annotated[str, typer.Option(metavar="N-M,...", help="Seeds, such as 0-4 or 0,7.")] = "0",
    threads: Annotated[int, typer.Option(metavar="N", help="Threads a case.")] = 1,
    jobs: Annotated[int, typer.Option(metavar="N", help="Cases side by side.")] = 1,
    memory_limit: Annotated[int | None, typer.Option(metavar="MIB", help="MiB that a solver process may use.")] = None,
    permute: Annotated[
        bool, typer.Option("--permute", help="Each seed also shuffles jobs and nodes, or rows and columns.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="Keep what has been run, or run all anew.")
    ] = True,
    instances: InstancesFolder = INSTANCES,
    solu: Annotated[
        str | None, typer.Option(metavar="FILE", help="Known values; left out, best.solu beside the sets.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Neither table nor progress.")] = False,
) -> int:
    """
    Run every solver on every instance of the sets with every seed, each case in a process that can be killed.

    Rows are appended to DIR/results.jsonl as they come; the same command goes on where it was stopped.

    Verdicts: ok (proven, equal to the known optimum), solved (proven), better (than the best known), timeout (ended
    without a proof), fail (wrong), abort (no answer). Exit code 1 says that a case failed.
    """
    started = time.monotonic()
    _check(time_limit, threads, jobs, memory_limit)
    numbers = parse_seeds(seeds)
    from placeopt.benchmark.campaign import Outlook, plan_cases, run_cases

    with Ticker(started, quiet=quiet) as ticker, Interruption("the rows that are there") as interruption:
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

        def news(outlook: Outlook) -> None:
            done = outlook.done + outlook.kept
            last = "" if outlook.row is None else f"; {outlook.row.case.instance} {outlook.row.case.solver}: "
            verdict = "" if outlook.row is None else outlook.row.verdict
            ticker.doing(f"{done:,} of {outlook.total:,} cases{last}{verdict}")

        rows = run_cases(
            plan.cases,
            Path(out),
            jobs=jobs,
            resume=resume,
            solu=Path(solu) if solu is not None else Path(instances) / SOLU,
            cancelled=interruption.event.is_set,
            on_news=news,
        )
    from placeopt.report.benchmark import counts_json, counts_page

    if as_json:
        write_out(counts_json(rows, len(plan.cases), out) + "\n")
    elif not quiet:
        show(*counts_page(rows, len(plan.cases), out, plan.left_out))
    failed = any(row.verdict == "fail" for row in rows)
    return interruption.code or (ExitCode.NO if failed else ExitCode.DONE)


def list(  # noqa: A001 - the command's name
    instances: InstancesFolder = INSTANCES,
    as_json: Annotated[bool, typer.Option("--json", help="Print names and counts as JSON.")] = False,
) -> int:
    """List the named sets of instances, and how much is known of each."""
    from placeopt.benchmark.sets import known_sets, read_sets
    from placeopt.formats.solu import Known, read_solu
    from placeopt.report.benchmark import sets_json, sets_page

    folder = Path(instances)
    found = {name: read_sets([name], folder) for name in known_sets(folder)}
    if not found:
        raise UsageError(f"--instances: no .test lists in {instances!r}; expected the folder that holds the sets")
    solu = read_solu(folder / SOLU)
    known = {name: [solu.get(item.name, Known()) for item in items] for name, items in found.items()}
    if as_json:
        write_out(sets_json(found, known) + "\n")
    else:
        show(*sets_page(found, known))
    return ExitCode.DONE


def parse_seeds(text: str) -> tuple[int, ...]:
    """Read ``0-4``, ``7`` or ``0-2,5``; raises `UsageError` at anything else."""
    seeds: dict[int, None] = {}
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,10})(?:-(\d{1,10}))?\s*", part, re.ASCII)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if first > last or last > MAX_SEED or last - first + len(seeds) >= MAX_SEEDS:
            raise UsageError(
                f"--seeds: {text!r}, expected numbers and ranges such as 0-4 or 0,7, up to {MAX_SEED}, "
                f"at most {MAX_SEEDS:,} of them"
            )
        seeds.update(dict.fromkeys(range(first, last + 1)))
    return tuple(seeds)


def _words(text: str, option: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(","))
    if not all(words):
        raise UsageError(f"{option}: {text!r}, expected names separated by commas")
    return words


def _check(time_limit: float, threads: int, jobs: int, memory_limit: int | None) -> None:
    if not 0 < time_limit <= MAX_TIME_LIMIT_S:
        raise UsageError(f"--time-limit: {time_limit!r}, expected seconds above 0 and up to {MAX_TIME_LIMIT_S}")
    for option, value in (("--threads", threads), ("--jobs", jobs), ("--memory-limit", memory_limit)):
        if value is not None and value < 1:
            raise UsageError(f"{option}: {value}, expected 1 or more")
