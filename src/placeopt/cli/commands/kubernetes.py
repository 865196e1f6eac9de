"""``placeopt kubernetes``: drive a cluster of Kubernetes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.files import read_policy
from placeopt.cli.options import AsJson, PolicyChoice, expect
from placeopt.cli.output import ExitCode, write_out
from placeopt.cli.progress import Interruption

if TYPE_CHECKING:
    from placeopt.drivers.round_line import RoundReport

MAX_ACTIONS = 100_000


def run(
    kubeconfig: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Of the cluster; left out: KUBECONFIG, ~/.kube/config, or the pod's account."
        ),
    ] = None,
    every: Annotated[str, typer.Option(metavar="TIME", help="From one round to the next, such as 15s or 2m.")] = "15s",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Decide and say what would be done; write nothing.")
    ] = False,
    max_actions: Annotated[
        int, typer.Option(metavar="N", help="Most jobs that one round starts, moves or stops.")
    ] = 500,
    resource: Annotated[
        str, typer.Option(metavar="NAME", help="The extended resource that counts GPUs.")
    ] = "nvidia.com/gpu",
    policy: PolicyChoice = None,
    as_json: AsJson = False,
) -> int:
    """
    Place pods that wait behind the scheduling gate placeopt.io/gate, round after round, until Ctrl-C or SIGTERM.

    Each round plans all of them, whole gangs together, lifts their gates and requires the planned nodes;
    kube-scheduler binds. One driver is active at a time, by a Lease. A line says what each round did.
    """
    from placeopt.drivers.interval import seconds_of
    from placeopt.drivers.kubernetes.api import Api
    from placeopt.drivers.kubernetes.driver import DriverOptions
    from placeopt.drivers.kubernetes.run import run as drive
    from placeopt.drivers.round_line import HEADER

    expect(1 <= max_actions <= MAX_ACTIONS, "--max-actions", max_actions, f"1 to {MAX_ACTIONS}")
    options = DriverOptions(seconds_of("every", every), max_actions, dry_run, resource, policy=read_policy(policy))
    api = Api(kubeconfig)

    def tell(report: RoundReport) -> None:
        write_out(f"{report.json() if as_json else report.line()}\n")

    with Interruption("the action at hand done") as interruption:
        if not as_json:
            write_out(f"{HEADER}\n")
        drive(api, options, interruption.event, tell)
    return interruption.code or ExitCode.DONE
