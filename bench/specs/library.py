"""The stored rounds, each within 3 s; `instances/best.solu` has the best values known."""

from __future__ import annotations

from rounds import COLUMNS, GREEDY, Solve, listed, solve_round, stored
from spec import BenchSpec

LISTS = ("hand", "generated", "hard", "real")

SPEC = BenchSpec(
    name="library",
    question="How far is a plan of 3 s from its bound, and from greedy's, on the stored rounds?",
    rounds={
        name: Solve(make, limits_s=(3.0,), methods=("auto", GREEDY))
        for name, make in (stored(entry) for folder in LISTS for entry in listed(folder))
    },
    run=solve_round,
    columns=COLUMNS,
    minutes=3,
)
