"""
The sizes between which each form is worth its time, measured: ``python bench/sizes.py [--write] [--out FILE.md]``.

Rounds of six kinds, each twice as large as the one before in jobs and nodes. Every round is solved with its exact stage
and without, and with fillings of whole nodes, or large neighbourhoods, before the exact stage. The exact stage has
helped where the round ends proven, or with a better plan or bound. ``--write`` stores the limits that follow where
``auto`` reads them: exact stages up to the largest model that any of them helped, fillings and neighbourhoods from the
size on from which the rounds end no later, or nearer, with them than without.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from unittest.mock import patch

from placeopt import Engine, Instance, Plan
from placeopt.environment import usable_cores, versions
from placeopt.generators import generate
from placeopt.solving import sizes

KINDS = (("uniform", 4), ("uniform", 8), ("varied", 4), ("gangs", 8), ("fractions", 4), ("cubemesh", 8))
FIRST, STEPS = (25, 8), 6
ANY = 10**9
COLUMNS = re.compile(r"(\d+) columns")
ROUND_TO = 1000


@dataclass(frozen=True)
class Row:
    """One round: its size, and how it ended with and without each form."""

    name: str
    product: int
    columns: int
    """Of the largest model that was solved; 0: none was built in time."""
    alone: Plan
    exact: Plan
    filled: Plan
    """Fillings first, then the exact stage."""
    searched: Plan
    """Large neighbourhoods first, then the exact stage."""

    @property
    def exact_helped(self) -> bool:
        """Whether the exact stage proved the round, or found a better plan or bound."""
        return self.columns > 0 and state(self.exact) < state(self.alone)

    @property
    def patterns_helped(self) -> bool:
        """Whether fillings first end nearer; at the same gap, no later."""
        return not_worse(self.filled, self.exact)

    @property
    def search_helped(self) -> bool:
        """The same of large neighbourhoods first."""
        return not_worse(self.searched, self.exact)


def main() -> int:
    """Measure, report, and store if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--time-limit", type=float, default=5.0)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=STEPS, help="sizes of each kind")
    parser.add_argument("--write", action="store_true", help="store the limits where auto reads them")
    parser.add_argument("--out", type=Path, help="write the table here as well")
    arguments = parser.parse_args()
    rows = []
    with Engine() as engine:
        for spec, gpus in KINDS:
            for step in range(arguments.steps):
                jobs, nodes = (first * 2**step for first in FIRST)
                for seed in range(arguments.seeds):
                    instance = generate(spec, jobs=jobs, nodes=nodes, gpus=gpus, seed=seed)
                    rows.append(measure(engine, instance, arguments.time_limit))
                    print(line(rows[-1]), flush=True)
    thresholds = limits(rows)
    text = report(rows, thresholds, arguments)
    print(text)
    if arguments.write:
        stored = Path(sizes.__file__).with_name(sizes.FILE)
        stored.write_text(json.dumps(asdict(thresholds), indent=2) + "\n", encoding="utf-8")
    if arguments.out is not None:
        arguments.out.write_text(text, encoding="utf-8")
    return 0


def measure(engine: Engine, instance: Instance, time_limit_s: float) -> Row:
    """Solve the round three ways, all limits lifted but the one that is asked about."""
    free = sizes.Sizes(
        exact_columns=ANY, exact_product={"assignment": ANY, "counts": ANY}, patterns_product=0, search_product=10**15
    )
    alone = solve(engine, instance, time_limit_s, replace(free, exact_product={"assignment": 0, "counts": 0}))
    exact = solve(engine, instance, time_limit_s, replace(free, patterns_product=10**15))
    filled = solve(engine, instance, time_limit_s, free)
    searched = solve(engine, instance, time_limit_s, replace(free, patterns_product=10**15, search_product=0))
    columns = [
        int(match[1])
        for stage in exact.stages
        if stage.name.startswith("counts") and (match := COLUMNS.search(stage.detail)) is not None
    ]
    product = len(instance.jobs) - len(instance.running)
    product *= sum(len(machine.gpus) * count for machine, count in machines(instance))
    return Row(instance.name, product, max(columns, default=0), alone, exact, filled, searched)


def machines(instance: Instance) -> list[tuple]:  # type: ignore[type-arg]
    """Pairs of a machine and the number of nodes that are of it."""
    of = [node.machine for node in instance.cluster.nodes]
    return [(machine, of.count(machine.id)) for machine in instance.cluster.machines]


