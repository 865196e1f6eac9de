"""Lists that Slurm's commands print as JSON: each is told from its plain text and from the other lists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from placeopt.documents.files import read_bytes
from placeopt.errors import BadInput, Unsupported
from placeopt.importers.json_entry import JsonEntry, read_json

TEXT = re.compile(r"\s*(NodeName=|JobId=|JOBID\b|NODELIST\b|PARTITION\b|LicenseName=|ReservationName=)")
"""How the output of scontrol, squeue and sinfo begins without ``--json``."""
KEYS = ("jobs", "nodes", "partitions", "sinfo", "licenses", "reservations")


def read_list(source: str | Path | dict[str, Any], key: str, command: str) -> tuple[JsonEntry, list[JsonEntry]]:
    """Return a document, a file or parsed, and the entries of its list; ``command``: what prints it, for messages."""
    if not isinstance(source, dict) and str(source) != "-":
        match = TEXT.match(read_bytes(source)[:4096].decode(errors="replace"))
        if match is not None:
            begins = f"{source}: begins with {match[1]!r}: Slurm's plain text, which is not read"
            raise Unsupported(f"{begins}; give the output of {command}")
    document = read_json(source, key)
    return document, entries_of(document, key, command)


def entries_of(document: JsonEntry, key: str, command: str) -> list[JsonEntry]:
    """Return the entries of a list; raises `Unsupported` where a document has another of Slurm's lists instead."""
    if isinstance(document.raw(key), list):
        return document.entries(key)
    if other := next((other for other in KEYS if other in document), None):
        raise Unsupported(
            f"{document.where}: no list {key!r}, but Slurm's list of {other}; give the output of {command}"
        )
    raise BadInput(f"{document.where}: no list {key!r}; expected the output of {command}")
