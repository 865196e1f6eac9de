"""
Templates: what jobs have in common is stated once in a file, and a job adds its id, times, user and origin.

In memory a job is whole; jobs of one template hold the same objects. So all that is done with many jobs (reading them,
checking references, the digest, compiling, writing) looks at each object once, and at the rest by columns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from operator import itemgetter
from typing import Annotated, Any, ClassVar

from pydantic import FailFast, TypeAdapter, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from placeopt.model.base import Record, trusted
from placeopt.model.job import Job

OWN = ("id", "user", "arrival_ms", "deadline_ms", "expected_completion_ms", "origin")
"""Fields that a job of a template states itself."""
TEMPLATE, TEMPLATES = "template", "templates"
_shared_of = itemgetter(*(name for name in Job.model_fields if name not in OWN))
_own_of = itemgetter(*OWN)
_DEFAULTS = {name: Job.model_fields[name].get_default() for name in OWN if name != "id"}

Path = tuple[str | int, ...]


class JobsDocument(Record):
    """A document with jobs; what they have in common may stand in its ``templates``."""

    JOBS: ClassVar[tuple[str, ...]] = ("jobs",)
    """The list that has the jobs, and the field of its entries where these are not the jobs themselves."""

    @model_validator(mode="before")
    @classmethod
    def _with_templates(cls, document: object) -> object:
        """Return a document as JSON has it without its ``templates``: jobs that name one are records."""
        if not isinstance(document, dict) or TEMPLATES not in document:
            return document
        rest = dict(document)
        given = rest.pop(TEMPLATES)
        if not isinstance(given, dict):
            raise ValueError(f"{TEMPLATES}: expected an object {{...}}")
        templates = {name: _template(name, fields) for name, fields in given.items()}
        name, *key = cls.JOBS
        entries = rest.get(name)
        if isinstance(entries, list):
            jobs: list[Any] = [entry.get(key[0]) if key and isinstance(entry, dict) else entry for entry in entries]
            rows = [i for i, job in enumerate(jobs) if isinstance(job, dict) and TEMPLATE in job]
            paths: list[Path] = [(name, i, *key) for i in rows]
            rest[name] = filled = list(entries)
            for i, job in zip(rows, _filled(templates, [jobs[i] for i in rows], paths.__getitem__), strict=True):
                filled[i] = {**entries[i], key[0]: job} if key else job
        return rest

    @classmethod
    def jobs_of(cls, entries: Sequence[Any]) -> Sequence[Job]:
        """Return the jobs of the entries of the list."""
        return [getattr(entry, cls.JOBS[1]) for entry in entries] if len(cls.JOBS) > 1 else entries


def _template(name: str, fields: object) -> dict[str, Any]:
    """Return the fields of a job that is as the template says."""
    path: Path = (TEMPLATES, name)
    if isinstance(fields, dict):
        own = next((own for own in (*OWN, TEMPLATE) if own in fields), None)
        if own is not None:
            raise ValueError(
                f"{TEMPLATES}[{json.dumps(name)}].{own}: a job states it, not a template; move it to the job"
            )
        fields = {**fields, "id": name}
    try:
        return Job.model_validate(fields).__dict__
    except ValidationError as error:
        raise _moved(error, lambda loc: path if loc == ("id",) else (*path, *loc)) from None


def _filled(
    templates: Mapping[str, dict[str, Any]], entries: Sequence[dict[str, Any]], path_of: Callable[[int], Path]
) -> list[Job]:
    """Return the jobs that entries with templates state."""

    def refuse(i: int, field: str, why: str) -> ValueError:
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path_of(i))
        return ValueError(f"{path[1:]}.{field}: {why}")

    allowed = {*OWN, TEMPLATE}
    for i, entry in enumerate(entries):
        if not entry.keys() <= allowed:
            field = next(field for field in entry if field not in allowed)
            why = "the template states it" if field in Job.model_fields else "unknown field"
            raise refuse(i, field, f"{why}; beside 'template' a job has {', '.join(OWN)}")
        if "id" not in entry:
            raise refuse(i, "id", "is missing")
        name = entry[TEMPLATE]
        if not isinstance(name, str) or name not in templates:
            raise refuse(i, TEMPLATE, f"no template {name!r}; there are: {', '.join(list(templates)[:20]) or 'none'}")
    columns = {}
    for own in OWN:
        if own == "id" or any(own in entry for entry in entries):
            values = [entry.get(own, _DEFAULTS.get(own)) for entry in entries]
            try:
                columns[own] = check_column(Job, own, values)
            except ValidationError as error:
                raise _moved(error, partial(_in_column, path_of, own)) from None
    return copies(Job, [templates[entry[TEMPLATE]] for entry in entries], columns)


def _in_column(path_of: Callable[[int], Path], own: str, loc: Any) -> Path:
    """Return the path of a fault in a column: of the entry, then of what is wrong in its value."""
    return (*path_of(loc[0]), own, *loc[1:])


def _moved(error: ValidationError, to: Callable[[Any], Path]) -> ValidationError:
    """Return the errors of a part of a document with their places in the whole."""
    details: list[InitErrorDetails] = []
    for fault in error.errors(include_url=False):
        kind: Any = fault["type"]
        if kind == "value_error":
            kind = PydanticCustomError("value_error", "{error}", {"error": str(fault["ctx"]["error"])})
        details.append({"type": kind, "loc": to(fault["loc"]), "input": fault["input"], "ctx": fault.get("ctx", {})})
    return ValidationError.from_exception_data(error.title, details)


@cache
def _column_type(kind: type[Record], name: str) -> TypeAdapter[list[Any]]:
    field = kind.model_fields[name]
    annotated = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    return TypeAdapter(Annotated[list[annotated], FailFast()])  # type: ignore[valid-type, arg-type]  # made at run time


def check_column(kind: type[Record], name: str, values: list[Any]) -> list[Any]:
    """Return the values of a field of many records, validated; raises `ValidationError` with the first wrong one."""
    # A record is as strict as it says itself; strict from outside it would refuse objects of JSON.
    return _column_type(kind, name).validate_python(values, strict=None if name == "origin" else True)


def copies(kind: type[Any], fields: Iterable[dict[str, Any]], columns: Mapping[str, Sequence[Any]]) -> list[Any]:
    """Return a record of each of ``fields``, all of them valid, with other values of some fields, valid as well."""
    made = [dict(one) for one in fields]
    for name, values in columns.items():
        for own, value in zip(made, values, strict=True):
            own[name] = value
    return [trusted(kind, one) for one in made]


def grouped(jobs: Iterable[Job]) -> tuple[list[str], list[int]]:
    """Return the JSON of each different template, without defaults, and the number of each job's template."""
    numbers: dict[str, int] = {}
    by_identity: dict[tuple[int, ...], int] = {}
    of_job = []
    for job in jobs:
        address = tuple(map(id, _shared_of(job.__dict__)))
        number = by_identity.get(address)
        if number is None:
            text = job.model_dump_json(exclude_defaults=True, exclude=set(OWN))
            number = by_identity[address] = numbers.setdefault(text, len(numbers))
        of_job.append(number)
    return list(numbers), of_job


