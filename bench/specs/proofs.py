"""Small rounds by form of the cost: of how many is the least cost proven, and how near is the bound of the others?"""

from __future__ import annotations

import random
from collections.abc import Iterator

from placeopt import Instance
from placeopt.build import instance, job, machine
from placeopt.model import Communication, Edge, Fragmentation, Gpu, Interference, Link, Part, Policy, Slowdown, Weights
from rounds import about_plan, gap_percent, warm_engine
from spec import BenchSpec, Row

NUMBER = 12
"""Rounds of each form: so small that exact forms of all costs prove every one in well under a second."""
LIMIT_S = 5.0

PARTS = (
    *(Part(id=f"s{i}", level="socket") for i in range(2)),
    *(Part(id=f"w{i}", level="switch", parent=f"s{i}") for i in range(2)),
)
TWO_SOCKETS = machine(gpus=[Gpu(model="V100", memory_mib=16_384, part=f"w{i // 2}") for i in range(4)], parts=PARTS)
RING = machine(gpus=4, links=tuple(Link(gpus=(i, (i + 1) % 4)) for i in range(4)))
LOPSIDED = machine(
    gpus=[*(Gpu(model="V100", memory_mib=16_384, part="s0") for _ in range(3)), Gpu(model="V100", memory_mib=16_384)],
    parts=PARTS[:1],
)
LEVELS = ("gpu_thousandths", "switch_thousandths", "socket_thousandths", "node_thousandths")
PROFILES = ("calm", "loud", "large")
SHARED: dict[str, object] = {"share_mode": "overcommit", "jobs_per_gpu_max": 2}
FORMS: dict[str, tuple[str, dict[str, object]]] = {
    "paths": ("communication", {}),
    "paths of a ring": ("communication", {}),
    "paths of a lopsided machine": ("communication", {}),
    "traffic graphs": ("communication", {}),
    "pairwise": ("interference", {}),
    "pairwise, closer is better": ("interference", {}),
    "worst": ("interference", {"interference": Interference(model="worst")}),
    "curve": ("interference", {"interference": Interference(model="curve"), **SHARED}),
    "partial": ("fragmentation", {}),
    "fgd": ("fragmentation", {"fragmentation": Fragmentation(form="fgd")}),
    "horus, a job a GPU": ("horus", {"share_mode": "exclusive"}),
    "horus, two jobs a GPU": ("horus", SHARED),
}
"""By name: the cost that counts alone, and fields of the policy."""


def drawn(form: str, number: int) -> Instance:
    """Return a round in which the cost counts alone: a few jobs, and a gang, on two or three nodes of four GPUs."""
    draw = random.Random(f"{form} {number}")
    cost, fields = FORMS[form]
    kind = {"paths of a ring": RING, "paths of a lopsided machine": LOPSIDED}.get(form, TWO_SOCKETS)
    jobs = []
    for i in range(draw.randint(4, 7)):
        milli = draw.choice((300, 500, 700)) if form == "fgd" and i % 2 else 1000
        jobs.append(
            job(
                f"j{i}",
                gpus=1 if milli < 1000 else draw.choice((1, 1, 2, 3)),
                gpu_milli=milli,
                gpu_memory_mib=1024 * draw.randint(1, 8),
                gpu_utilisation_percent=draw.choice((20, 35, 50, 65, 80)),
                cpu_millicores=draw.choice((1000, 4000, 8000)),
                profile=draw.choice(PROFILES),
                communication=Communication(weight=draw.randint(1, 4)),
                value=draw.randint(5, 9),
            )
        )
    pairs = [(a, b) for b in range(3) for a in range(b)] if form == "traffic graphs" else []
    edges = tuple(Edge(ranks=pair, weight=draw.randint(1, 9)) for pair in pairs)
    jobs.append(job("gang", workers=3, communication=Communication(weight=1, edges=edges), value=20))
    slowdowns = tuple(
        Slowdown(profile=one, beside=other, **dict(zip(LEVELS, _excess(draw, form), strict=True)))
        for one in PROFILES
        for other in PROFILES
    )
    weights = Weights(**dict.fromkeys(Weights(), 0) | {cost: 1000})
    policy = Policy.model_validate({"weights": weights, **fields})
    return instance(draw.randint(2, 3), jobs, machines=[kind], policy=policy, slowdowns=slowdowns)


def _excess(draw: random.Random, form: str) -> list[int]:
    """Return a slowdown by level, GPU, switch, socket and node; the further the smaller, unless the form says no."""
    excess = [draw.randint(0, 500) for _ in LEVELS]
    return excess if form == "pairwise, closer is better" else sorted(excess, reverse=True)


def prove(form: str) -> Iterator[Row]:
    """Solve the rounds of a form, and count the proofs."""
    rows = []
    for number in range(NUMBER):
        round_ = drawn(form, number)
        rows.append(about_plan(round_, warm_engine().solve(round_, time_limit_s=LIMIT_S, seed=number)))
    gaps = [gap_percent(row["cost"], row["cost_bound"]) for row in rows]
    yield {
        "limit_s": LIMIT_S,
        "rounds": len(rows),
        "values_proven": sum(row["value"] == row["value_bound"] for row in rows),
        "costs_proven": sum(row["status"] == "optimal" for row in rows),
        "cost": sum(row["cost"] for row in rows),
        "cost_bound": sum(row["cost_bound"] or 0 for row in rows),
        "worst_gap_percent": round(max(100.0 if gap is None else gap for gap in gaps), 1),
    }


SPEC = BenchSpec(
    name="proofs",
    question="Of how many small rounds is the least cost proven, by form of the cost?",
    rounds={form: form for form in FORMS},
    run=prove,
    columns=(
        *("round", "limit_s", "rounds", "values_proven", "costs_proven"),
        *("cost", "cost_bound", "worst_gap_percent", "load"),
    ),
    minutes=2,
)
