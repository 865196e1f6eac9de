"""
Instances and plans as JSON documents: strict when read, stable when written.

A text is parsed once, with what JSON readers accept silently (duplicate keys, NaN) refused, and judged by the strict
records of `placeopt.model`. Every fault becomes part of one `BadInput` that names the file, the path inside it, the
value and what was expected.
"""

from __future__ import annotations

import json
import os
from typing import TypeVar

from pydantic import ValidationError

from placeopt.arguments import checked
from placeopt.documents.bounds import check_bounds
from placeopt.documents.faults import parse_strictly, validation_fault
from placeopt.documents.files import MAX_BYTES, file_name, label, read_bytes, write_bytes
from placeopt.errors import BadInput
from placeopt.model import Instance, Plan, Record, Scenario
from placeopt.model.templates import job_rows

Document = TypeVar("Document", bound=Record)
UTF8_BOM = b"\xef\xbb\xbf"


def read_document(kind: type[Document], path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Document:
    """
    Return a record from ``.json``, ``.json.gz`` or ``-``.

    Parameters
    ----------
    kind
        `Instance`, `Plan`, or another record of the model, such as `Policy`.
    path
        The file.
    max_bytes
        Largest size, after decompression.

    Raises
    ------
    BadInput
        If the file cannot be read or is not a valid document; at most 20 faults are listed, the others counted.
    """
    return loads(kind, read_bytes(path, max_bytes=max_bytes), source=label(file_name(path)))


def read_instance(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Instance:
    """
    Read an instance from a file.

    Parameters
    ----------
    path
        ``.json`` or ``.json.gz``; ``-`` is standard input.
    max_bytes
        Largest size, in bytes after unpacking.

    Returns
    -------
    Instance
        The document; every field is checked.

    Raises
    ------
    BadInput
        If the file cannot be read, is larger than ``max_bytes``, or is no valid document of this kind. The message
        lists up to 20 faults, each with its path in the document.
    """
    return read_document(Instance, path, max_bytes=max_bytes)


def read_plan(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Plan:
    """
    Read a plan from a file.

    Parameters
    ----------
    path
        ``.json`` or ``.json.gz``; ``-`` is standard input.
    max_bytes
        Largest size, in bytes after unpacking.

    Returns
    -------
    Plan
        The document; every field is checked.

    Raises
    ------
    BadInput
        If the file cannot be read, is larger than ``max_bytes``, or is no valid document of this kind. The message
        lists up to 20 faults, each with its path in the document.
    """
    return read_document(Plan, path, max_bytes=max_bytes)


def read_scenario(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Scenario:
    """
    Read a scenario from a file.

    Parameters
    ----------
    path
        ``.json`` or ``.json.gz``; ``-`` is standard input.
    max_bytes
        Largest size, in bytes after unpacking.

    Returns
    -------
    Scenario
        The document; every field is checked.

    Raises
    ------
    BadInput
        If the file cannot be read, is larger than ``max_bytes``, or is no valid document of this kind. The message
        lists up to 20 faults, each with its path in the document.
    """
    return read_document(Scenario, path, max_bytes=max_bytes)


@checked
def write_scenario(path: str | os.PathLike[str], scenario: Scenario) -> None:
    """
    Write a scenario to a file: the whole file or, at a fault, none.

    Parameters
    ----------
    path
        A name that ends in ``.gz`` is compressed; ``-`` is standard output.
    scenario
        What to write; a field at its default is left out.

    Raises
    ------
    BadInput
        If the file cannot be written.
    """
    write_bytes(path, dumps(scenario))


@checked
def write_instance(path: str | os.PathLike[str], instance: Instance) -> None:
    """
    Write an instance to a file: the whole file or, at a fault, none.

    Parameters
    ----------
    path
        A name that ends in ``.gz`` is compressed; ``-`` is standard output.
    instance
        What to write; a field at its default is left out.

    Raises
    ------
    BadInput
        If the file cannot be written.
    """
    write_bytes(path, dumps(instance))


@checked
def write_plan(path: str | os.PathLike[str], plan: Plan) -> None:
    """
    Write a plan to a file: the whole file or, at a fault, none.

    Parameters
    ----------
    path
        A name that ends in ``.gz`` is compressed; ``-`` is standard output.
    plan
        What to write; a field at its default is left out.

    Raises
    ------
    BadInput
        If the file cannot be written.
    """
    write_bytes(path, dumps(plan))


@checked
def loads(kind: type[Document], data: bytes | str, *, source: str = "document") -> Document:
    """
    Read an instance, a plan or any other record from text.

    Parameters
    ----------
    kind
        `Instance`, `Plan`, or another record of the model, such as `Policy`.
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
    check_bounds(data, source)
    document = parse_strictly(data if isinstance(data, str) else _decode(data, source), source)
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


def _decode(data: bytes, source: str) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\x00" in data[:4]:
        raise BadInput(f"{source}: not UTF-8 but UTF-16 or UTF-32, or no text at all; save it as UTF-8")
    try:
        return data.removeprefix(UTF8_BOM).decode()
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{source}: not UTF-8: byte {data[error.start]:#04x} at offset {error.start}; save it as UTF-8"
        ) from None


def _format_record(record: Record, indent: str, *, sparse: bool) -> str:
    """Return a record as JSON, one field a line, and one line for each element of a list of records."""
    inner = indent + "  "
    lines = []
    for name, field in type(record).model_fields.items():
        value = getattr(record, name)
        late = isinstance(record, Plan) and name in Plan.ADDED
        stays = name in ("document", "format_version") or field.is_required() or not (sparse or late)
        if not stays and value == field.get_default(call_default_factory=True):
            continue
        if isinstance(record, Instance | Scenario) and name in ("jobs", "arrivals"):
            templates, rows = _job_rows(record)
            if templates:
                shown = [f"{json.dumps(name)}: {text}" for name, text in templates.items()]
                lines.append(f'{inner}"templates": {_listed(shown, inner, "{}")}')
            text = _listed(rows, inner)
        elif isinstance(value, tuple) and value and isinstance(value[0], Record):
            text = _listed([item.model_dump_json(by_alias=True, exclude_defaults=sparse) for item in value], inner)
        elif isinstance(value, Record) and not indent:
            text = _format_record(value, inner, sparse=sparse)
        else:
            text = _field(record, name, sparse=sparse and not stays)
        lines.append(f'{inner}"{field.alias or name}": {text}')
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}" if lines else "{}"


def _job_rows(record: Instance | Scenario) -> tuple[dict[str, str], list[str]]:
    """Return the templates of the jobs of a document, and the rows of the list that has them."""
    if isinstance(record, Instance):
        return job_rows(record.jobs)
    templates, rows = job_rows([arrival.job for arrival in record.arrivals])
    rest = [arrival.model_dump_json(exclude_defaults=True, exclude={"job"})[1:] for arrival in record.arrivals]
    return templates, [f'{{"job":{row}{"," * (more != "}")}{more}' for row, more in zip(rows, rest, strict=True)]


def _listed(rows: list[str], indent: str, brackets: str = "[]") -> str:
    """Return a list or an object with a row a line."""
    return f",\n{indent}  ".join([f"{brackets[0]}\n{indent}  {rows[0]}", *rows[1:]]) + f"\n{indent}{brackets[1]}"


def _field(record: Record, name: str, *, sparse: bool) -> str:
    """Dump one field as pydantic does within the record, without the record around it."""
    dumped = record.model_dump_json(by_alias=True, exclude_defaults=sparse, include={name})
    return dumped[dumped.index(":") + 1 : -1] if dumped != "{}" else "{}"
