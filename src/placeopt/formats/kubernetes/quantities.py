"""Kubernetes' resource quantities: ``500m``, ``1.5Gi``, ``129e6``."""

from __future__ import annotations

import re
from fractions import Fraction

from placeopt.formats.json_entry import JsonEntry

_FORM = re.compile(r"([+]?[0-9]{1,18}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})([eE][+-]?[0-9]{1,2}|[numkMGTPE]|[KMGTPE]i)?\Z")
_POWER = {"n": -3, "u": -2, "m": -1, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
MIB = Fraction(1 << 20)


def parse_quantity(text: str) -> Fraction:
    """Return the exact value of a quantity that is not negative; raises ValueError."""
    match = _FORM.match(text)
    if match is None:
        raise ValueError(f"{text!r} is no quantity")
    number, suffix = Fraction(match[1]), match[2] or ""
    if suffix.endswith("i"):
        return number * Fraction(1024) ** _POWER[suffix[0].replace("K", "k")]
    if suffix[:1] in ("e", "E") and len(suffix) > 1:
        return number * Fraction(10) ** int(suffix[1:])
    return number * Fraction(1000) ** _POWER[suffix] if suffix else number


def quantity(entry: JsonEntry, key: str) -> Fraction:
    """
    Return the quantity of a field, 0 where it is left out; whole numbers may stand without quotes.

    Raises
    ------
    BadInput
        If it is no quantity, or beyond what a cluster has.
    """
    value = entry.raw(key)
    if value is None:
        return Fraction(0)
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    try:
        found = parse_quantity(text) if isinstance(text, str) else None
    except ValueError:
        found = None
    if found is None or found > 2**60:
        raise entry.bad(key, "a quantity such as 500m, 8 or 64Gi")
    return found
