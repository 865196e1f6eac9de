"""
Instances and plans as JSON documents: strict when read, stable when written.

Reading parses the text twice: once for what JSON readers accept silently (duplicate keys, NaN), once with the strict
records of `placeopt.model`. Every fault becomes part of one `BadInput` that names the file, the path inside it, the
value and what was expected.
"""

from __future__ import annotations

import json
import os
from functools import cache
from typing import Any, NoReturn, TypeVar

from pydantic import ValidationError
from pydantic_core import SchemaValidator

from placeopt.arguments import checked
from placeopt.errors import BadInput
from placeopt.formats.bounds import check_bounds
from placeopt.formats.faults import SHOWN, find_fault, record_fault, syntax_fault, validation_fault
from placeopt.formats.files import MAX_BYTES, file_name, label, read_bytes, write_bytes
from placeopt.formats.shared_options import share_options
from placeopt.model import Instance, Plan, Record, Scenario

Document = TypeVar("Document", bound=Record)
MAX_KEYS = 20_000
"""Keys of one object: labels of a node, GPUs of an assignment."""
LARGE = 1 << 18
"""
Bytes from which on a document is validated with lists that stop at the first wrong element.

The validator collects all errors before it reports one, some kilobytes of memory each, so a list of a million wrong
jobs would take gigabytes. The neighbours of a wrong element are then validated alone.
"""
EXCERPT = LARGE
"""Bytes of such neighbours up to which they are validated."""
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
        If ``data`` is not a valid document of that kind. At most 20 faults are shown; of a document of more than
        256 KiB not all are counted.
    """
    check_bounds(data, source)
    text = data if isinstance(data, str) else _decode(data, source)
    _refuse_what_json_lets_pass(text, source)
    large = len(text) > LARGE
    try:
        document = fail_fast_validator(kind).validate_json(text) if large else kind.model_validate_json(text)
        if isinstance(document, Instance):
            share_options(document)
        return document
    except ValidationError as error:
        fault = first_faults(kind, text, error, source) if large else validation_fault(kind, error, source)
    raise fault


@checked
def dumps(document: Record) -> bytes:
    """
    Write a record as JSON, one job, node or placement a line.

    A plan leaves out nothing; other records leave out what is at its default, except the version of the format. The
    same document gives the same bytes.
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


def _refuse_what_json_lets_pass(text: str, source: str) -> None:
    """Refuse text that is not JSON, duplicate keys, and NaN, without building the document."""
    try:
        json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except (json.JSONDecodeError, RecursionError) as error:
        raise syntax_fault(error, text, source) from None
    except _TooManyKeys:
        raise BadInput(f"{source}: an object of more than {MAX_KEYS:,} keys; expected fewer") from None
    except (_Suspect, ValueError):  # a plain ValueError is an integer of thousands of digits
        raise find_fault(text, source) from None


class _TooManyKeys(Exception):
    """An object has more keys than any of the model may have."""


class _Suspect(Exception):
    """There is a fault that the slow search locates."""


def _no_duplicates(pairs: list[tuple[str, object]]) -> None:
    if len(pairs) > MAX_KEYS:
        raise _TooManyKeys
    if len(pairs) > 1 and len(dict(pairs)) != len(pairs):
        raise _Suspect


def _no_constant(_: str) -> NoReturn:
    raise _Suspect


def _format_record(record: Record, indent: str, *, sparse: bool) -> str:
    """Return a record as JSON, one field a line, and one line for each element of a list of records."""
    inner = indent + "  "
    lines = []
    for name, field in type(record).model_fields.items():
        value = getattr(record, name)
        late = isinstance(record, Plan) and name in Plan.ADDED
        stays = name == "format_version" or field.is_required() or not (sparse or late)
        if not stays and value == field.get_default(call_default_factory=True):
            continue
        if isinstance(value, tuple) and value and isinstance(value[0], Record):
            rows = (item.model_dump_json(by_alias=True, exclude_defaults=sparse) for item in value)
            items = ",\n".join(f"{inner}  {row}" for row in rows)
            text = f"[\n{items}\n{inner}]"
        elif isinstance(value, Record) and not indent:
            text = _format_record(value, inner, sparse=sparse)
        else:
            text = _field(record, name, sparse=sparse and not stays)
        lines.append(f'{inner}"{field.alias or name}": {text}')
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}" if lines else "{}"


def _field(record: Record, name: str, *, sparse: bool) -> str:
    """Dump one field as pydantic does within the record, without the record around it."""
    dumped = record.model_dump_json(by_alias=True, exclude_defaults=sparse, include={name})
    return dumped[dumped.index(":") + 1 : -1] if dumped != "{}" else "{}"


@cache
def fail_fast_validator(kind: type[Record]) -> SchemaValidator:
    """Return the validator of a record whose lists stop at the first wrong element."""
    return SchemaValidator(_failing_fast(kind.__pydantic_core_schema__))


def first_faults(kind: type[Record], text: str, error: ValidationError, source: str) -> BadInput:
    """Return the first faults of a document; ``error`` has at most one wrong element of every list."""
    errors: list[Any] = error.errors(include_url=False)
    document = json.loads(text)
    shown = 0
    begins: dict[tuple[str | int, ...], int] = {}
    for fault in errors:
        loc = fault["loc"]
        depth = next((i for i, step in enumerate(loc) if isinstance(step, int)), None)
        if depth is None or loc[:depth] in begins:
            continue
        *above, last = loc[:depth]
        holder = document
        for step in above:
            holder = holder[step]
        begins[loc[:depth]] = loc[depth]
        holder[last] = holder[last][loc[depth] : loc[depth] + SHOWN]
        shown += len(json.dumps(holder[last]))
    if begins and shown <= EXCERPT:
        try:
            kind.model_validate_json(json.dumps(document))
        except ValidationError as several:
            errors = [_moved(fault, begins) for fault in several.errors(include_url=False)]
    return record_fault(kind, errors, source, least=bool(begins))


def _moved(fault: Any, begins: dict[tuple[str | int, ...], int]) -> Any:
    """Return the error with its place in the whole document."""
    loc = fault["loc"]
    for path, begin in begins.items():
        end = len(path)
        if loc[:end] == path and len(loc) > end:
            return {**fault, "loc": (*path, loc[end] + begin, *loc[end + 1 :])}
    return fault


def _failing_fast(schema: Any) -> Any:
    if isinstance(schema, dict):
        changed = {key: inner if key == "metadata" else _failing_fast(inner) for key, inner in schema.items()}
        return changed | {"fail_fast": True} if schema.get("type") in ("tuple", "list") else changed
    if isinstance(schema, list):
        return [_failing_fast(inner) for inner in schema]
    return schema
