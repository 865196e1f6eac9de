"""The page ``/``: one file with its script and style, and what it shows: the live cluster, its queue, its rounds."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from placeopt.documents.documents import loads
from placeopt.model import Instance
from placeopt.readable import plural
from placeopt.report.html.cluster_layout import cluster_layout
from placeopt.report.html.cluster_svg import cluster_svg

if TYPE_CHECKING:
    from placeopt.model import Job
    from placeopt.service.service import Service

MOST_JOBS = 200
"""Waiting jobs on the page, in their order."""
MOST_ROUNDS = 20
NOT_COMMITTED = "placed by the last round, which is not committed"
COMMITTED = "placed by the last round and committed; its start failed, or it was stopped since"
"""What the page says of a job that waits and stands in the last plan."""
PAGE = files("placeopt.service.http").joinpath("page.html").read_text(encoding="utf-8")


def _hashes(tag: str) -> str:
    """Return the sources of a policy: the hash of each piece of script or style in the page."""
    pieces = re.findall(rf"<{tag}>(.*?)</{tag}>", PAGE, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(piece.encode()).digest()).decode() for piece in pieces]
    return " ".join(f"'sha256-{digest}'" for digest in digests)


PAGE_HEADERS = {
    "content-security-policy": f"default-src 'none'; script-src {_hashes('script')}; style-src {_hashes('style')}; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
}
"""Nothing from elsewhere is loaded, no other script runs, and no other page frames this one."""


class Overviews:
    """What the page shows of a service; made once a revision, whoever looks."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._of: Instance | None = None
        self._made: dict[str, Any] = {}

    def map(self) -> bytes:
        """Return the map of the GPUs as SVG."""
        made: bytes = self._once("map", lambda now: cluster_svg(cluster_layout(now)).encode())
        return made

    def document(self) -> bytes:
        """Return the rest as JSON."""
        state = self._once("state", _state)
        reasons, rounds = self._rounds()
        queue = [{**job, **reasons.get(job["job"], {})} for job in state["queue"]]
        return json.dumps({**state, "queue": queue, "rounds": rounds}, separators=(",", ":")).encode()

    def _once(self, what: str, make: Any) -> Any:
        with self._lock:
            if self._of is None or self._of.revision != self._service.numbers.revision:
                self._of, self._made = loads(Instance, self._service.call("snapshot"), source="snapshot"), {}
            now = self._of
            if what not in self._made:
                self._made[what] = make(now)
            return self._made[what]

    def _rounds(self) -> tuple[dict[str, dict[str, str]], list[dict[str, Any]]]:
        """Return why jobs wait, by the last round with a plan, and the last rounds, the latest first."""
        rounds = json.loads(self._service.call("rounds"))["rounds"][:MOST_ROUNDS]
        found = [json.loads(self._service.call("round", path={"id": entry["id"]})) for entry in rounds]
        planned = next((entry for entry in found if entry.get("plan")), None)
        reasons = {} if planned is None else _reasons(planned["plan"], planned.get("commit"))
        return reasons, [_round(entry) for entry in found]


def _reasons(plan: Mapping[str, Any], commit: Mapping[str, Any] | None) -> dict[str, dict[str, str]]:
    """Return why the jobs of a plan wait that do; ``commit``: what its commit came to."""
    placed = {entry["job"]: NOT_COMMITTED if commit is None else COMMITTED for entry in plan["placements"]}
    if commit is not None:
        placed |= {
            entry["job"]: f"refused at the commit of the last round: {entry['why']}" for entry in commit["refused"]
        }
    reasons = {job: {"reason": "", "detail": words} for job, words in placed.items()}
    return reasons | {entry["job"]: {key: entry[key] for key in ("reason", "detail")} for entry in plan["unplaced"]}


def _round(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a round."""
    plan, commit = entry.get("plan"), entry.get("commit")
    note = entry.get("detail") or ""
    if commit and not note:
        note = f"{plural(len(commit['committed']), 'job')} committed, {len(commit['refused'])} refused"
    return {
        "round": entry["id"],
        "state": entry["state"],
        "revision": entry["revision"],
        "placed": None if not plan else len(plan["placements"]),
        "gap": entry.get("gap"),
        "seconds": entry.get("seconds"),
        "note": note,
    }


def _state(now: Instance) -> dict[str, Any]:
    """Return the cluster in numbers, and the first of its queue."""
    running = {held.job for held in now.running}
    waiting = [job for job in now.jobs if job.id not in running]
    return {
        "name": now.name,
        "policy": now.policy.name,
        "revision": now.revision,
        "nodes": len(now.cluster.nodes),
        "drained": sum(node.drained for node in now.cluster.nodes),
        "gpus": sum(now.cluster.gpus_by_node.values()),
        "gpu_milli_held": sum(sum(part.gpus.values()) for held in now.running for part in held.assignments),
        "running": len(running),
        "waiting": len(waiting),
        "queue": [
            {"job": job.id, "priority": job.priority, "gpu_milli": _most_milli(job), "reason": "", "detail": ""}
            for job in waiting[:MOST_JOBS]
        ],
    }


def _most_milli(job: Job) -> int:
    """Return the GPU shares of the largest option, in thousandths."""
    return max(option.gpu_milli for option in job.options)
