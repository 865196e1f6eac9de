"""
The ZIP that KAI's plugin ``snapshot`` serves at ``/get-snapshot``, as objects such as Kubernetes lists them.

Layout: github.com/NVIDIA/KAI-Scheduler, ``pkg/scheduler/plugins/snapshot/snapshot.go``. It holds one file, with lists
of objects that do not state their kinds. What KAI alone knows of a pod is written where Kubernetes' own objects have
it: the node that a BindRequest has chosen, the priority of its PodGroup, and whether KAI may stop or move it.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from placeopt.documents.files import MAX_BYTES, parse_json
from placeopt.errors import BadInput
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.objects import by_id, object_id
from placeopt.importers.priority_rule import ANNOTATION

ZIP_MAGIC = b"PK\x03\x04"
FILE = "snapshot.json"
SCHEDULING = "scheduling.run.ai/"
KINDS = {
    "pods": ("v1", "Pod"),
    "nodes": ("v1", "Node"),
    "queues": (f"{SCHEDULING}v2", "Queue"),
    "podGroups": (f"{SCHEDULING}v2alpha2", "PodGroup"),
    "priorityClasses": ("scheduling.k8s.io/v1", "PriorityClass"),
    "persistentVolumeClaims": ("v1", "PersistentVolumeClaim"),
    "storageClasses": ("storage.k8s.io/v1", "StorageClass"),
    "resourceClaims": ("resource.k8s.io/v1", "ResourceClaim"),
    "resourceSlices": ("resource.k8s.io/v1", "ResourceSlice"),
    "deviceClasses": ("resource.k8s.io/v1", "DeviceClass"),
    "topologies": ("kai.scheduler/v1alpha1", "Topology"),
}
"""Field of ``rawObjects`` -> API version and kind of its objects; of the others nothing is read."""
GROUP = "pod-group-name"
"""Annotation of a pod with the name of its PodGroup."""
NOT_PREEMPTIBLE_FROM = 100
"""Priority from which KAI stops no pod, where its PodGroup does not say."""
CONSOLIDATION = "consolidation"
"""The action of KAI's scheduler that moves pods which may be stopped."""
UNREADABLE = (
    zipfile.BadZipFile,  # the directory, or a sum, is wrong
    zlib.error,  # what is packed is damaged
    EOFError,  # it ends too early
    NotImplementedError,  # another way of packing
    RuntimeError,  # it asks for a password
    OSError,  # an offset that lies outside
)
"""What `zipfile` raises on an archive that is damaged or of another kind."""


def snapshot_objects(data: bytes, where: str) -> Iterator[tuple[str, JsonEntry]]:
    """Yield the objects of a snapshot, each with its kind; ``where``: its file. Raises `BadInput` if it is none."""
    document = JsonEntry(f"{where}, {FILE}", parse_json(_unpacked(data, where), f"{where}, {FILE}"))
    if "rawObjects" not in document:
        raise document.bad("rawObjects", "the Kubernetes objects of a snapshot of KAI")
    raw = document.entry("rawObjects")
    actions = document.entry("config").text("actions", "").replace(" ", "").split(",")
    pods = _PodFields(raw, moves=CONSOLIDATION in actions)
    for field, (version, kind) in KINDS.items():
        for entry in raw.entries(field):
            own = pods.completed(entry) if kind == "Pod" else _fields(entry)
            yield kind, JsonEntry(entry.where, {**own, "apiVersion": version, "kind": kind})


def _unpacked(data: bytes, where: str) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed, packed.open(FILE) as stream:
            text = stream.read(MAX_BYTES + 1)
    except KeyError:
        raise BadInput(f"{where}: a ZIP without {FILE}; expected a snapshot of KAI") from None
    except UNREADABLE as error:
        raise BadInput(f"{where}: cannot be unpacked: {error}; expected a snapshot of KAI") from None
    if len(text) > MAX_BYTES:
        raise BadInput(f"{where}: {FILE} has more than {MAX_BYTES:,} bytes; expected a snapshot of KAI")
    return text


def _fields(entry: JsonEntry) -> dict[str, Any]:
    return {name: entry.raw(name) for name in entry.names()}


class _PodFields:
    """What the other objects of a snapshot say about its pods; ``moves``: whether KAI moves those that it may stop."""

    def __init__(self, raw: JsonEntry, *, moves: bool) -> None:
        self._moves = moves
        self._groups = by_id(raw.entries("podGroups"))
        self._priorities = dict(_by_name(raw.entries("priorityClasses")))
        self._nodes: dict[str, str] = {}
        for request in raw.entries("bindRequests"):
            with suppress(BadInput):
                if request.entry("status").text("phase", "") != "Failed":
                    spec, metadata = request.entry("spec"), request.entry("metadata")
                    pod = f"{metadata.text('namespace', 'default')}/{spec.text('podName')}"
                    self._nodes[pod] = spec.text("selectedNode")

    def completed(self, pod: JsonEntry) -> dict[str, Any]:
        """Return the fields of a pod, completed; as they are where one of them cannot be read."""
        fields = _fields(pod)
        with suppress(BadInput):
            metadata, spec = pod.entry("metadata"), pod.entry("spec")
            said, chosen = metadata.texts("annotations"), _fields(spec)
            group = self._groups.get(f"{metadata.text('namespace', 'default')}/{said.get(GROUP, '')}")
            priority = self._priority(group, spec)
            stated = "" if group is None else group.entry("spec").text("preemptibility", "")
            may = stated == "preemptible" or (not stated and priority < NOT_PREEMPTIBLE_FROM)
            marks = {"preemptible": may, "movable": may and self._moves}
            annotations = {**{f"{ANNOTATION}{mark}": str(is_so).lower() for mark, is_so in marks.items()}, **said}
            chosen["priority"] = priority
            if (node := self._nodes.get(object_id(pod))) and "nodeName" not in spec:
                chosen["nodeName"] = node
            return {**fields, "metadata": {**_fields(metadata), "annotations": annotations}, "spec": chosen}
        return fields

    def _priority(self, group: JsonEntry | None, spec: JsonEntry) -> int:
        """Return the priority of a pod's group or, where that states no class that is listed, its own."""
        named = None if group is None else self._priorities.get(group.entry("spec").text("priorityClassName", ""))
        low, high = -(2**31), 2**31
        return spec.integer("priority", low, high, 0) if named is None else named.integer("value", low, high)


def _by_name(entries: list[JsonEntry]) -> Iterator[tuple[str, JsonEntry]]:
    for entry in entries:
        with suppress(BadInput):
            yield entry.entry("metadata").text("name"), entry
