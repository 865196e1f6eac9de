"""What this process finds around it: cores by affinity and quota, versions installed."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

CONTROL_GROUPS, OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def usable_cores() -> int:
    """
    Return the cores that this process may use: affinity and container quota, at least 1.

    ``os.cpu_count()`` respects neither.
    """
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota()
    return max(1, affinity if quota is None else min(affinity, quota))


def _quota() -> int | None:
    """Return the smallest CPU quota of this process's control groups in whole cores, rounded up; None without one."""
    # joblib.cpu_count() tells the same, but loading joblib takes a command 0.16 s.
    quotas = []
    for folder in _control_groups():
        for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):  # version 2, version 1
            try:
                limit, period = " ".join((folder / name).read_text(encoding="ascii") for name in names).split()
                quotas.append(math.ceil(int(limit) / int(period)))
            except (OSError, ValueError):  # no such file, or "max"
                continue
    return min((quota for quota in quotas if quota > 0), default=None)  # version 1 says -1 for none


def _control_groups() -> Iterator[Path]:
    """Yield the folders of the groups that limit this process's cores, each with those above it."""
    try:
        lines = [line.split(":", 2) for line in OWN_GROUPS.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return
    for _, kinds, path in lines:
        if kinds == "" or "cpu" in kinds.split(","):
            root = CONTROL_GROUPS / kinds
            folder = root / path.lstrip("/")
            yield from (group for group in (folder, *folder.parents) if group.is_relative_to(root))


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