def solve(engine: Engine, instance: Instance, time_limit_s: float, limits: sizes.Sizes) -> Plan:
    """Solve with other limits."""
    with patch("placeopt.solving.sizes.SIZES", limits):
        return engine.solve(instance, time_limit_s=time_limit_s)


def end(plan: Plan) -> tuple[float, ...]:
    """How far every level is from proven; unknown is farthest."""
    gaps = []
    for level in plan.levels:
        known = level.bound is not None
        gaps.append(abs(level.bound - level.objective) / max(1, abs(level.objective)) if known else float("inf"))
    return tuple(gaps)


def state(plan: Plan) -> tuple[float, ...]:
    """What the smaller is the better: all gaps, then the cost, which a bound may not tell apart."""
    return (*end(plan), plan.levels[-1].objective) if len(plan.levels) > 1 else end(plan)


def total(plan: Plan) -> float:
    """Seconds of the whole call."""
    return 0.0 if plan.seconds is None else plan.seconds.total


def limits(rows: list[Row]) -> sizes.Sizes:
    """Return the limits that follow from the rows."""
    helped = [row for row in rows if row.exact_helped]
    built = max((row.product for row in helped), default=0)
    known = sizes.read_sizes()
    return sizes.Sizes(
        exact_columns=rounded(max((row.columns for row in helped), default=0)),
        exact_product={**known.exact_product, "counts": rounded(built)},
        patterns_product=helps_from([(row.product, row.patterns_helped) for row in rows]),
        search_product=helps_from([(row.product, row.search_helped) for row in rows]),
    )


def helps_from(helped: list[tuple[int, bool]]) -> int:
    """Return the size from which on most rounds gain, of pairs of a size and whether that round gained."""
    start, best, balance = 10**15, 0, 0
    for product, gained in sorted(helped, reverse=True):
        balance += 1 if gained else -1
        if balance > best:
            start, best = rounded(product), balance
    return start


def not_worse(plan: Plan, than: Plan) -> bool:
    """Whether a plan is nearer to proven; if as near, no later."""
    return state(plan) < state(than) or (state(plan) == state(than) and total(plan) <= total(than))


def rounded(number: int) -> int:
    """Round up, so that the table does not pretend to know better."""
    return -(-number // ROUND_TO) * ROUND_TO


def line(row: Row) -> str:
    """Return the table's line for a round."""
    plans = (row.alone, row.exact, row.filled, row.searched)
    cells = [row.name, f"{row.product:,}", f"{row.columns:,}"]
    cells += [f"{told(plan)} {total(plan):.1f} s" for plan in plans]
    cells += ["yes" if helped else "no" for helped in (row.exact_helped, row.patterns_helped, row.search_helped)]
    return f"| {' | '.join(cells)} |"


def told(plan: Plan) -> str:
    """Return the gaps of both levels for people."""
    return " / ".join("open" if gap == float("inf") else f"{100 * gap:.3g} %" for gap in end(plan))


def report(rows: list[Row], thresholds: sizes.Sizes, arguments: argparse.Namespace) -> str:
    """Return the results as Markdown."""
    known = ", ".join(f"{package} {version}" for package, version in versions().items())
    lines = [
        "# From and up to which size each form helps",
        "",
        f"`python bench/sizes.py --time-limit {arguments.time_limit:g} --seeds {arguments.seeds} "
        f"--steps {arguments.steps}`, {usable_cores()} cores, Python {platform.python_version()}, {known}.",
        "",
        "Gap of value / of cost, and seconds of the call. The product is waiting jobs x GPUs, the columns those of the",
        "largest model of `counts`. Limits that follow, stored in `src/placeopt/solving/sizes.json`:",
        "",
        f"- exact stages: up to {thresholds.exact_columns:,} columns, models built up to a product of "
        f"{thresholds.exact_product['counts']:,};",
        f"- fillings of whole nodes before exact stages: from a product of {thresholds.patterns_product:,};",
        f"- large neighbourhoods before exact stages: from a product of {thresholds.search_product:,}.",
        "",
        "| round | product | columns | neither | exact | fillings, exact | search, exact "
        "| exact helps | fillings help | search helps |",
        "|---|---:|---:|---|---|---|---|---|---|---|",
        *(line(row) for row in rows),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
