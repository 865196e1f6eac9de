"""From Slurm's lists to a round of what the driver may place: who waits, who starts, which nodes are left alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from placeopt.drivers.slurm.ageing import Worth, aged
from placeopt.drivers.slurm.commands import SlurmReading
from placeopt.drivers.slurm.job_view import JobView, Ownership, Standing, view_job
from placeopt.errors import BadInput
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.priority_rule import DEFAULT_RULE, PriorityRule
from placeopt.importers.slurm.lists import slurm_number
from placeopt.importers.slurm.snapshot import read_slurm
from placeopt.importers.source_file import SourceFile
from placeopt.model import Instance, Running

KEPT = (Standing.HOLDS, Standing.WAITS, Standing.STARTING)
"""Whose entries become jobs of the round."""
NICE_MAX = 2**31 - 1


def view_jobs(reading: SlurmReading, own: Ownership, now_s: float) -> dict[str, JobView]:
    """Return all entries with their standings; an entry without readable id, state or nodes is bad input."""
    listed = reading.jobs.get("jobs")
    if not isinstance(listed, list):
        raise BadInput("squeue --json: no list 'jobs'")
    views = [view_job(fields, own, now_s) for fields in listed]
    return {view.job: view for view in views}


def make_round(
    reading: SlurmReading,
    views: Mapping[str, JobView],
    now_s: float,
    *,
    closed: Collection[str] = (),
    also: Collection[str] = (),
    previous: Instance | None = None,
    rule: PriorityRule = DEFAULT_RULE,
    worth: Worth = "jobs",
) -> Instance:
    """
    Return the round of a reading.

    ``closed``: Nodes on which nothing may start. ``also``: Jobs without a hold that count as waiting, for a dry run.
    ``previous``: The last round, whose GPUs starting jobs keep. ``rule``: What a GPU of each QOS and partition is
    worth; priorities do not count, since Slurm sets that of a held job to 0. ``worth``: See `aged`. What runs may be
    preempted where rule or comment allow it and the driver can stop it, and is never moved. Raises as `read_slurm`.
    """
    rule = rule.model_copy(update={"percent_per_doubling": 0})
    entries: list[dict[str, Any]] = []
    starting: dict[str, Sequence[str]] = {}
    for job, view in views.items():
        if view.standing is Standing.STARTING and view.note is not None:
            starting[job] = view.note.nodes
        if view.standing in KEPT or job in also:
            entries.append(_readable(view, now_s))
    topology = SourceFile("scontrol show topology", reading.topology.encode()) if reading.topology else None
    found = read_slurm(
        reading.nodes,
        {**reading.jobs, "jobs": entries},
        topology,
        previous=previous,
        rule=rule,
        starting=starting,
        reservations=reading.reservations,
    )
    if closed:
        nodes = tuple(
            node.model_copy(update={"drained": True}) if node.id in closed and not node.drained else node
            for node in found.cluster.nodes
        )
        found = found.model_copy(update={"cluster": found.cluster.model_copy(update={"nodes": nodes})})
    begun = {job: 1000 * view.note.at_s for job in starting if (view := views[job]).note is not None}
    stoppable = {job for job, view in views.items() if view.can_be_stopped}
    running = tuple(_as_it_stays(held, begun.get(held.job), stoppable) for held in found.running)
    found = found.model_copy(update={"running": running})
    now_ms = max(found.now_ms, int(1000 * now_s), 0 if previous is None else previous.now_ms)
    found = found.model_copy(update={"now_ms": now_ms})
    return aged(found, rule, worth)


def _as_it_stays(held: Running, begun_ms: int | None, stoppable: Collection[str]) -> Running:
    """Return what runs as what may be preempted at most; ``begun_ms``: when the driver released it, None for others."""
    stays: dict[str, object] = {} if begun_ms is None else {"started_ms": begun_ms}
    if held.movable:
        stays["movable"] = False
    if held.preemptible and (begun_ms is not None or held.job not in stoppable):
        stays["preemptible"] = False
    return held.model_copy(update=stays) if stays else held


def _readable(view: JobView, now_s: float) -> dict[str, Any]:
    """Return an entry as the importer reads it: a job under the driver's hold waits for free nodes only."""
    if view.standing is Standing.HOLDS:
        return view.fields
    reason = "None"
    if str(view.fields.get("dependency") or "") not in ("", "(null)"):
        reason = "Dependency"
    elif (slurm_number(view.entry, "eligible_time") or 0) > now_s:
        reason = "BeginTime"
    read = {**view.fields, "state_reason": reason, "hold": False, "priority": rank_of(view.entry)}
    if view.stopped_by_driver:  # Slurm describes its hold as one that others may have placed
        read["state_description"] = ""
    if view.standing is Standing.STARTING and view.note is not None:
        nodes = "excluded_nodes" if view.is_component else "required_nodes"
        read |= {nodes: view.note.required, "state_reason": "None"}
    return read


def rank_of(entry: JsonEntry) -> int:
    """Return a priority for a held job, whose own is 0: by ``--nice``, then the time of its submission."""
    nice, submitted = entry.raw("nice"), slurm_number(entry, "submit_time") or 0
    nice = nice if isinstance(nice, int) and not isinstance(nice, bool) else 0
    return (NICE_MAX - max(-NICE_MAX, min(nice, NICE_MAX)) + 1) * 2**31 + (2**31 - 1 - min(submitted, 2**31 - 2))
