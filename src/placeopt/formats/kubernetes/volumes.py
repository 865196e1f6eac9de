"""Volume claims: on which nodes the volumes that a pod names can be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress

from placeopt.errors import BadInput
from placeopt.formats.json_entry import JsonEntry
from placeopt.formats.kubernetes.node_selectors import Accepts, node_selector_terms
from placeopt.formats.kubernetes.pods import Pod, unreadable_field

ZONES = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
"""Labels of a volume that a node which carries any of them must share; several values are joined by ``__``."""


class Volumes:
    """
    Volume claims and volumes as they were listed.

    Parameters
    ----------
    claims, volumes
        PersistentVolumeClaims and PersistentVolumes.
    pods
        All of them: a claim that only one pod may use is full if another names it.
    """

    def __init__(self, claims: Iterable[JsonEntry], volumes: Iterable[JsonEntry], pods: Iterable[Pod]) -> None:
        self._claims, self._volumes = _by_id(claims, namespaced=True), _by_id(volumes, namespaced=False)
        self._users = Counter(f"{pod.namespace}/{claim}" for pod in pods for claim in pod.claims)

    def read(self, pod: Pod) -> tuple[list[Accepts], str] | str:
        """Return which nodes the volumes of a pod allow, and the same as text; why that is not known, as text alone."""
        accepts: list[Accepts] = []
        text = []
        for name in pod.claims:
            claim = self._claims.get(f"{pod.namespace}/{name}")
            try:
                if claim is None:
                    return "with volume claims that are not listed (get persistentvolumeclaims,persistentvolumes too)"
                spec = claim.entry("spec")
                if "volumeName" not in spec or not spec.text("volumeName"):
                    return "with a volume claim that is not bound"
                if "ReadWriteOncePod" in spec.words("accessModes") and self._users[f"{pod.namespace}/{name}"] > 1:
                    return "with a volume claim for one pod alone (ReadWriteOncePod) that another pod names"
                volume = self._volumes.get(spec.text("volumeName"))
                if volume is None:
                    return "with volumes that are not listed (get persistentvolumes too)"
                mine = _volume(volume)
            except BadInput as error:
                return f"with a volume {unreadable_field(claim or pod.entry, error)}"
            if mine:
                accepts += mine
                text.append(volume.where)
        return accepts, " ".join(text)


def _by_id(entries: Iterable[JsonEntry], *, namespaced: bool) -> dict[str, JsonEntry]:
    """Return objects by namespace and name, or by name; one whose name cannot be read counts as not listed."""
    found = {}
    for entry in entries:
        with suppress(BadInput):
            metadata = entry.entry("metadata")
            name = metadata.text("name")
            found[f"{metadata.text('namespace', 'default')}/{name}" if namespaced else name] = entry
    return found


def _volume(entry: JsonEntry) -> list[Accepts]:
    """Return the rules of a volume about nodes, none if it can be used everywhere."""
    found: list[Accepts] = []
    required = entry.entry("spec").entry("nodeAffinity").entry("required")
    if "nodeSelectorTerms" in required:
        found.append(node_selector_terms(required))
    labels = entry.entry("metadata").texts("labels")
    zones = {key: frozenset(labels[key].split("__")) for key in ZONES if labels.get(key)}
    if zones:
        found.append(lambda _, node: _in_zone(node, zones))
    return found


def _in_zone(labels: Mapping[str, str], zones: Mapping[str, frozenset[str]]) -> bool:
    return not any(key in labels for key in ZONES) or all(labels.get(key) in values for key, values in zones.items())
