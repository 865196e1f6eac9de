"""Contents of an instance: nodes by class, GPUs by model, jobs by class, demand against capacity."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.text import Text

from placeopt.readable import amount, gpus, number, percent, plain, plural
from placeopt.report.text.text_table import TextTable, heading, section

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.model import Group, Instance, Job

MAX_ROWS = 16
"""Rows of a table before the rest is counted."""


def instance_facts(instance: Instance) -> dict[str, Any]:
    """
    Return the counts that describe an instance.

    Demand is that of each job's first option with all its workers; running jobs count what they hold.
    """
    cluster, running = instance.cluster, {held.job for held in instance.running}
    nodes = Counter(node.machine for node in cluster.nodes)
    drained = Counter(node.machine for node in cluster.nodes if node.drained)
    models: Counter[str] = Counter()
    for machine in cluster.machines:
        for gpu in machine.gpus:
            models[gpu.model] += nodes[machine.id]
    return {
        "name": instance.name,
        "revision": instance.revision,
        "policy": instance.policy.name,
        "share_mode": instance.policy.share_mode,
        "note": instance.note,
        "reading": [str(note) for note in instance.reading],
        "nodes": len(cluster.nodes),
        "gpus": models.total(),
        "jobs_waiting": len(instance.jobs) - len(running),
        "jobs_running": len(running),
        "domains": dict(Counter(domain.level for domain in cluster.domains)),
        "gpu_models": {model: count for model, count in models.most_common() if count},
        "node_classes": [
            {
                "machine": machine.id,
                "nodes": nodes[machine.id],
                "drained": drained[machine.id],
                "gpus_each": len(machine.gpus),
                "gpu_models": ", ".join(dict.fromkeys(gpu.model for gpu in machine.gpus)),
                "cpu_millicores_each": machine.cpu_millicores,
                "memory_mib_each": machine.memory_mib,
            }
            for machine in sorted(cluster.machines, key=lambda machine: -nodes[machine.id])
            if nodes[machine.id]
        ],
        "job_classes": _job_classes(instance.jobs, running),
        "demand": _demand(instance, nodes, running),
    }


def instance_tables(facts: dict[str, Any]) -> list[RenderableType]:
    """Return the tables of an instance: what it is, its nodes, its jobs, and demand against capacity."""
    title = heading(facts["name"], f"revision {facts['revision']}, policy {facts['policy']}, {facts['share_mode']}")
    parts: list[RenderableType] = [title, Text(summary_line(facts))]
    parts += [*note_lines(" ".join([facts["note"], *facts["reading"]])), *node_table(facts)]
    job_rows = [
        [row["kind"], row["shape"], number(row["waiting"]), number(row["running"]), gpus(row["gpu_milli_each"])]
        for row in facts["job_classes"]
    ]
    columns = ["kind", "each", ">waiting", ">running", ">GPUs each"]
    parts += [Text(""), *section("Jobs", columns, job_rows, wrap="each", most=MAX_ROWS)]
    demand_rows = [
        [
            row["resource"],
            number(row["capacity"]),
            number(row["running"]),
            number(row["waiting"]),
            percent((row["running"] + row["waiting"]) / row["capacity"] if row["capacity"] else None),
        ]
        for row in facts["demand"]
    ]
    columns = ["", ">there is", ">running jobs hold", ">waiting jobs ask", ">together"]
    return [*parts, Text(""), heading("Demand"), TextTable(columns, demand_rows, drop=["together"])]


def note_lines(note: str) -> list[RenderableType]:
    """Return the source of the data, shortened; nothing if it is not stated."""
    words = plain(" ".join(note.split()))
    return [Text(words if len(words) <= 300 else f"{words[:299]}…", style="dim")] if words else []


def node_table(facts: dict[str, Any]) -> list[RenderableType]:
    """Return nodes by machine type, under an empty line."""
    node_rows = [
        [
            row["machine"],
            number(row["nodes"]) + (f" ({row['drained']} drained)" if row["drained"] else ""),
            number(row["gpus_each"]),
            row["gpu_models"] or "-",
            amount(row["cpu_millicores_each"] / 1000, 6),
            f"{amount(row['memory_mib_each'] / 1024, 3)} GiB",
        ]
        for row in facts["node_classes"]
    ]
    columns = ["machine", ">nodes", ">GPUs each", "GPU model", ">cores", ">memory"]
    return [Text(""), *section("Nodes", columns, node_rows, wrap="machine", drop=["memory", "cores"], most=MAX_ROWS)]


def summary_line(facts: dict[str, Any]) -> str:
    """Return an instance in one line."""
    models = ", ".join(f"{count:,} {plain(model)}" for model, count in list(facts["gpu_models"].items())[:6])
    domains = ", ".join(plural(count, plain(level)) for level, count in facts["domains"].items())
    return (
        f"{plural(facts['jobs_waiting'], 'job')} waiting, {facts['jobs_running']:,} running; "
        f"{plural(facts['nodes'], 'node')}{f' in {domains}' if domains else ''}, "
        f"{plural(facts['gpus'], 'GPU')}{f' ({models})' if models else ''}"
    )


def _job_classes(jobs: tuple[Job, ...], running: set[str]) -> list[dict[str, Any]]:
    counts: dict[tuple[str, str], dict[str, Any]] = {}
    shapes: dict[int, tuple[str, int]] = {}  # jobs alike share their option
    for job in jobs:
        option = job.options[0]
        if id(option) not in shapes:
            shapes[id(option)] = job_shape(job)
        shape, milli = shapes[id(option)]
        row = counts.setdefault(
            (job.kind, shape), {"kind": job.kind, "shape": shape, "waiting": 0, "running": 0, "gpu_milli_each": milli}
        )
        if job.id in running:
            row["running"] += 1
        else:
            row["waiting"] += 1
    return sorted(counts.values(), key=lambda row: -(row["waiting"] + row["running"]))


def job_shape(job: Job) -> tuple[str, int]:
    """Return a job's demand in words, and in GPU-milli."""
    option = job.options[0]
    shape = " + ".join(_leaf_shape(leaf) for leaf in option.leaves)
    more = f", or {plural(len(job.options) - 1, 'other way')}" if len(job.options) > 1 else ""
    return shape + more, option.gpu_milli


