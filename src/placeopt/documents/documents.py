"""
Records as JSON documents: strict when read, stable when written.

A text is parsed once, with what JSON readers accept silently (duplicate keys, NaN) refused, and judged by the strict
records of `placeopt.model`. Every fault becomes part of one `BadInput` that names the file, the path inside it, the
value and what was expected.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from placeopt.arguments import checked
from placeopt.documents.faults import parse_strictly, validation_fault
from placeopt.documents.files import MAX_BYTES, as_text, check_bounds, file_name, label, read_bytes, write_bytes
from placeopt.model import Instance, Plan, Record
from placeopt.model.templates import JobsDocument, job_rows

Document = TypeVar("Document", bound=Record)


def read_document(kind: type[Document], path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Document:
    """
    Read a record from a file.

    Parameters
    ----------
    kind
        `Instance`, `Plan`, or another record, such as `Policy` or a scenario.
    path
        ``.json`` or ``.json.gz``; ``-`` is standard input.
    max_bytes
        Largest size, in bytes after unpacking.

    Returns
    -------
    Record
        Of that kind; every field is checked.

    Raises
    ------
    BadInput
        If the file cannot be read, is larger than ``max_bytes``, or is no valid document of this kind. The message
        lists up to 20 faults, each with its path in the document, and counts the others.
    """
    source = label(file_name(path))
    return as_record(kind, parse_document(read_bytes(path, max_bytes=max_bytes), source), source)


def read_instance(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Instance:
    """Read an instance from a file, as `read_document` does."""
    return read_document(Instance, path, max_bytes=max_bytes)


def read_plan(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Plan:
    """Read a plan from a file, as `read_document` does."""
    return read_document(Plan, path, max_bytes=max_bytes)


@checked
def write_document(path: str | os.PathLike[str], document: Record) -> None:
    """
    Write a record to a file: the whole file or, at a fault, none.

    Parameters
    ----------
    path
        A name that ends in ``.gz`` is compressed; ``-`` is standard output.
    document
        What to write, as `dumps` returns it.

    Raises
    ------
    BadInput
        If the file cannot be written.
    """
    write_bytes(path, dumps(document))


@checked
def loads(kind: type[Document], data: bytes | str, *, source: str = "document") -> Document:
    """
    Read a record from text.

    Parameters
    ----------
    kind
        `Instance`, `Plan`, or another record, such as `Policy`.
    data
        JSON in UTF-8, with or without byte order mark.
    source
        What messages call it, the file's name as a rule.

    Raises
    ------
    BadInput
        If ``data`` is not a valid document of that kind. At most 20 faults are shown, those of the first wrong element
        of each list.
    """
    return as_record(kind, parse_document(data, source), source)


def parse_document(data: bytes | str, source: str) -> Any:
    """Return the value of a document, whatever its kind; raises `BadInput` for what is no strict JSON."""
    check_bounds(data, source)
    return parse_strictly(data if isinstance(data, str) else as_text(data, source, "JSON"), source)


def as_record(kind: type[Document], document: object, source: str) -> Document:
    """Return a parsed document as a record; raises `BadInput` for what is wrong in it."""
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        fault = validation_fault(kind, error, source)
    raise fault


@checked
def dumps(document: Record) -> bytes:
    """
    Write a record as JSON, one job, node or placement a line.

    What two jobs or more have in common stands in ``templates``. A plan leaves out nothing; other records leave out
    what is at its default, except what they are and the version of the format. The same document gives the same bytes.
    """
    return (_format_record(document, "", sparse=not isinstance(document, Plan)) + "\n").encode()


def _format_record(record: Record, indent: str, *, sparse: bool) -> str:
    """Return a record as JSON, one field a line, and one line for each element of a list of records."""
    inner = indent + "  "
    lines = []
    for name, field in type(record).model_fields.items():
        value = getattr(record, name)
        stays = name in ("document", "format_version") or field.is_required() or not sparse
        is_default = value == field.get_default(call_default_factory=True)
        if (is_default and not stays) or (field.exclude and indent):
            continue
        if isinstance(record, JobsDocument) and name == record.JOBS[0]:
            templates, rows = _job_rows(record, value)
            if templates:
                shown = [f"{json.dumps(name)}: {text}" for name, text in templates.items()]
                lines.append(f'{inner}"templates": {_listed(shown, inner, "{}")}')
            text = _listed(rows, inner)
        elif isinstance(value, tuple) and value and isinstance(value[0], Record):
            text = _listed([item.model_dump_json(by_alias=True, exclude_defaults=sparse) for item in value], inner)
        elif name == "document":
            text = json.dumps(value)
        elif isinstance(value, Record) and not indent:
            text = _format_record(value, inner, sparse=sparse)
        else:
            text = _field(record, name, sparse=sparse and not stays)
        lines.append(f'{inner}"{field.alias or name}": {text}')
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}" if lines else "{}"


def _job_rows(record: JobsDocument, entries: Sequence[Any]) -> tuple[dict[str, str], list[str]]:
    """Return the templates of the jobs of a document, and the rows of the list that has them."""
    key_of_job = record.JOBS[1:]
    templates, rows = job_rows([getattr(entry, key_of_job[0]) for entry in entries] if key_of_job else entries)
    for key in key_of_job:
        rest = [entry.model_dump_json(exclude_defaults=True, exclude={key})[1:] for entry in entries]
        rows = [f'{{"{key}":{row}{"," * (more != "}")}{more}' for row, more in zip(rows, rest, strict=True)]
    return templates, rows


def _listed(rows: list[str], indent: str, brackets: str = "[]") -> str:
    """Return a list or an object with a row a line."""
    return f",\n{indent}  ".join([f"{brackets[0]}\n{indent}  {rows[0]}", *rows[1:]]) + f"\n{indent}{brackets[1]}"


def _field(record: Record, name: str, *, sparse: bool) -> str:
    """Dump one field as pydantic does within the record, without the record around it."""
    dumped = record.model_dump_json(by_alias=True, exclude_defaults=sparse, include={name})
    return dumped[dumped.index(":") + 1 : -1] if dumped != "{}" else "{}"
