"""
Does a race of HiGHS and CP-SAT beat either alone on the same cores?

    python bench/race.py --out bench/race.md

Every round is solved by three methods that differ in the exact stage only: HiGHS and CP-SAT with all threads, and both
in a race with half of them each (CP-SAT two at least). A plan is better if its value is higher, or equal and its cost
lower. Methods take turns, so that other work on the machine hits all of them. Exit code 1 if a plan fails referee or
audit.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from placeopt import Engine, Instance, Plan, audit, generate, read_instance, violations
from placeopt.environment import versions

INSTANCES = Path(__file__).resolve().parents[1] / "instances"
STORED = (
    "openb/openb-first-100.json.gz",
    "generated/uniform-50x16x8-s1.json.gz",
    "generated/uniform-50x16x8-s2.json.gz",
    "generated/varied-50x16x4-s1.json.gz",
    "generated/gangs-20x16x4-s1.json.gz",
    "generated/gangs-20x16x4-s2.json.gz",
    "generated/cubemesh-20x4x8-s1.json.gz",
    "generated/fractions-60x8x4-s2.json.gz",
)
GENERATED = (("cubemesh", 20, 10, 8, 0), ("gangs", 30, 10, 8, 7), ("uniform", 30, 10, 8, 7), ("varied", 30, 10, 4, 7))
METHODS = {"counts": "HiGHS", "counts-cpsat": "CP-SAT", "auto": "race"}


@dataclass(frozen=True)
class Run:
    """What one call came to: value and cost of the plan, the gap of the first open level, and its bound."""

    value: int
    cost: int
    gap: float
    bounds: tuple[float, float]
    """Of value and cost, the lower the better; infinite where there is none."""

    @property
    def plan(self) -> tuple[int, int]:
        """The higher the better."""
        return self.value, -self.cost


def main() -> int:
    """Run everything and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limits", nargs="+", type=float, default=(1.0, 3.0, 10.0), metavar="S")
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1), help="of the solvers")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, help="write the tables here as well")
    arguments = parser.parse_args()
    runs: dict[tuple[str, float, int, str], Run] = {}
    faults: list[str] = []
    names: dict[str, None] = {}
    with Engine() as engine:
        for instance in rounds():
            names[instance.name] = None
            engine.solve(instance, time_limit_s=0.5)  # processes start, solvers load
            for limit in arguments.limits:
                for seed in arguments.seeds:
                    for method in METHODS:
                        plan = engine.solve(
                            instance, method=method, time_limit_s=limit, threads=arguments.threads, seed=seed
                        )
                        wrong = [v.message for v in violations(instance, plan)] + audit(instance, plan)
                        faults += [f"- {instance.name}, {method}, {limit:g} s: {what}" for what in wrong]
                        runs[instance.name, limit, seed, method] = run = summary(plan)
                        print(f"{instance.name:24} {limit:4g} s seed {seed} {METHODS[method]:7} {run}", flush=True)
    text = report(list(names), runs, faults, arguments)
    print(text)
    if arguments.out is not None:
        arguments.out.write_text(text, encoding="utf-8")
    return 1 if faults else 0


def rounds() -> Iterator[Instance]:
    """Yield the stored rounds, then the generated ones."""
    for path in STORED:
        yield read_instance(INSTANCES / path)
    for spec, jobs, nodes, gpus, seed in GENERATED:
        yield generate(spec, jobs=jobs, nodes=nodes, gpus=gpus, seed=seed)


def summary(plan: Plan) -> Run:
    """Read off what is compared."""
    bounds = [plan.levels[0].bound, -plan.levels[1].bound if len(plan.levels) > 1 and plan.levels[1].bound else None]
    value, cost = (float("inf") if bound is None else float(bound) for bound in bounds)
    objective = plan.levels[1].objective if len(plan.levels) > 1 else 0
    return Run(plan.levels[0].objective, objective, plan.gap if plan.gap is not None else float("inf"), (value, cost))


def report(
    names: list[str],
    runs: dict[tuple[str, float, int, str], Run],
    faults: list[str],
    arguments: argparse.Namespace,
) -> str:
    """Return the tables as Markdown."""
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    limits, seeds = " ".join(f"{limit:g}" for limit in arguments.limits), " ".join(map(str, arguments.seeds))
    lines = [
        "# HiGHS, CP-SAT and both in a race",
        "",
        f"`python bench/race.py --limits {limits} --seeds {seeds} --threads {arguments.threads}`. {len(names)} rounds, "
        f"Python {platform.python_version()}, {known}.",
        "",
        "## The race against each alone",
        "",
        "Pairs of runs of one round, limit and seed. Plan: value, then cost; bound: of value, then of cost.",
        "",
        "| limit | against | plan better | equal | worse | bound better | equal | worse | proven: race | alone |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for limit in arguments.limits:
        for method in ("counts", "counts-cpsat"):
            pairs = [
                (runs[name, limit, seed, "auto"], runs[name, limit, seed, method])
                for name in names
                for seed in arguments.seeds
            ]
            plans = _compared([(race.plan, alone.plan) for race, alone in pairs])
            bounds = _compared([(alone.bounds, race.bounds) for race, alone in pairs])
            proven = [sum(run.gap == 0 for run in side) for side in zip(*pairs, strict=True)]
            cells = [f"{limit:g} s", METHODS[method], *plans, *bounds, *proven]
            lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += [
        "",
        "## Every round",
        "",
        f"Value, cost and gap of the first level that is not proven; solver seed {arguments.seeds[0]}.",
        "",
        f"| round | limit | {' | '.join(METHODS.values())} |",
        "|---" * (2 + len(METHODS)) + "|",
    ]
    for name in names:
        for limit in arguments.limits:
            cells = [_cell(runs[name, limit, arguments.seeds[0], method]) for method in METHODS]
            lines.append(f"| {name} | {limit:g} s | {' | '.join(cells)} |")
    lines += ["", f"{len(runs)} runs, {len(faults)} faults.", *faults, ""]
    return "\n".join(lines)


def _compared(pairs: list[tuple[tuple[float, float], tuple[float, float]]]) -> tuple[int, int, int]:
    """Count where the first of a pair is larger, equal, smaller."""
    return sum(a > b for a, b in pairs), sum(a == b for a, b in pairs), sum(a < b for a, b in pairs)


def _cell(run: Run) -> str:
    gap = "-" if run.gap == float("inf") else f"{100 * run.gap:.2f} %"
    return f"{run.value:,}, {run.cost / 1e6:,.2f} M, {gap}"


if __name__ == "__main__":
    sys.exit(main())
