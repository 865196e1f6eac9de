"""``placeopt import openb``: Alibaba's trace as one round; as a scenario it is a form of ``import jobs``."""

from __future__ import annotations

from typing import Annotated

import typer

from placeopt.cli.importers.importer import INPUT, Imported, Importer, imported_snapshot
from placeopt.cli.output import UsageError


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
    from placeopt.importers.openb import read_openb

    return imported_snapshot(read_openb(nodes, pods, limit))


OPENB = Importer(
    "openb", openb, "instance", "placeopt import openb --nodes nodes.csv --pods pods.csv --limit 500 --out round.json"
)
