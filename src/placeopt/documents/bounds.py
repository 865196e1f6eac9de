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
    signs: tuple[Any, ...] = (",", "[", "{") if isinstance(document, str) else (b",", b"[", b"{")
    values = sum(map(document.count, signs))
    if values > MAX_VALUES:
        raise BadInput(f"{source}: more than {MAX_VALUES:,} values; no document of placeopt is so large")


def check_lines(text: bytes | str, source: str, *, longest: int | None = None) -> None:
    """Refuse a text of more than ``MAX_LINES`` lines, or of one with ``longest`` characters or more."""
    end: Any = "\n" if isinstance(text, str) else b"\n"
    lines = text.count(end)
    if lines > MAX_LINES:
        raise BadInput(f"{source}: {lines:,} lines, expected at most {MAX_LINES:,}")
    begin = 0
    while longest is not None and len(text) - begin > longest:
        begin = text.rfind(end, begin, begin + longest) + 1
        if not begin:
            raise BadInput(f"{source}: a line of {longest:,} characters or more, expected shorter ones")


def parse_json(document: bytes | str, source: str) -> Any:
    """Return the value of a JSON text."""
    check_bounds(document, source)
    try:
        return json.loads(document)
    except (ValueError, RecursionError) as error:
        line = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise BadInput(f"{source}{line}: not JSON ({str(error)[:80]}); is the file complete?") from None
