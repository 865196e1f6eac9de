"""
Pod affinity and anti-affinity, and ports of the node: relations between jobs, and amounts of nodes.

A node has 1 of each address of a port; a pod takes that of its address, or all of them. Of a term of anti-affinity by
hostname a node has n: a pod that excludes all others takes n, one that only some exclude takes 1. This could be a
relation, as all other terms are, but amounts are seen by all relaxations and capacity questions.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import chain

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.node_conditions import label_selector, selector_expressions
from placeopt.importers.kubernetes.nodes import Levels
from placeopt.importers.kubernetes.pods import NAMESPACE, Pod, Port
from placeopt.model import LabelExpression, Relation

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""Label that every namespace has, with its own name."""
NO_JOB = (LabelExpression(key=NAMESPACE, operator="DoesNotExist"),)
"""Selects no job: each has a namespace."""
MAX_NAME = 230
_PLAIN = re.compile(r"[\w.,-]+/([\w./-]+=[\w.-]*,?)*", re.ASCII)
ANYWHERE = frozenset({"", "0.0.0.0", "::"})  # noqa: S104
"""Addresses that mean all of a node's."""


class AffinityReader:
    """
    Reads the terms of pods; those of one specification once.

    ``namespaces``: Objects of the namespaces that were listed; one that cannot be read counts as not listed. ``names``:
    Of all namespaces that pods are in.
    """

    def __init__(self, namespaces: Iterable[JsonEntry], names: Iterable[str]) -> None:
        self._listed: dict[str, Mapping[str, str]] = {}
        for entry in namespaces:
            with suppress(BadInput):
                self._listed[entry.entry("metadata").text("name")] = entry.entry("metadata").texts("labels")
        self._labels = {name: {NAMESPACE_NAME: name, **self._listed.get(name, {})} for name in {*names, *self._listed}}
        self._read: dict[tuple[str, str], tuple[tuple[Relation, ...], frozenset[str]]] = {}

    def read(self, pod: Pod) -> None:
        """Set the relations of a pod."""
        affinity = pod.entry.entry("spec").entry("affinity")
        raw = affinity.raws(("podAffinity", "podAntiAffinity"))
        if raw == (None, None):
            return
        key = json.dumps(raw, sort_keys=True), pod.namespace
        if key not in self._read:
            doubtful: set[str] = set()
            found = dict.fromkeys(self._relations(affinity, pod.namespace, doubtful))
            self._read[key] = tuple(found), frozenset(doubtful)
        pod.relations, pod.doubtful = self._read[key]

    def _relations(self, affinity: JsonEntry, own: str, doubtful: set[str]) -> Iterator[Relation]:
        for kind, field in (("near", "podAffinity"), ("apart", "podAntiAffinity")):
            required = affinity.entry(field).entries("requiredDuringSchedulingIgnoredDuringExecution")
            preferred = affinity.entry(field).entries("preferredDuringSchedulingIgnoredDuringExecution")
            terms = [*required, *(one.entry("podAffinityTerm") for one in preferred)]
            weights = [*[None] * len(required), *(one.integer("weight", 1, 100) for one in preferred)]
            selectors = [self._selector(term, own, doubtful) for term in terms]
            if kind == "near":  # a pod counts as near if it meets all required terms, each in its own domains
                every = tuple(dict.fromkeys(chain(*selectors[: len(required)])))
                selectors[: len(required)] = [every] * len(required)
            for term, weight, selector in zip(terms, weights, selectors, strict=True):
                if not term.text("topologyKey"):
                    raise term.bad("topologyKey", "a label of nodes")
                fields = {"kind": kind, "level": term.text("topologyKey"), "selector": selector, "weight": weight}
                yield make_record(Relation, term.where, **fields)

    def _selector(self, term: JsonEntry, own: str, doubtful: set[str]) -> tuple[LabelExpression, ...]:
        """Return the selector of a term; ``doubtful`` get the namespaces that it selects although that is not known."""
        if "labelSelector" not in term:
            return NO_JOB  # a null selector meets none
        expressions = selector_expressions(term.entry("labelSelector"))
        names = set(term.words("namespaces"))
        if "namespaceSelector" in term:
            chosen = term.entry("namespaceSelector")
            meets, needs = label_selector(chosen), {one.key for one in selector_expressions(chosen)}
            if not needs:
                return expressions  # every namespace
            unsure = self._labels.keys() - self._listed.keys() - names if needs - {NAMESPACE_NAME} else set()
            doubtful |= unsure
            names |= unsure | {name for name, labels in self._labels.items() if meets(labels)}
            if not names:
                return NO_JOB
        values = tuple(names or {own})
        within = make_record(LabelExpression, term.where, key=NAMESPACE, operator="In", values=values)
        return (*expressions, within)


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
            self._selected[relation] = [pod for pod in some if relation.selects(pod.labels)]
        return self._selected[relation]


