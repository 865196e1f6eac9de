"""CSV as it is written: one function, so that no file of ours runs in a spreadsheet."""

import csv
import io
from collections.abc import Iterable, Sequence

from placeopt.errors import printable

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
