"""Certificates: the share of claims that carry one, what they take, and whether wrong ones are refused."""

from __future__ import annotations

import importlib
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from made_rounds import SPECS, generate
from placeopt import BadInput, Instance, Plan
from placeopt.certificates import certify
from placeopt.documents import dumps
from rounds import ROOT, Solve, generated, listed, stored, warm_engine
from spec import FAILED, BenchSpec, Row
from wrong_certificates import wrong_certificate

VERIFY = ROOT / "tools" / "verify.py"
LISTS = ("hand", "generated", "hard", "real")
LIMIT_S = 10.0
"""Seconds for the search of proofs."""
KINDS = ("value", "does not fit", "cost")
WRONG = 100
RANDOM = 250
"""Small rounds in one row."""


def prove(asked: Solve) -> Iterator[Row]:
    """Solve a round, search proofs of what the plan claims, and let the checker read them."""
    made = asked.make()
    for limit_s in asked.limits_s:
        plan = warm_engine().solve(made, time_limit_s=limit_s, seed=asked.seed)
        began = time.perf_counter()
        certificate = certify(made, plan, time_limit_s=LIMIT_S)
        seconds = time.perf_counter() - began
        data = dumps(certificate)
        lines, verify_s = verified(made, data)
        row: Row = {"limit_s": limit_s, "jobs": len(made.jobs), "status": plan.status}
        row |= {"certify_s": round(seconds, 2), "verify_s": round(verify_s, 2), "kib": round(len(data) / 1024, 1)}
        for kind in KINDS:
            said = [line for line, claim in zip(lines, certificate.claims, strict=True) if claim.claim == kind]
            row[f"{kind}_claims"] = len(said)
            row[f"{kind}_verified"] = sum(line.startswith("verified") for line in said)
        if refused := [line for line in lines if line.startswith("refused")]:
            row[FAILED] = refused[0]
        reasons = sorted({claim.why for claim in certificate.claims if claim.why is not None})
        yield row | {"why_not": "; ".join(reasons)}


def verified(made: Instance, certificate: bytes) -> tuple[list[str], float]:
    """Return what the checker says of each claim, by itself, and how many seconds that takes."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "round.json", Path(folder) / "certificate.json"]
        files[0].write_bytes(dumps(made))
        files[1].write_bytes(certificate)
        began = time.perf_counter()
        done = subprocess.run([sys.executable, "-E", "-s", VERIFY, *files], capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - began
    return [line for line in done.stdout.splitlines() if not line.startswith("the policy")], seconds


def try_wrong(rounds: tuple[Solve, ...]) -> Iterator[Row]:
    """Let the checker read certificates that are wrong on purpose, as many of each round as of any other."""
    refused, accepted = 0, []
    for number, asked in enumerate(rounds):
        made = asked.make()
        plan = warm_engine().solve(made, time_limit_s=asked.limits_s[0], seed=asked.seed)
        document = json.loads(dumps(certify(made, plan, time_limit_s=LIMIT_S)))
        for seed in range(number, WRONG, len(rounds)):
            wrong = wrong_certificate(document, **reached(made, plan), seed=seed)
            lines, _ = verified(made, json.dumps(wrong).encode())
            if lines[0].startswith("refused"):
                refused += 1
            else:
                accepted.append(lines[0])
    row: Row = {"tried": WRONG, "refused": refused}
    yield row | ({FAILED: f"{len(accepted)} not refused, first: {accepted[0]}"} if accepted else {})


def draw_rounds(seed: int) -> Iterator[Row]:
    """Certify small rounds of every generator, and offer the checker for each a certificate that is wrong."""
    draw, counts, seconds, why = random.Random(seed), Counter[str](), 0.0, Counter[str]()
    faults: list[str] = []
    sys.path.append(str(VERIFY.parent))
    checker = importlib.import_module("verify")
    while counts["rounds"] < RANDOM:
        spec, jobs, nodes, gpus = (
            draw.choice(sorted(SPECS)),
            draw.randint(4, 24),
            draw.randint(2, 6),
            draw.choice((4, 8)),
        )
        try:
            made = generate(spec, jobs=jobs, nodes=nodes, gpus=gpus, seed=draw.randrange(1 << 30))
        except BadInput:  # this generator has no round of that size
            continue
        plan = warm_engine().solve(made, time_limit_s=1.0)
        began = time.perf_counter()
        certificate = json.loads(dumps(certify(made, plan, time_limit_s=1.0, isolation="thread")))
        seconds += time.perf_counter() - began
        known = checker.Round(json.loads(dumps(made)), certificate["policy"])
        for claim in certificate["claims"]:
            said = checker.answer(known, claim)
            counts[f"{claim['claim']}_claims"] += 1
            counts[f"{claim['claim']}_{said.partition(' ')[0].rstrip(':')}"] += 1
            if said.startswith("refused"):
                faults.append(f"{made.name}: {said}")
            why[claim.get("why", "")] += 1
        wrong = wrong_certificate(certificate, **reached(made, plan), seed=draw.randrange(1 << 30))
        said = checker.answer(known, wrong["claims"][0])
        counts["wrong"] += 1
        if not said.startswith("refused"):
            faults.append(f"{made.name}, made wrong: {said}")
        counts["rounds"] += 1
    row: Row = {"rounds": RANDOM, "certify_s": round(seconds, 2)}
    row |= {f"{kind}_{what}": counts[f"{kind}_{what}"] for kind in KINDS for what in ("claims", "verified")}
    row |= {"tried": counts["wrong"], "refused": counts["wrong"] - sum("made wrong" in fault for fault in faults)}
    row |= {"why_not": "; ".join(sorted(filter(None, why)))}
    yield row | ({FAILED: f"{len(faults)} wrong answers, first: {faults[0]}"} if faults else {})


def reached(made: Instance, plan: Plan) -> dict[str, Any]:
    """Return what a plan is worth, what it costs, the jobs that start, and those that ran before."""
    ran = {held.job for held in made.running}
    costs = [level.objective for level in plan.levels[1:]]
    placed = [placed.job for placed in plan.placements if placed.job not in ran]
    running = [(held.job, held.option) for held in made.running]
    return {
        "value": plan.levels[0].objective,
        "cost": costs[0] if costs else None,
        "placed": placed,
        "running": running,
    }


LIBRARY = {
    name: Solve(make, limits_s=(3.0,)) for name, make in (stored(entry) for folder in LISTS for entry in listed(folder))
}
LARGE = [("uniform", 10_000, 1_000, 4), ("varied", 10_000, 1_000, 4), ("resources", 10_000, 1_200, 8)]

SPEC = BenchSpec(
    name="certificates",
    question="Which claims of plans carry a proof that another program verifies, and what does it take?",
    rounds={
        **{name: partial(prove, asked) for name, asked in LIBRARY.items()},
        **{name: partial(prove, Solve(make, (10.0,))) for name, make in (generated(*shape, 0) for shape in LARGE)},
        "wrong on purpose": partial(try_wrong, tuple(LIBRARY.values())),
        **{f"random {seed}": partial(draw_rounds, seed) for seed in range(8)},
    },
    run=lambda measure: measure(),
    columns=(
        *("round", "limit_s", "jobs", "status", "certify_s", "verify_s", "kib"),
        *(f"{kind}_{what}" for kind in KINDS for what in ("verified", "claims")),
        *("rounds", "tried", "refused", "load", "why_not"),
    ),
    minutes=40,
)
