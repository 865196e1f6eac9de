"""Resource usage of this process and its children."""

from __future__ import annotations

import resource


def cpu_s() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    return sum(one.ru_utime + one.ru_stime for one in _usage())


def peak_mib() -> int:
    """Return the largest resident set of this process or one of its children, in MiB."""
    return max(one.ru_maxrss for one in _usage()) >> 10


def _usage() -> list[resource.struct_rusage]:
    return [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
