"""
Measure: ``python bench/run.py [SPEC ...] [--rounds PATTERN] [--smoke] [--out FILE]``.

Without a name it lists the specs and their questions. Rows are appended to ``bench/results/SPEC.jsonl`` as they come; a
round that fails is a row, too, and makes the exit code 1. ``baseline`` stands for several specs, ``all`` for every one.

``--smoke`` measures the smallest round of each and keeps nothing. ``--page`` writes ``bench/README.md`` from the
results. ``--against FILE`` compares the latest results with the rows of a file, such as ``bench/baseline.jsonl``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

from compare import compared
from page import page
from spec import FAILED, BenchSpec, Row, append, measure, read_rows
from specs import NAMES, SETS, read_spec

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE / "README.md"
BASELINE = HERE / "baseline.jsonl"


def main() -> int:
    """Measure what is asked for; return 1 if a round failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", nargs="*", metavar="SPEC", help=f"what to measure: {', '.join(SETS)} or a spec's name")
    parser.add_argument("--rounds", default="*", help="pattern of the names of rounds")
    parser.add_argument("--smoke", action="store_true", help="the smallest round of each spec, and keep nothing")
    parser.add_argument("--out", type=Path, help="append all rows to this file instead of bench/results/SPEC.jsonl")
    parser.add_argument("--against", type=Path, help="compare the results with the rows of this file")
    parser.add_argument("--page", action="store_true", help="write bench/README.md from the results")
    options = parser.parse_args()
    if unknown := sorted({*options.specs} - {*NAMES, *SETS}):
        parser.error(f"{unknown[0]!r}: expected one of {', '.join((*SETS, *NAMES))}")
    specs = [read_spec(name) for name in named(options.specs)]
    if not specs and not options.page:
        print(*(f"{name:12} {read_spec(name).question}" for name in NAMES), sep="\n")
    failed = False
    for spec in specs if options.against is None else ():
        names = [name for name in spec.rounds if fnmatch(name, options.rounds)]
        for row in measure(spec, names[:1] if options.smoke else names):
            print(line(spec, row), flush=True)
            failed |= FAILED in row
            if not options.smoke:
                append(options.out or RESULTS / f"{spec.name}.jsonl", row)
    if options.against is not None:
        ours = [row for spec in specs for row in read_rows(options.out or RESULTS / f"{spec.name}.jsonl")]
        print("\n".join(compared(read_rows(options.against), ours)))
    if options.page:
        PAGE.write_text(page(stored()), encoding="utf-8")
    return int(failed)


def named(words: Iterable[str]) -> list[str]:
    """Return the names of specs that some words stand for, each once."""
    return list(dict.fromkeys(name for word in words for name in SETS.get(word, (word,))))


def stored() -> list[Row]:
    """Return the rows of the baseline, then those of every file of results."""
    return [row for path in (BASELINE, *sorted(RESULTS.glob("*.jsonl"))) for row in read_rows(path)]


def line(spec: BenchSpec, row: Row) -> str:
    """Return a row for the terminal."""
    columns = ("round", FAILED) if FAILED in row else spec.columns
    return f"{spec.name}: " + ", ".join(
        f"{column} {row[column]}" for column in columns if row.get(column) is not None
    ).removeprefix("round ")


if __name__ == "__main__":
    sys.exit(main())
