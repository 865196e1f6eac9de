"""The same kinds of rounds from 8 to 12,500 nodes: where the size alone makes plans worse, and how fast."""

from __future__ import annotations

from rounds import COLUMNS, GREEDY, Solve, generated, solve_round
from spec import BenchSpec
from specs.unseen import seeds

SPECS = ("uniform", "varied", "gangs", "resources")
NODES = (*(1 << power for power in range(3, 14)), 12_500)
JOBS_PER_NODE = 6
GPUS = 8
LIMIT_S = 10.0

SPEC = BenchSpec(
    name="curve",
    question="How far are plans of 10 s from their bounds, from 8 to 12,500 nodes of 8 GPUs?",
    rounds={
        name: Solve(make, limits_s=(LIMIT_S,), methods=("auto", GREEDY))
        for nodes in NODES
        for name, make in (generated(spec, JOBS_PER_NODE * nodes, nodes, GPUS, seeds()[0]) for spec in SPECS)
    },
    run=solve_round,
    columns=COLUMNS,
    minutes=20,
)
