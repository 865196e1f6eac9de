"""What this process finds around it: cores by affinity and quota, versions installed, the checkout of the sources."""

from __future__ import annotations

import math
import os
import sys
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


PAPERS = "placeopt_papers"
"""Package in ``bench/`` of a checkout: it reproduces papers, and is no part of an installed placeopt."""


def find_papers(package: Path | None = None) -> None:
    """
    Make ``placeopt_papers`` importable, from ``bench/`` of the checkout that placeopt itself runs from.

    The folder goes to the end of ``sys.path``, so that child processes inherit it and its scripts hide no module. An
    installed placeopt takes the package from ``sys.path``.
    ``package``: ``ROOT/src/placeopt`` in a checkout; left out, that of this file.
    """
    package = package or Path(__file__).parent
    bench = package.parents[1] / "bench"
    if package.parent.name != "src" or not (bench / PAPERS).is_dir():
        from importlib.util import find_spec

        if find_spec(PAPERS) is not None:
            return
        raise ModuleNotFoundError(
            f"{PAPERS} is missing: it reproduces papers and stands in bench/ of placeopt's repository, not in the "
            "installed package; clone the repository and run placeopt from there (pip install --editable .)",
            name=PAPERS,
        )
    if str(bench) not in sys.path:
        sys.path.append(str(bench))
