"""States and flags of Slurm's nodes: which of them let a node take new work."""

from __future__ import annotations

import re
from collections.abc import Iterable

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
    found: dict[str, None] = {}
    for word in words:
        for part in filter(None, word.upper().split("+")):
            signs = re.search(r"[*~#!%$@^-]*\Z", part)
            tail = signs[0] if signs else ""
            found |= dict.fromkeys(filter(None, [part[: len(part) - len(tail)], *(_SIGNS[sign] for sign in tail)]))
    return list(found)


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
