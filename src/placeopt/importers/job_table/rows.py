"""Rows of a table, whatever the file: CSV with any separator, JSON lines, a JSON list, Parquet; gzip or not."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placeopt.documents.files import MAX_LINE, as_text, check_bounds, check_lines, label, read_bytes
from placeopt.errors import BadInput, Unsupported

SEPARATORS = (",", "|", "\t", ";")
PARQUET = b"PAR1"
LISTS = ("items", "jobs")
"""Keys under which one JSON object holds the rows: what kubectl and sacct print."""
Values = tuple[str, ...]
"""What stands in a cell: one text; none where it is empty; several where a path leads through a list."""
_ABSENT = frozenset({"", "nan", "null", "none", "n/a", "unknown", "unlimited", "partition_limit"})
_STEP = re.compile(r'"([^"]*)"|([^."]+)')


@dataclass(frozen=True)
class Rows:
    """
    Numbered rows, and how to get a column of one.

    ``rows``: number in the file from 1 (of CSV the line), and the row; None in place of a row that is none. ``column``:
    returns the function that gets the values of a column. ``lacking``: columns that may be absent, and are. Columns of
    JSON are paths, which a row has or has not; they are never lacking.
    """

    rows: Iterable[tuple[int, Any]]
    column: Callable[[str], Callable[[Any], Values]]
    lacking: frozenset[str] = frozenset()


def read_rows(path: str | Path, needed: Collection[str], optional: Collection[str] = ()) -> Rows:
    """
    Return the rows of a file with columns of these names; ``-`` is standard input.

    The first character tells JSON from CSV. The separator of a CSV file is the one of `SEPARATORS` at which its header
    has most of the names. Raises `BadInput` where the file cannot be read or lacks a needed column.
    """
    source, data = label(str(path)), read_bytes(path)
    if data.startswith(PARQUET):
        return _parquet(data, source, needed, optional)
    if data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"["):
        return Rows(_objects(data, source), _path)
    return _csv(data, source, needed, optional)


def _values(value: object) -> Values:
    """Return what a cell says, as text."""
    if isinstance(value, str):
        text = value.strip()
        return () if text.lower() in _ABSENT else (text,)
    if value is None or isinstance(value, bool | dict):
        return ()
    if isinstance(value, list | tuple):
        return tuple(text for one in value for text in _values(one))
    return _values(value.isoformat() if hasattr(value, "isoformat") else str(value))


def _csv(data: bytes, source: str, needed: Collection[str], optional: Collection[str]) -> Rows:
    text = as_text(data, source, "a CSV file")
    check_lines(text, source, longest=MAX_LINE)
    first, _, rest = text.replace("\r\n", "\n").rstrip("\n").partition("\n")
    headers = [[name.strip() for name in _fields(first, separator) or ()] for separator in SEPARATORS]
    names = {name: _plain_name(name) for name in (*needed, *optional)}
    header = max(headers, key=lambda header: len(set(header) & set(names.values())))
    if missing := [names[name] for name in needed if names[name] not in header]:
        raise BadInput(f"{source}:1: no column {', '.join(missing)}; the header is {first[:200]!r}")
    if repeated := next((name for name in names.values() if header.count(name) > 1), None):
        raise BadInput(f"{source}:1: column {repeated!r} appears twice, expected it once")
    separator = SEPARATORS[headers.index(header)]

    def rows() -> Iterator[tuple[int, list[str] | None]]:
        for number, line in enumerate(rest.split("\n"), 2):
            if line:
                fields = _fields(line, separator)
                yield number, fields if fields is not None and len(fields) == len(header) else None

    def getter(name: str) -> Callable[[Any], Values]:
        at = header.index(_plain_name(name))
        return lambda row: _values(row[at])

    return Rows(rows(), getter, frozenset(name for name in optional if names[name] not in header))


def _fields(line: str, separator: str) -> list[str] | None:
    """Return the fields of a line, parsed alone, so that an open quote swallows no other line; None: it has none."""
    if '"' not in line and "\r" not in line and "\0" not in line:
        return line.split(separator)
    try:
        return None if "\r" in line or "\0" in line else next(csv.reader([line], delimiter=separator, strict=True))
    except csv.Error:
        return None


def _plain_name(name: str) -> str:
    return name[1:-1] if len(name) > 1 and name[0] == name[-1] == '"' and name.count('"') == 2 else name


def _objects(data: bytes, source: str) -> Iterator[tuple[int, Any]]:
    """Yield the objects of a JSON list, of a list in one object, or of a text of objects one after another."""
    check_bounds(data, source)
    check_lines(data, source)
    text = as_text(data, source, "JSON")
    parse, at, number = json.JSONDecoder().raw_decode, _after_blanks(text, 0), 0
    while at < len(text):
        try:
            value, end = parse(text, at)
        except (ValueError, RecursionError):
            line = text.count("\n", 0, at) + 1
            raise BadInput(f"{source}, line {line}: not JSON from here on; is the file complete?") from None
        at = _after_blanks(text, end)
        if number == 0 and at == len(text) and isinstance(value, dict):
            value = next((value[key] for key in LISTS if isinstance(value.get(key), list)), value)
        for row in value if isinstance(value, list) else (value,):
            number += 1
            yield number, row if isinstance(row, dict) else None


def _after_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _path(name: str) -> Callable[[Any], Values]:
    """Return the function that follows a path of keys, positions and ``*``, all elements of a list."""
    steps = [quoted or plain for quoted, plain in _STEP.findall(name)]
    if len(steps) == 1:
        return lambda row: _values(row.get(steps[0]))

    def get(row: Any) -> Values:
        found = [row]
        for step in steps:
            found = [inner for value in found for inner in _inner(value, step)]
        return _values(found)

    return get


def _inner(value: Any, step: str) -> Sequence[Any]:
    if isinstance(value, dict):
        return (value[step],) if step in value else ()
    if isinstance(value, list | tuple):
        if step == "*":
            return value
        return (value[int(step)],) if step.isdigit() and len(step) < 10 and int(step) < len(value) else ()
    return ()


def _parquet(data: bytes, source: str, needed: Collection[str], optional: Collection[str]) -> Rows:
    try:
        import pyarrow.parquet as parquet
        from pyarrow.lib import ArrowException
    except ImportError:
        raise Unsupported(
            f"{source}: Parquet needs pyarrow: install placeopt[parquet]; or write it as CSV, for instance with "
            "DuckDB: duckdb -c \"COPY (FROM 'jobs.parquet') TO 'jobs.csv'\""
        ) from None
    try:
        file = parquet.ParquetFile(io.BytesIO(data))
        first = {name: "".join((_STEP.findall(name) or [("", name)])[0]) for name in (*needed, *optional)}
        have = file.schema_arrow.names
        if missing := dict.fromkeys(first[name] for name in needed if first[name] not in have):
            raise BadInput(f"{source}: no column {', '.join(missing)}; the file has {','.join(have)[:200]!r}")
        wanted = [name for name in dict.fromkeys(first.values()) if name in have]
        batches = (row for batch in file.iter_batches(columns=wanted) for row in batch.to_pylist())
        lacking = frozenset(name for name in optional if first[name] not in have)
        return Rows(_parquet_rows(batches, source, ArrowException), _path, lacking)
    except ArrowException as error:
        raise BadInput(f"{source}: damaged Parquet file: {str(error)[:80]}") from None


def _parquet_rows(rows: Iterator[Any], source: str, fault: type[Exception]) -> Iterator[tuple[int, Any]]:
    try:
        yield from enumerate(rows, 1)
    except fault as error:
        raise BadInput(f"{source}: damaged Parquet file: {str(error)[:80]}") from None
