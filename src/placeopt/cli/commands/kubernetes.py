"""``placeopt kubernetes``: drive a cluster of Kubernetes."""

from __future__ import annotations

from typing import Annotated

import typer

from placeopt.cli.driving import MAX_ACTIONS, Every, Rounds, RoundTable, RuleChoice, TelemetryChoice, read_telemetry
from placeopt.cli.files import read_scheduling
from placeopt.cli.options import AsJson, SchedulingChoice, expect
from placeopt.cli.output import ExitCode
from placeopt.cli.progress import Interruption


def run(
    kubeconfig: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Of the cluster; left out: KUBECONFIG, ~/.kube/config, or the pod's account."
        ),
    ] = None,
    every: Every = "15s",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Decide and say what would be done; write nothing.")
    ] = False,
    max_actions: Annotated[
        int, typer.Option(metavar="N", help="Most jobs that one round starts, moves or stops.")
    ] = 500,
    resource: Annotated[
        str, typer.Option(metavar="NAME", help="The extended resource that counts GPUs.")
    ] = "nvidia.com/gpu",
    rounds: Rounds = None,
    policy: SchedulingChoice = "rounds",
    telemetry: TelemetryChoice = None,
    priority_rule: RuleChoice = None,
    as_json: AsJson = False,
) -> int:
    """
    Place pods that wait behind the scheduling gate placeopt.io/gate, round after round, until Ctrl-C or SIGTERM.

    Each round plans all of them, whole gangs together, lifts their gates and requires the planned nodes;
    kube-scheduler binds. One driver is active at a time, by a Lease. A line says what each round did.
    """
    from placeopt.drivers.interval import seconds_of
    from placeopt.drivers.kubernetes.api import Api
    from placeopt.drivers.kubernetes.driver import KubernetesOptions
    from placeopt.drivers.kubernetes.run import run as drive
    from placeopt.importers.priority_rule import priority_rule as read_rule

    expect(1 <= max_actions <= MAX_ACTIONS, "--max-actions", max_actions, f"1 to {MAX_ACTIONS:,}")
    expect(rounds is None or rounds >= 1, "--rounds", rounds, "1 or more")
    options = KubernetesOptions(
        every_s=seconds_of("every", every),
        max_actions=max_actions,
        dry_run=dry_run,
        resource=resource,
        policy=read_scheduling(policy),
        telemetry=read_telemetry(telemetry),
        rule=read_rule(priority_rule),
    )
    api, table = Api(kubeconfig), RoundTable(as_json=as_json)
    with Interruption("the action at hand done") as interruption:
        drive(api, options, interruption.event, table.add, table.message, rounds=rounds)
        table.close()
    return ExitCode.DONE if interruption.code is None else interruption.code
