"""
The README of each system's room: every mechanism of the paper, with its line of code, its switch and its test.

``python tools/mechanisms.py`` writes them from the room's ``mechanisms.csv``; ``--check`` writes nothing, and fails
where one is not current, or a row names what is not there. Run it whenever a mechanism moves.
"""

import csv
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ROOT / "src" / "placeopt" / "systems"
PACKAGE = ROOT / "src" / "placeopt"


def line_of(path: Path, symbol: str) -> int:
    """Return the line that defines a symbol; raises ``ValueError`` if there is none."""
    pattern = re.compile(rf"^\s*(?:class|def) {re.escape(symbol)}\b|^{re.escape(symbol)}\b")
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if pattern.match(line):
            return number
    raise ValueError(f"{path.relative_to(ROOT)}: no {symbol}")


def link(room: Path, place: str, base: Path) -> str:
    """Return a place, ``path:symbol`` or ``path:``, as a link to its line; raises ``ValueError`` if it is not there."""
    name, _, symbol = place.partition(":")
    path = base / name
    if not path.exists():
        raise ValueError(f"{room.name}: no {name}")
    anchor, shown = ("", path.name) if not symbol else (f"#L{line_of(path, symbol)}", symbol)
    return f"[{shown}]({os.path.relpath(path, room)}{anchor})"


def page(room: Path) -> str:
    """Return the README of a room."""
    source = (room / "__init__.py").read_text(encoding="utf-8")
    title, _, about = source.split('"""')[1].partition(": ")
    paper = re.search(r"paper=\s*((?:\"[^\"]*\"\s*)+)", source)
    citation = "".join(re.findall(r'"([^"]*)"', paper[1])) if paper else ""
    with (room / "mechanisms.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    head = [
        "section",
        "mechanism",
        "how we read it",
        "code",
        "in a round",
        "in a simulation",
        "live",
        "counted as",
        "test",
    ]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for row in rows:
        code, test = link(room, row["code"], PACKAGE), link(room, row["test"], ROOT)
        cells = [row["section"], row["mechanism"], row["reading"], code]
        counted = f"`{row['counted']}`" if row["counted"] else "-"
        lines.append(f"| {' | '.join([*cells, row['round'], row['simulated'], row['live'], counted, test])} |")
    intro = (
        f"# {title}\n\n{about[0].upper()}{about[1:]}\n\n*{citation}.* [How to use it](../../../../docs/systems.md)."
        "\n\nWritten by `tools/mechanisms.py` from [mechanisms.csv](mechanisms.csv).\n\n"
    )
    return intro + "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Write the pages, or tell which are not current."""
    stale = []
    for path in sorted(ROOMS.glob("*/mechanisms.csv")):
        readme, text = path.parent / "README.md", page(path.parent)
        if readme.exists() and readme.read_text(encoding="utf-8") == text:
            continue
        stale.append(str(readme.relative_to(ROOT)))
        if "--check" not in arguments:
            readme.write_text(text, encoding="utf-8")
    print("\n".join(stale) or "all current")
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
