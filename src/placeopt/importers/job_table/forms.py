"""How tables write times, durations and amounts: text to integers and fractions; ``ValueError`` where it is none."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction

from placeopt.importers.kubernetes.resources import MIB, parse_quantity
from placeopt.importers.slurm.fields import Tres, parse_gres, parse_memory, parse_tres

_UNITS_MS = {
    "ns": Fraction(1, 10**6),
    "us": Fraction(1, 1000),
    "ms": Fraction(1),
    "s": Fraction(1000),
    "min": Fraction(60_000),
    "h": Fraction(3_600_000),
    "d": Fraction(86_400_000),
}
_BYTES_MIB = {
    "bytes": 1 / MIB,
    "KB": 1000 / MIB,
    "KiB": 1024 / MIB,
    "MB": 10**6 / MIB,
    "MiB": Fraction(1),
    "GB": 10**9 / MIB,
    "GiB": Fraction(1024),
}
TIME_FIELDS = ("submit", "start", "end")
SPAN_FIELDS = ("duration", "estimate")
SUMS = ("gpus", "cpu", "memory")
"""Amounts that add up where a path leads through several containers."""
FORMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*TIME_FIELDS, *SPAN_FIELDS), tuple(_UNITS_MS)),
    "gpus": ("tres", "gres", "count"),
    "share": (),
    "cpu": ("tres", "cores", "millicores"),
    "memory": (*_BYTES_MIB, "quantity", "slurm", "tres"),
    "workers": (),
    "nodes": ("tres",),
    "model": ("tres", "gres", "any_of"),
    "priority": (),
}
"""Field -> the forms that may be named for it; ``count``: how many texts the column has, names of GPUs say."""

MOST_S = 10**10
"""Seconds of a time; more, in seconds, is certainly another unit: 10^10 s is the year 2286."""
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,18}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(?:[eE][+-]?[0-9]{1,2})?\Z")
_SLURM_SPAN = re.compile(r"(?:([0-9]{1,6})-)?(?:([0-9]{1,8}):)?([0-9]{1,8}):([0-9]{1,2})(?:\.([0-9]{1,6}))?\Z")
_SLURM_DAYS = re.compile(r"([0-9]{1,6})-([0-9]{1,2})(?::([0-9]{1,2}))?\Z")


def number(text: str) -> Fraction:
    """Return the exact value of a decimal number."""
    if not _NUMBER.match(text):
        raise ValueError("is not a number")
    return Fraction(text)


def moment_ms(text: str, form: str) -> int:
    """
    Return milliseconds of a time: ISO 8601, a number of ``form`` (seconds where that is empty), or by strptime.

    A time without a zone is taken as UTC.
    """
    if "%" in form:
        try:
            return _datetime_ms(datetime.strptime(text, form))
        except ValueError:
            raise ValueError(f"is not a time of the form {form!r}") from None
    if form or _NUMBER.match(text):
        value = number(text) * _UNITS_MS[form or "s"]
        if abs(value) > 1000 * MOST_S:
            raise ValueError("is after the year 2286 in that unit; name another, such as submit=COLUMN:ms")
        return round(value)
    try:
        return _datetime_ms(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise ValueError("is not a time") from None


def is_time_form(form: str) -> bool:
    """Return whether ``strptime`` knows all directives of a form, which has some."""
    try:
        datetime.strptime(datetime(2000, 1, 1, tzinfo=UTC).strftime(form), form)
    except ValueError:
        return False
    return "%" in form


def _datetime_ms(moment: datetime) -> int:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)


def span_ms(text: str, form: str) -> Fraction:
    """Return milliseconds of a duration: Slurm's ``D-HH:MM:SS``, or a number of ``form``, by default seconds."""
    if days := _SLURM_DAYS.match(text):
        day, hour, minute = (int(part or 0) for part in days.groups())
        return Fraction(60_000 * ((day * 24 + hour) * 60 + minute))
    if span := _SLURM_SPAN.match(text):
        day, hour, minute, second = (int(part or 0) for part in span.groups()[:4])
        whole = 1000 * (((day * 24 + hour) * 60 + minute) * 60 + second)
        return whole + Fraction(f"0.{span[5]}") * 1000 if span[5] else Fraction(whole)
    try:
        return number(text) * _UNITS_MS[form or "s"]
    except ValueError:
        raise ValueError("is not a duration") from None


def _stated(text: str) -> Tres:
    if not all("=" in item for item in text.split(",") if item):
        raise ValueError("expected NAME=COUNT")
    return parse_tres(text)


def _tres(text: str, field: str) -> Fraction:
    stated = _stated(text)
    return Fraction(
        {"gpus": stated.gpus, "cpu": stated.cpus, "memory": stated.memory_mib, "nodes": stated.nodes}[field]
    )


def _gres(text: str, _: str) -> Fraction:
    return Fraction(sum(gres.count for gres in parse_gres(text) if gres.name == "gpu"))


_AMOUNTS: dict[str, Callable[[str, str], Fraction]] = {
    "tres": _tres,
    "gres": _gres,
    "quantity": lambda text, _: parse_quantity(text) / MIB,
    "slurm": lambda text, _: Fraction(parse_memory(text)),
    "millicores": lambda text, _: number(text) / 1000,
    "count": lambda text, _: Fraction(len(re.findall(r"[^,;|]+", text))),
}


def amount(text: str, field: str, form: str) -> Fraction:
    """Return GPUs, cores, MiB, workers, nodes or a priority; ``500m`` and the like are Kubernetes' quantities."""
    try:
        if form in _AMOUNTS:
            return _AMOUNTS[form](text, field)
        if form in _BYTES_MIB:
            return number(text) * _BYTES_MIB[form]
        return number(text) if _NUMBER.match(text) else parse_quantity(text)
    except (ValueError, ZeroDivisionError):
        raise ValueError("is not an amount") from None


def models(text: str, form: str) -> tuple[str, ...]:
    """Return GPU models: the text itself, several with ``|`` between them, or the types in Slurm's resources."""
    try:
        if form == "tres":
            return _stated(text).models
        if form == "gres":
            return tuple({gres.type: None for gres in parse_gres(text) if gres.name == "gpu" and gres.type is not None})
    except ValueError:
        raise ValueError("is none of Slurm's resources") from None
    return tuple(dict.fromkeys(filter(None, text.split("|")))) if form == "any_of" else (text,)
