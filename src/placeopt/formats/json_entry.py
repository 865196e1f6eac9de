"""One object of a JSON document that another program wrote; every error names the file and the path of the field."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from placeopt.errors import BadInput
from placeopt.formats.bounds import parse_json
from placeopt.formats.faults import shortened
from placeopt.formats.files import label, read_bytes
from placeopt.model.base import MAX_JOBS

T = TypeVar("T")


class JsonEntry:
    """
    One JSON object, with the file and path that messages name (``where``). A null field counts as absent.

    Only the fields that a caller reads are checked. Every method raises `BadInput` for a field of the wrong type.
    """

    def __init__(self, where: str, fields: object) -> None:
        if not isinstance(fields, dict):
            raise BadInput(f"{where}: {shortened(fields)}, expected an object {{...}}")
        self.where, self._fields = where, fields

    def __contains__(self, key: str) -> bool:
        return self._fields.get(key) is not None

    def names(self) -> list[str]:
        """Return the names of the fields that are not null."""
        return [key for key, value in self._fields.items() if value is not None]

    def bad(self, key: str, expected: str) -> BadInput:
        """Return the error for a field."""
        value = "is missing" if key not in self else shortened(self._fields[key])
        return BadInput(f"{self.path(key)}: {value}, expected {expected}")

    def path(self, key: str) -> str:
        """Return the file and the path of a field, for messages."""
        return f"{self.where}.{key}" if key.isidentifier() else f"{self.where}[{key!r}]"

    def text(self, key: str, default: str | None = None) -> str:
        """Return a string; the field is required if there is no default."""
        value = self._fields.get(key)
        value = default if value is None else value
        if not isinstance(value, str):
            raise self.bad(key, "text")
        return value

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """Return an integer from ``low`` to ``high``; the field is required if there is no default."""
        value = self._fields.get(key)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.bad(key, f"a whole number from {low} to {high}")
        return value

    def flag(self, key: str) -> bool:
        """Return a boolean, false by default."""
        value = self._fields.get(key, False) or False
        if not isinstance(value, bool):
            raise self.bad(key, "true or false")
        return value

    def words(self, key: str) -> list[str]:
        """Return a list of strings, empty by default; a single string is a list of one."""
        value = self._fields.get(key)
        if value is None or value == "":
            return []
        if isinstance(value, str):
            return [value]
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise self.bad(key, "a list of words")
        return value

    def texts(self, key: str) -> dict[str, str]:
        """Return an object whose values are strings, empty by default."""
        value = self._fields.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
            raise self.bad(key, "an object of texts")
        return value

    def entry(self, key: str) -> JsonEntry:
        """Return the object in a field, empty by default."""
        value = self._fields.get(key)
        return JsonEntry(self.path(key), {} if value is None else value)

    def entries(self, key: str) -> list[JsonEntry]:
        """Return the objects of a list, empty by default."""
        value = self._fields.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.bad(key, "a list")
        if len(value) > MAX_JOBS:
            raise BadInput(f"{self.path(key)}: {len(value)} entries, expected at most {MAX_JOBS}")
        return [JsonEntry(f"{self.path(key)}[{i}]", fields) for i, fields in enumerate(value)]

    def parsed(self, key: str, parse: Callable[[str], T]) -> T:
        """Return what a parser makes of a string, empty by default; its ``ValueError`` names the field."""
        try:
            return parse(self.text(key, ""))
        except ValueError as error:
            raise BadInput(f"{self.path(key)}: {error}") from None

    def raw(self, key: str) -> Any:
        """Return the value of a field as parsed; None if it is absent."""
        return self._fields.get(key)


def read_json(path: str | Path) -> JsonEntry:
    """Return the object in a JSON file, gzip or not; ``-`` is standard input."""
    name = label(str(path))
    return JsonEntry(name, parse_json(read_bytes(path), name))
