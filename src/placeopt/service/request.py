"""A call with its arguments, as handlers take it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from placeopt.service.refused import Refused

Text = Mapping[str, str]
NO_TEXT: Text = {}


class Request(NamedTuple):
    """A call with its arguments."""

    body: Any = None
    path: Text = NO_TEXT
    query: Text = NO_TEXT
    key: str | None = None
    digest: bytes = b""


def whole_number(query: Text, name: str) -> int:
    """Return an argument behind the path, 0 without it; raises `Refused` with 400 if it is no whole number."""
    text = query.get(name, "0")
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Refused(400, f"{name}: {text!r}, expected a whole number", place=name)
    return int(text)
