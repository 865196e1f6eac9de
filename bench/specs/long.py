"""Kinds of rounds that stay open after ten seconds: how far plan and bound come in two minutes, each by itself."""

from __future__ import annotations

from rounds import COLUMNS, Solve, generated, solve_round
from spec import BenchSpec
from specs.unseen import seeds

ROUNDS = (
    ("gangs", 10, 2, 8),
    ("gangs", 80, 16, 8),
    ("gangs", 400, 64, 8),
    ("varied", 400, 64, 8),
    ("resources", 400, 64, 8),
    ("uniform", 400, 64, 16),
)
"""Kind, waiting jobs, nodes, GPUs of a node; the first one is there to try the spec."""

SPEC = BenchSpec(
    name="long",
    question="What is left open where rounds of tight CPU, gangs or wide nodes get two minutes?",
    rounds={
        name: Solve(make, limits_s=(1.0,) if one is ROUNDS[0] else (10.0, 120.0))
        for one in ROUNDS
        for name, make in (generated(*one, seeds()[0]),)
    },
    run=solve_round,
    columns=COLUMNS,
    minutes=11,
)
