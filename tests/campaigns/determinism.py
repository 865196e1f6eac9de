"""
In deterministic mode a round has one plan: whatever the seed of Python's hashes, the load, or the form of the kernels.

Each round of the library up to so many jobs is solved by processes of their own: with three seeds of hashes, the last
beside busy processes on every core, and once with what is compiled run from its source. The clock is far away; a plan
that it ended all the same is counted, not compared.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

from campaigns.harness import ROOT, Campaign, Case
from placeopt import read_instance
from placeopt.benchmark import read_sets

SETS = ("hand", "generated", "hard", "real")
MOST_JOBS = 100
LIMIT_S = "0.3"
PROGRAM = ROOT / "tests" / "helpers" / "deterministic_plan.py"
RUNS = (("compiled", "0", False), ("compiled", "1", False), ("compiled", "2", True), ("source", "3", False))
"""Form of the kernels, seed of hashes, whether other processes take all cores."""
BUSY = (sys.executable, "-c", "while True: pass")


def planned(file: os.PathLike[str], form: str, seed: str, *, loaded: bool) -> tuple[float, str, str]:
    """Return the seconds that a run took, what limited it, and the digest of its plan."""
    others = [subprocess.Popen(BUSY) for _ in range(os.cpu_count() or 1)] if loaded else []
    try:
        done = subprocess.run(
            [sys.executable, PROGRAM, form, os.fspath(file), LIMIT_S],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT / "tests")},
            check=True,
            capture_output=True,
            text=True,
        )
    finally:
        for other in others:
            other.kill()
            other.wait()
    seconds, limit, digest = done.stdout.split()
    return float(seconds), limit, digest


def cases(seed: int) -> Iterator[Case]:
    """Solve each round by all runs."""
    del seed
    for entry in read_sets(SETS, ROOT / "instances"):
        if entry.kind != "placement" or len(read_instance(entry.there()).jobs) > MOST_JOBS:
            continue
        plans = [planned(entry.there(), form, number, loaded=loaded) for form, number, loaded in RUNS]
        kept = [plan for plan in plans if plan[1] != "time"]
        differ = len({digest for _, _, digest in kept}) > 1
        yield Case(
            "all by work" if len(kept) == len(plans) else "some ended by the clock",
            [f"{entry.name}: plans differ: {plans}"] if differ else [],
            {"compiled_s": plans[0][0], "source_s": plans[-1][0]},
        )


CAMPAIGN = Campaign("is the plan of deterministic mode the same whatever runs it, and beside what?", cases, 100, 60)
