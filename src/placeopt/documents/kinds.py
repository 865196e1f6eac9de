"""Files of several kinds: each states at its top what it is, as ``"document": "round"``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar, overload

from placeopt.documents.documents import as_record, parse_document
from placeopt.documents.files import file_name, label, read_bytes
from placeopt.errors import BadInput
from placeopt.model import Record

One = TypeVar("One", bound=Record)
Other = TypeVar("Other", bound=Record)


def kind_of(record: type[Record]) -> str:
    """Return what files of a record state under ``document``."""
    kind: str = record.model_fields["document"].default
    return kind


@overload
def read_any(path: str | os.PathLike[str], records: tuple[type[One], type[Other]]) -> One | Other: ...


@overload
def read_any(path: str | os.PathLike[str], records: Sequence[type[Record]]) -> Record: ...


def read_any(path: str | os.PathLike[str], records: Sequence[type[Record]]) -> Record:
    """
    Read a file of one of several kinds.

    Parameters
    ----------
    path
        ``.json`` or ``.json.gz``; ``-`` is standard input.
    records
        What is taken, each a record with a field ``document``.

    Returns
    -------
    Record
        Of the kind that the file states.

    Raises
    ------
    BadInput
        If the file cannot be read, states no kind or one that is not taken, or is no valid document of its kind.
    """
    source = label(file_name(path))
    return as_any(parse_document(read_bytes(path), source), source, records)


def as_any(document: object, source: str, records: Sequence[type[Record]]) -> Record:
    """Return a parsed document as the record of its kind; raises `BadInput` as `read_any` does."""
    known = {kind_of(record): record for record in records}
    expected = " or ".join(f'"{kind}"' for kind in known)
    if not isinstance(document, dict):
        raise BadInput(f'{source}: not an object, expected one with "document": {expected}')
    stated = document.get("document")
    if stated is None:
        raise BadInput(f'{source}: does not state what it is; write "document": {expected} at its top')
    if not isinstance(stated, str) or stated not in known:
        raise BadInput(f"{source}: document: {str(stated)[:40]!r}, expected {expected}")
    return as_record(known[stated], document, source)
