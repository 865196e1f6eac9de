"""Which column holds which field of a job, in which unit: the text of ``--columns``, and published forms by name."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction

from placeopt.errors import BadArgument
from placeopt.importers.job_table.forms import FORMS, TIME_FIELDS, is_time_form

FIELDS = (
    *("id", "key", "submit", "start", "end", "duration", "estimate", "state"),
    *("gpus", "share", "cpu", "memory", "workers", "nodes", "model", "user", "queue", "priority", "profile"),
)
"""Fields of a job that a column may hold."""
_AFTER_SUBMISSION = ("start", "end", "duration", "state")

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
        "id=JobID,submit=Submit,start=Start,end=End,duration=Elapsed,duration=ElapsedRaw,"
        "state=State:COMPLETED|FAILED|TIMEOUT|CANCELLED|OUT_OF_MEMORY,"
        "gpus=AllocTRES:tres,cpu=AllocTRES:tres,memory=AllocTRES:tres,nodes=AllocTRES:tres,estimate=Timelimit,"
        "user=User,queue=Partition"
    ),
    "slurmdbd": (
        "id=id_job,submit=time_submit,start=time_start,end=time_end,state=state:3|4|5|6|11,"
        "gpus=gres_used:gres,cpu=cpus_req,nodes=nodes_alloc,estimate=timelimit:min,user=id_user,queue=partition"
    ),
    "openb": (
        "id=name,submit=creation_time,start=scheduled_time,end=deletion_time,gpus=num_gpu,share=gpu_milli/1000,"
        "cpu=cpu_milli:millicores,memory=memory_mib:MiB,model=gpu_spec:any_of,queue=qos"
    ),
    "philly": (
        "id=jobid,submit=submitted_time,start=attempts.0.start_time,end=attempts.*.end_time,"
        "gpus=attempts.0.detail.*.gpus:count,state=status:Pass|Killed|Failed,user=user,queue=vc"
    ),
    "philly-csv": "submit=timestamp,duration=duration,gpus=num_gpus,user=cluster",
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
Columns of published forms: Microsoft's ITP (elasticflow-traces), SenseTime's Helios, Alibaba's DLRM (gpu-v2025), spot
(v2026) and openb (gpu-v2023), ``sacct -X -P -o ALL`` of Slurm, the job table of slurmdbd (MIT's Supercloud),
Philly as Microsoft published it and as Sia's artifact keeps it, ``kubectl get pods -w --output-watch-events -o json``,
and the events of instances of Google's traces of 2019, with parts of machines: add ``cpu=resource_request.cpus*CORES``.
A job of Philly runs from its first attempt to the end of its last one, on the GPUs of the first.
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
            if part not in PRESETS:
                raise _bad(part, f"FIELD=COLUMN, or one of {', '.join(PRESETS)}")
            columns |= _parsed(PRESETS[part], published=True)
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
