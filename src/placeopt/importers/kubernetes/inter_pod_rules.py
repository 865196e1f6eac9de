"""Pod affinity and anti-affinity of jobs: their labels and relations, and which cannot be said of a whole job."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from functools import cached_property

from placeopt.importers.kubernetes.gangs import Draft
from placeopt.importers.kubernetes.listing import PodList
from placeopt.importers.kubernetes.pod_affinity import NO_RELATIONS, Selection, labels_of, selects
from placeopt.importers.kubernetes.pods import Pod
from placeopt.importers.kubernetes.topologies import Levels
from placeopt.model import Relation


@dataclass
class InterPodRules:
    """
    What pods say of each other.

    ``counted``: Terms of anti-affinity that amounts of nodes state (`exclusive_amounts`): they are no relations.
    ``every_label``: Whether jobs have all labels of their pods; else those that some relation looks at.
    """

    levels: Levels
    pods: PodList
    counted: Container[Relation]
    every_label: bool = False

    @cached_property
    def relations(self) -> dict[Relation, Relation]:
        """Every relation of a pod that is no amount, as that of a job."""
        every = dict.fromkeys(one for found in self.pods.relations.values() for one in found.relations)
        return {one: self._of_job(one) for one in every if one not in self.counted}

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.key for relation in self.relations for one in relation.selector))

    @cached_property
    def _selection(self) -> Selection:
        return Selection(self.pods.readable)

    def _of_job(self, relation: Relation) -> Relation:
        at_node = self.levels.is_node(relation.level)
        return relation.model_copy(update={"level": "node"}) if at_node else relation

    def relations_of(self, pod: Pod) -> tuple[Relation, ...]:
        """Return the relations of a pod's job."""
        found = self.pods.relations.get(pod.id, NO_RELATIONS).relations
        return tuple(self.relations[one] for one in found if one in self.relations)

    def labels_of(self, pod: Pod) -> dict[str, str]:
        """Return the labels of a pod's job."""
        labels = labels_of(pod)
        if self.every_label:
            return labels
        return {key: labels[key] for key in self._keys if key in labels}

    def unread(self, draft: Draft) -> str | None:
        """Return why the relations of a job, or to it, cannot be said; None if they can."""
        if self.is_doubtful(draft):
            return "with pod affinity by labels of namespaces that are not listed (get namespaces too)"
        if len(draft.pods) == 1:
            return None
        if len({self.relations_of(pod) for pod in draft.pods}) > 1:
            return "a gang of which some pods have other pod affinity than others"
        labels = {tuple(self.labels_of(pod).items()) for pod in draft.pods}
        if len(labels) > 1 and any(len({selects(one, pod) for pod in draft.pods}) > 1 for one in self.relations):
            return "a gang of which pod affinity selects some pods, and others not"
        return None

    def is_doubtful(self, draft: Draft) -> bool:
        """Return whether a job has relations to pods in namespaces whose labels would decide and are not listed."""
        own = self.pods.relations.get(draft.first.id, NO_RELATIONS)
        return any(
            pod.namespace in own.doubtful
            for relation in (own.relations if own.doubtful else ())
            if relation in self.relations
            for pod in self._selection.of(relation)
        )
