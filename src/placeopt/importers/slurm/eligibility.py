"""Which of Slurm's jobs may start (states and reasons to wait), and on which nodes (partitions, constraints, lists)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.slurm.fields import expand_hosts, parse_constraint
from placeopt.importers.slurm.job_requests import JobLeftOut, slurm_number
from placeopt.importers.slurm.nodes import RESERVED, YES, SlurmNode
from placeopt.importers.slurm.unread_fields import names
from placeopt.model import LabelExpression, Toleration

HOLDS = names("RUNNING SUSPENDED COMPLETING CONFIGURING STOPPED SIGNALING STAGE_OUT RESIZING")
"""States in which a job holds its nodes; suspended and stopped jobs keep GPUs and memory."""
ENDED = names(
    "COMPLETED CANCELLED FAILED TIMEOUT NODE_FAIL PREEMPTED BOOT_FAIL DEADLINE OUT_OF_MEMORY REVOKED LAUNCH_FAILED"
)
"""States in which a job holds no nodes and requests none."""
WAITS = names("PENDING REQUEUED EXPEDITING POWER_UP_NODE")
"""States and flags of a job that may start when capacity is free."""
HELD_FLAGS = names("REQUEUE_HOLD SPECIAL_EXIT RESV_DEL_HOLD REQUEUE_FED REVOKED LAUNCH_FAILED")
"""Flags of a pending job that does not."""
STARTS = names("None Priority Resources")
"""Reasons to wait that free capacity removes; limits of accounts, holds, dependencies and the like are none of them."""
TOLERATES = Toleration(key=RESERVED.key, operator="Exists")
"""Of a job with a reservation."""


def check_startable(entry: JsonEntry, *, licenses: bool) -> None:
    """
    Raise `JobLeftOut` if free nodes alone might not start a pending job.

    ``licenses``: Whether licences count as room, too. ``state_reason`` is one word, ``state_description`` Slurm's text
    beside it, such as ``launch failed requeued held``.
    """
    reason, description = entry.text("state_reason", "None"), entry.text("state_description", "")
    if re.search(r"\bheld\b", description):
        raise JobLeftOut(f"waiting, {description[:60]}")
    if reason not in STARTS and not (licenses and reason == "Licenses"):
        raise JobLeftOut(f"waiting for {reason[:60]}")
    if entry.flag("hold") or slurm_number(entry, "priority") == 0:
        raise JobLeftOut("waiting, held (priority 0)")


def node_fields(
    entry: JsonEntry, nodes: Mapping[str, SlurmNode], constraint: str, counts: Collection[int | None]
) -> dict[str, Any]:
    """
    Return the fields of a job that restrict its nodes: by labels, and by name where the user wrote names.

    ``constraint``: On features; about all nodes of a job together it is read where there is one. ``counts``: Numbers of
    nodes on which it may run; None: unknown. Raises `JobLeftOut` if it has a condition on several nodes together, or on
    nodes that are not listed.
    """
    partitions = list(filter(None, entry.text("partition", "").split(",")))
    reservation = entry.text("resv_name", "")
    terms = _constraint(constraint, one_node=set(counts) == {1})
    required, excluded = expand_node_list(entry, "required_nodes"), expand_node_list(entry, "excluded_nodes")
    if required and set(counts) != {len(required)}:
        raise JobLeftOut("asks for nodes by name (--nodelist), and may have others beside them")
    selector = [f"reservation:{reservation}"] if reservation else []
    if selector and not any(selector[0] in node.labels for node in nodes.values()):
        raise JobLeftOut("waits in a reservation whose nodes are not listed")
    anywhere = [f"partition:{name}" for name in partitions]
    if len(anywhere) < 2:
        selector, anywhere = [*anywhere, *selector], []
    fields: dict[str, Any] = {"node_selector": dict.fromkeys(selector, YES)}
    if terms or anywhere:
        either = [[partition, *sorted(term)] for partition in anywhere or [""] for term in terms or [frozenset()]]
        fields["node_affinity"] = tuple(tuple(map(_has, filter(None, term))) for term in either)
    if required:
        fields["nodes_allowed"] = tuple(name for name in required if name in nodes)
    if excluded:
        fields["nodes_excluded"] = tuple(name for name in excluded if name in nodes)
    if reservation:
        fields["tolerations"] = (TOLERATES,)
    return fields


def nodes_of(fields: Mapping[str, Any], nodes: Mapping[str, SlurmNode]) -> list[SlurmNode]:
    """Return the nodes that fields of `node_fields` leave to a job."""
    affinity = fields.get("node_affinity", ((),))
    return [
        nodes[name]
        for name in fields.get("nodes_allowed", nodes)
        if name not in fields.get("nodes_excluded", ())
        and nodes[name].labels >= fields["node_selector"].keys()
        and any(all(one.key in nodes[name].labels for one in term) for term in affinity)
    ]


@cache
def _has(label: str) -> LabelExpression:
    return LabelExpression(key=label, operator="Exists")


def expand_node_list(entry: JsonEntry, key: str) -> list[str]:
    """Return the names of a list of nodes; `BadInput` where it cannot be read."""
    return entry.parsed(key, lambda text: [] if text in ("(null)", "N/A", "None assigned") else expand_hosts(text))


def matching_sets(text: str) -> dict[str, dict[str, str]]:
    """Return the labels of each alternative of ``[a|b]``, one of which all nodes of a job meet; else nothing."""
    sets = parse_constraint(text[1:-1]) if text.startswith("[") and text.endswith("]") else None
    return {"&".join(sorted(term)): {f"feature:{word}": YES for word in term} for term in sets or ()}


def _constraint(text: str, *, one_node: bool) -> list[frozenset[str]]:
    """Return the labels of each alternative of a constraint; none where there is no constraint."""
    if not text or text == "(null)":
        return []
    if one_node:  # all nodes of the job together are this one
        text = re.sub(r"\*1(?![0-9])", "", text).replace("[", "(").replace("]", ")")
    terms = parse_constraint(text)
    if terms is None:
        raise JobLeftOut("a constraint about several nodes together, or one that cannot be read")
    return [frozenset(f"feature:{word}" for word in term) for term in terms]
