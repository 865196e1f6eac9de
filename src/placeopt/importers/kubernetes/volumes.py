"""Volume claims: the nodes on which the volumes of a pod can be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.node_selectors import EVERY_NODE, NodeConditions, node_selector_terms
from placeopt.importers.kubernetes.objects import Listed, by_id, unreadable_field
from placeopt.importers.kubernetes.pods import Pod
from placeopt.model import LabelExpression

ZONES = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
"""Labels of a volume that a node which carries any of them must share; several values are joined by ``__``."""


class Volumes:
    """
    Volume claims, volumes and storage classes as they were listed, by kind.

    ``pods``: All of them: a claim that only one pod may use is full if another names it.
    """

    def __init__(self, listed: Listed, pods: Iterable[Pod], notes: ImportNotes) -> None:
        self._claims = by_id(listed.get("PersistentVolumeClaim", []))
        self._volumes = by_id(listed.get("PersistentVolume", []))
        self._classes = by_id(listed.get("StorageClass", []))
        self._users = Counter(f"{pod.namespace}/{claim}" for pod in pods for claim in pod.claims)
        self._notes = notes

    def read(self, pod: Pod) -> NodeConditions:
        """Return which nodes the volumes of a pod allow."""
        conditions = EVERY_NODE
        for name, template_class in pod.claims.items():
            claim = self._claims.get(f"{pod.namespace}/{name}")
            try:
                if claim is not None:
                    read = self._claim(claim, self._users[f"{pod.namespace}/{name}"])
                elif template_class is not None:
                    read = self._unbound(template_class)
                else:
                    read = "with volume claims that are not listed (get persistentvolumeclaims,persistentvolumes too)"
            except BadInput as error:
                read = f"with a volume {unreadable_field(claim or pod.entry, error)}"
            conditions &= NodeConditions(unread=read) if isinstance(read, str) else read
        return conditions

    def _claim(self, claim: JsonEntry, users: int) -> NodeConditions | str:
        """Return which nodes the volume of a claim allows, or why that is not known; ``users``: pods that name it."""
        spec = claim.entry("spec")
        if "ReadWriteOncePod" in spec.words("accessModes") and users > 1:
            return "with a volume claim for one pod alone (ReadWriteOncePod) that another pod names"
        if "volumeName" not in spec or not spec.text("volumeName"):
            return self._unbound(spec.text("storageClassName", ""))
        volume = self._volumes.get(f"default/{spec.text('volumeName')}")
        return "with volumes that are not listed (get persistentvolumes too)" if volume is None else _volume(volume)

    def _unbound(self, name: str) -> NodeConditions | str:
        """Return on which nodes a volume of a storage class can be made, once its pod has a node."""
        if not name:
            return "with a volume claim that is not bound"
        found = self._classes.get(f"default/{name}")
        if found is None:
            self._notes.assume("Storage classes that are not listed make their volumes on the node of the pod.")
            return EVERY_NODE
        if found.text("volumeBindingMode", "Immediate") != "WaitForFirstConsumer":
            return "with a volume claim that is not bound"
        if found.text("provisioner", "") == "kubernetes.io/no-provisioner":
            return "with a volume claim for one of the volumes that some nodes have"
        self._notes.assume("How much storage there is for volumes that are made on the node of their pod is not read.")
        terms = tuple(
            tuple(
                make_record(
                    LabelExpression,
                    expression.where,
                    key=expression.text("key"),
                    operator="In",
                    values=tuple(expression.words("values")),
                )
                for expression in term.entries("matchLabelExpressions")
            )
            for term in found.entries("allowedTopologies")
        )
        return NodeConditions(tuple(filter(None, terms)))


def _volume(entry: JsonEntry) -> NodeConditions:
    """Return the conditions of a volume: its node affinity; a node with labels of zones must share the volume's."""
    required = entry.entry("spec").entry("nodeAffinity").entry("required")
    conditions = node_selector_terms(required) if "nodeSelectorTerms" in required else EVERY_NODE
    labels = entry.entry("metadata").texts("labels")
    zones = [(key, labels[key].split("__")) for key in ZONES if labels.get(key)]
    if zones:
        without = tuple(LabelExpression(key=key, operator="DoesNotExist") for key in ZONES)
        within = tuple(LabelExpression(key=key, operator="In", values=tuple(values)) for key, values in zones)
        conditions &= NodeConditions((within, without))
    return conditions
