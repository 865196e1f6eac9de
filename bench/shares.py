"""
What of a round is not solving: ``python bench/shares.py [--runs N] [--seed N] [--out FILE.md]``.

Every round is solved in a process of its own, one run more than ``--runs`` (the first one warms up), from the instance
in memory, nothing of it computed before. Timed inside it: the draft of every plan offered, apart from it the digest of
the instance that its first draft states, the referee on drafts and on the final plan, the audit, and the reasons of
jobs that wait: in CPU time of the process, which other work on the machine disturbs less. The share is that of the
process's CPU time for the round; solvers work in other processes, so it is at most as large a share of the round.
``patterns`` ends where value is proven or no stage is left; ``auto`` goes on with cost until ``--time-limit``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from placeopt import Engine
from placeopt.check import Referee
from placeopt.environment import usable_cores, versions
from placeopt.generators import generate
from placeopt.model import Instance
from placeopt.solving import finish, plan_form

PARTS = ("digest", "draft", "referee", "audit", "reasons")


class Case(NamedTuple):
    """A round and its method."""

    spec: str
    jobs: int
    method: str

    @property
    def title(self) -> str:
        """Name in the table."""
        return f"{self.spec} {self.jobs:,} x {self.jobs // 8:,} x 8, `{self.method}`"


CASES = (
    *(Case("uniform", jobs, "patterns") for jobs in (1000, 10_000, 100_000)),
    *(Case("varied", jobs, "patterns") for jobs in (1000, 10_000)),
    *(Case("uniform", jobs, "auto") for jobs in (1000, 10_000, 100_000)),
)
LARGEST = Case("uniform", 500_000, "patterns")


def main() -> int:
    """Measure all cases, or the one named, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--time-limit", type=float, default=30.0)
    parser.add_argument("--largest", action="store_true", help="500,000 jobs as well, once: a minute, 3 GB")
    parser.add_argument("--out", type=Path, help="write the table here as well")
    parser.add_argument("--one", nargs=3, metavar=("SPEC", "JOBS", "METHOD"), help="measure one round, print JSON")
    arguments = parser.parse_args()
    if arguments.one:
        spec, jobs, method = arguments.one
        measured = measure(Case(spec, int(jobs), method), arguments.runs, arguments.seed, arguments.time_limit)
        print(json.dumps(measured))
        return 0
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    limit = f"{arguments.time_limit:g}"
    lines = [
        "# What of a round is not solving",
        "",
        f"`python bench/shares.py --runs {arguments.runs} --seed {arguments.seed} --time-limit {limit}"
        f"{' --largest' if arguments.largest else ''}`, {usable_cores()} cores ({platform.machine()}), Python "
        f"{platform.python_version()}, {known}. Whole calls of a warm `Engine`, medians: wall time, then CPU "
        "seconds of the process, whole and by part. The share is that of digest, draft, referee, audit and reasons.",
        "",
        "| round | wall s | CPU s | " + " | ".join(PARTS) + " | plans | share | share without digest | MiB |",
        "|---|---|---|" + "---|" * len(PARTS) + "---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for case in (*CASES, *((LARGEST,) if arguments.largest else ())):
        runs = 0 if case is LARGEST else arguments.runs
        command = [sys.executable, __file__, "--runs", str(runs), "--seed", str(arguments.seed), "--time-limit", limit]
        named = ["--one", case.spec, str(case.jobs), case.method]
        done = subprocess.run([*command, *named], capture_output=True, text=True, check=True)
        lines.append(row(case, json.loads(done.stdout)))
        print(lines[-1], flush=True)
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    lines += ["", f"Load of the last 1, 5 and 15 minutes at the end: {load}.", ""]
    if arguments.out is not None:
        arguments.out.write_text("\n".join(lines), encoding="utf-8")
    return 0


def measure(case: Case, runs: int, seed: int, time_limit_s: float) -> dict[str, float]:
    """Solve one round in this process, and return the medians of what its parts take; with no runs, the first one's."""
    made = generate(case.spec, jobs=case.jobs, nodes=case.jobs // 8, gpus=8, seed=seed)
    spent: Counter[str] = Counter()
    _time_parts(spent)
    rounds: list[dict[str, float]] = []
    with Engine() as engine:
        for _ in range(runs + 1):
            spent.clear()
            instance = made.model_copy()  # forgets the digest
            start, cpu = time.perf_counter(), time.process_time()
            engine.solve(instance, method=case.method, time_limit_s=time_limit_s)
            wall, whole = time.perf_counter() - start, time.process_time() - cpu
            apart = sum(spent[part] for part in PARTS)
            shares = {"share": apart / whole, "without": (apart - spent["digest"]) / whole}
            rounds.append(
                {"wall": wall, "whole": whole, "plans": spent["plans"]} | {part: spent[part] for part in PARTS} | shares
            )
    counted = rounds[1:] or rounds
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {name: statistics.median(one[name] for one in counted) for name in counted[0]} | {"mib": mib}


def _time_parts(spent: Counter[str]) -> None:
    """Have every part add its seconds to ``spent``; those of a part that runs inside another count as its own only."""
    inside = [0.0]  # seconds of the parts within each call that runs

    def timed(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            start = time.process_time()
            inside.append(0.0)
            try:
                return function(*given, **named)
            finally:
                took = time.process_time() - start
                spent[part] += took - inside.pop()
                inside[-1] += took
                spent["plans"] += part == "draft"

        return run

    for place, name, part in (
        (plan_form, "draft_plan", "draft"),
        (Referee, "judge", "referee"),
        (Referee, "violations", "referee"),
        (finish, "audit", "audit"),
        (finish, "reasons", "reasons"),
    ):
        setattr(place, name, timed(part, getattr(place, name)))
    digest = cached_property(timed("digest", vars(Instance)["digest"].func))
    digest.__set_name__(Instance, "digest")
    type.__setattr__(Instance, "digest", digest)


def row(case: Case, measured: dict[str, float]) -> str:
    """Return the table's line for one round."""
    seconds = [f"{measured[name]:.3f}" for name in ("wall", "whole", *PARTS)]
    shares = [f"{100 * measured[name]:.0f} %" for name in ("share", "without")]
    cells = [case.title, *seconds, f"{measured['plans']:.0f}", *shares, f"{measured['mib']:.0f}"]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
