"""``placeopt slurm run``: place the jobs of a running Slurm, round after round."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.files import read_policy
from placeopt.cli.options import PolicyChoice, expect
from placeopt.cli.output import ExitCode, write_error, write_out
from placeopt.cli.progress import Interruption
from placeopt.readable import percent

if TYPE_CHECKING:
    from placeopt.drivers.slurm.commands import Slurm
    from placeopt.drivers.slurm.round_record import RoundRecord

_UNITS_S = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
MAX_ACTIONS = 100_000
HEADER_EVERY = 20
"""Rounds between two headers of the table."""
COLUMNS = (
    *("time    ", "seconds", "running", "waiting", "left out", "GPUs used"),
    *("started", "as planned", "other", "failed", "back", "gap"),
)


def run(
    every: Annotated[str, typer.Option(metavar="TIME", help="Interval of rounds: 15s, 2m.")] = "15s",
    own: Annotated[
        str,
        typer.Option(
            metavar="WHOSE",
            help="held: jobs under a user hold whose comment says placeopt; partition=NAME: the jobs of a partition, "
            "which are held when they come.",
        ),
    ] = "held",
    max_actions: Annotated[int, typer.Option(metavar="N", help="Most jobs to change in a round.")] = 100,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the commands; send none.")] = False,
    rounds: Annotated[int | None, typer.Option(metavar="N", help="End after as many rounds.")] = None,
    restd: Annotated[
        str | None, typer.Option(metavar="unix:PATH", help="Read from slurmrestd on a unix socket instead of squeue.")
    ] = None,
    worth: Annotated[
        str,
        typer.Option(
            metavar="BY",
            help="jobs: every job counts the same, for a short mean wait; gpus: by its GPUs, for busy GPUs.",
        ),
    ] = "jobs",
    policy: PolicyChoice = None,
    json_lines: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each round.")] = False,
) -> int:
    """
    Place the jobs of a running Slurm: read, decide, tell each job its nodes and release it; every interval anew.

    Only jobs that wait under a user hold are started, and only those that --own names; what runs is never changed. Each
    job's admin comment states the round that started it, so that the driver may stop and start again at any time.
    """
    every_s = parse_interval(every)
    expect(1 <= max_actions <= MAX_ACTIONS, "--max-actions", max_actions, f"1 to {MAX_ACTIONS:,}")
    expect(rounds is None or rounds >= 1, "--rounds", rounds, "1 or more")
    expect(restd is None or bool(re.fullmatch(r"unix:.+", restd)), "--restd", restd, "unix:PATH")
    expect(worth in ("jobs", "gpus"), "--worth", worth, "jobs or gpus")
    from placeopt.drivers.slurm.commands import SlurmCommands
    from placeopt.drivers.slurm.driver import DriverOptions, SlurmDriver
    from placeopt.drivers.slurm.job_view import Ownership
    from placeopt.drivers.slurm.restd import ReadThroughRestd

    slurm: Slurm = SlurmCommands()
    if restd is not None:
        slurm = ReadThroughRestd(slurm, restd.removeprefix("unix:"))
    options = DriverOptions(
        own=Ownership.parse(own),
        every_s=every_s,
        dry_run=dry_run,
        max_actions=max_actions,
        worth="gpus" if worth == "gpus" else "jobs",
        policy=None if policy is None else read_policy(policy),
    )
    table = _RoundTable(json_lines=json_lines)

    def on_command(command: str) -> None:
        if dry_run and not json_lines:
            write_out(f"  {command}\n")

    with Interruption("Slurm as it is, after the command that runs now") as interruption:
        with SlurmDriver(slurm, options, stop=interruption.event, on_command=on_command) as driver:

            def on_round(record: RoundRecord) -> None:
                table.add(record)
                if rounds is not None and table.rounds >= rounds:
                    driver.stop.set()

            driver.run(on_round, lambda message: write_error(f"{_clock(time.time())} {message}"))
        return ExitCode.DONE if interruption.code is None else interruption.code


def parse_interval(text: str) -> float:
    """Return seconds of ``15s``, ``2m``, ``1.5`` or ``1h``; raises `UsageError` elsewhere, and above a day."""
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(s|m|min|h)?", text.strip())
    seconds = float(found[1]) * _UNITS_S[found[2] or ""] if found else 0.0
    expect(1 <= seconds <= 86_400, "--every", text, "a time from 1s to 24h, such as 15s")
    return seconds


class _RoundTable:
    """A line for each round on standard output; what needs an eye goes to standard error."""

    def __init__(self, *, json_lines: bool) -> None:
        self._json = json_lines
        self._left_out: Mapping[str, int] = {}
        self.rounds = 0

    def add(self, record: RoundRecord) -> None:
        """Write a round."""
        if self._json:
            write_out(json.dumps(record.as_json()) + "\n")
        else:
            self._explain(record)
            if self.rounds % HEADER_EVERY == 0:
                write_out(" ".join(COLUMNS) + "\n")
            cells = _cells(record)
            write_out(
                " ".join(cell.rjust(len(name)) for cell, name in zip(cells, COLUMNS, strict=True)).rstrip() + "\n"
            )
        self.rounds += 1

    def _explain(self, record: RoundRecord) -> None:
        """Say what did not go as planned, and what cannot be read where that changed."""
        clock = _clock(record.at_s)
        if record.left_out != self._left_out:
            for reason, count in record.left_out.items():
                write_error(f"{clock} left out, {reason}: {count}")
            self._left_out = record.left_out
        for outcome in record.outcomes:
            if outcome.kind != "as-planned":
                planned, got = ",".join(dict.fromkeys(outcome.nodes)), ",".join(outcome.got)
                where = f"planned on {planned}" + (f", has {got}" if got else "")
                write_error(
                    f"{clock} job {outcome.job} {outcome.kind}, {where}" + (f": {outcome.why}" if outcome.why else "")
                )
        for action in record.actions:
            if action.applied.result == "refused":
                write_error(f"{clock} job {action.job}: {action.do} refused: {action.applied.why}")
            elif action.do == "give-up":
                write_error(f"{clock} job {action.job} is left held after {action.why}; its admin comment says more")
        if record.closed:
            write_error(f"{clock} nodes left alone for now: {', '.join(record.closed)}")
        if record.postponed:
            write_error(f"{clock} {record.postponed} actions beyond --max-actions wait for the next round")
        if record.silent:
            write_error(f"{clock} the round ended early: {record.silent}")


def _cells(record: RoundRecord) -> tuple[str, ...]:
    delayed = record.standings["delayed"] + record.standings["given up"]
    failed = record.came_of("failed") + record.came_of("requeued")
    return (
        _clock(record.at_s),
        f"{record.seconds:.2f}",
        str(record.running),
        str(record.waiting + delayed),
        str(sum(record.left_out.values())),
        f"{record.gpus_used}/{record.gpus}",
        str(record.count("start")),
        str(record.came_of("as-planned")),
        str(record.came_of("elsewhere")),
        str(failed),
        str(record.count("take-back") + record.count("give-up")),
        "-" if record.gap is None else percent(record.gap),
    )


def _clock(at_s: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at_s))
