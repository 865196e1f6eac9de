"""States of Slurm's jobs and nodes: which jobs hold nodes or may start, and which nodes take new work."""

from __future__ import annotations

import re
from collections.abc import Iterable

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


TAKES_WORK = {
    **dict.fromkeys(("IDLE", "MIXED", "MIX", "ALLOCATED", "ALLOC"), True),  # base states
    **dict.fromkeys(("DOWN", "ERROR", "FUTURE", "UNKNOWN", "INVALID", "INVAL"), False),
    **dict.fromkeys(("DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "NOT_RESPONDING", "NO_RESPOND"), False),
    **dict.fromkeys(("MAINTENANCE", "MAINT", "INVALID_REG", "BLOCKED", "PERFCTRS"), False),
    **dict.fromkeys(("REBOOT", "REBOOT_REQUESTED", "REBOOT_ISSUED", "REBOOT_CANCELED"), False),
    **dict.fromkeys(("POWER_DOWN", "POWER_DRAIN", "POWERING_DOWN"), False),
    **dict.fromkeys(("POWERED_DOWN", "POWERING_UP", "POWER_UP", "CLOUD", "DYNAMIC_NORM", "DYNAMIC_FUTURE"), True),
    **dict.fromkeys(("COMPLETING", "COMP", "PLANNED", "PLND", "RESERVED", "RESV"), True),
}
"""
State or flag -> whether a node with it takes new work, by Slurm's manual pages of sinfo and scontrol.

Slurm starts jobs on nodes that it has powered down (it resumes them) and while they power up, not while they power
down. A node that completes a job gives away the rest of itself. A reservation keeps a node for its jobs, which the
snapshot reader expresses as a taint; under maintenance it takes none. A node that is to be rebooted may take jobs until
then, but need not: it counts as drained.
"""
_SIGNS = {
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "!": "POWER_DOWN",
    "%": "POWERING_DOWN",
    "$": "MAINTENANCE",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
}
"""Signs that Slurm's text puts behind a state."""


def node_flags(words: Iterable[str]) -> list[str]:
    """Return states and flags in capitals, each once; ``IDLE+DRAIN`` and ``idle*`` count as two."""
    flags: dict[str, None] = {}
    for word in words:
        for part in filter(None, word.upper().split("+")):
            signs = re.search(r"[*~#!%$@^-]*\Z", part)
            tail = signs[0] if signs else ""
            flags |= dict.fromkeys(filter(None, [part[: len(part) - len(tail)], *(_SIGNS[sign] for sign in tail)]))
    return list(flags)


def why_drained(words: Iterable[str]) -> list[str]:
    """Return the reasons why a node takes no new work, none where it does; a flag that is not known is one."""
    flags = node_flags(words)
    if not flags:
        return ["no state"]
    return [
        f"state {flag}" if flag in TAKES_WORK else f"state {flag}, which is not known"
        for flag in flags
        if not TAKES_WORK.get(flag, False)
    ]
