"""
Which column holds which field of a job, in which unit: the text of ``--columns``, and published forms by name.

How tables write times, durations and amounts: text to integers and fractions; ``ValueError`` where it is none.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from importlib.resources import files

from placeopt.errors import BadArgument
from placeopt.importers.kubernetes.resources import MIB, parse_quantity
from placeopt.importers.slurm.fields import Tres, parse_gres, parse_memory, parse_time_ms, parse_tres

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
FIELDS = (
    *("id", "key", "submit", "start", "end", "duration", "estimate", "state"),
    *("gpus", "share", "cpu", "memory", "workers", "nodes", "model", "user", "queue", "priority", "profile"),
)
"""Fields of a job that a column may hold."""
_AFTER_SUBMISSION = ("start", "end", "duration", "state")

_QUOTED = r'"[^"]*"'
_PART = re.compile(
    rf"""(?P<column>(?:{_QUOTED}|\.\*(?=\.|[:,\[]|\Z)|[^":,\[\]*/=])+)
    (?P<factor>[*/]\s*[0-9.]+)?
    (?::(?P<form>{_QUOTED}|[^":,\[\]]+))?
    (?:\[(?P<by>(?:{_QUOTED}|[^":,\[\]])+):(?P<values>[^\]]*)\])?\Z""",
    re.VERBOSE,
)
_SPLIT = re.compile(rf"(?:{_QUOTED}|\[[^\]]*\]|[^,])+")


@dataclass(frozen=True)
class Column:
    """
    Where a field stands, and how it is written.

    ``names``: the column, or the path in a row of JSON; several make up one ``id`` or ``key``. ``factor``: what its
    number is multiplied by. ``form``: unit or form, empty for the field's own. ``by``, ``values``: the field stands in
    the rows in which column ``by`` has one of these values; None: in all rows. ``published``: it is part of a published
    form, and tables of that form may lack it.
    """

    names: tuple[str, ...]
    factor: Fraction = Fraction(1)
    form: str = ""
    by: str | None = None
    values: tuple[str, ...] = ()
    published: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of a table that it is read from."""
        return self.names if self.by is None else (*self.names, self.by)


Columns = dict[str, tuple[Column, ...]]
"""Field -> where it stands: in the first of these columns that the table has."""


@cache
def presets() -> dict[str, str]:
    """Return the columns of published forms by name."""
    text = files("placeopt.importers.job_table").joinpath("published_forms.csv").read_text(encoding="utf-8")
    return {row["form"]: row["columns"] for row in csv.DictReader(text.splitlines())}


def parse_columns(text: str, *, waiting: bool = False) -> Columns:
    """
    Read ``FIELD=COLUMN,...``: a part may name a preset instead; later parts replace earlier ones.

    ``COLUMN``, ``COLUMN*NUMBER`` or ``COLUMN/NUMBER``, then ``:FORM``, then ``[OTHER:VALUE|VALUE]``; ``id=A+B`` joins
    columns; a name with one of ``,:*/=[]`` stands in double quotes. ``waiting``: without states, and times after the
    submission. Raises `BadArgument` about ``columns``.
    """
    columns = _parsed(text)
    if waiting:
        columns = {field: column for field, column in columns.items() if field not in _AFTER_SUBMISSION}
    if missing := missing_fields(columns, waiting=waiting):
        raise BadArgument(f"columns: no {'; no '.join(missing)}")
    _check(columns)
    return columns


def missing_fields(columns: Collection[str], *, waiting: bool = False) -> list[str]:
    """Return the fields that a job needs and that no column holds."""
    needed = {
        "submit": waiting or "submit" in columns,
        "duration, or start and end": waiting or "duration" in columns or {"start", "end"} <= set(columns),
        "gpus, or cpu": bool({"gpus", "cpu"} & set(columns)),
    }
    return [field for field, there in needed.items() if not there]


def _parsed(text: str, *, published: bool = False) -> Columns:
    columns: Columns = {}
    for part in (match[0].strip() for match in _SPLIT.finditer(text)):
        field, equals, spec = part.partition("=")
        if not equals:
            if part not in presets():
                raise _bad(part, f"FIELD=COLUMN, or one of {', '.join(presets())}")
            columns |= _parsed(presets()[part], published=True)
            continue
        if field not in FIELDS:
            raise _bad(field, f"a field of a job: {', '.join(FIELDS)}")
        may_lack = published and field not in ("id", "key")
        column = replace(_column(field, spec), published=may_lack)
        columns[field] = (column, *(columns.get(field, ()) if may_lack else ()))
    return columns


def _column(field: str, spec: str) -> Column:
    match = _PART.match(spec)
    if match is None:
        raise _bad(f"{field}={spec}", "COLUMN, COLUMN/NUMBER, COLUMN:FORM or COLUMN[OTHER:VALUE|VALUE]")
    form = (match["form"] or "").strip('"')
    known = FORMS.get(field, ())
    strptime = field in TIME_FIELDS and is_time_form(form)
    if form and field != "state" and form not in known and not strptime:
        others = ", or directives of strptime such as %Y-%m-%d" if field in TIME_FIELDS else ""
        raise _bad(f"{field}=...:{form}", f"a form of {field}: {', '.join(known) or 'none'}{others}")
    factor = Fraction(1)
    if match["factor"]:
        try:
            factor = Fraction(match["factor"][1:].strip())
        except ValueError:
            factor = Fraction(0)
        if not factor or field not in FORMS or form in ("tres", "gres", "count") or field in TIME_FIELDS:
            raise _bad(f"{field}={spec}", "a number above 0 behind * or /, of an amount or a duration")
        factor = 1 / factor if match["factor"][0] == "/" else factor
    by = match["by"]
    name = match["column"].strip()
    names = tuple(part.strip() for part in name.split("+")) if field in ("id", "key") else (name,)
    return Column(names, factor, form, by, tuple((match["values"] or "").split("|")) if by else ())


def _check(columns: Columns) -> None:
    """Refuse columns that contradict each other, or lack their form."""
    for one, other in (("id", "key"), ("workers", "nodes")):
        if {one, other} <= columns.keys():
            raise BadArgument(f"columns: {one} and {other}, expected one of them")
    if "memory" in columns and not columns["memory"][0].form:
        raise _bad("memory", f"its unit, memory=COLUMN:FORM with one of {', '.join(FORMS['memory'])}")
    if "state" in columns and not columns["state"][0].form:
        raise _bad("state", "the states of jobs that count, such as state=State:COMPLETED|FAILED")


def _bad(value: str, expected: str) -> BadArgument:
    return BadArgument(f"columns: {value[:80]!r}, expected {expected}")


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
    try:
        return number(text) * _UNITS_MS[form or "s"] if _NUMBER.match(text) else parse_time_ms(text)
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
