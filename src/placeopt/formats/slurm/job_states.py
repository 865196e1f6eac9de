"""States of Slurm's jobs, and why they wait: which hold nodes, which have ended, which start when there is room."""

from __future__ import annotations

import re

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
"""States and flags of a job that may start when there is room."""
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

    Parameters
    ----------
    reason
        ``state_reason``: one word.
    description
        ``state_description``: Slurm's text beside it, such as ``launch failed requeued held``; may be empty.
    """
    if re.search(r"\bheld\b", description):
        return f"waiting, {description[:60]}"
    if reason in STARTS:
        return None
    known = _OTHERS.match(reason) is not None
    return f"waiting for {reason[:60]}" + ("" if known else ", a reason that is not known")
