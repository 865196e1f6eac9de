"""JSON from clients, as strict as files: no key twice, no NaN, no endless integers or depth."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from placeopt.errors import BadInput
from placeopt.formats.bounds import check_bounds
from placeopt.formats.faults import find_fault, syntax_fault


class _Suspect(ValueError):
    """There is a fault that the slow search locates."""


def strict_json(data: bytes, source: str = "body") -> dict[str, Any]:
    """
    Return the object that a body holds.

    Raises
    ------
    BadInput
        If it is not UTF-8, not JSON, no object, too deep, or has a key twice; the message names the place.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{source}: not UTF-8: byte {data[error.start]:#04x} at offset {error.start}") from None
    check_bounds(data, source)
    try:
        found = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except (json.JSONDecodeError, RecursionError) as error:
        raise syntax_fault(error, text, source) from None
    except ValueError:  # also an integer of thousands of digits
        raise find_fault(text, source) from None
    if not isinstance(found, dict):
        raise BadInput(f"{source}: expected a JSON object {{...}}")
    return found


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Suspect
    return found


def _no_constant(_: str) -> NoReturn:
    raise _Suspect