def digest_of(rest: str, jobs: Sequence[Job]) -> str:
    """Return the SHA-256 of a document: of the JSON of all but its jobs, of templates, of columns of what jobs add."""
    digest = hashlib.sha256(rest.encode())
    digest.update(json.dumps(grouped(jobs)).encode())
    for name in OWN:
        values = [job.__dict__[name] for job in jobs]
        if name == "id" or values.count(_DEFAULTS[name]) < len(values):
            digest.update(name.encode() + _column_type(Job, name).dump_json(values, exclude_defaults=True))
    return digest.hexdigest()


def job_rows(jobs: Sequence[Job]) -> tuple[dict[str, str], list[str]]:
    """
    Return jobs as a file has them: the JSON of each template by its name, and that of each job.

    A template is what two jobs share; what a job shares with no other stands in the job.
    """
    texts, numbers = grouped(jobs)
    several = [False] * len(texts)
    seen = set[int]()
    for number in numbers:
        several[number] |= number in seen
        seen.add(number)
    names: dict[int, str] = {}
    rows = []
    for job, number in zip(jobs, numbers, strict=True):
        if not several[number]:
            rows.append(job.model_dump_json(exclude_defaults=True))
            continue
        fields: dict[str, Any] = {"id": job.id, TEMPLATE: names.setdefault(number, f"t{len(names)}")}
        for own, value in zip(OWN, _own_of(job.__dict__), strict=True):
            if own != "id" and value != _DEFAULTS[own]:
                fields[own] = value.model_dump(exclude_defaults=True) if isinstance(value, Record) else value
        rows.append(json.dumps(fields, ensure_ascii=False, separators=(",", ":")))
    return {name: texts[number] for number, name in names.items()}, rows
