"""Reading one file of any of the formats: bounded, decoded once, and named in every complaint."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError, TreeBuilder

from placeopt.documents.files import as_text, label, read_bytes
from placeopt.errors import BadInput, Unsupported

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MAX_BYTES = 64 * 2**20
"""Largest file, after unpacking."""

MAX_XML_BYTES = 16 * 2**20
MAX_XML_ELEMENTS = 500_000
MAX_XML_DEPTH = 200
"""The largest machines known have some 20,000 elements, 30 deep."""

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class SourceFile:
    """One file: its name as the user gave it, and its bytes (unpacked)."""

    name: str
    data: bytes

    @cached_property
    def text(self) -> str:
        """The file as text, without terminal colours; raises `BadInput` if it is not UTF-8, or has NUL bytes."""
        text = as_text(self.data, self.name, "the plain output of a tool")
        if "\0" in text:
            raise BadInput(f"{self.name}: has NUL bytes; expected the plain output of a tool, as UTF-8 text")
        return _ANSI.sub("", text)

    @cached_property
    def lines(self) -> list[str]:
        """The text's lines without white space around them; line ``n`` of the file is ``lines[n - 1]``."""
        return [line.strip() for line in self.text.split("\n")]

    def has(self, pattern: re.Pattern[str]) -> bool:
        """Return whether a line, without white space around it, begins with a pattern."""
        return any(map(pattern.match, self.lines))

    @property
    def begins(self) -> bytes:
        """The first character of the file that is not blank, ``<`` of XML; empty where there is none."""
        return self.data[:1000].removeprefix(b"\xef\xbb\xbf").lstrip()[:1]

    @cached_property
    def xml(self) -> Element:
        """The root element. DTDs are not fetched, entities are refused (lstopo writes a DOCTYPE, so it may stand)."""
        try:
            from defusedxml.ElementTree import DefusedXMLParser
        except ImportError as error:
            raise Unsupported(f"{self.name}: reading XML needs defusedxml; pip install 'placeopt[cli]'") from error
        if len(self.data) > MAX_XML_BYTES:
            raise BadInput(f"{self.name}: {len(self.data)} bytes of XML, at most {MAX_XML_BYTES} are read")
        parser = DefusedXMLParser(target=_BoundedBuilder(self.name), forbid_entities=True, forbid_external=True)
        try:
            parser.feed(self.data)
            root: Element = parser.close()
        except ParseError as error:
            line = error.position[0] if hasattr(error, "position") else 1
            raise BadInput(f"{self.name}, line {line}: not well-formed XML ({error}); is the file complete?") from error
        except (ValueError, LookupError) as error:
            raise BadInput(f"{self.name}: XML refused: {error}; expected a file without entities, as UTF-8") from error
        return root

    def bad(self, line: int, message: str) -> BadInput:
        """Return the error for a line (counted from 1) of this file."""
        return BadInput(f"{self.name}, line {line}: {message}")


class _BoundedBuilder(TreeBuilder):
    """Builds the tree, counting: a small file can hold millions of elements."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.count, self.depth = name, 0, 0

    def start(self, tag: str, attrs: dict[str, str], /) -> Element:
        self.count += 1
        self.depth += 1
        if self.count > MAX_XML_ELEMENTS or self.depth > MAX_XML_DEPTH:
            raise BadInput(
                f"{self.name}: more than {MAX_XML_ELEMENTS} elements or {MAX_XML_DEPTH} levels; no machine needs them"
            )
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> Element:
        self.depth -= 1
        return super().end(tag)


def read_source(path: str | Path) -> SourceFile:
    """Read a file, gzip or not, of at most ``MAX_BYTES``; ``-`` is standard input."""
    return SourceFile(label(str(path)), read_bytes(path, max_bytes=MAX_BYTES))
