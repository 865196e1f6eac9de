"""
What ``placeopt import slurm`` reads of a real Slurm's output, beside what the same Slurm says in text.

Prints the tables of docs/import.md, which a test compares: ``python bench/tables/slurm_table.py``.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from pathlib import Path

from placeopt.formats import read_slurm
from placeopt.formats.import_notes import LEFT_OUT, ImportNotes
from placeopt.formats.json_entry import read_json
from placeopt.formats.slurm.nodes import read_nodes
from placeopt.formats.slurm.snapshot import JobListReader
from placeopt.model import Instance, Job

DATA = Path(__file__).resolve().parents[2] / "tests" / "data" / "snapshots" / "slurm-22.05"
PAIRS = (
    ("nodes.json", "jobs.json"),
    ("sinfo.json", "jobs.json"),
    ("nodes_later.json", "jobs_later.json"),
    ("nodes_maintenance.json", "jobs_later.json"),
    ("slurmrestd_nodes.json", "slurmrestd_jobs.json"),
)
FIELDS = ("TresPerNode", "TresPerJob", "TresPerTask", "TresPerSocket", "CpusPerTres", "Features", "ReqNodeList")


def records(name: str, key: str) -> dict[str, dict[str, str]]:
    """Return what scontrol prints in text: record -> its fields."""
    by_key = {}
    for block in re.split(r"\n\s*\n", gzip.decompress((DATA / f"{name}.gz").read_bytes()).decode()):
        fields = dict(re.findall(r"([A-Za-z:/]+)=(\S*)", block))
        if key in fields:
            by_key[fields[key]] = {name: value for name, value in fields.items() if value not in ("", "(null)")}
    return by_key


def ranges(numbers: list[int]) -> str:
    """Write numbers as Slurm does: 0-2,5."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def files() -> list[str]:
    """Return a row for each pair of files."""
    rows = ["| nodes, jobs | nodes | GPUs | drained | running | waiting | left out |", "|---|---|---|---|---|---|---|"]
    for nodes, jobs in PAIRS:
        instance = read_slurm(DATA / f"{nodes}.gz", DATA / f"{jobs}.gz")
        sizes = {machine.id: len(machine.gpus) for machine in instance.cluster.machines}
        left = sum(int(n) for n in re.findall(r"^Left out, .*: (\d+) \(", instance.note, re.MULTILINE))
        drained = ", ".join(node.id for node in instance.cluster.nodes if node.drained)
        cells = [
            f"`{nodes}`, `{jobs}`",
            len(instance.cluster.nodes),
            sum(sizes[node.machine] for node in instance.cluster.nodes),
            drained,
            len(instance.running),
            len(instance.jobs) - len(instance.running),
            left,
        ]
        rows.append("| " + " | ".join(map(str, cells)) + " |")
    return rows


def nodes(instance: Instance) -> list[str]:
    """Return a row for each node: in use by scontrol's text and sinfo's JSON, and by the jobs that were read."""
    rows = [
        "| node | Slurm: state | CPUs, MiB in use | GPUs in use | read: CPUs, MiB in use | GPUs in use | drained |",
        "|---|---|---|---|---|---|---|",
    ]
    told_in = json.loads(gzip.decompress((DATA / "nodes.json.gz").read_bytes()))
    used = {entry["name"]: entry["gres_used"] for entry in told_in["nodes"]}
    held: dict[str, list[tuple[int, int, list[int]]]] = defaultdict(list)
    for running in instance.running:
        for part in running.assignments:
            held[part.node].append((part.cpu_millicores // 1000, part.memory_mib, [int(gpu) for gpu in part.gpus]))
    drained = {node.id: node.drained for node in instance.cluster.nodes}
    for name, fields in records("nodes.txt", "NodeName").items():
        told = ", ".join(item for item in re.findall(r"[a-z]+:[^,(]*\([^)]*\)", used[name]) if ":0(" not in item)
        rows.append(
            f"| {name} | {fields['State']} | {fields['CPUAlloc']}, {fields['AllocMem']} | {told} "
            f"| {sum(entry[0] for entry in held[name])}, {sum(entry[1] for entry in held[name])} "
            f"| {ranges([gpu for entry in held[name] for gpu in entry[2]])} | {'yes' if drained[name] else ''} |"
        )
    return rows


def jobs(instance: Instance) -> list[str]:
    """Return a row for each job: what scontrol's text says of it, and as what it was read."""
    notes = ImportNotes()
    _, listed = read_nodes(DATA / "nodes.json.gz", None, notes)
    list(JobListReader(listed, read_json(DATA / "jobs.json.gz").entries("jobs"), notes).read())
    left = {job: why for (heading, why), names in notes.names.items() if heading == LEFT_OUT for job in names}
    read = {job.id: job for job in instance.jobs}
    where = {
        running.job: "; ".join(
            f"{part.node} {part.cpu_millicores // 1000} CPUs, {part.memory_mib} MiB"
            + (f", GPUs {ranges([int(gpu) for gpu in part.gpus])}" if part.gpus else "")
            for part in running.assignments
        )
        for running in instance.running
    }
    rows = ["| job | Slurm: state | nodes | asked for | read as |", "|---|---|---|---|---|"]
    for number, fields in records("jobs.txt", "JobId").items():
        task = fields.get("ArrayTaskId", "")
        name = f"{fields['ArrayJobId']}_{task}" if task else number
        if name in where:
            outcome = f"runs: {where[name]}"
        elif name in read:
            outcome = f"waits: {shape(read[name])}"
        else:
            why = left.get(name) or next((words for key, words in left.items() if key.split("_")[0] == number), None)
            outcome = f"left out: {why}" if why else "ended since"
        reason = fields["Reason"].replace("_", " ")
        state = fields["JobState"] + ("" if reason == "None" else f", {reason}")
        asked = ", ".join(f"{field}={fields[field]}" for field in FIELDS if field in fields)
        exclusive = ", OverSubscribe=NO" if fields["OverSubscribe"] == "NO" else ""
        rows.append(
            f"| {name} {fields['JobName']} | {state} | {fields.get('NodeList') or fields['NumNodes']} "
            f"| {fields['TRES'].partition(',billing')[0]}{', ' if asked else ''}{asked}{exclusive} | {outcome} |"
        )
    return [row.replace("a100|l40s", "a100\\|l40s") for row in rows]


def shape(job: Job) -> str:
    """Write what a waiting job asks for."""
    demand = job.options[0].demand
    count = " or ".join(str(option.workers) for option in job.options)
    models = f" {','.join(demand.gpu_models)}" if demand.gpu_models else ""
    gpus = f"{demand.gpus} GPUs{models}, " if demand.gpus else ""
    split = f" on {job.options[0].splits[0].domains} nodes" if job.options[0].splits else ""
    alone = " each on its own node" if job.options[0].workers_per_node_max == 1 else ""
    allowed = "" if job.nodes_allowed is None else f"; {len(job.nodes_allowed)} nodes allowed"
    return f"{count} x ({gpus}{demand.cpu_millicores // 1000} CPUs, {demand.memory_mib} MiB){split}{alone}{allowed}"


def tables() -> list[list[str]]:
    """Return all tables, as lines of Markdown."""
    instance = read_slurm(DATA / "nodes.json.gz", DATA / "jobs.json.gz")
    return [files(), nodes(instance), jobs(instance)]


if __name__ == "__main__":
    print("\n\n".join("\n".join(table) for table in tables()))
