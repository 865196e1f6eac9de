"""What a scenario has: its cluster, the jobs that arrive, and how much of the GPUs' time they ask for."""

from __future__ import annotations

from placeopt.readable import duration, plural
from placeopt.report.views.contents import cluster_line, job_shapes, machine_table
from placeopt.report.views.held_gpus import idle_nodes
from placeopt.simulation import Scenario
from placeopt.view import Column, Figure, Table, View

HOUR_MS = 3_600_000
JOB_COLUMNS = (
    Column(name="kind"),
    Column(name="each"),
    Column(name="jobs"),
    Column(name="GPUs each", unit="gpu_milli"),
)


def scenario_view(scenario: Scenario) -> View:
    """
    Return the numbers of a scenario.

    Work is that of each job's first option, for its run time alone; jobs without an end have none. Load is work over
    the GPUs' time from the first arrival to the last.
    """
    times = [arrival.job.arrival_ms for arrival in scenario.arrivals]
    over_ms = max(times) - min(times) if times else 0
    work = sum(
        arrival.job.options[0].gpu_milli * arrival.actual_ms(arrival.job.options[0].id)
        for arrival in scenario.arrivals
        if not arrival.service
    )
    gpus = sum(scenario.cluster.gpus_by_node.values())
    services = sum(arrival.service for arrival in scenario.arrivals)
    over = f"over {duration(over_ms / 1000)}" if over_ms else "all at once"
    shapes = job_shapes(arrival.job for arrival in scenario.arrivals).most_common()
    rows = tuple((kind, shape, count, milli) for (kind, shape, milli), count in shapes)
    return View(
        title=f"{scenario.name}: {plural(len(times), 'job')} {over}; {cluster_line(scenario.cluster)}",
        figures=(
            Figure(name="jobs", value=len(times)),
            Figure(name="of them without an end", value=services),
            Figure(name="endpoints", value=len(scenario.endpoints)),
            Figure(name="running at the beginning", value=len(scenario.running)),
            Figure(name="arrivals over", value=over_ms / 1000, unit="s"),
            Figure(name="GPU hours of work", value=work / 1000 / HOUR_MS),
            Figure(name="load", value=work / (1000 * gpus * over_ms) if gpus * over_ms else None, unit="fraction"),
        ),
        notes=(f"rule {scenario.physics.rule}", *([scenario.note] if scenario.note else [])),
        tables=(
            machine_table(idle_nodes(scenario.cluster)),
            Table(name="Jobs", columns=JOB_COLUMNS, rows=rows, keys=2),
        ),
        provenance={"instance": {"name": scenario.name, "digest": scenario.digest}},
    )
