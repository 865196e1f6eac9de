"""``placeopt import openb``, ``openb-trace``, ``philly``, ``sc17`` and ``sia``: traces as a round or as scenarios."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated

import typer

from placeopt.cli.importers.importer import INPUT, Imported, Importer, imported_round, imported_scenario
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
    from placeopt.formats.openb import read_openb

    return imported_round(read_openb(nodes, pods, limit))


def openb_trace(
    nodes: Annotated[str, typer.Option(metavar="CSV", help="The trace's node list."), INPUT],
    pods: Annotated[str, typer.Option(metavar="CSV", help="A pod list with times."), INPUT],
    part: Annotated[
        int, typer.Option(metavar="N", min=1, help="Keep one node of N, evenly over all machine shapes.")
    ] = 20,
    load: Annotated[
        float, typer.Option(metavar="F", help="Requested GPU time / GPU time of the cluster; scales the arrival times.")
    ] = 0.9,
) -> Imported:
    """Read openb's pods with their run times as a scenario; arrivals are compressed in time to the load --load."""
    from placeopt.formats.openb import read_openb, read_openb_run_times
    from placeopt.generators.openb import openb_scenario

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
    interference: Annotated[
        str,
        typer.Option(
            metavar="none|sc17",
            help="How jobs slow each other, which the trace lacks: not at all, or each is one of six kinds of SC'17.",
        ),
    ] = "none",
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the job profiles and of errors.")] = 0,
    prediction_error: Annotated[
        float, typer.Option(metavar="F", help="Standard deviation of log(predicted / actual run time).")
    ] = 0.0,
) -> Imported:
    """Read Microsoft's Philly trace as a scenario on nodes of 8 GPUs, as many as give the load --load."""
    if interference not in ("none", "sc17"):
        raise UsageError(f"--interference: {interference!r}, expected none or sc17")
    from placeopt.formats.traces import read_philly
    from placeopt.generators.philly import philly_scenario

    return imported_scenario(
        philly_scenario(
            read_philly(trace),
            from_day=from_day,
            days=days,
            load=load,
            seed=seed,
            prediction_error=prediction_error,
            interference="sc17" if interference == "sc17" else "none",
        )
    )


PHILLY = Importer(
    "philly",
    philly,
    "scenario",
    "placeopt import philly --trace philly.csv.gz --from-day 30 --days 3 --out philly.json.gz",
)


def sc17(
    workload: Annotated[
        str, typer.Option(metavar="JSON", help="The artifact's list of jobs, for example workloads-5.json."), INPUT
    ],
    infrastructure: Annotated[str, typer.Option(metavar="JSON", help="The machine: infra-1m.json."), INPUT],
    profile: Annotated[str, typer.Option(metavar="JSON", help="Measured times: prof_from_experiments.json."), INPUT],
    machines: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="Machines of the cluster.")] = 1,
) -> Imported:
    """Read a workload of the artifact of the SC'17 paper on topology-aware scheduling as a scenario."""
    from placeopt.formats.sc17 import read_sc17

    scenario = read_sc17(workload, infrastructure, profile, machines=machines)
    return imported_scenario(scenario, unit="machine", notes=scenario.note.partition("\n")[2])


SC17 = Importer(
    "sc17",
    sc17,
    "scenario",
    "placeopt import sc17 --workload w.json --infrastructure i.json --profile p.json --out s.json",
)


def sia(
    workload: Annotated[
        str, typer.Option(metavar="CSV", help="A sample: name, time, application, num_replicas, batch_size."), INPUT
    ],
    nodes: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="Nodes of 4 GPUs.")] = 16,
) -> Imported:
    """Read a sample workload of Sia's simulator as a scenario; run times come from placeopt's table of applications."""
    from placeopt.formats.traces import read_sia
    from placeopt.generators.sia import sia_scenario

    name = f"sia-{PurePath(workload).name.removesuffix('.csv')}"
    return imported_scenario(sia_scenario(read_sia(workload), name=name, nodes=nodes))


SIA = Importer("sia", sia, "scenario", "placeopt import sia --workload workload-1.csv --out sia.json.gz")
