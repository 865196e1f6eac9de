"""
Campaign: random waiting jobs explained, and every statement tried by brute force.

    python tests/campaigns/explanations.py --waiting 300 --seed 0 --jobs 2 --out explanations.md

Every other seed is a round of ``helpers.small_rounds``, the others one gang among racks (``helpers.gang_rounds``).
Seeds are taken in order until there are so many waiting jobs; of every round a placed job is explained too. Ends with
code 1 if a statement was wrong or not proven.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from helpers.explanation_oracle import faults, in_full
from helpers.gang_rounds import gang_round
from helpers.small_rounds import Dice, random_round
from placeopt import Instance, Plan, solve
from placeopt.explain import Explanation, explain

METHODS = ("stranding", "fcfs", "auto")
REMEDIES = ("workers_max", "domains_min", "level", "gpus_to_free", "preempt")
CHUNK = 10


@dataclass(frozen=True)
class Result:
    """One job: what was said of it, how large the statements are, how long it took, what was wrong."""

    seed: int
    job: str
    kind: str
    conflict: int
    in_full: bool
    remedies: tuple[str, ...]
    outvoted: bool
    proven: bool
    seconds: float
    faults: tuple[str, ...]


def main() -> int:
    """Explain jobs until there are enough, write the table, and tell whether all statements hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--waiting", type=int, default=300, help="waiting jobs to explain, at least")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--out", type=Path, default=Path("explanations.md"))
    options = parser.parse_args()
    results: list[Result] = []
    seed, began = options.seed, time.monotonic()
    with Parallel(n_jobs=options.jobs) as run:
        while sum(result.kind != "placed" for result in results) < options.waiting:
            batch = range(seed, seed + CHUNK * options.jobs)
            for found in run(delayed(examine)(one) for one in batch):
                results.extend(found)
            seed = batch.stop
            print(f"{len(results)} jobs, {time.monotonic() - began:.0f} s", flush=True)
    options.out.write_text(table(results, range(options.seed, seed)), encoding="utf-8")
    return int(any(result.faults for result in results))


def examine(seed: int) -> list[Result]:
    """Explain all waiting jobs of a round, and one placed."""
    rng = np.random.default_rng(seed)
    round_ = random_round(rng, changes=seed % 4 == 1) if seed % 2 else gang_round(Dice(rng))
    plan = solve(round_, method=METHODS[seed % 3], isolation="thread")
    jobs = [unplaced.job for unplaced in plan.unplaced] + [placed.job for placed in plan.placements[:1]]
    return [_examine(seed, round_, plan, job) for job in jobs]


def _examine(seed: int, round_: Instance, plan: Plan, job: str) -> Result:
    try:
        found = explain(round_, plan, job, time_limit_s=60, isolation="thread")
        wrong = faults(round_, plan, found)
    except Exception as error:  # noqa: BLE001 - what breaks is what a campaign looks for
        return Result(seed, job, "raised", 0, False, (), False, False, 0.0, (f"{type(error).__name__}: {error}",))
    return Result(
        seed,
        job,
        found.reason or found.status,
        len(found.conflict),
        bool(found.conflict) and in_full(round_, found),
        _named(found),
        found.outvoted_by is not None,
        found.proven,
        found.seconds,
        tuple(wrong),
    )


def _named(found: Explanation) -> tuple[str, ...]:
    return tuple(name for name in REMEDIES if getattr(found.remedies, name))


def table(results: list[Result], seeds: range) -> str:
    """Return the results as Markdown."""
    waiting = [result for result in results if result.kind != "placed"]
    placed = [result for result in results if result.kind == "placed"]
    wrong = [(result, fault) for result in results for fault in result.faults]
    sizes = Counter(result.conflict for result in waiting if result.conflict)
    remedies = Counter(name for result in waiting for name in result.remedies)
    packages = ", ".join(f"{name} {version(name)}" for name in ("placeopt", "highspy", "numpy"))
    milliseconds = [1000 * result.seconds for result in results]
    rows = [
        ("waiting jobs explained", len(waiting)),
        *((f"... {kind}", count) for kind, count in sorted(Counter(r.kind for r in waiting).items())),
        ("all proven", sum(result.proven for result in waiting)),
        *((f"conflicts of {size} constraints", count) for size, count in sorted(sizes.items())),
        ("conflicts tried in full (no record says: GPUs gone, traffic kept)", sum(r.in_full for r in waiting)),
        *((f"remedy {name} named", remedies[name]) for name in REMEDIES),
        ("jobs that hold the room named", sum(result.outvoted for result in waiting)),
        ("placed jobs explained", len(placed)),
        ("... proven (the others have a cost that the model only bounds)", sum(result.proven for result in placed)),
        ("statements that are wrong", len(wrong)),
    ]
    lines = [
        "# Explanations by brute force",
        "",
        f"Random rounds, seeds {seeds.start} to {seeds.stop - 1}; {packages}.",
        "Of every waiting job: the reason; that the conflict does not fit with everything else dropped, and fits",
        "without any one of its members, by editing the job's record and trying every placement; that each remedy does",
        "when it is granted, and that nothing less does, over all numbers of workers, of domains, all levels, all sets",
        "of GPUs and of jobs; that a remedy which is not named does not exist. Of a placed job: its best place of all,",
        "and the best on another node.",
        "",
        "| | |",
        "|---|---:|",
        *_lines(rows),
        f"| milliseconds an explanation, median / largest | {np.median(milliseconds):.1f} / {max(milliseconds):.0f} |",
        "",
    ]
    if wrong:
        lines += [*(f"- seed {result.seed}, job {result.job}: {fault}" for result, fault in wrong), ""]
    return "\n".join(lines)


def _lines(rows: Iterable[tuple[str, int]]) -> list[str]:
    return [f"| {name} | {count} |" for name, count in rows]


if __name__ == "__main__":
    sys.exit(main())
