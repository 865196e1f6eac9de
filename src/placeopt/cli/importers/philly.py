"""``placeopt import philly``: Microsoft's Philly trace as a scenario."""

from __future__ import annotations

from typing import Annotated

import typer

from placeopt.cli.importers.importer import INPUT, Imported, Importer, imported_scenario


def philly(
    trace: Annotated[
        str, typer.Option(metavar="CSV", help="The trace: timestamp, duration, num_gpus, gpu_time, cluster."), INPUT
    ],
    from_day: Annotated[int, typer.Option(metavar="N", min=0, help="First day, from the first submission.")] = 0,
    days: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Days of submissions; by default all that follow.")
    ] = None,
    load: Annotated[
        float,
        typer.Option(metavar="F", help="Requested GPU time / GPU time of the cluster; sets the number of nodes."),
    ] = 0.9,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the job profiles, which the trace lacks.")] = 0,
    prediction_error: Annotated[
        float, typer.Option(metavar="F", help="Standard deviation of log(predicted / actual run time).")
    ] = 0.0,
) -> Imported:
    """Read Microsoft's Philly trace as a scenario on nodes of 8 GPUs; their number follows from the load."""
    from placeopt.formats.philly import read_philly
    from placeopt.generators.philly_scenario import philly_scenario

    jobs = read_philly(trace)
    return imported_scenario(
        philly_scenario(jobs, from_day=from_day, days=days, load=load, seed=seed, prediction_error=prediction_error)
    )


PHILLY = Importer(
    "philly",
    philly,
    "scenario",
    "placeopt import philly --trace philly.csv.gz --from-day 30 --days 3 --out philly.json.gz",
)
