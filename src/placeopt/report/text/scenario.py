"""Contents of a scenario: its nodes, arrivals over time, and the load."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.text import Text

from placeopt.readable import duration
from placeopt.report.text.instance_summary import MAX_ROWS, instance_facts, job_shape, node_table, note_lines
from placeopt.report.text.text import gpus, number, percent, plain, plural
from placeopt.report.text.text_table import TextTable, heading

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.model.scenario import Scenario

HOUR_S = 3_600


def scenario_facts(scenario: Scenario) -> dict[str, Any]:
    """
    Return the counts that describe a scenario, as plain data.

    Work is that of each job's first option, for its run time alone; jobs without an end have none.
    """
    contents = instance_facts(scenario.instance())
    times = sorted(arrival.job.arrival_ms for arrival in scenario.arrivals)
    over_ms = times[-1] - times[0] if times else 0
    work, kinds = 0, Counter[tuple[str, str, int]]()
    for arrival in scenario.arrivals:
        shape, milli = job_shape(arrival.job)
        kinds[arrival.job.kind, shape, milli] += 1
        if not arrival.service:
            work += milli * arrival.actual_ms(arrival.job.options[0].id)
    there = 1000 * contents["gpus"] * over_ms
    return {
        "document": "scenario",
        "name": scenario.name,
        "note": scenario.note,
        "digest": scenario.digest,
        "rule": scenario.physics.rule,
        "interference": scenario.physics.interference,
        "nodes": contents["nodes"],
        "gpus": contents["gpus"],
        "gpu_models": contents["gpu_models"],
        "node_classes": contents["node_classes"],
        "running": len(scenario.running),
        "jobs": len(scenario.arrivals),
        "services": sum(arrival.service for arrival in scenario.arrivals),
        "endpoints": len(scenario.endpoints),
        "arrivals_over_s": over_ms / 1000,
        "gpu_hours": work / 1000 / 1000 / HOUR_S,
        "load": work / there if there else None,
        "job_classes": [
            {"kind": kind, "shape": shape, "jobs": count, "gpu_milli_each": milli}
            for (kind, shape, milli), count in kinds.most_common()
        ],
    }


def scenario_page(scenario: Scenario) -> list[RenderableType]:
    """Return the same as text."""
    facts = scenario_facts(scenario)
    models = ", ".join(f"{count:,} {plain(model)}" for model, count in list(facts["gpu_models"].items())[:6])
    more = f", {facts['services']:,} of them without an end" if facts["services"] else ""
    more += f", and {plural(facts['endpoints'], 'endpoint')}," if facts["endpoints"] else ""
    part = percent(facts["load"])
    load = "" if facts["load"] is None else f", {part} of the GPUs' time from the first arrival to the last"
    parts: list[RenderableType] = [
        heading(scenario.name, f"scenario, rule {facts['rule']}"),
        Text(
            f"{plural(facts['jobs'], 'job')}{more} {_span(facts['arrivals_over_s'])}; "
            f"{plural(facts['nodes'], 'node')}, {plural(facts['gpus'], 'GPU')}{f' ({models})' if models else ''}"
        ),
        Text(f"{facts['gpu_hours']:,.1f} GPU hours of work{load}"),
        *note_lines(scenario.note),
        *node_table(instance_facts(scenario.instance())),
    ]
    rows = [
        [row["kind"], row["shape"], number(row["jobs"]), gpus(row["gpu_milli_each"])] for row in facts["job_classes"]
    ]
    if rows:
        columns = ["kind", "each", ">jobs", ">GPUs each"]
        parts += [Text(""), heading("Jobs"), TextTable(columns, rows[:MAX_ROWS], wrap="each")]
    if len(rows) > MAX_ROWS:
        parts.append(Text(f"  and {len(rows) - MAX_ROWS:,} more", style="dim"))
    return parts


def _span(seconds: float) -> str:
    return f"over {duration(seconds)}" if seconds else "all at once"
