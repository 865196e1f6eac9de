"""A scenario's nodes, arrivals and load; and its simulations side by side, one line per policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.text import Text

from placeopt.readable import duration, gpus, number, percent, plain, plural
from placeopt.report.text.instance_summary import MAX_ROWS, instance_facts, job_shape, node_table, note_lines
from placeopt.report.text.text_table import TextTable, heading, section

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.simulation import Summary
    from placeopt.simulation.records.scenario import Scenario


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
    over = f"over {duration(facts['arrivals_over_s'])}" if facts["arrivals_over_s"] else "all at once"
    parts: list[RenderableType] = [
        heading(scenario.name, f"scenario, rule {facts['rule']}"),
        Text(
            f"{plural(facts['jobs'], 'job')}{more} {over}; "
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
        parts += [Text(""), *section("Jobs", ["kind", "each", ">jobs", ">GPUs each"], rows, wrap="each", most=MAX_ROWS)]
    return parts


STAR = "*"
SHOWN = 3
"""Jobs that never end, listed with their reason before the rest is counted."""
COLUMNS = [
    "policy",
    ">ended",
    ">never end",
    ">last end",
    ">completion",
    ">wait",
    ">p95",
    ">slowdown",
    ">slowed",
    ">delayed",
    ">in time",
    ">GPUs held",
    ">decision",
]


def simulation_facts(summaries: Sequence[Summary]) -> list[dict[str, Any]]:
    """Return the figures for JSON, with ratios of the GPUs' time instead of its sums."""
    out = []
    for summary in summaries:
        facts = asdict(summary)
        held = summary.occupancy
        facts["gpus"] = {
            "allocation": held.allocation,
            "active_rate": held.active_rate,
            "utilisation": held.utilisation,
            "utilisation_of_active": held.utilisation_of_active,
            "fragmentation": held.fragmentation,
        }
        out.append(facts)
    return out


def simulation_table(summaries: Sequence[Summary]) -> list[RenderableType]:
    """Return the table of the simulations of one scenario, and notes on what it leaves out."""
    first = summaries[0]
    stopped = any(summary.delayed != summary.slowed for summary in summaries)
    timed = any(summary.in_time is not None for summary in summaries)
    unasked = {">delayed": not stopped, ">in time": not timed}  # no job was stopped for long: the column says the same
    hidden = {COLUMNS.index(name) for name, without in unasked.items() if without}
    columns, *rows = (
        [cell for i, cell in enumerate(row) if i not in hidden] for row in (COLUMNS, *map(_row, summaries))
    )
    parts: list[RenderableType] = [
        heading(f"{first.scenario}: {plural(first.jobs, 'job')}, {plural(first.occupancy.gpus, 'GPU')}"),
        TextTable(columns, rows, wrap="policy", drop=["decision", "p95", *(["in time"] if timed else []), "GPUs held"]),
    ]
    if any(map(_is_part, summaries)):
        parts.append(
            Text(f"  {STAR} of the jobs that ended alone: does not compare with policies under which all end", "dim")
        )
    notes = [[summary.policy, note] for summary in summaries for note in _notes(summary)]
    if notes:
        parts += [Text(""), *section("Beware", ["policy", "what"], notes, wrap="what")]
    return parts


def _is_part(summary: Summary) -> bool:
    """Return whether means are over a part of the jobs."""
    return summary.ended < summary.jobs


def _row(summary: Summary) -> list[str]:
    wait, decision = summary.wait_s, summary.decision_ms
    of_ended = [
        duration(summary.last_end_s),
        duration(None if summary.completion_s is None else summary.completion_s.mean),
        duration(None if wait is None else wait.mean),
        duration(None if wait is None else wait.p95),
        "-" if summary.slowdown is None else f"{summary.slowdown.mean:.3f}",
        number(summary.slowed),
        number(summary.delayed),
    ]
    mark = STAR if _is_part(summary) else ""
    return [
        summary.policy,
        number(summary.ended),
        number(summary.stranded) if summary.finished else "?",
        *(cell if cell == "-" else cell + mark for cell in of_ended),
        percent(summary.in_time),
        percent(summary.occupancy.allocation),
        "-" if decision is None else f"{decision.mean:.1f} ms",
    ]


def _notes(summary: Summary) -> list[str]:
    notes = []
    if not summary.finished:
        notes.append(f"stopped: {summary.ended:,} of {plural(summary.jobs, 'job')} had ended")
    if summary.stranded:
        notes.append(f"{plural(summary.stranded, 'job')} will never end:")
        notes += [f"{job.job}: {job.why}" for job in summary.never_ends[:SHOWN]]
        if summary.stranded > SHOWN:
            notes.append(f"and {summary.stranded - SHOWN:,} more")
    if summary.rounds_cut:
        notes.append(f"{plural(summary.rounds_cut, 'round')} cut by --time-limit: another run may decide otherwise")
    return notes
