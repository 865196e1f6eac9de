"""
The first faults of a large document: every list is read up to its first wrong element.

The validator of a record collects all errors before it reports one, some kilobytes of memory each; a list of a million
wrong jobs would take gigabytes. So large documents are validated by the same schema with lists that stop at the first
wrong element, and the neighbouring elements are validated alone.
"""

import json
from functools import cache
from typing import Any

from pydantic import ValidationError
from pydantic_core import SchemaValidator

from placeopt.errors import BadInput
from placeopt.formats.faults import SHOWN, record_fault
from placeopt.model.base import Record

LARGE = 1 << 18
"""Bytes from which on a document is read so: 90,000 errors fit into less."""


@cache
def fail_fast_validator(kind: type[Record]) -> SchemaValidator:
    """Return the validator of a record whose lists stop at the first wrong element."""
    return SchemaValidator(_failing_fast(kind.__pydantic_core_schema__))


def first_faults(kind: type[Record], text: str, error: ValidationError, source: str) -> BadInput:
    """
    Return the first faults of a document as one error.

    Parameters
    ----------
    kind
        What the document should be.
    text
        The document, JSON.
    error
        What `fail_fast_validator` found: at most one wrong element of every list.
    source
        What the message calls the document.
    """
    errors: list[Any] = error.errors(include_url=False)
    document = json.loads(text)
    shown = 0
    begins: dict[tuple[str | int, ...], int] = {}
    for fault in errors:
        loc = fault["loc"]
        depth = next((i for i, step in enumerate(loc) if isinstance(step, int)), None)
        if depth is None or loc[:depth] in begins:
            continue
        *above, last = loc[:depth]
        holder = document
        for step in above:
            holder = holder[step]
        begins[loc[:depth]] = loc[depth]
        holder[last] = holder[last][loc[depth] : loc[depth] + SHOWN]
        shown += len(json.dumps(holder[last]))
    if begins and shown <= LARGE:
        try:
            kind.model_validate_json(json.dumps(document))
        except ValidationError as several:
            errors = [_moved(fault, begins) for fault in several.errors(include_url=False)]
    return record_fault(kind, errors, source, least=bool(begins))


def _moved(fault: Any, begins: dict[tuple[str | int, ...], int]) -> Any:
    """Return the error with its place in the whole document."""
    loc = fault["loc"]
    for path, begin in begins.items():
        end = len(path)
        if loc[:end] == path and len(loc) > end:
            return {**fault, "loc": (*path, loc[end] + begin, *loc[end + 1 :])}
    return fault


def _failing_fast(schema: Any) -> Any:
    if isinstance(schema, dict):
        changed = {key: inner if key == "metadata" else _failing_fast(inner) for key, inner in schema.items()}
        return changed | {"fail_fast": True} if schema.get("type") in ("tuple", "list") else changed
    if isinstance(schema, list):
        return [_failing_fast(inner) for inner in schema]
    return schema
