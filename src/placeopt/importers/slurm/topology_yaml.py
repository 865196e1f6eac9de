"""The part of YAML that Slurm's ``topology.yaml`` uses: lists and mappings by indentation, with texts as values."""

from __future__ import annotations

import re
from typing import Any

MAX_DEPTH = 16
_PAIR = re.compile(r"([A-Za-z_]\w*)\s*:(?:\s+(.*))?\Z")
_ITEM = re.compile(r"-(\s+|\Z)")


def parse_yaml(text: str) -> Any:
    """Return lists, mappings and texts, numbers too as texts; raises `ValueError` for anything else of YAML."""
    kept = [line.partition("#")[0].rstrip() for line in text.split("\n")]
    lines = [(len(line) - len(line.lstrip(" ")), line.strip()) for line in kept if line not in ("", "---")]
    if not lines:
        raise ValueError("empty")
    value, at = _value(lines, 0, 0)
    if at < len(lines):
        raise ValueError(f"{lines[at][1][:60]!r} is indented otherwise than what is before it")
    return value


def _value(lines: list[tuple[int, str]], at: int, depth: int) -> tuple[Any, int]:
    """Return the value that begins at a line, and the number of the line behind it."""
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    indent, text = lines[at]
    if _ITEM.match(text):
        items = []
        while at < len(lines) and lines[at][0] == indent and (mark := _ITEM.match(lines[at][1])):
            if mark.end() < len(lines[at][1]):
                lines[at] = (indent + mark.end(), lines[at][1][mark.end() :])
            elif (at := at + 1) == len(lines) or lines[at][0] <= indent:
                raise ValueError("'-' without a value behind it")
            item, at = _value(lines, at, depth + 1)
            items.append(item)
        return items, at
    if not _PAIR.match(text):
        return _text(text), at + 1
    mapping: dict[str, Any] = {}
    while at < len(lines) and lines[at][0] == indent and not _ITEM.match(lines[at][1]):
        pair = _PAIR.match(lines[at][1])
        if pair is None or pair[1] in mapping:
            raise ValueError(f"{lines[at][1][:60]!r}: expected another 'key: value'")
        at += 1
        mapping[pair[1]] = _text(pair[2] or "")
        if not pair[2] and at < len(lines) and lines[at][0] >= indent + (not _ITEM.match(lines[at][1])):
            mapping[pair[1]], at = _value(lines, at, depth + 1)
    return mapping, at


def _text(text: str) -> str | list[str]:
    if text[:1] in ("{", "&", "*", "!", "|", ">"):
        raise ValueError(f"{text[:60]!r}: expected a text, or a list such as [4, 16]")
    if text.startswith("[") and text.endswith("]"):
        return [word.strip().strip("'\"") for word in text[1:-1].split(",")]
    return text.strip("'\"")
