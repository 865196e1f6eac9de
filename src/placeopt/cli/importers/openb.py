"""``placeopt import openb`` and ``openb-trace``: Alibaba's GPU trace of 2023 as a round, or as a scenario."""

from __future__ import annotations

from typing import Annotated

import typer

from placeopt.cli.exits import UsageError
from placeopt.cli.importers.importer import INPUT, Imported, Importer, imported_round, imported_scenario


def openb(
    nodes: Annotated[str, typer.Option(metavar="CSV", help="The trace's node list."), INPUT],
    pods: Annotated[str, typer.Option(metavar="CSV", help="One of the trace's pod lists."), INPUT],
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="Take the first N pods and a proportionate part of the nodes.")
    ] = None,
) -> Imported:
    """Read Alibaba's GPU trace of 2023 (openb) as one round in which every pod waits and every node is empty."""
    if limit is not None and limit < 1:
        raise UsageError(f"--limit: {limit}, expected 1 or more")
    from placeopt.formats.openb import read_openb

    return imported_round(read_openb(nodes, pods, limit))


def openb_trace(
    nodes: Annotated[str, typer.Option(metavar="CSV", help="The trace's node list."), INPUT],
    pods: Annotated[str, typer.Option(metavar="CSV", help="A pod list with times."), INPUT],
    part: Annotated[int, typer.Option(metavar="N", min=1, help="Keep one of N nodes, evenly over all shapes.")] = 20,
    load: Annotated[
        float, typer.Option(metavar="F", help="Requested GPU time / GPU time of the cluster; scales the arrival times.")
    ] = 0.9,
) -> Imported:
    """Read openb's pods with their run times as a scenario; arrivals are compressed in time so that GPUs are scarce."""
    from placeopt.formats.openb import read_openb, read_openb_run_times
    from placeopt.generators.openb_scenario import openb_scenario

    round_ = read_openb(nodes, pods)
    cluster = read_openb(nodes, pods, limit=max(1, len(round_.jobs) // part)).cluster
    return imported_scenario(openb_scenario(round_, read_openb_run_times(pods), cluster=cluster, load=load))


OPENB = Importer(
    "openb", openb, "instance", "placeopt import openb --nodes nodes.csv --pods pods.csv --limit 500 --out round.json"
)
OPENB_TRACE = Importer(
    "openb-trace",
    openb_trace,
    "scenario",
    "placeopt import openb-trace --nodes nodes.csv --pods pods.csv --out openb-trace.json.gz",
)
