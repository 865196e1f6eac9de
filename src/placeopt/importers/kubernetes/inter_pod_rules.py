"""Rules between pods: affinity and anti-affinity. What runs closes nodes; what waits may exclude."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Sequence

from placeopt.importers.kubernetes.gangs import JobDraft
from placeopt.importers.kubernetes.node_selectors import EVERY_NODE, NO_NODE, NodeConditions, where
from placeopt.importers.kubernetes.nodes import NodeList
from placeopt.importers.kubernetes.pod_affinity import NO_TERMS, PodAffinity, PodAffinityTerm
from placeopt.importers.kubernetes.pod_list import PodList
from placeopt.importers.kubernetes.pods import Pod


class InterPodRules:
    """
    What pods require of each other.

    Pods that run stay where they are, so what they require, and what is required of them, closes nodes once and for
    all. Between jobs that wait the round has no rule: of those that exclude each other the first is taken, and one that
    needs another to be there is left out.

    ``waiting``: Jobs that wait. ``counted``: Terms of anti-affinity that amounts of nodes state (`exclusive_amounts`),
    by text; they are no rules here.
    """

    def __init__(self, nodes: NodeList, pods: PodList, waiting: Sequence[JobDraft], counted: Container[str]) -> None:
        self._nodes, self._level_of, self._terms = nodes.by_name, nodes.level_of, pods.terms
        self._selection, self._counted = pods.selection, counted
        self._job_of = {pod.id: draft.name for draft in waiting for pod in draft.pods}
        self._holders: set[str] = set()
        """Terms of anti-affinity of jobs that were taken."""
        self._met: set[str] = set()
        """Such terms that jobs which were taken meet."""
        self._apart: dict[str, set[str]] = defaultdict(set)
        """Waiting job -> terms of anti-affinity of waiting jobs that select one of its pods."""
        for term in {term.text: term for draft in waiting for term in self._apart_from(draft.first)}.values():
            for name in self._waiting_for(term):
                self._apart[name].add(term.text)
        running = [pod for pod in pods.running if pod.node in self._nodes]
        self.bound = {pod.id for pod in running if self._of(pod).affinity or self._apart_from(pod)}
        """Running pods that a rule concerns: elsewhere, they would exclude other nodes."""
        self._repelled: dict[str, list[tuple[PodAffinityTerm, list[str], bool]]] = defaultdict(list)
        """Waiting pod -> terms of running pods that select it, at which label values; whether that is sure."""
        for term, values in self._repellers(running):
            for some, sure in zip(self._selection.of(term), (True, False), strict=True):
                found = term, sorted(values), sure
                for pod in some:
                    self._repelled[pod.id].append(found)
        self.doubtful = False
        """Whether a node was excluded because of a namespace that is not listed."""

    def take(self, draft: JobDraft) -> str | None:
        """
        Write the rules of a waiting job into its draft; return why it is left out, None if it is accepted.

        Call it for waiting jobs only, in the order in which they are accepted.
        """
        own = self._of(draft.first)
        apart = self._apart_from(draft.first)
        if any(self._selection.of(term).unsure for term in [*own.affinity, *apart]):
            return "with pod affinity by labels of namespaces that are not listed (get namespaces too)"
        if len(own.affinity) > 1:
            return "with several terms of required pod affinity"
        mine = self._apart[draft.name]
        theirs = {term.text for term in apart}
        if mine & self._holders or theirs & self._met:
            return "with anti-affinity to pods that wait too"
        unread = self._check_affinity(draft, own.affinity) or self._check_anti_affinity(draft, own.anti_affinity)
        if unread is not None:
            return unread
        draft.conditions &= self._towards_running(draft, own)
        self._holders |= theirs
        self._met |= mine
        return None

    def _of(self, pod: Pod) -> PodAffinity:
        return self._terms.get(pod.id, NO_TERMS)

    def _apart_from(self, pod: Pod) -> list[PodAffinityTerm]:
        """Return the terms of anti-affinity of a pod that no amounts state."""
        return [term for term in self._of(pod).anti_affinity if term.text not in self._counted]

    def _waiting_for(self, term: PodAffinityTerm) -> set[str]:
        """Return the waiting jobs with a pod that the term selects."""
        return {self._job_of[pod.id] for pod in self._selection.of(term).pods if pod.id in self._job_of}

    def _repellers(self, running: Iterable[Pod]) -> list[tuple[PodAffinityTerm, set[str]]]:
        """Return the anti-affinity terms of running pods, with the label values at which they apply."""
        repellers: dict[str, tuple[PodAffinityTerm, set[str]]] = {}
        for pod in running:
            for term in self._apart_from(pod):
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
            level = self._level_of(term.key)
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
            level = self._level_of(term.key)
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
        for term in self._apart_from(draft.first):
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
        for term, values, sure in {id(found): found for pod in draft.pods for found in self._repelled[pod.id]}.values():
            conditions &= where(term.key, "NotIn", *values)
            self.doubtful |= not sure
        return conditions

    def _where(self, term: PodAffinityTerm) -> list[str]:
        """Return the label values at which a running pod is selected by the term; records those pods as bound."""
        met = [pod for pod in self._selection.of(term).pods if pod.node in self._nodes]
        self.bound.update(pod.id for pod in met)
        values = {self._nodes[pod.node or ""].labels.get(term.key) for pod in met}
        return sorted(value for value in values if value is not None)
