"""Rounds of 10,000 to 100,000 jobs, each within 10 s."""

from __future__ import annotations

from rounds import COLUMNS, GREEDY, Solve, generated, solve_round
from spec import BenchSpec

SHAPES = (
    ("uniform", 1000, 125, 8, 0),  # small: the others are ten to a hundred times as large
    ("uniform", 10_000, 1000, 4, 0),
    ("varied", 10_000, 1000, 4, 0),
    ("fractions", 10_000, 1000, 4, 0),
    ("contention", 10_000, 1000, 8, 0),
    ("gangs", 10_000, 5000, 8, 0),
    ("planted", 10_000, 500, 8, 0),
    ("resources", 10_000, 1200, 8, 0),
    ("elastic", 10_000, 400, 8, 0),
    ("uniform", 100_000, 12_500, 8, 0),
    ("varied", 100_000, 12_500, 8, 0),
    ("planted", 100_000, 5000, 8, 0),
)

SPEC = BenchSpec(
    name="large",
    question="How far is a plan of 10 s from its bound, and from greedy's, with 10,000 jobs and more?",
    rounds={
        name: Solve(make, limits_s=(1.0 if "1000x125x" in name else 10.0,), methods=("auto", GREEDY))
        for name, make in (generated(*shape) for shape in SHAPES)
    },
    run=solve_round,
    columns=COLUMNS,
    minutes=6,
)
