"""``placeopt import jobs``: any table of jobs, its columns named on the command line, as a scenario."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.files import read_cluster
from placeopt.cli.importers.importer import INPUT, Imported, Importer, imported_scenario
from placeopt.cli.output import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placeopt.model import Slowdown
    from placeopt.simulation.assumed_interference import Assumed
    from placeopt.simulation.records.scenario import Scenario

MAX_DAYS = 100_000
PREVIEW = 10
"""Jobs that the preview shows."""
STREAM_NAME = "jobs"


def jobs(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Table of jobs: CSV, JSON lines or Parquet; gzip or not."), INPUT
    ],
    columns: Annotated[
        str,
        typer.Option(
            metavar="FIELD=COLUMN,...",
            help="submit=..., duration=... (or start=...,end=...), gpus=..., user=... and more; or the name of a "
            "published form: itp, helios, dlrm, spot, openb, philly, philly-csv, sacct, slurmdbd, kubernetes, google.",
        ),
    ],
    cluster: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The cluster: that of an instance, a scenario or import topo."),
        INPUT,
    ] = None,
    nodes: Annotated[
        str | None, typer.Option(metavar="32x8xA100", help="Nodes instead: COUNTxGPUS[xMODEL][:CORES:GIB],...")
    ] = None,
    interference: Annotated[
        str,
        typer.Option(
            metavar="none|sc17|FILE",
            help="How jobs slow each other: not at all; each is one of six kinds of SC'17, drawn; or by the slowdowns "
            "in this file, an instance or a scenario, whose profiles a column names.",
        ),
    ] = "none",
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the kinds of SC'17.")] = 0,
    from_day: Annotated[
        int, typer.Option(metavar="N", min=0, max=MAX_DAYS, help="First day, from the first submission.")
    ] = 0,
    days: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=MAX_DAYS, help="Days of submissions; by default all that follow."),
    ] = None,
    load: Annotated[
        float | None,
        typer.Option(
            metavar="F",
            min=0.001,
            max=10,
            help="Move arrivals together or apart until all jobs take this part of the cluster's GPU time.",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the scenario.")] = None,
) -> Imported:
    """
    Read any table of jobs as a scenario; the columns are named here.

    A column is NAME, NAME*NUMBER, NAME/NUMBER, NAME:FORM or NAME[OTHER:VALUE|VALUE]; docs/import.md lists fields and
    forms. What is not understood is left out and counted by reason on standard error, never guessed. The first jobs are
    shown as they were read.
    """
    if (cluster is None) == (nodes is None):
        raise UsageError("expected --cluster FILE or --nodes, such as --nodes 32x8xA100")
    from placeopt.generators.node_list import parse_nodes
    from placeopt.importers.job_table.column_choice import parse_columns
    from placeopt.importers.job_table.read import read_jobs
    from placeopt.simulation.table_scenario import table_scenario

    wanted = parse_columns(columns)
    hardware = read_cluster(cluster) if cluster is not None else parse_nodes(nodes or "")
    slowdowns = _interference(interference, named="profile" in wanted)
    asked = [field for field in ("cpu", "memory") if field in wanted]
    if nodes is not None and asked and not all(machine.cpu_millicores for machine in hardware.machines):
        raise UsageError(
            f"--nodes: {nodes!r} states no cores and memory, but --columns has {' and '.join(asked)}; expected "
            "COUNTxGPUSxMODEL:CORES:GIB, or --columns without"
        )
    found, notes = read_jobs(file, columns)
    title = name or _title(file)
    scenario = table_scenario(
        found,
        hardware,
        notes,
        name=title,
        interference=slowdowns,
        seed=seed,
        from_day=from_day,
        days=days,
        load=load,
    )
    left = sum(len(names) for names in notes.names.values())
    source = (
        f"From {PurePath(file).name} by columns {columns[:2000]}; interference {interference}; from day {from_day}, "
        f"days {days or 'all'}, load {load or 'as it was'}. Read as jobs: "
        f"{len(scenario.arrivals):,}, left out: {left:,}."
    )
    scenario = scenario.model_copy(update={"note": "\n".join(filter(None, (source, notes.text())))[:10_000]})
    result = imported_scenario(scenario, notes=notes.text() or None)
    return Imported(result.document, f"{_preview(scenario)}\n{result.summary}; {left:,} left out", result.notes)


def _title(file: str) -> str:
    name = PurePath(file).name.removesuffix(".gz")
    return name.rpartition(".")[0] or name if name != "-" else STREAM_NAME


def _interference(text: str, *, named: bool) -> Assumed | Sequence[Slowdown]:
    if text in ("none", "sc17"):
        return "sc17" if text == "sc17" else "none"
    from placeopt.cli.files import read_round_or_scenario
    from placeopt.errors import BadInput

    document = read_round_or_scenario(text)
    if not document.slowdowns:
        raise BadInput(f"{text}: has no slowdowns, expected an instance or a scenario with them; or none, or sc17")
    if not named:
        raise UsageError(f"--interference: {text!r} needs the profile of each job: --columns profile=COLUMN")
    return document.slowdowns


def _preview(scenario: Scenario) -> str:
    """Return the first jobs as a table of text."""
    from placeopt.readable import duration, plain
    from placeopt.view import words

    rows = [("job", "after", "runs", "workers", "GPUs each", "cores each", "memory each", "model", "user")]
    for arrival in scenario.arrivals[:PREVIEW]:
        job, option = arrival.job, arrival.job.options[0]
        demand = option.demand
        rows.append(
            (
                plain(job.id)[:40],
                duration(job.arrival_ms / 1000),
                duration((arrival.actual_run_time_ms or 0) / 1000),
                f"{option.workers:,}",
                words(demand.gpus * demand.gpu_milli, "gpu_milli"),
                words(demand.cpu_millicores, "cpu_millicores"),
                words(demand.memory_mib, "mib"),
                plain(",".join(demand.gpu_models) or "any")[:20],
                plain(job.user or "-")[:20],
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


JOBS = Importer(
    "jobs",
    jobs,
    "scenario",
    "placeopt import jobs jobs.csv --columns submit=time,duration=seconds,gpus=gpus,user=who --nodes 32x8xA100 "
    "--out jobs.json.gz",
)
