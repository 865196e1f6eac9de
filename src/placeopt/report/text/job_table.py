"""Small plans job by job: which GPUs of which node, and which links between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from placeopt.readable import gpus, number
from placeopt.report.text.links import PairLink, job_links
from placeopt.report.text.text_table import TextTable, heading

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.model import Assignment, Instance, Plan

MAX_NODES = 4
"""Number of nodes up to which a plan is listed job by job."""

MAX_JOBS = 40
"""Rows of the table before the rest is counted."""


def job_facts(instance: Instance, plan: Plan) -> list[dict[str, Any]]:
    """Return every placed job with its GPUs and the links between those of one node; of hardware that is listed."""
    machines = {machine.id: machine for machine in instance.cluster.machines}
    machine_of = {node.id: machines[node.machine] for node in instance.cluster.nodes}
    running = {held.job for held in instance.running}

    def links(assignment: Assignment) -> list[PairLink]:
        machine = machine_of.get(assignment.node)
        return (
            []
            if machine is None
            else job_links(machine, [g for g in map(int, assignment.gpus) if g < len(machine.gpus)])
        )

    return [
        {
            "job": placement.job,
            "option": placement.option,
            "ran_before": placement.job in running,
            "places": [
                {
                    "node": assignment.node,
                    "gpus": dict(assignment.gpus),
                    "workers": len(assignment.workers),
                    "links": [
                        {
                            "gpus": (p.a, p.b),
                            "link": p.label,
                            "bandwidth_mbps": p.bandwidth_mbps,
                            "distance": p.distance,
                        }
                        for p in links(assignment)
                    ],
                }
                for assignment in placement.assignments
            ],
        }
        for placement in plan.placements
    ]


def job_table(facts: list[dict[str, Any]], marks: Mapping[str, Text]) -> list[RenderableType]:
    """Return a row per job and node; ``marks``: job -> how the map draws it, for jobs that are drawn."""
    rows: list[list[str | Text]] = []
    for job in facts[:MAX_JOBS]:
        first: list[str | Text] = [marks.get(job["job"], Text("")), job["job"], "ran" if job["ran_before"] else "new"]
        for place in job["places"]:
            rows.append([*first, place["node"], _gpus(place), _links(place)])
            first = ["", "", ""]
    more = len(facts) - MAX_JOBS
    columns = ["", "job", "", "node", "GPUs", "links between them"]
    parts: list[RenderableType] = [heading("Jobs"), TextTable(columns, rows, wrap="links between them")]
    return [*parts, Text(f"  and {more:,} more", style="dim")] if more > 0 else parts if rows else []


def job_key(plan: Plan, marks: Mapping[str, Text]) -> list[RenderableType]:
    """Return the job of each letter of the map, and what it holds on which node."""
    held = {p.job: sum(sum(a.gpus.values()) for a in p.assignments) for p in plan.placements}
    nodes = {p.job: len(p.assignments) for p in plan.placements}
    rows: list[list[str | Text]] = [[mark, job, gpus(held[job]), number(nodes[job])] for job, mark in marks.items()]
    return [heading("Jobs with GPUs"), TextTable(["", "job", ">GPUs", ">nodes"], rows, wrap="job")]


def _gpus(place: dict[str, Any]) -> str:
    if not place["gpus"]:
        return "none"
    return " ".join(index if milli >= 1000 else f"{index} ({gpus(milli)})" for index, milli in place["gpus"].items())


def _links(place: dict[str, Any]) -> str:
    if not place["links"]:
        return ""
    kinds = Counter(pair["link"] for pair in place["links"])
    distance = sum(pair["distance"] for pair in place["links"])
    return f"{', '.join(f'{count} x {link}' for link, count in kinds.most_common())}; distance {distance}"
