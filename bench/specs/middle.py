"""32 rounds of 8 to 64 nodes of 8 GPUs: where exact stages may or may not end in time."""

from __future__ import annotations

from rounds import COLUMNS, GREEDY, Solve, generated, solve_round
from spec import BenchSpec

SPECS = {
    "uniform": (50, (11, 12)),
    "varied": (80, (11, 12)),
    "gangs": (40, (11, 12)),
    "contention": (60, (11,)),
    "resources": (66, (11,)),
}
"""Waiting jobs on 8 nodes, and so in proportion; seeds."""
NODES = (8, 16, 32, 64)


def rounds() -> dict[str, Solve]:
    """Return the rounds, the smallest first."""
    found = {}
    for nodes in NODES:
        for spec, (jobs, seeds) in SPECS.items():
            for seed in seeds:
                name, make = generated(spec, jobs * nodes // 8, nodes, 8, seed)
                found[name] = Solve(make, limits_s=(3.0,), methods=("auto", GREEDY))
    return found


SPEC = BenchSpec(
    name="middle",
    question="How far is a plan of 3 s from its bound, and from greedy's, on 8 to 64 nodes?",
    rounds=rounds(),
    run=solve_round,
    columns=COLUMNS,
    minutes=2,
)
