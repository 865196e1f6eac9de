"""
Which heuristic gives the best first plan: ``python bench/portfolio.py [--limits S ...] [--out FILE.md]``.

Every round is solved by ``auto`` with the portfolio (score-greedy, DRB, SWAF) and without its alternatives under each
limit, after a solve that warms both up, in the order with, without, without, with; means of two. A row shows the best
value after each heuristic of the portfolio, as the plan states it, the heuristic whose plan went on, and how value or
cost at the end differ with and without. Where no alternative runs, both are the same and run once. Rounds are those of
``instances/*.test`` and generated families: ``elastic`` from few to many jobs for each GPU, ``gangs`` and ``cubemesh``.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from placeopt import Engine, Instance, Plan, read_instance
from placeopt.environment import usable_cores, versions
from placeopt.generators import generate
from placeopt.solving.methods import METHODS
from placeopt.solving.stages.portfolio import Alternative

LIMITS_S = (0.1, 0.5, 2.0)
ROOT = Path(__file__).parents[1] / "instances"
LISTS = ("openb", "generated", "hard", "real", "hand")
FAMILIES = (
    *(("elastic", jobs, 8, 8, seed) for jobs in (50, 100, 200, 400, 1000) for seed in (10, 11, 12)),
    *(("elastic", jobs, 100, 8, seed) for jobs in (1000, 3000, 10_000) for seed in (10, 11)),
    *(("gangs", 200, 100, 8, seed) for seed in (10, 11)),
    *(("gangs", 1000, 1000, 8, seed) for seed in (10,)),
    *(("cubemesh", 60, 10, 8, seed) for seed in (10, 11)),
    *(("cubemesh", 400, 100, 8, seed) for seed in (10, 11)),
)
HEURISTICS = ("heuristic", "drb", "swaf")
SHOWN = {"heuristic": "score", "drb": "DRB", "swaf": "SWAF"}


def rounds(lists: tuple[str, ...]) -> Iterator[Instance]:
    """Yield the stored rounds, then the generated ones."""
    for name in lists:
        for line in (ROOT / f"{name}.test").read_text(encoding="utf-8").split():
            yield read_instance(ROOT / line)
    for spec, jobs, nodes, gpus, seed in FAMILIES:
        yield generate(spec, jobs=jobs, nodes=nodes, gpus=gpus, seed=seed)


def winner(plan: Plan) -> str:
    """Return the heuristic whose plan went on."""
    better = [stage.name for stage in plan.stages if stage.name in HEURISTICS and stage.outcome == "improved"]
    return SHOWN[better[-1]] if better else "none"


def levels(plan: Plan) -> tuple[int, int]:
    """Return value and cost, 0 without costs."""
    return plan.levels[0].objective, plan.levels[1].objective if len(plan.levels) > 1 else 0


def compared(new: list[tuple[int, int]], old: list[tuple[int, int]]) -> str:
    """Return how the mean of the first level that differs does, in per cent."""
    for level, (name, sign) in enumerate((("value", 1), ("cost", -1))):
        ours, theirs = (sum(pair[level] for pair in pairs) for pairs in (new, old))
        if ours != theirs:
            better = "better" if sign * (ours - theirs) > 0 else "worse"
            return f"{name} {100 * (ours - theirs) / max(abs(theirs), 1):+.2f} % ({better})"
    return "equal"


def main() -> None:
    """Run all rounds, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--limits", type=float, nargs="+", default=LIMITS_S)
    parser.add_argument("--lists", nargs="*", default=LISTS)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    auto = METHODS["auto"]
    METHODS["auto-alone"] = replace(auto, stages=tuple(s for s in auto.stages if not isinstance(s, Alternative)))
    lines = [
        "| round | limit s | first plans | first | end, against without the portfolio |",
        "|---|---|---|---|---|",
    ]
    won: Counter[tuple[float, str]] = Counter()
    ends: Counter[tuple[float, str]] = Counter()
    with Engine() as engine:
        for instance in rounds(tuple(arguments.lists)):
            engine.solve(instance.model_copy(), time_limit_s=0.1)
            for limit in arguments.limits:
                plans = [engine.solve(instance.model_copy(), time_limit_s=limit)]
                ran = {s.name: s.objective for s in plans[0].stages if s.name in HEURISTICS and s.outcome != "skipped"}
                first, end = winner(plans[0]), "the same"
                if len(ran) > 1:
                    plans += [
                        engine.solve(instance.model_copy(), method=method, time_limit_s=limit)
                        for method in ("auto-alone", "auto-alone", "auto")
                    ]
                    new, old = ([levels(plans[i]) for i in pair] for pair in ((0, 3), (1, 2)))
                    end = compared(new, old)
                    won[limit, first] += 1
                    ends[limit, end.rpartition("(")[2].rstrip(")")] += 1
                shown = ", ".join(f"{SHOWN[name]} {value:,}" for name, value in ran.items())
                lines.append(f"| {instance.name} | {limit:g} | {shown} | {first} | {end} |")
                print(lines[-1], flush=True)
    lines += [
        "",
        "| limit s | rounds with a choice | score | DRB | SWAF | end better | equal | worse |",
        "|---|" + "---|" * 7,
    ]
    for limit in arguments.limits:
        wins = [won[limit, name] for name in SHOWN.values()]
        lines.append(
            f"| {limit:g} | {sum(wins)} | {wins[0]} | {wins[1]} | {wins[2]} | {ends[limit, 'better']} "
            f"| {ends[limit, 'equal']} | {ends[limit, 'worse']} |"
        )
        print(lines[-1])
    if arguments.out is not None:
        known = ", ".join(f"{name} {version}" for name, version in versions().items())
        head = [
            "# The portfolio of heuristics in `auto`",
            "",
            f"`python bench/portfolio.py --limits {' '.join(f'{limit:g}' for limit in arguments.limits)}`, "
            f"{usable_cores()} cores, Python {platform.python_version()}, {known}; load of the machine at the end "
            f"{os.getloadavg()[2]:.1f}. First plans: the best value after each heuristic.",
            "",
        ]
        arguments.out.write_text("\n".join([*head, *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
