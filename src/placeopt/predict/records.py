"""Fitted models as small JSON files that state their source."""

from __future__ import annotations

import os
from typing import TypeVar

from placeopt.formats.documents import dumps, loads
from placeopt.formats.files import label, read_bytes, write_bytes
from placeopt.model.base import Record
from placeopt.predict.errors import Errors


class Provenance(Record):
    """The data of a fit: source and licence, rows used, and rows left out with the reason."""

    source: str
    licence: str = ""
    rows: int
    left_out: int = 0
    why_left_out: str = ""


class Fitted(Record):
    """Base of all fitted models."""

    format_version: int = 1
    name: str
    provenance: Provenance
    errors: Errors
    """Errors on the rows of the fit, unless the model states otherwise."""


M = TypeVar("M", bound=Fitted)


def read_fitted(kind: type[M], path: str | os.PathLike[str]) -> M:
    """Read a fitted model from ``.json``; raises ``BadInput`` where the file cannot be read or is of another kind."""
    return loads(kind, read_bytes(path), source=label(os.fspath(path)))


def write_fitted(path: str | os.PathLike[str], model: Fitted) -> None:
    """Write a fitted model, all or nothing. Raises ``BadInput``."""
    write_bytes(path, dumps(model))
