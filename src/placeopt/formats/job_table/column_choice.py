"""Which column holds which field of a job, in which unit: the text of ``--columns``, and published forms by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from placeopt.errors import BadArgument
from placeopt.formats.job_table.forms import FORMS, TIME_FIELDS, is_time_form

FIELDS = (
    *("id", "key", "submit", "start", "end", "duration", "estimate", "state"),
    *("gpus", "cpu", "memory", "workers", "nodes", "model", "user", "queue", "priority", "profile"),
)
"""Fields of a job that a column may hold."""

PRESETS = {
    "itp": "id=job_id,submit=submission_time,duration=duration,gpus=num_gpu",
    "helios": (
        "id=job_id,submit=submit_time,duration=duration,gpus=gpu_num,cpu=cpu_num,nodes=node_num,user=user,queue=vc"
    ),
    "dlrm": (
        "id=instance_sn,submit=creation_time,start=scheduled_time,end=deletion_time,gpus=gpu_request,cpu=cpu_request,"
        "memory=memory_request:GiB,user=app_name"
    ),
    "spot": (
        "id=job_name,submit=submit_time,duration=duration,gpus=gpu_request,cpu=cpu_request,workers=worker_num,"
        "model=gpu_model,user=organization"
    ),
    "sacct": (
        "id=JobID,submit=Submit,start=Start,end=End,state=State:COMPLETED|FAILED|TIMEOUT|CANCELLED|OUT_OF_MEMORY,"
        "gpus=AllocTRES:tres,cpu=AllocTRES:tres,memory=AllocTRES:tres,nodes=AllocTRES:tres,estimate=Timelimit,"
        "user=User,queue=Partition"
    ),
    "kubernetes": (
        "key=object.metadata.uid,submit=object.metadata.creationTimestamp,start=object.status.startTime,"
        "end=object.status.containerStatuses.*.state.terminated.finishedAt[object.status.phase:Succeeded|Failed],"
        'gpus=object.spec.containers.*.resources.requests."nvidia.com/gpu",'
        "cpu=object.spec.containers.*.resources.requests.cpu,"
        "memory=object.spec.containers.*.resources.requests.memory:quantity,user=object.metadata.namespace"
    ),
    "google": (
        "key=collection_id+instance_index,submit=time:us[type:SUBMIT|0],start=time:us[type:SCHEDULE|3],"
        "end=time:us[type:FINISH|6|FAIL|5|KILL|7],user=collection_id"
    ),
}
"""
Columns of published forms: Microsoft's ITP (elasticflow-traces), SenseTime's Helios, Alibaba's DLRM (gpu-v2025) and
spot (v2026), ``sacct -X -P -o ALL`` of Slurm, ``kubectl get pods -w --output-watch-events -o json``, and the instance
events of Google's traces of 2019, whose demands are parts of a machine: add ``cpu=resource_request.cpus*CORES``.
"""

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
    the rows in which column ``by`` has one of these values; None: in all rows.
    """

    names: tuple[str, ...]
    factor: Fraction = Fraction(1)
    form: str = ""
    by: str | None = None
    values: tuple[str, ...] = ()


def parse_columns(text: str) -> dict[str, Column]:
    """
    Read ``FIELD=COLUMN,...``: a part may name a preset instead; later parts replace earlier ones.

    ``COLUMN``, ``COLUMN*NUMBER`` or ``COLUMN/NUMBER``, then ``:FORM``, then ``[OTHER:VALUE|VALUE]``; ``id=A+B`` joins
    columns; a name with one of ``,:*/=[]`` stands in double quotes. Raises `BadArgument` about ``columns``.
    """
    columns = _parsed(text)
    _check(columns)
    return columns


def _parsed(text: str) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for part in (match[0].strip() for match in _SPLIT.finditer(text)):
        field, equals, spec = part.partition("=")
        if not equals:
            if part not in PRESETS:
                raise _bad(part, f"FIELD=COLUMN, or one of {', '.join(PRESETS)}")
            columns |= _parsed(PRESETS[part])
            continue
        if field not in FIELDS:
            raise _bad(field, f"a field of a job: {', '.join(FIELDS)}")
        columns[field] = _column(field, spec)
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
        if not factor or field not in FORMS or form in ("tres", "gres") or field in TIME_FIELDS:
            raise _bad(f"{field}={spec}", "a number above 0 behind * or /, of an amount or a duration")
        factor = 1 / factor if match["factor"][0] == "/" else factor
    by = match["by"]
    name = match["column"].strip()
    names = tuple(part.strip() for part in name.split("+")) if field in ("id", "key") else (name,)
    return Column(names, factor, form, by, tuple((match["values"] or "").split("|")) if by else ())


def _check(columns: dict[str, Column]) -> None:
    """Refuse columns of which no scenario can be made."""
    missing = []
    if "submit" not in columns:
        missing.append("submit")
    if "duration" not in columns and not {"start", "end"} <= columns.keys():
        missing.append("duration, or start and end")
    if not columns.keys() & {"gpus", "cpu"}:
        missing.append("gpus, or cpu")
    if missing:
        raise BadArgument(f"columns: no {'; no '.join(missing)}")
    for one, other in (("id", "key"), ("workers", "nodes")):
        if {one, other} <= columns.keys():
            raise BadArgument(f"columns: {one} and {other}, expected one of them")
    if "memory" in columns and not columns["memory"].form:
        raise _bad("memory", f"its unit, memory=COLUMN:FORM with one of {', '.join(FORMS['memory'])}")
    if "state" in columns and not columns["state"].form:
        raise _bad("state", "the states of jobs that count, such as state=State:COMPLETED|FAILED")


def _bad(value: str, expected: str) -> BadArgument:
    return BadArgument(f"columns: {value[:80]!r}, expected {expected}")
