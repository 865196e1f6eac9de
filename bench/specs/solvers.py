"""QAP, GAP and MIP of the library by each solver, through ``placeopt bench run``, one process a case."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from command import placeopt
from rounds import INSTANCES
from spec import FAILED, BenchSpec, Row

LIMIT_S = 5.0


class Case(NamedTuple):
    """Instances, by the name of a list or file, and the solvers that take them."""

    instances: str
    solvers: tuple[str, ...]


def run(asked: Case) -> Iterator[Row]:
    """Yield a row for each instance and solver, with the verdict against `instances/best.solu`."""
    with tempfile.TemporaryDirectory() as folder:
        words = ("--set", asked.instances, "--solvers", ",".join(asked.solvers), "--case-limit", f"{LIMIT_S:g}")
        where = ("--instances", str(INSTANCES), "--out", folder, "--quiet")
        placeopt("bench", "run", *words, *where)
        lines = map(json.loads, Path(folder, "results.jsonl").read_text(encoding="utf-8").splitlines())
        yield from (answered(line["row"]) for line in lines if "row" in line)


def answered(case: Row) -> Row:
    """Return the row of a case."""
    answer, known = case["answer"] or {}, case["known"] or {}
    row: Row = {"call": case["case"]["instance"], "method": case["case"]["solver"], "verdict": case["verdict"]}
    row |= {"sense": answer.get("sense"), "seconds": round(answer.get("wall_s", 0.0), 3)}
    row |= {"value": answer.get("objective"), "bound": answer.get("bound"), "known": known.get("value")}
    return row | ({FAILED: case["verdict"]} if case["verdict"] in WRONG else {})


WRONG = ("fail", "abort")
MIP = ("highs", "cpsat", "pulp-cbc")
SPEC = BenchSpec(
    name="solvers",
    question="How far do the solvers and the search for ranks get in 5 s on QAP, GAP and MIP, with one thread?",
    rounds={
        "one GAP": Case(str(INSTANCES / "gap" / "gap1-0.gap"), ("highs",)),
        "GAP": Case("gap", MIP),
        "MIP": Case("mip", ("highs", "pulp-cbc")),
        "QAP": Case("qap", ("map", "highs", "cpsat")),
    },
    run=run,
    columns=("round", "call", "method", "verdict", "seconds", "value", "bound", "known", "load"),
    minutes=12,
)
