"""``python -m placeopt_papers``, in ``papers/`` of a clone: simulate the papers' settings, make the tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from placeopt import PlaceoptError, write_document
from placeopt_papers.one_at_a_time.protocol import OneAtATime
from placeopt_papers.results import RESULTS, Results, read_rows
from placeopt_papers.run import cells_of, policies_of, run_cells
from placeopt_papers.settings import INSTANCES, PAPERS, named, select, settings
from placeopt_papers.tables import block, everything, with_block

PAGE = Path(__file__).resolve().parents[1] / "README.md"


def main(words: Sequence[str] | None = None) -> int:
    """Run one of the commands; 3 is returned where the input is wrong."""
    parser = argparse.ArgumentParser(prog="python -m placeopt_papers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="papers, settings and the policies that are simulated in each")
    run = commands.add_parser("run", help="simulate what has no row yet")
    run.add_argument("names", nargs="*", metavar="NAME", help="papers or settings; all if left out")
    run.add_argument("--seeds", type=int, default=5, metavar="N", help="seeds 0 to N - 1 of drawn scenarios")
    run.add_argument("--jobs", type=int, default=1, metavar="N", help="simulations side by side")
    run.add_argument("--full", action="store_true", help="in the papers' full size where it is smaller by default")
    run.add_argument("--again", action="store_true", help="also what has a row of another commit")
    tables = commands.add_parser("tables", help="write the tables of README.md, or print all of them")
    tables.add_argument("--all", action="store_true", help="print every table")
    tables.add_argument(
        "--check", action="store_true", help="write nothing; 1 where README.md is not what the rows make"
    )
    for one in (run, tables):
        one.add_argument("--results", type=Path, default=RESULTS, metavar="FILE", help="rows as JSON lines")
    scenario = commands.add_parser("scenario", help="write the scenario of a setting, in full size")
    scenario.add_argument("name", metavar="NAME")
    scenario.add_argument("--seed", type=int, default=0, metavar="N")
    scenario.add_argument("--out", type=Path, required=True, metavar="FILE", help=".json or .json.gz")
    for one in (run, scenario):
        one.add_argument("--instances", type=Path, default=INSTANCES, metavar="DIR", help="stored instances and traces")
    asked = parser.parse_args(words)
    try:
        return COMMANDS[asked.command](asked)
    except KeyboardInterrupt:  # rows so far are in the file; the same command goes on from there
        return 130
    except (OSError, PlaceoptError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 3


def _list(asked: argparse.Namespace) -> int:
    del asked
    for setting in settings().values():
        print(f"{PAPERS[setting.paper]}: {setting.name}: {setting.title} [{', '.join(policies_of(setting))}]")
    return 0


def _run(asked: argparse.Namespace) -> int:
    cells = cells_of(select(asked.names), range(asked.seeds), full=asked.full)
    run_cells(cells, asked.results, again=asked.again, jobs=asked.jobs, instances=asked.instances)
    return 0


def _tables(asked: argparse.Namespace) -> int:
    results = Results(row for cell, row in read_rows(asked.results).items() if not cell.full)
    if asked.all:
        print(everything(results))
        return 0
    before = PAGE.read_text(encoding="utf-8")
    after = with_block(before, block(results))
    if not asked.check:
        PAGE.write_text(after, encoding="utf-8")
    return int(asked.check and after != before)


def _scenario(asked: argparse.Namespace) -> int:
    setting = named(asked.name)
    made = setting.make(asked.seed, full=True, instances=asked.instances)
    if isinstance(made, OneAtATime):
        print(f"error: {setting.name} is played one job at a time and is no scenario", file=sys.stderr)
        return 3
    write_document(asked.out, made)
    print(f"{asked.out}: {made.name}, {len(made.arrivals):,} jobs on {len(made.cluster.nodes):,} nodes")
    return 0


COMMANDS = {"list": _list, "run": _run, "tables": _tables, "scenario": _scenario}

if __name__ == "__main__":
    sys.exit(main())
