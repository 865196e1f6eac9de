"""Required pod affinity and anti-affinity: the terms of pods, and the pods that a term selects."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from placeopt.errors import BadInput
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.node_selectors import label_selector
from placeopt.importers.kubernetes.pods import Pod
from placeopt.importers.observed_round import is_plain

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""Label that every namespace has, with its own name."""
Namespaces = Mapping[str, Mapping[str, str]]
"""Labels of the namespaces that were listed, by name."""


@dataclass(frozen=True)
class PodAffinityTerm:
    """One term. Terms of equal text select the same pods in the same domains."""

    text: str
    name: str
    """The same in short, for people; terms of other text may have it, too."""
    key: str
    """``topologyKey``: the node label that defines the domains."""
    pair: tuple[str, str] | None
    """A label that all pods have whom the term selects; None if none is known."""
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


NO_TERMS = PodAffinity()


class Selected(NamedTuple):
    """The pods that a term selects, and those of whom that depends on a namespace that is not listed."""

    pods: tuple[Pod, ...]
    unsure: tuple[Pod, ...]


class PodSelection:
    """Whom terms select among some pods; pods are found by one label of a term, and terms of equal text once."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._pods = list(pods)
        self._by_label: dict[tuple[str, str], list[Pod]] = defaultdict(list)
        for pod in self._pods:
            for pair in pod.labels.items():
                self._by_label[pair].append(pod)
        self._selected: dict[str, Selected] = {}

    def of(self, term: PodAffinityTerm) -> Selected:
        """Return whom a term selects."""
        if term.text not in self._selected:
            some = self._pods if term.pair is None else self._by_label.get(term.pair, [])
            meets = [(pod, term.meets(pod)) for pod in some]
            self._selected[term.text] = Selected(
                tuple(pod for pod, met in meets if met), tuple(pod for pod, met in meets if met is None)
            )
        return self._selected[term.text]


def read_pod_affinity(pod: Pod, namespaces: Namespaces) -> PodAffinity:
    """Return the required terms of a pod."""
    if not pod.has_affinity:
        return NO_TERMS
    chosen = pod.entry.entry("spec").entry("affinity")
    near, apart = (
        tuple(
            _term(term, pod.namespace, namespaces)
            for term in chosen.entry(key).entries("requiredDuringSchedulingIgnoredDuringExecution")
        )
        for key in ("podAffinity", "podAntiAffinity")
    )
    return PodAffinity(near, apart)


def _term(entry: JsonEntry, own: str, namespaces: Namespaces) -> PodAffinityTerm:
    key = entry.text("topologyKey")
    if not key:
        raise entry.bad("topologyKey", "a label of nodes")
    selector = entry.entry("labelSelector")
    labels = label_selector(selector) if "labelSelector" in entry else lambda _: False  # a null selector meets none
    names, chosen = frozenset(entry.words("namespaces")), entry.entry("namespaceSelector")
    chosen_meets = label_selector(chosen) if "namespaceSelector" in entry else None
    needs = {
        *chosen.texts("matchLabels"),
        *(expression.text("key") for expression in chosen.entries("matchExpressions")),
    }
    if not names and chosen_meets is None:
        names = frozenset([own])

    def inside(name: str) -> bool | None:
        if name in names or chosen_meets is None:
            return name in names
        if name not in namespaces and needs - {NAMESPACE_NAME}:
            return None
        return chosen_meets({NAMESPACE_NAME: name, **namespaces.get(name, {})})

    parts = [key, entry.raw("labelSelector"), sorted(names), entry.raw("namespaceSelector")]
    text = json.dumps(parts, sort_keys=True)
    wanted = sorted(selector.texts("matchLabels").items())
    name = f"{','.join(sorted(names))}/{','.join(map('='.join, wanted))}"
    if selector.names() != ["matchLabels"] or chosen_meets is not None or not is_plain(name):
        name = sha256(text.encode()).hexdigest()[:16]
    return PodAffinityTerm(text, name, key, wanted[0] if wanted else None, labels, inside)


def namespace_labels(entries: Iterable[JsonEntry]) -> Namespaces:
    """Return the labels of the namespaces that were listed; one that cannot be read counts as not listed."""
    labels = {}
    for entry in entries:
        try:
            metadata = entry.entry("metadata")
            labels[metadata.text("name")] = metadata.texts("labels")
        except BadInput:
            continue
    return labels