class InterPodRules:
    """
    What pods say of each other.

    ``limits``: Name -> amount of every node. ``taken``: Pod -> what it takes of these. Relations of pods that are no
    amounts become those of their jobs.

    Arguments: ``pods``: All of them. ``known``: Names that a known cluster counts, with the amounts of its nodes: these
    alone, whoever waits; and jobs have all labels of their pods, not those alone at which some relation looks. None: as
    pods need them.
    """

    def __init__(self, pods: Collection[Pod], levels: Levels, known: Mapping[str, int] | None) -> None:
        self._selection, self.known = Selection(pods), known
        self.limits: dict[str, int] = {}
        self.taken: dict[str, dict[str, int]] = defaultdict(dict)
        self._add_ports(pods)
        holders: dict[Relation, dict[str, Pod]] = defaultdict(dict)
        for pod in pods:
            for relation in pod.relations:
                holders[relation][pod.id] = pod
        of_jobs: dict[Relation, Relation] = {}
        for relation, own in holders.items():
            at_node = levels.is_node(relation.level)
            hard = (relation.kind, relation.weight) == ("apart", None)
            if not (at_node and hard and self._add_anti_affinity(relation, own)):
                of_jobs[relation] = relation.model_copy(update={"level": "node"}) if at_node else relation
        for pod in pods:
            pod.relations = tuple(of_jobs[one] for one in pod.relations if one in of_jobs)
        self._relations = of_jobs.values()
        self._keys = dict.fromkeys(one.key for relation in of_jobs for one in relation.selector)

    def _add_ports(self, pods: Iterable[Pod]) -> None:
        names: dict[str, dict[str, None]] = defaultdict(dict)
        """Port -> names of its addresses, the one of all of them first."""
        for port in sorted({port for pod in pods for port in pod.ports}):
            names[_name(port)] |= {_name(port): None, _address(port): None}
        if self.known is not None:
            names = {port: {name: None for name in some if name in self.known} for port, some in names.items()}
        self.limits |= {name: 1 for some in names.values() for name in some}
        for pod in pods:
            for port in pod.ports:
                some = names[_name(port)]
                own = [_address(port)] if port[0] not in ANYWHERE and _address(port) in some else some
                self.taken[pod.id] |= dict.fromkeys(own, 1)

    def _add_anti_affinity(self, relation: Relation, own: Mapping[str, Pod]) -> bool:
        """
        Return whether a term of anti-affinity is an amount, if it concerns several waiting pods.

        None where a waiting pod has it and is not selected by it itself (two such pods may share a node), or where a
        namespace that is not listed would decide whom it selects. ``own``: Pods that have it.
        """
        name = f"podAntiAffinity:{_short(relation)}"
        selected = {pod.id: pod for pod in self._selection.of(relation)}
        others = selected.keys() - own.keys()
        waiting = {pod.id for pod in {**selected, **own}.values() if pod.node is None}
        doubtful = frozenset[str]().union(*(pod.doubtful for pod in own.values()))
        needed = len(waiting) > 1 if self.known is None else name in self.known
        unsure = any(pod.namespace in doubtful for pod in selected.values())
        if unsure or not needed or not waiting & own.keys() <= selected.keys():
            return False
        limit = self.limits[name] = max(1, len(others)) if self.known is None else self.known[name]
        for pod_id in (*own, *others):
            self.taken[pod_id][name] = limit if pod_id in own else 1
        return True

    def labels_of(self, pod: Pod) -> Mapping[str, str]:
        """Return the labels of a pod's job."""
        if self.known is not None:
            return pod.labels
        return {key: pod.labels[key] for key in self._keys if key in pod.labels}

    def unread(self, pods: Sequence[Pod]) -> str | None:
        """Return why the relations of a job of these pods, or to it, cannot be said; None if they can."""
        if self.is_doubtful(pods[0]):
            return "with pod affinity by labels of namespaces that are not listed (get namespaces too)"
        if len({pod.relations for pod in pods}) > 1:
            return "a gang of which some pods have other pod affinity than others"
        labels = {tuple(self.labels_of(pod).items()) for pod in pods}
        if len(labels) > 1 and any(len({one.selects(pod.labels) for pod in pods}) > 1 for one in self._relations):
            return "a gang of which pod affinity selects some pods, and others not"
        return None

    def is_doubtful(self, pod: Pod) -> bool:
        """Return whether a pod has relations to others in namespaces whose labels would decide and are not listed."""
        mine = pod.relations if pod.doubtful else ()
        return any(other.namespace in pod.doubtful for one in mine for other in self._selection.of(one))


def _name(port: Port) -> str:
    return f"hostPort:{port[2]}/{port[1]}"


def _address(port: Port) -> str:
    return _name(port) if port[0] in ANYWHERE else f"{_name(port)}@{port[0]}"


def _short(relation: Relation) -> str:
    """Return a name of its own, for people: namespaces and labels, where that is all of the selector and short."""
    spaces = [one for one in relation.selector if one.key == NAMESPACE]
    wanted = [one for one in relation.selector if one.key != NAMESPACE]
    name = ",".join(name for one in spaces for name in one.values)
    name += "/" + ",".join(f"{one.key}={one.values[0]}" for one in wanted if one.values)
    plain = all(one.operator == "In" for one in relation.selector) and all(len(one.values) == 1 for one in wanted)
    if plain and len(spaces) == 1 and len(name) <= MAX_NAME and _PLAIN.fullmatch(name):
        return name
    return sha256(relation.text.encode()).hexdigest()[:16]
