"""``placeopt judge``: how far is a scheduler from the best, and what did it overlook?"""

from __future__ import annotations

import threading
import time
import zipfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from placeopt.cli.files import STREAM, check_sources, check_target, peek, read_placed
from placeopt.cli.options import KEEPS, AsCsv, AsJson, Quiet, check_seconds, deliver, expect
from placeopt.cli.output import ExitCode
from placeopt.cli.progress import Interruption, Ticker
from placeopt.cli.provenance import asked_about

if TYPE_CHECKING:
    from placeopt.judge import Judgement
    from placeopt.model import Instance

LEAST_S = 0.001
"""What is left for the answer where reading took all the time."""


def judge(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="A round; lists of Kubernetes' objects; a snapshot of KAI (ZIP); with --slurm-jobs, Slurm's nodes.",
        ),
    ],
    plan: Annotated[
        str | None,
        typer.Option(metavar="PLAN", help="A plan of the round, or {placements: [...]}. Default: what runs."),
    ] = None,
    slurm_jobs: Annotated[
        str | None, typer.Option(metavar="FILE", help="Output of: squeue --json; FILE is that of scontrol show nodes.")
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Of a round: allow as many changes as its running jobs do, as in a reading.")
    ] = False,
    time_limit: Annotated[float, typer.Option(metavar="S", help="Seconds of the whole command.")] = 60.0,
    as_json: AsJson = False,
    csv: AsCsv = None,
    quiet: Quiet = False,
) -> int:
    """
    Judge what a scheduler did, against plans that are proven best.

    Two regrets: with all that runs fixed, and with the moves and stops that policy and jobs allow; in jobs by priority,
    then in GPUs. For the jobs that wait: which fit as it is, and where; the smallest set of changes that lets each of
    the others start; and which start after none. Then the idle GPUs that no waiting job can use, by cause, and what one
    more node, one drained node back or one quota lifted would bring. Exit code 1: the plan breaks a rule.
    """
    check_seconds("--time-limit", time_limit)
    sources = {f"FILE {number}": file for number, file in enumerate(files, 1)}
    check_sources({**sources, "--plan": plan, "--slurm-jobs": slurm_jobs})
    check_target(csv, [*files, plan, slurm_jobs])
    expect(slurm_jobs is None or len(files) == 1, "FILE", " ".join(files), "one file with --slurm-jobs, Slurm's nodes")
    with Ticker(time.monotonic(), quiet=quiet) as ticker, Interruption(KEEPS) as interruption:
        asked = Asked(files, plan, slurm_jobs, live)
        found = judged(asked, time_limit, cancel=interruption.event, on_progress=ticker.doing)
    deliver(found.view(), as_json=as_json, csv=csv)
    return interruption.code or (ExitCode.NO if found.violations else ExitCode.DONE)


class Asked(NamedTuple):
    """Files of a round or a reading, of a plan, and of Slurm's jobs; whether a round is of a live cluster."""

    files: list[str]
    plan: str | None = None
    slurm_jobs: str | None = None
    live: bool = False


def judged(
    asked: Asked,
    time_limit_s: float,
    *,
    cancel: threading.Event | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> Judgement:
    """Return the judgement of what is in files; ``time_limit_s`` counts reading, too. Raises ``BadInput``."""
    started = time.monotonic()
    from placeopt.judge import judge as judge_round

    round_ = _read(asked.files, asked.slurm_jobs, live=asked.live)
    plan = None if asked.plan is None else read_placed(asked.plan, round_)
    asked_about(round_)
    left_s = max(LEAST_S, time_limit_s - (time.monotonic() - started))
    return judge_round(round_, plan, time_limit_s=left_s, cancel=cancel, on_progress=on_progress)


def _read(files: list[str], slurm_jobs: str | None, *, live: bool) -> Instance:
    """Return the round in the files, or the reading of a live cluster."""
    from placeopt.importers import read_kubernetes, read_slurm
    from placeopt.judge import live_round

    if slurm_jobs is not None:
        return live_round(read_slurm(files[0], slurm_jobs))
    first, *others = files
    if first == STREAM or not zipfile.is_zipfile(first):
        from placeopt.documents.documents import as_record
        from placeopt.model import Instance

        document, source, kind = peek(first)
        if kind == "round":
            expect(not others, "FILE", others, "one round, and no other file")
            round_ = as_record(Instance, document, source)
            return live_round(round_) if live else round_
        if first == STREAM:
            return live_round(read_kubernetes([document, *others]))
    return live_round(read_kubernetes(files))
