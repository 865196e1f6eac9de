"""Pod affinity and anti-affinity, required and preferred, as relations between jobs; and the pods that they select."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.node_selectors import label_selector, selector_expressions
from placeopt.importers.kubernetes.pods import Pod
from placeopt.model import LabelExpression, Relation

NAMESPACE = "metadata.namespace"
"""Label of a job that is its namespace."""
NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""Label that every namespace has, with its own name."""
Namespaces = Mapping[str, Mapping[str, str]]
"""Labels of the namespaces that were listed, by name."""
NO_JOB = (LabelExpression(key=NAMESPACE, operator="DoesNotExist"),)
"""Selects no job: each has a namespace."""


@dataclass(frozen=True)
class PodRelations:
    """What a pod says of others; ``level`` is a label of nodes, the ``topologyKey``."""

    relations: tuple[Relation, ...] = ()
    doubtful: frozenset[str] = frozenset()
    """Namespaces that they select, although their labels would decide and are not listed."""


NO_RELATIONS = PodRelations()


def labels_of(pod: Pod) -> dict[str, str]:
    """Return a pod's labels with its namespace."""
    return {**pod.labels, NAMESPACE: pod.namespace}


class Selection:
    """Whom relations select among some pods, which are found by one label of a selector; equal relations once."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._pods = list(pods)
        self._by_label: dict[tuple[str, str], list[Pod]] = defaultdict(list)
        for pod in self._pods:
            for pair in pod.labels.items():
                self._by_label[pair].append(pod)
        self._selected: dict[Relation, list[Pod]] = {}

    def of(self, relation: Relation) -> list[Pod]:
        """Return whom a relation selects."""
        if relation not in self._selected:
            single = (one for one in relation.selector if one.operator == "In" and len(one.values) == 1)
            pair = next(((one.key, one.values[0]) for one in single if one.key != NAMESPACE), None)
            some = self._pods if pair is None else self._by_label.get(pair, [])
            self._selected[relation] = [pod for pod in some if selects(relation, pod)]
        return self._selected[relation]


def selects(relation: Relation, pod: Pod) -> bool:
    """Return whether a relation selects a pod."""
    labels = labels_of(pod)
    return all(expression.accepts(labels.get(expression.key)) for expression in relation.selector)


@dataclass
class AffinityReader:
    """
    Reads the terms of pods.

    ``listed``: Labels of the namespaces that were listed. ``names``: Of all namespaces that pods are in. Pods of one
    specification are read once.
    """

    listed: Namespaces
    names: frozenset[str]
    _known: dict[tuple[str, str], PodRelations] = field(default_factory=dict, init=False)

    def read(self, pod: Pod) -> PodRelations:
        """Return the relations of a pod."""
        if not pod.has_affinity:
            return NO_RELATIONS
        chosen = pod.entry.entry("spec").entry("affinity")
        text = json.dumps([chosen.raw(key) for key in ("podAffinity", "podAntiAffinity")], sort_keys=True)
        key = text, pod.namespace
        if key not in self._known:
            self._known[key] = self._read(pod, chosen)
        return self._known[key]

    def _read(self, pod: Pod, chosen: JsonEntry) -> PodRelations:
        found, doubtful = list[Relation](), set[str]()
        for kind, field_ in (("near", "podAffinity"), ("apart", "podAntiAffinity")):
            entry = chosen.entry(field_)
            required = entry.entries("requiredDuringSchedulingIgnoredDuringExecution")
            preferred = entry.entries("preferredDuringSchedulingIgnoredDuringExecution")
            terms: list[tuple[JsonEntry, int | None]] = [(one, None) for one in required]
            terms += [(one.entry("podAffinityTerm"), one.integer("weight", 1, 100)) for one in preferred]
            selectors = []
            for term, _ in terms:
                selector, unsure = self._selector(term, pod.namespace)
                selectors.append(selector)
                doubtful |= unsure
            if kind == "near" and required:  # a pod counts as near if it meets all terms, each in its own domains
                together = tuple(dict.fromkeys(one for selector in selectors[: len(required)] for one in selector))
                selectors[: len(required)] = [together] * len(required)
            for (term, weight), selector in zip(terms, selectors, strict=True):
                if not term.text("topologyKey"):
                    raise term.bad("topologyKey", "a label of nodes")
                fields = {"kind": kind, "level": term.text("topologyKey"), "selector": selector, "weight": weight}
                found.append(make_record(Relation, term.where, **fields))
        return PodRelations(tuple(dict.fromkeys(found)), frozenset(doubtful))

    def _selector(self, term: JsonEntry, own: str) -> tuple[tuple[LabelExpression, ...], set[str]]:
        """Return the selector of a term, and the namespaces of which it is not known whether it selects them."""
        if "labelSelector" not in term:
            return NO_JOB, set()  # a null selector meets none
        expressions = selector_expressions(term.entry("labelSelector"))
        names = set(term.words("namespaces"))
        if "namespaceSelector" not in term:
            return (*expressions, _in_namespaces(names or {own})), set()
        chosen = term.entry("namespaceSelector")
        meets, needs = label_selector(chosen), {one.key for one in selector_expressions(chosen)}
        if not needs:
            return expressions, set()  # every namespace
        known = {name: {NAMESPACE_NAME: name, **self.listed.get(name, {})} for name in self.names | self.listed.keys()}
        unsure = {name for name in known if name not in self.listed and needs - {NAMESPACE_NAME}} - names
        names |= unsure | {name for name, labels in known.items() if meets(labels)}
        return (*expressions, _in_namespaces(names)) if names else NO_JOB, unsure


def _in_namespaces(names: set[str]) -> LabelExpression:
    return LabelExpression(key=NAMESPACE, operator="In", values=tuple(names))


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
