"""``placeopt slurm run``: place the jobs of a running Slurm, round after round."""

from __future__ import annotations

from typing import Annotated

import typer

from placeopt.cli.driving import MAX_ACTIONS, Every, Rounds, RoundTable, RuleChoice, TelemetryChoice, read_telemetry
from placeopt.cli.files import read_scheduling
from placeopt.cli.options import AsJson, SchedulingChoice, expect
from placeopt.cli.output import ExitCode, write_out
from placeopt.cli.progress import Interruption


def run(
    every: Every = "15s",
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
    rounds: Rounds = None,
    worth: Annotated[
        str,
        typer.Option(
            metavar="BY",
            help="jobs: every job counts as one GPU, for a short mean wait; gpus: by its GPUs, for busy GPUs.",
        ),
    ] = "jobs",
    policy: SchedulingChoice = "rounds",
    telemetry: TelemetryChoice = None,
    priority_rule: RuleChoice = None,
    as_json: AsJson = False,
) -> int:
    """
    Place the jobs of a running Slurm: read, decide, tell each job its nodes and release it; every interval again.

    Only jobs that wait under a user hold are started, and only those that --own names; what runs is never changed. Each
    job's admin comment states the round that started it, so that the driver may stop and start again at any time.
    """
    expect(1 <= max_actions <= MAX_ACTIONS, "--max-actions", max_actions, f"1 to {MAX_ACTIONS:,}")
    expect(rounds is None or rounds >= 1, "--rounds", rounds, "1 or more")
    expect(worth in ("jobs", "gpus"), "--worth", worth, "jobs or gpus")
    from placeopt.drivers.interval import seconds_of
    from placeopt.drivers.loop import run_rounds
    from placeopt.drivers.slurm.commands import SlurmCommands
    from placeopt.drivers.slurm.driver import SlurmDriver, SlurmOptions
    from placeopt.drivers.slurm.job_view import Ownership
    from placeopt.importers.priority_rule import priority_rule as read_rule
    from placeopt.live_cluster.engine import Engine

    options = SlurmOptions(
        own=Ownership.parse(own),
        every_s=seconds_of("every", every),
        dry_run=dry_run,
        max_actions=max_actions,
        rule=read_rule(priority_rule),
        worth="gpus" if worth == "gpus" else "jobs",
        policy=read_scheduling(policy),
        telemetry=read_telemetry(telemetry),
    )
    table = RoundTable(as_json=as_json)

    def on_command(command: str) -> None:
        if dry_run and not as_json:
            write_out(f"  {command}\n")

    with Interruption("Slurm as it is, after the command that runs now") as interruption:
        stop = interruption.event
        with Engine() as engine:
            driver = SlurmDriver(SlurmCommands(), engine, options, stop=stop, on_command=on_command)
            run_rounds(driver.run_round, table.add, table.message, every_s=options.every_s, stop=stop, rounds=rounds)
        table.close()
        return ExitCode.DONE if interruption.code is None else interruption.code
