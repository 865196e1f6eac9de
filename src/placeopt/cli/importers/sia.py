"""``placeopt import sia``: a sample workload of Sia's simulator as a scenario."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated

import typer

from placeopt.cli.importers.importer import INPUT, Imported, Importer, imported_scenario


def sia(
    workload: Annotated[
        str, typer.Option(metavar="CSV", help="A sample: name, time, application, num_replicas, batch_size."), INPUT
    ],
    nodes: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="Nodes of 4 GPUs.")] = 16,
) -> Imported:
    """Read a sample workload of Sia's simulator as a scenario; run times come from placeopt's table of applications."""
    from placeopt.formats.sia import read_sia
    from placeopt.generators.sia_scenario import sia_scenario

    name = f"sia-{PurePath(workload).name.removesuffix('.csv')}"
    return imported_scenario(sia_scenario(read_sia(workload), name=name, nodes=nodes))


SIA = Importer("sia", sia, "scenario", "placeopt import sia --workload workload-1.csv --out sia.json.gz")