def _leaf_shape(leaf: Group) -> str:
    demand = leaf.demand
    if demand.gpus == 0:
        each = "no GPU"
    elif demand.gpu_milli < 1000:
        each = f"{demand.gpu_milli / 1000:g} of a GPU"
    else:
        each = plural(demand.gpus, "GPU")
    workers = f"{leaf.fewest} to {leaf.workers}" if leaf.fewest != leaf.workers else f"{leaf.workers}"
    return each if leaf.workers == 1 else f"{workers} workers of {each}"


def _demand(instance: Instance, nodes: Counter[str], running: set[str]) -> list[dict[str, Any]]:
    capacity, asked = [0, 0, 0], [0, 0, 0]
    for machine in instance.cluster.machines:
        there = (1000 * len(machine.gpus), machine.cpu_millicores, machine.memory_mib)
        capacity = [sum_ + nodes[machine.id] * quantity for sum_, quantity in zip(capacity, there, strict=True)]
    there_now = [a for placement in instance.running for a in placement.assignments]
    cpu, memory = sum(a.cpu_millicores for a in there_now), sum(a.memory_mib for a in there_now)
    held = (instance.running_gpu_milli, cpu, memory)
    for job in instance.jobs:
        if job.id not in running:
            for leaf in job.options[0].leaves:
                d = leaf.demand
                want = (d.gpus * d.gpu_milli, d.cpu_millicores, d.memory_mib)
                asked = [sum_ + leaf.workers * quantity for sum_, quantity in zip(asked, want, strict=True)]
    names = ("GPU-milli", "CPU millicores", "memory MiB")
    return [
        {"resource": name, "capacity": capacity[i], "running": held[i], "waiting": asked[i]}
        for i, name in enumerate(names)
    ]
