"""Limits on the size of a text, checked before a parser allocates memory for it: some 70 bytes for each ``{},``."""

import json
from typing import Any

from placeopt.errors import BadInput

MAX_VALUES = 60_000_000
"""Commas and opening brackets of one document; a round of 2,000,000 jobs has 12,000,000 to 55,000,000."""
MAX_LINES = 5_000_000
"""Lines of a text that is read line by line."""
MAX_LINE = 1 << 20
"""Characters of one line of a table."""


def check_bounds(document: bytes | str, source: str) -> None:
    """Refuse a document of more than ``MAX_VALUES`` values: by its signs, those inside of texts counted with them."""
    if isinstance(document, str):
        values = document.count(",") + document.count("[") + document.count("{")
    else:
        values = document.count(b",") + document.count(b"[") + document.count(b"{")
    if values > MAX_VALUES:
        raise BadInput(f"{source}: more than {MAX_VALUES:,} values; no document of placeopt is so large")


def check_lines(text: bytes | str, source: str, *, longest: int | None = None) -> None:
    """Refuse a text of more than ``MAX_LINES`` lines, or of one with ``longest`` characters or more."""
    lines = text.count(b"\n") if isinstance(text, bytes) else text.count("\n")
    if lines > MAX_LINES:
        raise BadInput(f"{source}: {lines:,} lines, expected at most {MAX_LINES:,}")
    begin = 0
    while longest is not None and len(text) - begin > longest:
        within = (begin, begin + longest)
        end = text.rfind(b"\n", *within) if isinstance(text, bytes) else text.rfind("\n", *within)
        if end < 0:
            raise BadInput(f"{source}: a line of {longest:,} characters or more, expected shorter ones")
        begin = end + 1


def parse_json(document: bytes | str, source: str) -> Any:
    """Return the value of a JSON text."""
    check_bounds(document, source)
    try:
        return json.loads(document)
    except (ValueError, RecursionError) as error:
        line = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise BadInput(f"{source}{line}: not JSON ({str(error)[:80]}); is the file complete?") from None
