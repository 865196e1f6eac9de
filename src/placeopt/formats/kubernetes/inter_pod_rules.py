"""Rules between pods: affinity, anti-affinity, ports of the node. What runs closes nodes; what waits may exclude."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from placeopt.errors import BadInput
from placeopt.formats.json_entry import JsonEntry
from placeopt.formats.kubernetes.gangs import JobDraft
from placeopt.formats.kubernetes.node_selectors import EVERY_NODE, NO_NODE, NodeConditions, label_selector, where
from placeopt.formats.kubernetes.nodes import HOSTNAME, NodeCapacity
from placeopt.formats.kubernetes.pods import Pod, Port

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


NO_TERMS = PodAffinity()


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
    return PodAffinityTerm(json.dumps(parts, sort_keys=True), key, labels, inside)


def namespace_labels(entries: list[JsonEntry]) -> Namespaces:
    """Return the labels of the namespaces that were listed; one that cannot be read counts as not listed."""
    labels = {}
    for entry in entries:
        try:
            metadata = entry.entry("metadata")
            labels[metadata.text("name")] = metadata.texts("labels")
        except BadInput:
            continue
    return labels


ANYWHERE = ("", "0.0.0.0", "::")  # noqa: S104
"""Addresses that mean all of a node's."""


class InterPodRules:
    """
    What pods require of each other.

    Pods that run stay where they are, so what they require, and what is required of them, closes nodes once and for
    all. Between jobs that wait the round has no rule: of those that exclude each other the first is taken, and one that
    needs another to be there is left out.

    ``levels``: Labels of nodes that are levels of the round's domains -> those levels. ``running``: Pods on nodes.
    ``waiting``: Jobs that wait. ``terms``: Required terms by pod, of pods that have any.
    """

    def __init__(
        self,
        nodes: Mapping[str, NodeCapacity],
        levels: Mapping[str, str],
        running: Sequence[Pod],
        waiting: Sequence[JobDraft],
        terms: Mapping[str, PodAffinity],
    ) -> None:
        self._nodes, self._levels, self._terms, self._waiting = nodes, levels, terms, waiting
        self._running = [pod for pod in running if pod.node in nodes]
        self._ports: dict[Port, set[str]] = defaultdict(set)
        for pod in self._running:
            for port in pod.ports:
                self._ports[port].add(pod.node or "")
        apart = {term.text: term for draft in waiting for term in self._of(draft).anti_affinity}
        self._about: dict[str, frozenset[str]] = {}
        self._apart = [(term.text, self._waiting_for(term)) for term in apart.values()]
        self._holders: set[str] = set()
        """Terms of anti-affinity of jobs that were taken."""
        self._met: set[str] = set()
        """Such terms that jobs which were taken meet."""
        self._taken_ports: set[Port] = set()
        self._repelling = self._repellers()
        self._values: dict[str, frozenset[str]] = {}
        self._unsure: dict[str, bool] = {}
        self.bound = {pod.id for pod in self._running if pod.ports or pod.id in terms}
        """Running pods that a rule concerns: elsewhere, they would exclude other nodes."""
        self.doubtful = False
        """Whether a node was excluded because of a namespace that is not listed."""

    def take(self, draft: JobDraft) -> str | None:
        """
        Write the rules of a waiting job into its draft; return why it is left out, None if it is accepted.

        Call it for waiting jobs only, in the order in which they are accepted.
        """
        own = self._of(draft)
        if any(self._is_unsure(term) for term in [*own.affinity, *own.anti_affinity]):
            return "with pod affinity by labels of namespaces that are not listed (get namespaces too)"
        if len(own.affinity) > 1:
            return "with several terms of required pod affinity"
        mine = {term for term, met in self._apart if draft.name in met}
        theirs = {term.text for term in own.anti_affinity}
        if mine & self._holders or theirs & self._met:
            return "with anti-affinity to pods that wait too"
        if any(_clash(a, b) for a in draft.first.ports for b in self._taken_ports):
            return "with a port of the node that pods which wait ask for too"
        unread = self._check_affinity(draft, own.affinity) or self._check_anti_affinity(draft, own.anti_affinity)
        if unread is not None:
            return unread
        draft.conditions &= self._towards_running(draft, own)
        draft.excluded_nodes |= {
            name
            for port, names in self._ports.items()
            if any(_clash(port, own_port) for own_port in draft.first.ports)
            for name in names
        }
        self._holders |= theirs
        self._met |= mine
        self._taken_ports |= draft.first.ports
        return None

    def level_of(self, key: str) -> str | None:
        """
        Return the level of the round for a node label; ``node`` if no two nodes share a value.

        None if there is no such level, or if one value occurs in several domains: racks of one name in two zones are
        one domain for an affinity term, and two for the round.
        """
        if key == HOSTNAME:
            return "node"
        if key not in self._levels:
            values = [node.labels.get(key) for node in self._nodes.values()]
            return "node" if None not in values and len(set(values)) == len(values) else None
        above = [*self._levels][: [*self._levels].index(key)]
        paths: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        for node in self._nodes.values():
            if node.labels.get(key):
                paths[node.labels[key]].add(tuple(node.labels.get(label, "") for label in above))
        return self._levels[key] if all(len(above_value) == 1 for above_value in paths.values()) else None

    def _of(self, draft: JobDraft) -> PodAffinity:
        return self._terms.get(draft.first.id, NO_TERMS)

    def _is_unsure(self, term: PodAffinityTerm) -> bool:
        if term.text not in self._unsure:
            pods = [*self._running, *(pod for draft in self._waiting for pod in draft.pods)]
            self._unsure[term.text] = any(term.meets(pod) is None for pod in pods)
        return self._unsure[term.text]

    def _waiting_for(self, term: PodAffinityTerm) -> frozenset[str]:
        """Return the waiting jobs with a pod that the term selects."""
        if term.text not in self._about:
            met = (draft.name for draft in self._waiting if any(term.meets(pod) for pod in draft.pods))
            self._about[term.text] = frozenset(met)
        return self._about[term.text]

    def _repellers(self) -> list[tuple[PodAffinityTerm, set[str]]]:
        """Return the anti-affinity terms of running pods, with the label values at which they apply."""
        repellers: dict[str, tuple[PodAffinityTerm, set[str]]] = {}
        for pod in self._running:
            for term in self._terms.get(pod.id, NO_TERMS).anti_affinity:
                value = self._nodes[pod.node or ""].labels.get(term.key)
                if value is not None:
                    repellers.setdefault(term.text, (term, set()))[1].add(value)
        return list(repellers.values())

    def _check_affinity(self, draft: JobDraft, terms: Sequence[PodAffinityTerm]) -> str | None:
        """Keep a gang with affinity to itself together; running pods with affinity exclude nodes instead."""
        for term in terms:
            if self._waiting_for(term) - {draft.name}:
                return "with affinity to pods that wait too"
            if self._where(term) or len(draft.pods) == 1 or not self._waiting_for(term):
                continue
            if not all(term.meets(pod) for pod in draft.pods):
                return "with affinity between some pods of a gang"
            level = self.level_of(term.key)
            if level is None:
                return f"with affinity by {term.key}, which is not a level (--levels names them)"
            draft.single_node |= level == "node"
            if level != "node":
                draft.split(level, 1)
        return None

    def _check_anti_affinity(self, draft: JobDraft, terms: Sequence[PodAffinityTerm]) -> str | None:
        """Spread a gang whose pods have anti-affinity to each other."""
        if len(draft.pods) == 1:
            return None
        if draft.first.ports:
            draft.workers_per_node_max = 1
        for term in terms:
            met = [bool(term.meets(pod)) for pod in draft.pods]
            level = self.level_of(term.key)
            if not any(met):
                continue
            if not all(met):
                return "with anti-affinity between some pods of a gang"
            if level == "node":
                draft.workers_per_node_max = 1
            elif level is None or draft.pods_min < len(draft.pods):
                return f"with anti-affinity between pods of a gang by {term.key}"
            else:
                draft.split(level, len(draft.pods), 1)
                draft.conditions &= where(term.key, "Exists")
        return None

    def _towards_running(self, draft: JobDraft, own: PodAffinity) -> NodeConditions:
        """Return what anti-affinity and affinity of running and own pods ask of a waiting job's nodes."""
        conditions = self.repelled(draft)
        for term in own.anti_affinity:
            if values := self._where(term):
                conditions &= where(term.key, "NotIn", *values)
        for term in own.affinity:
            if values := self._where(term):
                conditions &= where(term.key, "In", *values)
            elif all(term.meets(pod) for pod in draft.pods):
                conditions &= where(term.key, "Exists")
            else:
                conditions &= NO_NODE
        return conditions

    def repelled(self, draft: JobDraft) -> NodeConditions:
        """Return what the anti-affinity of running pods asks of a job's nodes."""
        conditions = EVERY_NODE
        for term, values in self._repelling:
            met = {term.meets(pod) for pod in draft.pods}
            if met != {False}:
                conditions &= where(term.key, "NotIn", *values)
                self.doubtful |= True not in met
        return conditions

    def _where(self, term: PodAffinityTerm) -> frozenset[str]:
        """Return the label values at which a running pod is selected by the term; records those pods as bound."""
        if term.text not in self._values:
            met = [pod for pod in self._running if term.meets(pod)]
            self.bound.update(pod.id for pod in met)
            values = {self._nodes[pod.node or ""].labels.get(term.key) for pod in met}
            self._values[term.text] = frozenset(value for value in values if value is not None)
        return self._values[term.text]


def _clash(a: Port, b: Port) -> bool:
    return a[1:] == b[1:] and (a[0] == b[0] or a[0] in ANYWHERE or b[0] in ANYWHERE)
