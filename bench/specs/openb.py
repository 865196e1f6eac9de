"""Alibaba's trace openb as one round in which every pod waits, by time limit; the value is the GPU-milli placed."""

from __future__ import annotations

from rounds import COLUMNS, GREEDY, Solve, solve_round, stored
from spec import BenchSpec

SMALL = ("openb-first-100",)
LISTS = ("openb-first-2000", "openb-default", "openb-gpuspec33", "openb-multigpu20")


def rounds() -> dict[str, Solve]:
    """Return the lists: the first hundred pods, the first two thousand, which all fit, and all of them."""
    found = {}
    for names, limits_s in ((SMALL, (1.0,)), (LISTS, (1.0, 3.0, 10.0))):
        for listed in names:
            name, make = stored(f"openb/{listed}.json.gz")
            found[name] = Solve(make, limits_s, methods=("auto", GREEDY))
    return found


SPEC = BenchSpec(
    name="openb",
    question="How much of openb, 8,152 pods on 6,212 GPUs, does one round place, and what bound does it prove?",
    rounds=rounds(),
    run=solve_round,
    columns=COLUMNS,
    minutes=2,
)
