"""One object of a JSON document that another program wrote; every error names the file and the path of the field."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from placeopt.documents.faults import shortened
from placeopt.documents.files import label, parse_json, read_bytes
from placeopt.errors import BadInput
from placeopt.model.base import MAX_JOBS

T = TypeVar("T")


class JsonEntry:
    """
    One JSON object, with the file and path that messages name (``where``). A null field counts as absent.

    Only the fields that a caller reads are checked. Every method raises `BadInput` for a field of the wrong type.
    ``where``: Of a document its name; of an object inside, the step below ``above``, the entry that has it.
    """

    __slots__ = ("_above", "_fields", "_where")

    def __init__(self, where: str, fields: object, above: JsonEntry | None = None) -> None:
        self._where, self._above = where, above
        if not isinstance(fields, dict):
            raise BadInput(f"{self.where}: {shortened(fields)}, expected an object {{...}}")
        self._fields = fields

    @property
    def where(self) -> str:
        """File and path, for messages; put together when one is needed."""
        return self._where if self._above is None else f"{self._above.where}{self._where}"

    def __contains__(self, key: str) -> bool:
        return self._fields.get(key) is not None

    def names(self) -> list[str]:
        """Return the names of the fields that are not null."""
        return [key for key, value in self._fields.items() if value is not None]

    def others(self, known: AbstractSet[str]) -> list[str]:
        """Return the names of the fields beside known ones, sorted; null fields too."""
        return sorted(self._fields.keys() - known)

    def bad(self, key: str, expected: str) -> BadInput:
        """Return the error for a field."""
        value = "is missing" if key not in self else shortened(self._fields[key])
        return BadInput(f"{self.path(key)}: {value}, expected {expected}")

    def path(self, key: str) -> str:
        """Return the file and the path of a field, for messages."""
        return f"{self.where}{_step(key)}"

    def _typed(self, key: str, kind: type[T], expected: str, default: T | None = None) -> T:
        value = self._fields.get(key)
        value = default if value is None else value
        if not isinstance(value, kind):
            raise self.bad(key, expected)
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """Return a string; the field is required if there is no default."""
        return self._typed(key, str, "text", default)

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """Return an integer from ``low`` to ``high``; the field is required if there is no default."""
        value = self._fields.get(key)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.bad(key, f"a whole number from {low} to {high}")
        return value

    def flag(self, key: str) -> bool:
        """Return a boolean, false by default."""
        return self._typed(key, bool, "true or false", default=False)

    def words(self, key: str) -> list[str]:
        """Return a list of strings, empty by default; a single string is a list of one."""
        value = self._fields.get(key)
        words = [] if value is None or value == "" else [value] if isinstance(value, str) else value
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise self.bad(key, "a list of words")
        return words

    def texts(self, key: str) -> dict[str, str]:
        """Return an object whose values are strings, empty by default."""
        texts: dict[str, str] = self._typed(key, dict, "an object of texts", {})
        if not all(isinstance(text, str) for text in texts.values()):
            raise self.bad(key, "an object of texts")
        return texts

    def entry(self, key: str) -> JsonEntry:
        """Return the object in a field, empty by default."""
        value = self._fields.get(key)
        return JsonEntry(_step(key), _NOTHING if value is None else value, self)

    def entries(self, key: str) -> list[JsonEntry]:
        """Return the objects of a list, empty by default."""
        value: list[object] = self._typed(key, list, "a list", _NO_ENTRIES)
        if len(value) > MAX_JOBS:
            raise BadInput(f"{self.path(key)}: {len(value)} entries, expected at most {MAX_JOBS}")
        return [JsonEntry(f"{_step(key)}[{i}]", fields, self) for i, fields in enumerate(value)]

    def parsed(self, key: str, parse: Callable[[str], T]) -> T:
        """Return what a parser makes of a string, empty by default; its ``ValueError`` names the field."""
        try:
            return parse(self.text(key, ""))
        except ValueError as error:
            raise BadInput(f"{self.path(key)}: {error}") from None

    def raws(self, keys: Iterable[str]) -> tuple[Any, ...]:
        """Return the values of some fields as parsed; None for those that are absent."""
        return tuple(map(self._fields.get, keys))

    def raw(self, key: str) -> Any:
        """Return the value of a field as parsed; None if it is absent."""
        return self._fields.get(key)


_NOTHING: dict[str, Any] = {}
_NO_ENTRIES: list[Any] = []
"""What an absent object or list holds; entries never write."""


@lru_cache(1024)
def _step(key: str) -> str:
    """Return a key as a step of a path."""
    return f".{key}" if key.isidentifier() else f"[{key!r}]"


def read_json(source: str | Path | dict[str, Any], name: str = "document") -> JsonEntry:
    """
    Return the object in a JSON file, gzip or not; ``-`` is standard input.

    An object that is parsed already, as ``json.loads`` returns it, is taken as it is; messages call it ``name``.
    """
    if isinstance(source, dict):
        return JsonEntry(name, source)
    name = label(str(source))
    return JsonEntry(name, parse_json(read_bytes(source), name))
