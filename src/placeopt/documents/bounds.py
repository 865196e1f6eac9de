"""
Limits on the width and depth of a text, checked before a parser allocates memory for it.

A parser needs some 100 bytes for every ``{},`` and refuses a list that is too long only after that. Counting commas
takes a millisecond per 10 MB, and a text with few of them passes. In others, brackets and commas outside of strings are
followed chunk by chunk, with operations on whole chunks, at about the speed of the parser itself.
"""

import json
import re
from collections.abc import KeysView
from typing import Any

from placeopt.errors import BadInput
from placeopt.model.base import MAX_JOBS

MAX_ENTRIES = MAX_JOBS + 500_000
"""Entries of one list or object: more than jobs of a round, so that the model refuses what is a little too much."""
MAX_VALUES = 100_000_000
"""Values of one document; a round of 2,000,000 jobs has 25,000,000 to 55,000,000, by its options."""
MAX_DEPTH = 100
"""Lists and objects inside one another; documents of placeopt have 12, those of resource managers some 20."""
MAX_LINES = 5_000_000
"""Lines of a text that is read line by line."""
MAX_LINE = 1 << 20
"""Characters of one line of a table."""
CHUNK = 1 << 20

_INNERMOST = re.compile(rb"[\[{],*+[\]}]")
_NO_STRUCTURE = bytes(set(range(256)) - set(b"[]{},"))
_PIECES = re.compile(rb",+|.")


def check_bounds(document: bytes | str, source: str) -> None:
    """
    Refuse a document that is too wide or too deep to be parsed, by the limits above.

    Text that is not JSON is left to the parser: it stops there, so what comes after is not counted. Depth is looked at
    in documents of more than ``MAX_ENTRIES`` commas.
    """
    signs = (b",", b"[", b"{") if isinstance(document, bytes) else (",", "[", "{")
    commas, lists, objects = (document.count(sign) for sign in signs)  # type: ignore[arg-type]  # of one kind
    if max(commas, lists + objects) < MAX_ENTRIES:
        return
    structure = _Structure(source)
    for start in range(0, len(document), CHUNK):
        chunk = document[start : start + CHUNK]
        if not structure.take(chunk.encode(errors="surrogatepass") if isinstance(chunk, str) else chunk):
            return


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


def top_keys(document: bytes, source: str) -> KeysView[str] | None:
    """Return the keys at the top of a JSON document; none if it is another value, None if it is not JSON."""
    check_bounds(document, source)
    try:
        top = json.loads(document)
    except (ValueError, RecursionError):
        return None
    return (top if isinstance(top, dict) else {}).keys()


class _Structure:
    """The open lists and objects of a document that is read in chunks."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._open: list[int] = []  # the commas so far in each list and object that is open
        self._backslash = b""  # at the end of the last chunk, one that is not itself escaped
        self._in_text = False
        self._values = 0

    def take(self, chunk: bytes) -> bool:
        """Process the next bytes; return False if more is closed than opened, where every parser stops."""
        outside = self._outside_texts(chunk).translate(None, _NO_STRUCTURE)
        self._values += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        if self._values > MAX_VALUES:
            raise self._refused(f"more than {MAX_VALUES:,} values")
        return self._follow(self._reduced(outside))

    def _outside_texts(self, chunk: bytes) -> bytes:
        chunk = self._backslash + chunk
        end = len(chunk.rstrip(b"\\"))
        chunk, self._backslash = chunk[:end], b"\\" * ((len(chunk) - end) % 2)
        if b"\\" in chunk:
            chunk = chunk.replace(rb"\\", b"").replace(rb"\"", b"")
        pieces = chunk.split(b'"')
        outside = b"".join(pieces[1::2] if self._in_text else pieces[::2])
        self._in_text ^= len(pieces) % 2 == 0
        return outside

    def _reduced(self, structure: bytes) -> bytes:
        """Remove what opens and closes within the chunk, innermost first: it is shorter than any limit."""
        structure = structure.replace(b"{}", b"").replace(b"[]", b"")  # most of them, much faster
        for _ in range(MAX_DEPTH + 1):
            reduced = _INNERMOST.sub(b"", structure)
            if len(reduced) == len(structure):
                return reduced
            structure = reduced
        raise self._too_deep()

    def _follow(self, structure: bytes) -> bool:
        """Process what stays open, and what closes earlier openings."""
        for piece in _PIECES.findall(structure):
            if piece in b"[{":
                self._open.append(0)
                if len(self._open) > MAX_DEPTH:
                    raise self._too_deep()
            elif not self._open:
                return False
            elif piece in b"]}":
                self._open.pop()
            else:
                self._open[-1] += len(piece)
                if self._open[-1] >= MAX_ENTRIES:
                    raise self._refused(f"a list of more than {MAX_ENTRIES:,} entries")
        return True

    def _too_deep(self) -> BadInput:
        return self._refused(f"nested too deeply, in more than {MAX_DEPTH} levels")

    def _refused(self, what: str) -> BadInput:
        return BadInput(f"{self._source}: {what}; no document of placeopt is so large, so it is not read")
