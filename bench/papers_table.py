"""
Makes bench/papers.md and the table in bench/README.md from stored rows: ``python bench/papers_table.py``.

With ``--rows DIR,...`` (results of ``placeopt bench papers --figures --out DIR``) it stores the rows first, in
bench/papers_rows.jsonl. With ``--check`` it writes nothing, and ends with 1 where a page is not what the rows make.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from placeopt_papers.stored import headline_block, papers_page, read_stored, store_rows, with_block

BENCH = Path(__file__).parent
ROWS, PAGE, README = BENCH / "papers_rows.jsonl", BENCH / "papers.md", BENCH / "README.md"


def pages() -> dict[Path, str]:
    """Return both pages as the stored rows make them."""
    starts, rows = read_stored(ROWS)
    return {PAGE: papers_page(starts, rows), README: with_block(README.read_text(), headline_block(rows))}


def main() -> int:
    """Store, make, or check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", help="results folders to store the rows of; of a case the last one counts")
    parser.add_argument("--check", action="store_true", help="write nothing; 1 where a page is stale")
    arguments = parser.parse_args()
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
