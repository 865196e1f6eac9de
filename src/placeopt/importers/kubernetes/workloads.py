"""Pods of Kueue's Workloads that wait for admission: their templates say what there are no pods of yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.makers import KUEUE, MAX_PODS
from placeopt.model.base import MAX_JOBS


class PodTemplate(JsonEntry):
    """A pod that is not made yet."""

    __slots__ = ()


def workload_pods(workloads: Iterable[JsonEntry], notes: ImportNotes) -> list[PodTemplate]:
    """
    Return one pod for each that a Workload of Kueue would start.

    Not of a Workload that is admitted, finished or inactive, nor of one that was made for pods: the pods speak for
    themselves.
    """
    pods: list[PodTemplate] = []
    for workload in workloads:
        try:
            if workload.text("apiVersion", "").startswith("kueue.x-k8s.io/") and _waits(workload):
                pods += list(_pods(workload, MAX_JOBS - len(pods)))  # none of one that is read in part
        except BadInput as error:
            notes.leave_out("a Workload that cannot be read", str(error))
    if pods:
        notes.assume("Workloads of Kueue that wait for admission count with the pods of their templates, all or none.")
    return pods


def _waits(workload: JsonEntry) -> bool:
    spec, status = workload.entry("spec"), workload.entry("status")
    ended = any(
        one.text("type", "") == "Finished" and one.text("status", "") == "True" for one in status.entries("conditions")
    )
    owners = {owner.text("kind", "") for owner in workload.entry("metadata").entries("ownerReferences")}
    return not ended and spec.raw("active") is not False and "admission" not in status and "Pod" not in owners


def _pods(workload: JsonEntry, most: int) -> Iterator[PodTemplate]:
    metadata, spec = workload.entry("metadata"), workload.entry("spec")
    name, queue = metadata.text("name"), spec.text("queueName", "")
    if sum(part.integer("count", 0, MAX_PODS, 1) for part in spec.entries("podSets")) > most:
        raise spec.bad("podSets", f"with all other Workloads at most {MAX_JOBS} pods")
    for part in spec.entries("podSets"):
        template, podset = part.entry("template"), part.text("name", "main")
        said, inner = template.entry("metadata"), template.entry("spec")
        priority = {"priority": spec.raw("priority")} if "priority" in spec else {}
        labels = {**said.texts("labels"), f"{KUEUE}podset": podset, **({f"{KUEUE}queue-name": queue} if queue else {})}
        for number in range(part.integer("count", 0, MAX_PODS, 1)):
            own = {
                "name": f"{name}-{podset}-{number}",
                "namespace": metadata.text("namespace", "default"),
                "creationTimestamp": metadata.raw("creationTimestamp"),
                "labels": labels,
                "annotations": {**said.texts("annotations"), f"{KUEUE}workload": name},
            }
            asked = {key: inner.raw(key) for key in inner.names()}
            gated = {**asked, **priority, "schedulingGates": [{"name": f"{KUEUE}admission"}]}
            yield PodTemplate(".template", {"metadata": own, "spec": gated}, part)
