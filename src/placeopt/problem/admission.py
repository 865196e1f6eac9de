"""Which nodes admit which jobs, apart from room: labels, names, taints and drain, looked up by value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from placeopt.model import Instance, Job, LabelExpression, Node, Taint
from placeopt.model.conditions import NODE_NAME
from placeopt.problem.arrays import BoolArray

BARRIERS = ("drained", "taints", "nodes_allowed", "nodes_excluded", "node_selector", "node_affinity")
"""What may keep a job off a node, in the order in which it is named."""
CHOICES = BARRIERS[2:]
"""Of these what the job itself says about nodes."""


def choices_of(job: Job) -> tuple[object, ...]:
    """Return what a job itself says about nodes; equal for two jobs just if they state the same."""
    selector = tuple(sorted(job.node_selector.items())) if job.node_selector else ()
    return selector, job.node_affinity, job.nodes_allowed, job.nodes_excluded


NO_CHOICE = ((), (), None, ())
"""Of a job that says nothing about nodes."""


def conditions_of(job: Job) -> tuple[object, ...]:
    """Return what decides which nodes admit a job; equal for two jobs just if they state the same."""
    return (*choices_of(job), job.tolerations)


def effective_labels(instance: Instance, nodes: Sequence[Node] | None = None) -> list[dict[str, str]]:
    """Return each node's own labels, level -> domain id of every domain above it, and its name; of all, or of these."""
    above: dict[str | None, dict[str, str]] = {None: {}}
    for domain in instance.cluster.domains:
        above[domain.id] = {**above[domain.parent], domain.level: domain.id}
    listed = instance.cluster.nodes if nodes is None else nodes
    return [{**above[node.domain], **node.labels, NODE_NAME: node.id} for node in listed]


class Admission:
    """
    Which of some nodes admit a job. A condition takes as long as the label values that it lists.

    ``labels``: The nodes' `effective_labels`.
    """

    def __init__(self, nodes: Sequence[Node], labels: Sequence[Mapping[str, str]]) -> None:
        self._count = len(nodes)
        self._drained = [n for n, node in enumerate(nodes) if node.drained]
        self._tainted: dict[Taint, list[int]] = defaultdict(list)
        self._values: dict[str, dict[str, list[int]]] = defaultdict(dict)  # label -> value -> nodes
        for n, node in enumerate(nodes):
            for taint in node.taints:
                self._tainted[taint].append(n)
            for label, value in labels[n].items():
                self._values[label].setdefault(value, []).append(n)
        self._known: dict[tuple[object, ...], BoolArray] = {}

    def admitted(self, job: Job) -> BoolArray:
        """Shape (N,): nodes that admit a job; judged once for jobs with equal conditions."""
        conditions = conditions_of(job)
        if conditions not in self._known:
            self._known[conditions] = self._all(self.open(job).values())
        return self._known[conditions]

    def chosen(self, job: Job) -> BoolArray:
        """Shape (N,): nodes that the job's own conditions admit, whatever keeps jobs off them."""
        return self._all(map(self.open(job).__getitem__, CHOICES))

    def open(self, job: Job) -> dict[str, BoolArray]:
        """``open[barrier]``, shape (N,), of every one of `BARRIERS`: mask of the nodes that satisfy it."""
        every, names, selected = self._all([]), self._values[NODE_NAME], job.node_selector.items()
        kept_off = [n for taint, n in self._tainted.items() if not any(one.tolerates(taint) for one in job.tolerations)]
        met = ~every
        for term in filter(None, job.node_affinity):
            met |= self._all(map(self._meeting, term))
        return {
            "drained": ~self._any([self._drained]),
            "taints": ~self._any(kept_off),
            "nodes_allowed": every if job.nodes_allowed is None else self._listed(names, job.nodes_allowed),
            "nodes_excluded": ~self._listed(names, job.nodes_excluded),
            "node_selector": self._all(self._listed(self._values[label], [value]) for label, value in selected),
            "node_affinity": met if job.node_affinity else every,
        }

    def _meeting(self, expression: LabelExpression) -> BoolArray:
        """Shape (N,): nodes that meet an expression; negated operators are the complement of the plain ones."""
        values = self._values[expression.key]
        match expression.operator:
            case "In":
                return self._listed(values, expression.values)
            case "NotIn":
                return ~self._listed(values, expression.values)
            case "DoesNotExist":
                return ~self._any(values.values())
            case _:
                return self._any(nodes for value, nodes in values.items() if expression.accepts(value))

    def _listed(self, groups: Mapping[str, list[int]], names: Iterable[str]) -> BoolArray:
        return self._any(groups[name] for name in names if name in groups)

    def _any(self, groups: Iterable[list[int]]) -> BoolArray:
        mask = np.zeros(self._count, dtype=bool)
        for nodes in groups:
            mask[nodes] = True
        return mask

    def _all(self, masks: Iterable[BoolArray]) -> BoolArray:
        met = np.ones(self._count, dtype=bool)
        for mask in masks:
            met &= mask
        return met
