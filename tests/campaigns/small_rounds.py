"""
Campaign: thousands of random small rounds through brute force and every route of ``tests/helpers/differential.py``.

    python tests/campaigns/small_rounds.py --rounds 10000 --seed 0 --moves 20000 --jobs 2 --out small_rounds.md

Every round is one seed; in those of every fourth seed much runs and may be changed. What came of it goes to a line of a
file beside the table (``small_rounds.jsonl``), at once; a command that is repeated, or run with another range of seeds,
goes on from there, and the table covers all lines. Delete that file to start anew. Ends with code 1 if two routes ever
disagreed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from platform import python_version

import numpy as np
from joblib import Parallel, delayed

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from helpers.differential import ROUTES, examine
from helpers.small_rounds import features, random_round
from placeopt.terms.costs import COSTS

CHUNK = 25
CHANGES_EVERY = 4
Record = dict[str, object]


def main() -> int:
    """Run what is not yet in the file, write the table, and tell whether all routes agree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed; round i has seed + i")
    parser.add_argument("--named", action="store_true", help="with named resources on machines and in demands")
    parser.add_argument("--moves", type=int, default=20_000, help="random moves per cost, over all rounds")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--out", type=Path, default=Path("small_rounds.md"))
    options = parser.parse_args()
    log = options.out.with_suffix(".jsonl")
    records = {record["seed"]: record for record in _read(log)}
    seeds = [s for s in range(options.seed, options.seed + options.rounds) if s not in records]
    moves = -(-options.moves * 3 // (2 * max(1, options.rounds)))  # some rounds have nothing to move
    chunks = [seeds[i : i + CHUNK] for i in range(0, len(seeds), CHUNK)]
    began = time.monotonic()
    done = 0
    run = Parallel(n_jobs=options.jobs, return_as="generator_unordered")
    with log.open("a", encoding="utf-8") as lines:
        for found in run(delayed(examine_seeds)(chunk, moves, named=options.named) for chunk in chunks):
            for record in found:
                records[record["seed"]] = record
                lines.write(json.dumps(record) + "\n")
            lines.flush()
            done += len(found)
            bad = sum(bool(record["mismatches"]) for record in records.values())
            each = (time.monotonic() - began) / done
            left = (len(seeds) - done) * each
            print(
                f"{done}/{len(seeds)} rounds, {1000 * each:.0f} ms each, {left:.0f} s left, {bad} with mismatches",
                flush=True,
            )
    options.out.write_text(table([records[seed] for seed in sorted(records)]), encoding="utf-8")
    return int(any(record["mismatches"] for record in records.values()))


def examine_seeds(seeds: list[int], moves: int, *, named: bool = False) -> list[Record]:
    """Examine a round per seed; an exception is a mismatch like any other."""
    records: list[Record] = []
    for seed in seeds:
        began, used = time.perf_counter(), _cpu_s()
        record: Record = {
            "seed": seed,
            "features": [],
            "form": "raised",
            "solves": 0,
            "routes": {},
            "moves": 0,
            "pinned": 0,
        }
        try:
            rng = np.random.default_rng(seed)
            instance = random_round(rng, changes=seed % CHANGES_EVERY == 0, named=named)
            report = examine(instance, rng, moves=moves)
            record.update(
                features=sorted(features(instance)),
                form=report.form,
                solves=report.solves,
                routes=dict(report.routes),
                moves=report.moves,
                pinned=report.pinned,
                mismatches=report.mismatches,
            )
        except Exception as error:  # noqa: BLE001 - a round that breaks something is what a campaign looks for
            record["mismatches"] = [f"{type(error).__name__}: {error}"]
        record["seconds"], record["cpu_s"] = time.perf_counter() - began, _cpu_s() - used
        records.append(record)
    return records


def _cpu_s() -> float:
    """CPU seconds of this process and its children so far: what CBC takes, too."""
    return sum(os.times()[:4])


def _read(log: Path) -> Iterator[Record]:
    if log.exists():
        for line in log.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def table(records: list[Record]) -> str:
    """Return the results as Markdown."""
    forms = Counter(str(record["form"]) for record in records)
    seen = Counter(name for record in records for name in record["features"])  # type: ignore[attr-defined]
    bad = [(record["seed"], text) for record in records for text in record["mismatches"]]  # type: ignore[attr-defined]
    ran = Counter[str]()
    for record in records:
        ran.update(record["routes"])  # type: ignore[arg-type]
    seconds, cpu = ([float(record[clock]) for record in records] for clock in ("seconds", "cpu_s"))  # type: ignore[arg-type]

    def total(name: str) -> int:
        return sum(int(record[name]) for record in records)  # type: ignore[call-overload]

    packages = ", ".join(f"{name} {version(name)}" for name in ("placeopt", "highspy", "ortools", "pulp", "numpy"))
    lines = [
        "# Small rounds: brute force, and every way to an optimum",
        "",
        f"Random rounds of `helpers.small_rounds`, seeds {records[0]['seed']} to {records[-1]['seed']}; {packages};",
        f"Python {python_version()}. One thread a solve, no gap. On every round the greatest value must be the same by",
        "brute force and by every route, all proven; so must the least cost at that value where all active costs are",
        "exact, and elsewhere the proven bound must not exceed it, nor it the true cost of the route's own plan. Every",
        "decoded solution goes through the referee. CBC is the program that PuLP brings, preprocessing off.",
        "",
        "| | |",
        "|---|---:|",
        f"| rounds | {len(records)} |",
        f"| with an exact cost level | {forms['exact']} |",
        f"| with a bound for the cost level | {forms['bound']} |",
        f"| without cost level | {forms['off']} |",
        f"| with a rule that rows state in part: the value is bounded, no cost level | {forms['relaxed']} |",
        f"| solves | {total('solves')} |",
        f"| costs compared with columns pinned to an allocation | {total('pinned')} |",
        f"| random moves, with {len({cost.name for cost in COSTS})} deltas each | {total('moves')} |",
        f"| mismatches | {len(bad)} |",
        f"| milliseconds a round, mean / median / largest | {1000 * np.mean(seconds):.0f} / "
        f"{1000 * np.median(seconds):.0f} / {1000 * max(seconds):.0f} |",
        f"| ... of CPU, solvers included, mean | {1000 * np.mean(cpu):.0f} |",
        "",
        "| route: formulation/solver | rounds, value | rounds, cost | refused |",
        "|---|---:|---:|---:|",
        *(
            f"| {r.name} | {ran[f'{r.name} value']} | {ran[f'{r.name} cost']} | {ran[f'{r.name} refused']} |"
            for r in ROUTES
        ),
        "",
        "| feature | rounds with it |",
        "|---|---:|",
        *(f"| {name} | {count} |" for name, count in sorted(seen.items())),
        "",
    ]
    if bad:
        lines += ["Mismatches:", "", *(f"- seed {seed}: {text}" for seed, text in bad), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
