"""The bodies that kube-scheduler sends: ``ExtenderArgs`` and ``ExtenderBindingArgs``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from placeopt.errors import BadInput
from placeopt.importers.json_entry import JsonEntry

MOST_NODES = 100_000


@dataclass(frozen=True)
class ExtenderArgs:
    """A pod, and the nodes that passed kube-scheduler's own filters."""

    pod: dict[str, Any]
    nodes: tuple[str, ...]
    """Names, each once."""
    objects: dict[str, Any] | None
    """The list of the nodes as it was sent; None where only names were (``nodeCacheCapable: true``)."""

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> ExtenderArgs:
        """Read the body of filter and prioritize; raises `BadInput` with the place of what is wrong."""
        entry = JsonEntry("body", dict(body))
        pod = _pod(entry)
        if "NodeNames" in entry:
            return cls(pod, _once(entry, entry.words("NodeNames")), None)
        items = entry.entry("Nodes").entries("items")
        names = [item.entry("metadata").text("name") for item in items]
        return cls(pod, _once(entry, names), entry.raw("Nodes") or {"items": []})


@dataclass(frozen=True)
class BindingArgs:
    """A pod by name and UID, and the node that kube-scheduler selected."""

    pod: str
    """``NAMESPACE/NAME``."""
    uid: str
    node: str

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> BindingArgs:
        """Read the body of bind; raises `BadInput` with the place of what is wrong."""
        entry = JsonEntry("body", dict(body))
        texts = {key: entry.text(key) for key in ("PodNamespace", "PodName", "PodUID", "Node")}
        for key, text in texts.items():
            if not text:
                raise entry.bad(key, "a name")
        return cls(f"{texts['PodNamespace']}/{texts['PodName']}", texts["PodUID"], texts["Node"])


def _pod(entry: JsonEntry) -> dict[str, Any]:
    metadata = entry.entry("Pod").entry("metadata")
    if not metadata.text("uid"):
        raise metadata.bad("uid", "the UID of the pod")
    pod: dict[str, Any] = entry.raw("Pod")
    return pod


def _once(entry: JsonEntry, names: list[str]) -> tuple[str, ...]:
    if len(names) > MOST_NODES:
        raise BadInput(f"{entry.where}: {len(names)} nodes, expected at most {MOST_NODES}")
    return tuple(dict.fromkeys(names))
