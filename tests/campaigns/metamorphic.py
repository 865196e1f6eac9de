"""
Campaign: the relations of ``tests/helpers/metamorphic.py`` on thousands of rounds.

    python tests/campaigns/metamorphic.py --rounds 2000 --medium 200 --seed 0 --jobs 2 --out metamorphic.md

Small rounds are solved exactly, by another method each time; medium ones (``generate``, 40 jobs on 8 nodes of 8 GPUs)
are bounded. What came of a seed goes to a line of a file beside the table (``metamorphic.jsonl``), at once; a command
that is repeated goes on from there. Delete that file to start anew. Ends with code 1 if a relation was broken, or if a
small round's value was not proven.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from platform import python_version

import numpy as np
from joblib import Parallel, delayed

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from helpers.metamorphic import RELATIONS, Answer, Trial, answer_of, provable
from helpers.small_rounds import random_round
from placeopt import Engine, Instance, generate

CHUNK = 20
CHANGES_EVERY = 4
METHODS = ("counts", "assignment", "counts-cpsat", "assignment-highs")
SPECS = ("uniform", "varied", "gangs", "fractions", "cubemesh")
MEDIUM = {"jobs": 40, "nodes": 8, "gpus": 8}
Record = dict[str, object]


def main() -> int:
    """Run what is not yet in the file, write the table, and tell whether all relations hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--rounds", type=int, default=2000, help="small rounds, for each relation")
    parser.add_argument("--medium", type=int, default=200, help="medium rounds, for each relation")
    parser.add_argument("--seed", type=int, default=0, help="the first seed; round i has seed + i")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--out", type=Path, default=Path("metamorphic.md"))
    options = parser.parse_args()
    log = options.out.with_suffix(".jsonl")
    known = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    records = {(record["size"], record["seed"]): record for record in map(json.loads, known)}
    wanted = [("small", options.seed + i) for i in range(options.rounds)]
    wanted += [("medium", options.seed + i) for i in range(options.medium)]
    wanted = [one for one in wanted if one not in records]
    chunks = [wanted[i : i + CHUNK] for i in range(0, len(wanted), CHUNK)]
    began, done = time.monotonic(), 0
    run = Parallel(n_jobs=options.jobs, return_as="generator_unordered")
    with log.open("a", encoding="utf-8") as lines:
        for found in run(delayed(examine_chunk)(chunk) for chunk in chunks):
            for record in found:
                records[record["size"], record["seed"]] = record
                lines.write(json.dumps(record) + "\n")
            lines.flush()
            done += len(found)
            bad = sum(bool(record["faults"]) for record in records.values())
            print(f"{done}/{len(wanted)} rounds, {time.monotonic() - began:.0f} s, {bad} with faults", flush=True)
    ordered = [records[key] for key in sorted(records)]
    options.out.write_text(table(ordered), encoding="utf-8")
    return int(any(record["faults"] for record in ordered))


def examine_chunk(chunk: list[tuple[str, int]]) -> list[Record]:
    """All relations on every round; an exception is a fault like any other."""
    records: list[Record] = []
    with Engine(isolation="thread") as engine:
        for size, seed in chunk:
            used = _cpu_s()
            record: Record = {"size": size, "seed": seed, "solves": 0, "open": 0, "costs": 0, "faults": []}
            try:
                _examine(engine, record, size, seed)
            except Exception as error:  # noqa: BLE001 - a round that breaks something is what a campaign looks for
                record["faults"] = [f"{type(error).__name__}: {error}"]
            record["cpu_s"] = _cpu_s() - used
            records.append(record)
    return records


def _examine(engine: Engine, record: Record, size: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    if size == "small":
        instance = random_round(rng, changes=seed % CHANGES_EVERY == 0)
    else:
        instance = generate(SPECS[seed % len(SPECS)], **MEDIUM, seed=seed)
    answers: list[Answer] = []

    def solve(round_: Instance) -> Answer:
        method = METHODS[(seed + len(answers)) % len(METHODS)] if size == "small" else "stranding"
        answers.append(answer_of(engine.solve(round_, method=method, time_limit_s=60, threads=1)))
        return answers[-1]

    trial = Trial(instance, solve(instance), solve, rng)
    faults = [f"{name}: {text}" for name, relation in RELATIONS.items() for text in relation(trial)]
    unproven = sum(answer.value[0] != answer.value[1] for answer in answers)
    if unproven and size == "small" and provable(instance):
        faults.append(f"{unproven} values are not proven")
    proven_costs = sum(answer.cost is not None and answer.cost[0] == answer.cost[1] for answer in answers)
    record.update(solves=len(answers), open=unproven, costs=proven_costs, faults=faults)


def _cpu_s() -> float:
    """CPU seconds of this process and its children so far."""
    return sum(os.times()[:4])


INTRODUCTION = """\
# Metamorphic relations

{packages}; Python {python}; {cores} cores, one thread a solve.

What must hold between the optima of a round and of a changed one, though neither is known: `helpers.metamorphic`
states each relation and why it holds; `whole/test_metamorphic.py` has a short run, and broken models that are caught.

Small: random rounds of `helpers.small_rounds`, solved exactly by the methods {methods} in turn,
so that a round and its change go different ways. Values must be proven and meet the relation; so must costs, and values
of rounds in which models state only a part of a rule, by their intervals where they are not proven.

Medium: `generate` with {medium}, specs {specs};
method `stranding`. No bound may lie below what is reached on the related round.

| | small | medium |
|---|---:|---:|
"""


def table(records: list[Record]) -> str:
    """Return the results as Markdown."""
    sizes = {size: [record for record in records if record["size"] == size] for size in ("small", "medium")}
    bad = [(record["size"], record["seed"], text) for record in records for text in record["faults"]]  # type: ignore[attr-defined]
    faults = Counter((size, text.split(":")[0]) for size, _, text in bad)
    introduction = INTRODUCTION.format(
        packages=", ".join(f"{name} {version(name)}" for name in ("placeopt", "highspy", "ortools", "numpy")),
        python=python_version(),
        cores=os.cpu_count(),
        methods=", ".join(METHODS),
        medium=", ".join(f"{number} {what}" for what, number in MEDIUM.items()),
        specs=", ".join(SPECS),
    )

    def row(name: str, cell: Callable[[str, list[Record]], object]) -> str:
        return f"| {name} | " + " | ".join(str(cell(size, of_size)) for size, of_size in sizes.items()) + " |"

    def total(name: str) -> Callable[[str, list[Record]], object]:
        return lambda _, of_size: round(sum(float(record[name]) for record in of_size))  # type: ignore[arg-type]

    def found(relation: str) -> Callable[[str, list[Record]], object]:
        return lambda size, _: faults[size, relation]

    lines = [
        row("seeds", lambda _, of_size: _range(of_size)),
        row("rounds, each with all relations", lambda _, of_size: len(of_size)),
        *(row(f"faults: {relation}", found(relation)) for relation in RELATIONS),
        row(
            "faults: other", lambda size, _: sum(n for (s, r), n in faults.items() if s == size and r not in RELATIONS)
        ),
        row("solves", total("solves")),
        row("... value not proven", total("open")),
        row("... cost proven, too", total("costs")),
        row("CPU seconds", total("cpu_s")),
        "",
        *(f"- {size} round, seed {seed}: {text}" for size, seed, text in bad),
    ]
    return introduction + "\n".join(lines).rstrip() + "\n"


def _range(records: list[Record]) -> str:
    return f"{records[0]['seed']} to {records[-1]['seed']}" if records else "none"


if __name__ == "__main__":
    sys.exit(main())
