"""The files of a listing: lists of objects as Kubernetes' API gives them, and snapshots of KAI."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from placeopt.documents.files import label, parse_json, read_bytes
from placeopt.errors import BadInput
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.kai_snapshot import ZIP_MAGIC, snapshot_objects
from placeopt.importers.kubernetes.objects import Listed
from placeopt.model.base import MAX_JOBS, MAX_NODES


def read_objects(sources: Sequence[str | Path | dict[str, Any]] | dict[str, Any]) -> tuple[Listed, str]:
    """Return the listed objects by kind, and what messages call their files; raises as `read_kubernetes`."""
    sources = [sources] if isinstance(sources, dict) else list(sources)
    where = ", ".join(dict.fromkeys("objects" if isinstance(one, dict) else Path(one).name for one in sources))
    listed: dict[str, list[JsonEntry]] = defaultdict(list)
    for i, source in enumerate(sources):
        for kind, item in _objects(source, "objects" if len(sources) == 1 else f"objects[{i}]"):
            listed[kind].append(item)
    if not 1 <= len(listed["Node"]) <= MAX_NODES:
        raise BadInput(f"{where}: {len(listed['Node'])} nodes, expected 1 to {MAX_NODES}; list nodes,pods together")
    if len(listed["Pod"]) > MAX_JOBS:
        raise BadInput(f"{where}: {len(listed['Pod'])} pods, expected at most {MAX_JOBS}")
    return listed, where


def _objects(source: str | Path | dict[str, Any], name: str) -> Iterable[tuple[str, JsonEntry]]:
    """Return the objects of a list, a single object, or a snapshot of KAI, each with its kind."""
    if isinstance(source, dict):
        return _items(JsonEntry(name, source))
    data, name = read_bytes(source), label(str(source))
    if data.startswith(ZIP_MAGIC):
        return snapshot_objects(data, name)
    return _items(JsonEntry(name, parse_json(data, name)))


def _items(document: JsonEntry) -> list[tuple[str, JsonEntry]]:
    """Return the objects of a list, or the one object, each with its kind."""
    own = document.text("kind", "")
    if "items" in document or own.endswith("List"):  # the API states the kind of a list's items in the list alone
        return [(item.text("kind", own.removesuffix("List")), item) for item in document.entries("items")]
    if own and "metadata" in document:
        return [(own, document)]
    raise BadInput(f"{document.where}: no 'items'; expected the output of kubectl get nodes,pods -A -o json")
