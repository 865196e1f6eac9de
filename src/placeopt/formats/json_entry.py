"""Objects of somebody else's JSON, each of which knows where it stands: so every complaint names file and field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from placeopt.errors import BadInput
from placeopt.formats.bounds import parse_json
from placeopt.formats.files import label, read_bytes
from placeopt.model.base import MAX_JOBS

SHOWN = 80


class Entry:
    """
    One JSON object. Fields that are not asked for are not looked at.

    A field that is null counts as left out. ``where`` is the file and the path to the object.
    """

    def __init__(self, where: str, fields: object) -> None:
        if not isinstance(fields, dict):
            raise BadInput(f"{where}: {_shown(fields)}, expected an object {{...}}")
        self.where, self._fields = where, fields

    def __contains__(self, key: str) -> bool:
        return self._fields.get(key) is not None

    def names(self) -> list[str]:
        """Return the names of fields that are not null."""
        return [key for key, value in self._fields.items() if value is not None]

    def bad(self, key: str, expected: str) -> BadInput:
        """Return the error for a field."""
        held = "is missing" if key not in self else _shown(self._fields[key])
        return BadInput(f"{self.path(key)}: {held}, expected {expected}")

    def path(self, key: str) -> str:
        """Name a field in a message."""
        return f"{self.where}.{key}" if key.isidentifier() else f"{self.where}[{key!r}]"

    def text(self, key: str, default: str | None = None) -> str:
        """Return text; required where there is no default."""
        value = self._fields.get(key)
        value = default if value is None else value
        if not isinstance(value, str):
            raise self.bad(key, "text")
        return value

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """Return a whole number within bounds; required where there is no default."""
        value = self._fields.get(key)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.bad(key, f"a whole number from {low} to {high}")
        return value

    def flag(self, key: str) -> bool:
        """Return a boolean, false where left out."""
        value = self._fields.get(key, False) or False
        if not isinstance(value, bool):
            raise self.bad(key, "true or false")
        return value

    def words(self, key: str) -> list[str]:
        """Return a list of texts; text alone counts as a list of one, and nothing as an empty list."""
        value = self._fields.get(key)
        if value is None or value == "":
            return []
        if isinstance(value, str):
            return [value]
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise self.bad(key, "a list of words")
        return value

    def texts(self, key: str) -> dict[str, str]:
        """Return an object of texts, empty where left out."""
        value = self._fields.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
            raise self.bad(key, "an object of texts")
        return value

    def entry(self, key: str) -> Entry:
        """Return the object under a key, an empty one where left out."""
        value = self._fields.get(key)
        return Entry(self.path(key), {} if value is None else value)

    def entries(self, key: str) -> list[Entry]:
        """Return the objects of a list, none where left out."""
        value = self._fields.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.bad(key, "a list")
        if len(value) > MAX_JOBS:
            raise BadInput(f"{self.path(key)}: {len(value)} entries, expected at most {MAX_JOBS}")
        return [Entry(f"{self.path(key)}[{i}]", one) for i, one in enumerate(value)]

    def raw(self, key: str) -> Any:
        """Return whatever stands there, None where left out."""
        return self._fields.get(key)


def read_json(path: str | Path) -> Entry:
    """
    Read a JSON object from a file, gzip or not; ``-`` is standard input.

    Raises
    ------
    BadInput
        If the file cannot be read, is no JSON, or holds something else than an object.
    """
    name = label(str(path))
    return Entry(name, parse_json(read_bytes(path), name))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
