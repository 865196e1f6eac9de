"""CSV tables: those of other programs, read by column name with errors that name file, line and column; and ours."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from pathlib import Path

from placeopt.errors import BadInput, printable
from placeopt.formats.bounds import MAX_LINE, check_lines
from placeopt.formats.files import label, read_bytes
from placeopt.model.base import MAX_JOBS

MAX_NAME = 253
MAX_INTEGER_DIGITS = 15


class CsvRow:
    """One row of a table, by column names; ``line`` is its line in the file, from 1."""

    def __init__(self, source: str, line: int, fields: dict[str, str]) -> None:
        self.line, self._source, self._fields = line, source, fields

    def has(self, column: str) -> bool:
        """Return whether the table has a column."""
        return column in self._fields

    def text(self, column: str) -> str:
        """Return the text of a column, empty if the table lacks it."""
        return self._fields.get(column, "")

    def name(self, column: str) -> str:
        """Return a name: 1 to 253 printable characters without white space."""
        if not is_word(self.text(column), MAX_NAME):
            raise self.error(column, f"1 to {MAX_NAME} printable characters without white space")
        return self.text(column)

    def integer(self, column: str, low: int, high: int) -> int:
        """Return an integer in digits, from ``low`` to ``high``."""
        text = self._fields[column]
        if not (text.isascii() and text.isdigit() and len(text) <= MAX_INTEGER_DIGITS and low <= int(text) <= high):
            raise self.error(column, f"an integer of {low}..{high} in digits only")
        return int(text)

    def number(self, column: str, low: float, high: float) -> float:
        """Return a finite number from ``low`` to ``high``."""
        try:
            value = float(self._fields[column])
        except ValueError:
            value = float("nan")
        if not isfinite(value) or not low <= value <= high:
            raise self.error(column, f"a number of {low:g}..{high:g}")
        return value

    def error(self, column: str, expected: str) -> BadInput:
        """Return the error for a column of this row."""
        value = self.text(column)
        return BadInput(f"{self._source}:{self.line}: column {column!r}: {value[:80]!r}, expected {expected}")


def is_word(text: str, max_length: int) -> bool:
    """Return whether a text is 1 to ``max_length`` printable characters without blanks."""
    return 1 <= len(text) <= max_length and text.isprintable() and " " not in text


def read_csv_table(
    path: str | Path,
    needed: tuple[str, ...],
    optional: tuple[str, ...] = (),
    *,
    key: str | None = None,
    max_rows: int = MAX_JOBS,
) -> Iterator[CsvRow]:
    """
    Yield the rows of a table.

    Parameters
    ----------
    path
        CSV in UTF-8 with a header, gzip or not; ``-`` is standard input. Columns may stand in any order.
    needed, optional
        Columns to read. Others are ignored.
    key
        A column of names that must be unique; None if there is none.
    max_rows
        Largest number of rows.

    Yields
    ------
    CsvRow
        The fields of a row by column; missing optional columns are empty.

    Raises
    ------
    BadInput
        If the file cannot be read, lacks a needed column, repeats a column, or has no row; or at a row with more or
        fewer fields than the header, a quote that is not closed on its line, or a repeated name.
    """
    source = label(str(path))
    lines = csv_lines(read_bytes(path), source)
    header = next(lines)[1]
    columns = {column: position for position, column in enumerate(header) if column in (*needed, *optional)}
    missing = [column for column in needed if column not in columns]
    if missing:
        raise BadInput(f"{source}:1: no column {', '.join(missing)}; the header is {','.join(header)[:200]!r}")
    if repeated := next((column for column in columns if header.count(column) > 1), None):
        raise BadInput(f"{source}:1: column {repeated!r} appears twice, expected it once")
    line_of_name: dict[str, int] = {}
    num_rows = 0
    for line, fields in lines:
        if len(fields) != len(header):
            text = ",".join(fields)[:80]
            raise BadInput(
                f"{source}:{line}: {len(fields)} fields in {text!r}, expected {len(header)} as in the header"
            )
        row = CsvRow(source, line, {column: fields[position] for column, position in columns.items()})
        if key is not None and line_of_name.setdefault(row.name(key), line) != line:
            first = line_of_name[row.text(key)]
            raise row.error(key, f"names to be unique; this one stands on line {first} already")
        num_rows += 1
        if num_rows > max_rows:
            raise BadInput(f"{source}:{line}: more than {max_rows} rows, expected at most that many")
        yield row
    if not num_rows:
        raise BadInput(f"{source}: no row under the header, expected at least one")


def csv_lines(data: bytes, source: str, separator: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Yield line number and fields. Each line is parsed alone: an open quote ends there and swallows no other row."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{source}: cannot be read (byte {error.start}: not UTF-8), expected a CSV file in UTF-8"
        ) from None
    check_lines(text, source, longest=MAX_LINE)
    lines = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    if lines == [""]:
        raise BadInput(f"{source}: empty, expected a CSV file with a header")
    for number, line in enumerate(lines, start=1):
        if any(sign in line for sign in '"\r\x00'):
            yield number, _parse_quoted(source, number, line, separator)
        else:
            yield number, line.split(separator)


def _parse_quoted(source: str, number: int, line: str, separator: str) -> list[str]:
    if "\r" in line or "\x00" in line:
        raise BadInput(f"{source}:{number}: {line[:80]!r}, expected no control characters")
    try:
        return next(csv.reader([line], delimiter=separator, strict=True))
    except csv.Error as error:
        raise BadInput(
            f"{source}:{number}: {line[:80]!r}: {error}, expected every quote to be closed on its line"
        ) from error


FORMULA = ("=", "+", "-", "@")
"""A cell that begins so is taken for a formula by spreadsheets."""


def csv_text(header: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """
    Return a table as CSV: None as an empty cell, numbers as they are.

    Text that a spreadsheet would run as a formula is written with an apostrophe before it, which spreadsheets hide;
    tabs, carriage returns and other text that cannot be seen is escaped.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_cell(value) for value in header])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _cell(value: object) -> object:
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.strip() == text
