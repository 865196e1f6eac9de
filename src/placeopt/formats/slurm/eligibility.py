"""Which of Slurm's jobs may start (states and reasons to wait), and on which nodes (partitions, constraints, lists)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from placeopt.formats.json_entry import JsonEntry
from placeopt.formats.slurm.fields import expand_hosts, parse_constraint
from placeopt.formats.slurm.job_requests import JobLeftOut
from placeopt.formats.slurm.nodes import RESERVED, SlurmNode
from placeopt.model import Toleration

HOLDS = frozenset(
    {"RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"}
)
"""States in which a job holds its nodes; suspended and stopped jobs keep GPUs and memory."""
ENDED = frozenset(
    {
        *("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE"),
        *("OUT_OF_MEMORY", "REVOKED", "LAUNCH_FAILED"),
    }
)
"""States in which a job holds no nodes and requests none."""
WAITS = frozenset({"PENDING", "REQUEUED", "EXPEDITING", "POWER_UP_NODE"})
"""States and flags of a job that may start when capacity is free."""
HELD_FLAGS = frozenset({"REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD", "REQUEUE_FED", "REVOKED", "LAUNCH_FAILED"})
"""Flags of a pending job that does not."""

STARTS = frozenset({"None", "Priority", "Resources"})
"""Reasons to wait that free capacity removes."""
_OTHERS = re.compile(
    r"""(?: QOS\w* | Assoc\w* | Association\w*Limit       # limits of accounts, users and qualities of service
        | Partition(?:NodeLimit|TimeLimit|Down|Inactive|Config)
        | JobHeld(?:Admin|User) | JobHoldMaxRequeue | JobArrayTaskLimit | FedJobLock
        | Dependency | DependencyNeverSatisfied | BeginTime | DeadLine | Prolog | Cleaning | SchedDefer
        | Reservation | ReservationDeleted | ReqNodeNotAvail | NodeDown | FrontEndDown | BadConstraints
        | Licenses | BurstBuffer\w+ | Max\w*PerLimit | MaxPowerNodes? | AccountNotAllowed | AccountingPolicy
        | InvalidAccount | InvalidQOS | SystemFailure | JobLaunchFailure | NonZeroExitCode | RaisedSignal
        | TimeLimit | InactiveLimit | OutOfMemory | HeldByUser )\Z""",
    re.VERBOSE,
)
"""Reasons to wait in Slurm 20.11 to 25.11 that free capacity alone may not remove."""

TOLERATES = Toleration(key=RESERVED.key, operator="Exists")
"""Of a job with a reservation."""


def why_not_started(reason: str, description: str) -> str | None:
    """
    Return why a pending job might not start even on free nodes; None if it only waits for capacity.

    ``reason``: ``state_reason``, one word. ``description``: Slurm's text beside it, such as ``launch failed requeued
    held``.
    """
    if re.search(r"\bheld\b", description):
        return f"waiting, {description[:60]}"
    if reason in STARTS:
        return None
    known = _OTHERS.match(reason) is not None
    return f"waiting for {reason[:60]}" + ("" if known else ", a reason that is not known")


class EligibleNodes:
    """Translates a job's conditions on nodes into fields of the model; equal conditions share one list of nodes."""

    def __init__(self, nodes: Mapping[str, SlurmNode]) -> None:
        self._nodes = nodes
        self._lists: dict[tuple[object, ...], tuple[str, ...]] = {}

    def fields(self, entry: JsonEntry, *, one_node: bool, nodes: Collection[int | None]) -> dict[str, object]:
        """
        Return the fields of a job that restrict its nodes.

        ``one_node``: Whether it runs on one node, so that a constraint about all its nodes together is about this one.
        ``nodes``: Numbers of nodes on which it may run; None: unknown. Raises `JobLeftOut` if it has a condition on
        several nodes together, or on nodes that are not listed.
        """
        partitions = tuple(filter(None, entry.text("partition", "").split(",")))
        text, reservation = entry.text("features", ""), entry.text("resv_name", "")
        meets = _constraint(text, one_node=one_node)
        required, excluded = expand_node_list(entry, "required_nodes"), expand_node_list(entry, "excluded_nodes")
        if required and set(nodes) != {len(required)}:
            raise JobLeftOut("asks for nodes by name (--nodelist), and may have others beside them")
        if reservation and not any(node.reservation == reservation for node in self._nodes.values()):
            raise JobLeftOut("waits in a reservation whose nodes are not listed")
        if meets is None and not required and not excluded and not reservation and len(partitions) < 2:
            return {"node_selector": {f"partition:{partition}": "yes" for partition in partitions}}
        key = (partitions, text, one_node, tuple(required), tuple(excluded), reservation)
        if key not in self._lists:
            named, out = set(required), set(excluded)
            self._lists[key] = tuple(
                name
                for name, node in self._nodes.items()
                if name not in out
                and (not named or name in named)
                and (not partitions or node.partitions & set(partitions))
                and (meets is None or meets(node.features))
                and (not reservation or node.reservation == reservation)
            )
        return {"nodes_allowed": self._lists[key], "tolerations": (TOLERATES,) if reservation else ()}

    def allowed(self, fields: Mapping[str, object]) -> tuple[str, ...]:
        """Return the nodes of what `fields` gave."""
        listed, selector = fields.get("nodes_allowed"), fields.get("node_selector")
        if isinstance(listed, tuple):
            return listed
        wanted = {label.removeprefix("partition:") for label in selector} if isinstance(selector, dict) else set()
        return tuple(name for name, node in self._nodes.items() if wanted <= node.partitions)


def expand_node_list(entry: JsonEntry, key: str) -> list[str]:
    """Return the names of a list of nodes; `BadInput` where it cannot be read."""
    return entry.parsed(key, lambda text: [] if text in ("(null)", "N/A", "None assigned") else expand_hosts(text))


def _constraint(text: str, *, one_node: bool) -> Callable[[Collection[str]], bool] | None:
    if not text or text == "(null)":
        return None
    if one_node:  # all nodes of the job together are this one
        text = re.sub(r"\*1(?![0-9])", "", text).replace("[", "(").replace("]", ")")
    meets = parse_constraint(text)
    if meets is None:
        raise JobLeftOut("a constraint about several nodes together, or one that cannot be read")
    return meets
