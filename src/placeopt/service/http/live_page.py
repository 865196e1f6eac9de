"""The page ``/`` and what it shows: the live cluster, its last rounds and its queue, as a view."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from placeopt.documents.documents import loads
from placeopt.model import Instance
from placeopt.readable import plural
from placeopt.report.page import live_page
from placeopt.report.views import gpu_map, gpu_table, node_uses
from placeopt.view import Cell, Column, Figure, Table, View

if TYPE_CHECKING:
    from placeopt.service.service import Service

MOST_ROUNDS = 20
OVERVIEW = "/v1/overview"
NOT_COMMITTED = "placed by the last round, which is not committed"
COMMITTED = "placed by the last round and committed; its start failed, or it was stopped since"
"""What the page says of a job that waits and stands in the last plan."""
PAGE = live_page(OVERVIEW)
PAGE_HEADERS = {"content-security-policy": "frame-ancestors 'none'", "referrer-policy": "no-referrer"}
"""Beside the policy that the page states itself: no other page frames this one, which a page cannot say of itself."""
ROUND_COLUMNS = (
    *(Column(name=name) for name in ("round", "state", "revision", "placed")),
    Column(name="gap", unit="fraction"),
    Column(name="time", unit="s"),
    Column(name="note"),
)
QUEUE_COLUMNS = (
    Column(name="job"),
    Column(name="priority"),
    Column(name="GPUs", unit="gpu_milli"),
    Column(name="reason"),
    Column(name="in words"),
)


class Overviews:
    """What the page shows of a service; the cluster is read once a revision, whoever looks."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._of: Instance | None = None

    def document(self) -> bytes:
        """Return the views of the page as JSON."""
        now, rounds = self._now(), self._rounds()
        planned = next((entry for entry in rounds if entry.get("plan")), None)
        reasons = {} if planned is None else _reasons(planned["plan"], planned.get("commit"))
        view = _view(now, [_round(entry) for entry in rounds], reasons)
        return json.dumps([view.model_dump(mode="json", exclude_defaults=True)], separators=(",", ":")).encode()

    def _now(self) -> Instance:
        with self._lock:
            if self._of is None or self._of.revision != self._service.numbers.revision:
                self._of = loads(Instance, self._service.call("snapshot"), source="snapshot")
            return self._of

    def _rounds(self) -> list[dict[str, Any]]:
        """Return the last rounds, the latest first."""
        found = json.loads(self._service.call("rounds"))["rounds"][:MOST_ROUNDS]
        return [json.loads(self._service.call("round", path={"id": entry["id"]})) for entry in found]


def _view(now: Instance, rounds: list[tuple[Cell, ...]], reasons: Mapping[str, tuple[str, str]]) -> View:
    uses = node_uses(now, now.running, "running")
    running = {held.job for held in now.running}
    queue = [
        (job.id, job.priority, max(option.gpu_milli for option in job.options), *reasons.get(job.id, UNDECIDED))
        for job in now.jobs
        if job.id not in running
    ]
    held = Figure(name="GPUs held", value=sum(use.held_milli for use in uses), unit="gpu_milli")
    counts = {
        "of GPUs": sum(now.cluster.gpus_by_node.values()),
        "nodes": len(now.cluster.nodes),
        "nodes drained": sum(node.drained for node in now.cluster.nodes),
        "jobs running": len(running),
        "jobs waiting": len(queue),
        "revision": now.revision,
    }
    return View(
        title=now.name,
        figures=(held, *(Figure(name=name, value=count) for name, count in counts.items())),
        notes=(f"policy {now.policy.name}",),
        tables=(
            gpu_table(uses, "now"),
            Table(name="Last rounds", columns=ROUND_COLUMNS, rows=tuple(rounds)),
            Table(name="Waiting jobs", columns=QUEUE_COLUMNS, rows=tuple(queue)),
        ),
        chart=gpu_map(uses),
    )


UNDECIDED = "", "not decided yet"


def _reasons(plan: Mapping[str, Any], commit: Mapping[str, Any] | None) -> dict[str, tuple[str, str]]:
    """Return why the jobs of a plan wait that do; ``commit``: which of its starts were committed, and which refused."""
    placed = {entry["job"]: NOT_COMMITTED if commit is None else COMMITTED for entry in plan["placements"]}
    if commit is not None:
        placed |= {
            entry["job"]: f"refused at the commit of the last round: {entry['why']}" for entry in commit["refused"]
        }
    reasons = {job: ("", words) for job, words in placed.items()}
    return reasons | {entry["job"]: (entry["reason"], entry["detail"]) for entry in plan["unplaced"]}


def _round(entry: Mapping[str, Any]) -> tuple[Cell, ...]:
    """Return the row of a round."""
    plan, commit = entry.get("plan"), entry.get("commit")
    note = entry.get("detail") or ""
    if commit and not note:
        note = f"{plural(len(commit['committed']), 'job')} committed, {len(commit['refused'])} refused"
    placed = None if not plan else len(plan["placements"])
    return entry["id"], entry["state"], entry["revision"], placed, entry.get("gap"), entry.get("seconds"), note
