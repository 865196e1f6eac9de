"""The objects of a listing by kind, and what they are called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from hashlib import sha256

from placeopt.errors import BadInput
from placeopt.importers.json_entry import JsonEntry

Listed = Mapping[str, Sequence[JsonEntry]]
"""Kind -> its objects."""
MAX_ID = 253


def object_id(entry: JsonEntry) -> str:
    """Return namespace and name of an object."""
    metadata = entry.entry("metadata")
    return f"{metadata.text('namespace', 'default')}/{metadata.text('name')}"


def by_id(entries: Iterable[JsonEntry], read: Callable[[JsonEntry], object] = object_id) -> dict[str, JsonEntry]:
    """Return objects by namespace and name; one whose name, or what is ``read``, cannot be counts as not listed."""
    found = {}
    for entry in entries:
        with suppress(BadInput):
            read(entry)
            found[object_id(entry)] = entry
    return found


def job_id(name: str) -> str:
    """Return a name of at most 253 characters; a longer one is cut and hashed."""
    return name if len(name) <= MAX_ID else f"{name[: MAX_ID - 17]}~{sha256(name.encode()).hexdigest()[:16]}"


def unreadable_field(entry: JsonEntry, error: BadInput) -> str:
    """Return the text of an error without the place of the object in its file."""
    return f"of which {str(error).removeprefix(entry.where).removeprefix('.')}"


def time_ms(entry: JsonEntry, key: str) -> int:
    """Return a time as ``2026-11-22T02:41:55Z``, in ms since 1970; 0 where it is left out."""
    text = entry.text(key, "")
    if not text:
        return 0
    try:
        seconds = datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        raise entry.bad(key, "a time such as 2026-11-22T02:41:55Z") from None
    if not 0 <= seconds < 10**10:
        raise entry.bad(key, "a time since 1970")
    return int(1000 * seconds)
