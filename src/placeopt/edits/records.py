"""Records with some fields changed: unchecked between two steps, checked at the end, or as a file states them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any, TypeVar

from pydantic import ValidationError

from placeopt.documents.documents import loads
from placeopt.documents.faults import validation_fault
from placeopt.errors import BadInput, Fault
from placeopt.model import Instance, Job, Record
from placeopt.model.base import trusted

R = TypeVar("R", bound=Record)
MADE = "the round that it makes"
"""How messages name the round that a step leads to."""
NAMES_SHOWN = 8


def changed(record: R, **fields: object) -> R:
    """Return the record with some fields changed, unchecked; what was derived from the former ones is not kept."""
    return trusted(type(record), {**dict(record), **fields})


def edit_instance(instance: Instance, **fields: object) -> Instance:
    """Return the round with some fields changed, and its references checked; raises `BadInput` for a broken one."""
    return _checked(instance, fields)


def checked_round(instance: Instance) -> Instance:
    """Return a round that steps have made, with all its references checked; raises `BadInput` for a broken one."""
    return _checked(instance, {"cluster": _checked(instance.cluster, {})})


def _checked(record: R, fields: dict[str, object]) -> R:
    try:
        return type(record)(**{**dict(record), **fields})
    except ValidationError as error:
        raise validation_fault(type(record), error, MADE) from None


def merged(record: R, fields: dict[str, Any], where: str) -> R:
    """
    Return a record with fields changed as by a JSON merge patch (RFC 7396): what is null has its default.

    Raises `BadInput` as reading a file would.
    """
    return loads(type(record), json.dumps(_merge(record.model_dump(mode="json", by_alias=True), fields)), source=where)


def _merge(old: Any, new: Any) -> Any:
    if not isinstance(new, dict):
        return new
    kept = dict(old) if isinstance(old, dict) else {}
    for name, value in new.items():
        if value is None:
            kept.pop(name, None)
        else:
            kept[name] = _merge(kept.get(name), value)
    return kept


def refusal(where: str, what: str) -> BadInput:
    """Return the error of a step that cannot be carried out: the field at fault, and why."""
    error = BadInput(f"{where}: {what}" if where else what)
    error.faults = (Fault(where, what),)
    return error


def refuse_unknown(where: str, what: str, names: Iterable[str], there: Collection[str], hint: str = "") -> None:
    """Raise `BadInput` for the first of some names that is not there."""
    missing = next((name for name in names if name not in there), None)
    if missing is not None:
        raise refusal(where, f"no {what} {missing!r}; there are: {some(there)}{hint}")


def some(names: Iterable[str]) -> str:
    """Return the first names, and how many there are beside them."""
    shown = list(names)
    more = f" and {len(shown) - NAMES_SHOWN:,} more" if len(shown) > NAMES_SHOWN else ""
    return ", ".join(shown[:NAMES_SHOWN]) + more or "none"


def job_arriving_at(job: Job, arrival_ms: int) -> Job:
    """Return a job that arrives at another time; its deadlines move with it."""
    by = arrival_ms - job.arrival_ms
    due = {
        name: max(0, value + by)
        for name in ("deadline_ms", "expected_completion_ms")
        for value in [getattr(job, name)]
        if value is not None
    }
    return job.model_copy(update={"arrival_ms": arrival_ms, **due}) if by else job
