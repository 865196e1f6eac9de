"""
Templates: what jobs have in common is stated once in a file, and a job adds its id, times, user and origin.

In memory a job is whole; jobs of one template hold the same objects. So all that is done with many jobs (reading them,
checking references, the digest, compiling, writing) looks at each object once, and at the rest by columns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, ModelWrapValidatorHandler, TypeAdapter, model_validator

from placeopt.model.base import MAX_JOBS, Id, Record, trusted
from placeopt.model.job import OWN, RECORDS, TEMPLATE, TEMPLATES, Job, Templates, filled, templates

_records_of = itemgetter(*RECORDS, "labels")
_values_of = itemgetter(*(name for name in Job.model_fields if name not in (*OWN, *RECORDS, "labels")))
_own_of = itemgetter(*OWN)
_DEFAULTS = {name: Job.model_fields[name].get_default() for name in OWN if name != "id"}


def _as_job(fields: object) -> object:
    if not isinstance(fields, dict):
        return fields
    for own in (*OWN, TEMPLATE):
        if own in fields:
            raise ValueError(f"{own}: a job states it, not a template; move it to the job")
    return {**fields, "id": "-"}


class _Stated(Record):
    templates: dict[Id, Annotated[Job, BeforeValidator(_as_job)]]


class JobsDocument(Record):
    """A document with jobs; what they have in common may stand in its ``templates``."""

    JOBS: ClassVar[tuple[str, ...]] = ("jobs",)
    """The list that has the jobs, and the field of its entries where these are not the jobs themselves."""

    @model_validator(mode="wrap")
    @classmethod
    def _with_templates(cls, given: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(given, dict) or TEMPLATES not in given:
            return handler(given)
        rest = dict(given)
        stated = _Stated.model_validate({"templates": rest.pop(TEMPLATES)}).templates
        # While objects are made, Python looks for garbage among all that hold others, again and again. A job without
        # values holds none: all are made first, then filled one by one.
        entries = rest.get(cls.JOBS[0])
        count = min(len(entries), MAX_JOBS) if isinstance(entries, list) else 0
        nothing = dict.fromkeys(Job.model_fields)
        blanks = [trusted(Job, nothing.copy()) for _ in range(count)]
        known = Templates({name: job.__dict__ for name, job in stated.items()}, blanks)
        if isinstance(entries, list) and len(entries) <= MAX_JOBS and not cls.JOBS[1:]:
            rest[cls.JOBS[0]] = filled(entries, known)
        before = templates.set(known)
        try:
            return handler(rest)
        finally:
            templates.reset(before)


def grouped(jobs: Iterable[Job]) -> tuple[list[str], list[int]]:
    """Return the JSON of each different template, without defaults, and the number of each job's template."""
    numbers: dict[str, int] = {}
    known: dict[tuple[object, ...], int] = {}
    of_job = []
    for job in jobs:
        a, b, c, d, e = _records_of(job.__dict__)
        alike = (id(a), id(b), id(c), id(d), id(e), _values_of(job.__dict__))
        number = known.get(alike)
        if number is None:
            text = job.model_dump_json(exclude_defaults=True, exclude=set(OWN))
            number = known[alike] = numbers.setdefault(text, len(numbers))
        of_job.append(number)
    return list(numbers), of_job


def digest_of(rest: str, jobs: Sequence[Job]) -> str:
    """Return the SHA-256 of a document: of the JSON of all but its jobs, of templates, of columns of what jobs add."""
    digest = hashlib.sha256(rest.encode())
    digest.update(json.dumps(grouped(jobs)).encode())
    for name in OWN:
        values = [job.__dict__[name] for job in jobs]
        if name == "id" or values.count(_DEFAULTS[name]) < len(values):
            annotation: Any = Job.model_fields[name].annotation
            column = TypeAdapter[list[Any]](list[annotation])
            digest.update(name.encode() + column.dump_json(values, exclude_defaults=True))
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
