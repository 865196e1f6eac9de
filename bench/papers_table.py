"""
Makes bench/papers.md and the table in bench/README.md from stored rows: ``python bench/papers_table.py``.

With ``--rows DIR,...`` (results of ``placeopt bench papers --figures --out DIR``) it stores the rows first, in
bench/papers_rows.jsonl. With ``--check`` it writes nothing, and ends with 1 where a page is not what the rows make.

``--other-code`` counts the rows that earlier code ran, and ends with 1 if there are any. ``--again`` runs the cheapest
of them of every policy and of every setting again. Where all have the stored values, that is recorded with their
names, and the other rows of that code count as rows of today's; where one has not, it is named, and the rows have to
be run anew.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from placeopt_papers.same_code import of_other_code, run_again, sample
from placeopt_papers.stored import (
    add_compared,
    headline_block,
    papers_page,
    read_compared,
    read_stored,
    store_rows,
    with_block,
)

BENCH = Path(__file__).parent
INSTANCES = BENCH.parent / "instances"
ROWS, PAGE, README = BENCH / "papers_rows.jsonl", BENCH / "papers.md", BENCH / "README.md"


def pages() -> dict[Path, str]:
    """Return both pages as the stored rows make them."""
    starts, rows = read_stored(ROWS)
    return {PAGE: papers_page(starts, rows), README: with_block(README.read_text(), headline_block(rows))}


def compare(again: bool) -> int:
    """Count the rows of other code, run a sample of them again if wanted, and return 1 where some are left."""
    rows = of_other_code(read_stored(ROWS)[1], read_compared(ROWS))
    same, changed = run_again(sample(rows), INSTANCES) if again else ([], [])
    for case in changed:
        print(f"{case.setting}, {case.policy}, seed {case.seed}: other values than stored")
    if same:
        add_compared(same, ROWS)
    left = of_other_code(rows, read_compared(ROWS))
    print(f"{len(left)} rows of other code")
    return int(bool(left))


def main() -> int:
    """Store, make, check, or compare with today's code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", help="results folders to store the rows of; of a case the last one counts")
    parser.add_argument("--check", action="store_true", help="write nothing; 1 where a page is stale")
    parser.add_argument("--other-code", action="store_true", help="count the rows that other code than today's ran")
    parser.add_argument("--again", action="store_true", help="run a sample of these again and compare")
    arguments = parser.parse_args()
    if arguments.other_code or arguments.again:
        return compare(arguments.again)
    if arguments.rows:
        print(store_rows([Path(folder) for folder in arguments.rows.split(",")], ROWS), "rows")
    stale = [path for path, text in pages().items() if path.read_text() != text]
    for path in stale:
        print(f"{path.name}: {'stale' if arguments.check else 'written'}")
        if not arguments.check:
            path.write_text(pages()[path])
    return int(arguments.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
