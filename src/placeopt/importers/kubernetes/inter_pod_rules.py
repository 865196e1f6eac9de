"""Rules between pods: affinity and anti-affinity. What runs closes nodes; what waits may exclude."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from placeopt.importers.kubernetes.gangs import Draft
from placeopt.importers.kubernetes.listing import PodList
from placeopt.importers.kubernetes.node_selectors import EVERY_NODE, NO_NODE, NodeConditions, where
from placeopt.importers.kubernetes.nodes import KubernetesNode
from placeopt.importers.kubernetes.pod_affinity import NO_TERMS, PodAffinity, PodAffinityTerm, PodSelection
from placeopt.importers.kubernetes.pods import Pod
from placeopt.model import Split


class PodRules(NamedTuple):
    """What a job's rules between pods ask of its places; all but the conditions as in `placeopt.model.Option`."""

    conditions: NodeConditions = EVERY_NODE
    single_node: bool = False
    workers_per_node_max: int | None = None
    splits: tuple[Split, ...] = ()


NO_RULES = PodRules()


class InterPodRules:
    """
    What pods require of each other.

    Pods that run stay where they are, so what they require, and what is required of them, closes nodes once and for
    all. Between jobs that wait the round has no rule: of those that exclude each other the first is taken, and one that
    needs another to be there is left out.

    ``waiting``: Jobs that wait. ``counted``: Terms of anti-affinity that amounts of nodes state (`exclusive_amounts`),
    by text; they are no rules here.
    """

    def __init__(
        self,
        nodes: Mapping[str, KubernetesNode],
        level_of: Callable[[str], str | None],
        pods: PodList,
        waiting: Sequence[Draft],
        counted: Container[str],
    ) -> None:
        self._nodes, self._level_of, self._terms = nodes, level_of, pods.terms
        self._selection, self._counted = PodSelection(pods.readable), counted
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

    def take(self, draft: Draft) -> PodRules | str:
        """
        Return the rules of a waiting job, or why it is left out.

        Call it in the order in which jobs are accepted.
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
        near = self._near_itself(draft, own.affinity)
        found = near if isinstance(near, str) else self._apart_from_itself(draft, own.anti_affinity, near)
        if isinstance(found, str):
            return found
        self._holders |= theirs
        self._met |= mine
        return found._replace(conditions=found.conditions & self._towards_running(draft, own))

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

    def _near_itself(self, draft: Draft, terms: Sequence[PodAffinityTerm]) -> PodRules | str:
        """Keep a gang with affinity to itself together; running pods with affinity exclude nodes instead."""
        found = NO_RULES
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
            if level == "node":
                found = found._replace(single_node=True)
            else:
                found = found._replace(splits=(*found.splits, Split(level=level, domains=1)))
        return found

    def _apart_from_itself(self, draft: Draft, terms: Sequence[PodAffinityTerm], near: PodRules) -> PodRules | str:
        """Spread a gang whose pods have anti-affinity to each other."""
        found = near
        if len(draft.pods) == 1:
            return found
        if draft.first.ports:
            found = found._replace(workers_per_node_max=1)
        for term in terms:
            met = [bool(term.meets(pod)) for pod in draft.pods]
            level = self._level_of(term.key)
            if not any(met):
                continue
            if not all(met):
                return "with anti-affinity between some pods of a gang"
            if level == "node":
                found = found._replace(workers_per_node_max=1)
            elif level is None or draft.pods_min < len(draft.pods):
                return f"with anti-affinity between pods of a gang by {term.key}"
            else:
                found = found._replace(
                    conditions=found.conditions & where(term.key, "Exists"),
                    splits=(*found.splits, Split(level=level, domains=len(draft.pods), workers=1)),
                )
        return found

    def _towards_running(self, draft: Draft, own: PodAffinity) -> NodeConditions:
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

    def repelled(self, draft: Draft) -> NodeConditions:
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
