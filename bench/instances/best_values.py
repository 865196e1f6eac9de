"""
Solve the stored instances and improve ``instances/best.solu``; values only ever get better.

    python bench/instances/best_values.py --time-limit 60 instances/tiny.test instances/generated.test

A value is called optimal only where the bound meets the value of a plan that the referee and the audit accepted
(``placeopt.solve`` returns no other).
"""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path

from placeopt import Engine, PlaceoptError, read_instance
from placeopt.benchmark.sets import read_sets
from placeopt.benchmark.solu import Known, read_solu, write_solu


def main() -> None:
    """Solve every instance of the given lists once per method and write what is better."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lists", nargs="+", type=Path, help=".test files")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds per instance and method")
    parser.add_argument("--methods", default="auto", help="comma-separated")
    parser.add_argument("--solu", type=Path, default=Path("instances/best.solu"))
    args = parser.parse_args()
    known = read_solu(args.solu)
    with Engine() as engine:
        for path in dict.fromkeys(p for file in args.lists for p in _instances(file)):
            instance = read_instance(path)
            for method in args.methods.split(","):
                before = known.get(instance.name, Known())
                if before.optimal:
                    continue
                try:
                    plan = engine.solve(instance, method=method, time_limit_s=args.time_limit)
                except PlaceoptError as error:
                    print(f"{instance.name:32} {method:14} {error}")
                    continue
                level = plan.levels[0]
                known = read_solu(args.solu)  # another run may have written meanwhile
                known[instance.name] = known.get(instance.name, Known()).improved(
                    level.objective, level.bound, by=f"{method}, {args.time_limit:g} s, {date.today()}"
                )
                print(f"{instance.name:32} {method:14} value {level.objective} bound {level.bound}", flush=True)
                write_solu(args.solu, known)


def _instances(file: Path) -> list[Path]:
    return [item.there() for item in read_sets([str(file)], file.parent) if item.kind == "placement"]


if __name__ == "__main__":
    main()
