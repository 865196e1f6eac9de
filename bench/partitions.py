"""
What a round loses when it is solved in parts: ``python bench/partitions.py [--time-limit S] [--out FILE.md]``.

Each round is solved as a whole by ``auto``, then in 2, 4 and 8 parts by every way of splitting, with the same limit for
the whole call. Gaps are to the best bound of all runs of that round. Every plan is checked and audited again.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

from placeopt import Instance, Plan, generate, read_instance, solve, solve_in_parts, violations
from placeopt.environment import usable_cores, versions
from placeopt.partition import WAYS
from placeopt.solving.audit import audit

OPENB = Path(__file__).resolve().parent.parent / "instances" / "openb" / "openb-default.json.gz"
SHAPES = (("uniform", 10_000, 1_000, 4), ("varied", 10_000, 1_000, 4), ("gangs", 1_000, 1_000, 8))
PARTS = (2, 4, 8)


def main() -> int:
    """Run and report; exit code 1 if a plan is refused."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--time-limit", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the table here as well")
    arguments = parser.parse_args()
    known = ", ".join(f"{package} {version}" for package, version in versions().items())
    lines = [
        "# What a round loses in parts",
        "",
        f"`python bench/partitions.py --time-limit {arguments.time_limit:g} --seed {arguments.seed}`, {usable_cores()} "
        f"cores, Python {platform.python_version()}, {known}.",
        "",
        "Gap of value to the best bound of all runs of the round, and seconds of the call, two parts at a time.",
        "",
        "| round | whole | " + " | ".join(f"{parts} parts, {by}" for by in WAYS for parts in PARTS) + " |",
        "|---|---" + "|---" * (len(WAYS) * len(PARTS)) + "|",
    ]
    refused = 0
    for instance in rounds(arguments.seed):
        plans = [
            run(instance, lambda i: solve(i, time_limit_s=arguments.time_limit, seed=arguments.seed)),
            *(run(instance, in_parts(parts, by, arguments)) for by in WAYS for parts in PARTS),
        ]
        refused += sum(bool(faults) for _, _, faults in plans)
        bound = min(plan.levels[0].bound for plan, _, _ in plans if plan.levels[0].bound is not None)
        cells = [f"{gap(plan, bound)} {seconds:.1f} s" for plan, seconds, _ in plans]
        lines.append(f"| {' | '.join([instance.name, *cells])} |")
        print(lines[-1], *(m for _, _, faults in plans for m in faults), sep="\n", flush=True)
    text = "\n".join([*lines, ""])
    print(text)
    if arguments.out is not None:
        arguments.out.write_text(text, encoding="utf-8")
    return 1 if refused else 0


def rounds(seed: int) -> list[Instance]:
    """Return the rounds."""
    made = [generate(spec, jobs=jobs, nodes=nodes, gpus=gpus, seed=seed) for spec, jobs, nodes, gpus in SHAPES]
    return [*made, read_instance(OPENB)]


def in_parts(parts: int, by: str, arguments: argparse.Namespace) -> Callable[[Instance], Plan]:
    """Return what solves a round in parts."""
    return lambda instance: solve_in_parts(
        instance,
        parts=parts,
        by=by,  # type: ignore[arg-type]
        time_limit_s=arguments.time_limit,
        seed=arguments.seed,
    )


def run(instance: Instance, call: Callable[[Instance], Plan]) -> tuple[Plan, float, list[str]]:
    """Return the plan, the seconds it took, and what is wrong with it."""
    began = time.monotonic()
    plan = call(instance)
    seconds = time.monotonic() - began
    return plan, seconds, [violation.message for violation in violations(instance, plan)] + audit(instance, plan)


def gap(plan: Plan, bound: int) -> str:
    """Return the gap of value for people."""
    value = plan.levels[0].objective
    return f"{100 * (bound - value) / max(1, value):.3f} %"


if __name__ == "__main__":
    sys.exit(main())
