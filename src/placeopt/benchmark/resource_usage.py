"""What a process and all that it has started have used."""

from __future__ import annotations

import resource


def cpu_s() -> float:
    """Seconds of this process and of all that it has started and seen the end of."""
    return sum(one.ru_utime + one.ru_stime for one in _usage())


def peak_mib() -> int:
    """Largest resident set of any of them."""
    return max(one.ru_maxrss for one in _usage()) >> 10


def _usage() -> list[resource.struct_rusage]:
    return [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
