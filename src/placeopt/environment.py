"""What this process finds around it: cores by affinity and quota, versions installed."""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path


def usable_cores() -> int:
    """
    Return the cores that this process may use: affinity and container quota, at least 1.

    ``os.cpu_count()`` respects neither.
    """
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota()
    return max(1, affinity if quota is None else min(affinity, quota))


def _quota() -> int | None:
    """Return the control group's CPU quota in whole cores, rounded up; None without one."""
    try:
        limit, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return None if limit == "max" else math.ceil(int(limit) / int(period))
    except (OSError, ValueError):
        return None


def versions() -> dict[str, str]:
    """Return the versions of placeopt and the solvers, read without importing them."""
    return dict(_versions())


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    """The same; it cannot change while the process lives, and takes milliseconds to read."""
    from importlib.metadata import PackageNotFoundError, version  # only here: it takes 12 ms to load

    out = []
    for name in ("placeopt", "ortools", "highspy"):
        try:
            out.append((name, version(name)))
        except PackageNotFoundError:
            out.append((name, "unknown"))
    return tuple(out)
