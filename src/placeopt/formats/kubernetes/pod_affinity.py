"""Required affinity and anti-affinity between pods: the terms of a pod, and the pods that each selects."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from placeopt.errors import BadInput
from placeopt.formats.json_entry import JsonEntry
from placeopt.formats.kubernetes.node_selectors import label_selector
from placeopt.formats.kubernetes.pods import Pod

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""Label that every namespace has, with its own name."""
Namespaces = Mapping[str, Mapping[str, str]]
"""Labels of the namespaces that were listed, by name."""


@dataclass(frozen=True)
class PodAffinityTerm:
    """One term. Terms of equal text select the same pods in the same domains."""

    text: str
    key: str
    """``topologyKey``: the node label that defines the domains."""
    labels: Callable[[Mapping[str, str]], bool] = field(compare=False, repr=False)
    namespaces: Callable[[str], bool | None] = field(compare=False, repr=False)
    """Of a namespace's name; None where its labels would decide and are not listed."""

    def meets(self, pod: Pod) -> bool | None:
        """Return whether the term selects a pod; None if that depends on a namespace that is not listed."""
        inside = self.namespaces(pod.namespace)
        if inside is False or not self.labels(pod.labels):
            return False
        return inside


@dataclass(frozen=True)
class PodAffinity:
    """The required terms of a pod."""

    affinity: tuple[PodAffinityTerm, ...] = ()
    """Each must select a pod in the same domain."""
    anti_affinity: tuple[PodAffinityTerm, ...] = ()
    """None may select a pod in the same domain."""


def read_pod_affinity(pod: Pod, namespaces: Namespaces) -> PodAffinity:
    """
    Return the required terms of a pod.

    Raises
    ------
    BadInput
        If a term is not of Kubernetes' form.
    """
    chosen = pod.entry.entry("spec").entry("affinity")
    near, apart = (
        tuple(
            _term(one, pod.namespace, namespaces)
            for one in chosen.entry(key).entries("requiredDuringSchedulingIgnoredDuringExecution")
        )
        for key in ("podAffinity", "podAntiAffinity")
    )
    return PodAffinity(near, apart)


def _term(entry: JsonEntry, own: str, namespaces: Namespaces) -> PodAffinityTerm:
    key = entry.text("topologyKey")
    if not key:
        raise entry.bad("topologyKey", "a label of nodes")
    selector = entry.entry("labelSelector")
    labels = label_selector(selector) if "labelSelector" in entry else _nothing
    names, chosen = frozenset(entry.words("namespaces")), entry.entry("namespaceSelector")
    chosen_meets = label_selector(chosen) if "namespaceSelector" in entry else None
    needs = _keys(chosen) - {NAMESPACE_NAME}
    if not names and chosen_meets is None:
        names = frozenset([own])

    def inside(name: str) -> bool | None:
        if name in names or chosen_meets is None:
            return name in names
        if name not in namespaces and needs:
            return None
        return chosen_meets({NAMESPACE_NAME: name, **namespaces.get(name, {})})

    parts = [key, entry.raw("labelSelector"), sorted(names), entry.raw("namespaceSelector")]
    return PodAffinityTerm(json.dumps(parts, sort_keys=True), key, labels, inside)


def _nothing(_: Mapping[str, str]) -> bool:
    """Return false: no pod meets a null selector."""
    return False


def _keys(selector: JsonEntry) -> set[str]:
    return {*selector.texts("matchLabels"), *(one.text("key") for one in selector.entries("matchExpressions"))}


def namespace_labels(entries: list[JsonEntry]) -> Namespaces:
    """Return the labels of the namespaces that were listed; one that cannot be read counts as not listed."""
    found = {}
    for entry in entries:
        try:
            metadata = entry.entry("metadata")
            found[metadata.text("name")] = metadata.texts("labels")
        except BadInput:
            continue
    return found
