"""A file of records that may be left out."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

from placeopt.formats.json_lines import JsonLinesFile
from placeopt.model.base import Record

R = TypeVar("R", bound=Record)


class OptionalRows(Generic[R]):
    """
    Records of earlier calls, and the file to which further ones are appended; a context manager that locks the file.

    Parameters
    ----------
    path
        None: no records, and none are kept.
    kind
        Type of the records.
    expected
        What each line should be, for messages.
    """

    def __init__(self, path: Path | None, kind: type[R], expected: str) -> None:
        self._file = None if path is None else JsonLinesFile(path, kind, expected)
        self.earlier: tuple[R, ...] = () if self._file is None else tuple(self._file.found)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.__exit__(kind, error, trace)

    def keep(self, record: R) -> None:
        """Append a record to the file."""
        if self._file is not None:
            self._file.append(record)
