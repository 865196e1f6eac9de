"""Which nodes admit which jobs, apart from room; classes of jobs that ask for the same, and of nodes alike to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from operator import attrgetter

import numpy as np

from placeopt.model import Hold, Instance, Job, LabelExpression, Node, NodeConditions, Policy, Taint
from placeopt.model.conditions import NODE_NAME
from placeopt.model.job import RECORDS
from placeopt.problem.arrays import BoolArray, IntArray

BARRIERS = ("drained", "taints", "nodes_allowed", "nodes_excluded", "node_selector", "node_affinity")
"""What may keep a job off a node, in the order in which it is named."""
CHOICES = BARRIERS[2:]
"""Of these what the job itself says about nodes."""


def choices_of(job: Job) -> tuple[object, ...]:
    """Return what a job itself says about nodes; equal for two jobs just if they state the same."""
    asks = job.conditions
    return asks.node_selector, asks.node_affinity, asks.nodes_allowed, asks.nodes_excluded


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
        self._known: dict[NodeConditions, BoolArray] = {}

    def admitted(self, job: Job) -> BoolArray:
        """Shape (N,): nodes that admit a job; judged once for jobs with equal conditions."""
        if job.conditions not in self._known:
            self._known[job.conditions] = self._all(self.open(job).values())
        return self._known[job.conditions]

    def chosen(self, job: Job) -> BoolArray:
        """Shape (N,): nodes that the job's own conditions admit, whatever keeps jobs off them."""
        return self._all(map(self.open(job).__getitem__, CHOICES))

    def open(self, job: Job) -> dict[str, BoolArray]:
        """``open[barrier]``, shape (N,), of every one of `BARRIERS`: mask of the nodes that satisfy it."""
        every, names, asks = self._all([]), self._values[NODE_NAME], job.conditions
        selected, tolerated = asks.node_selector.items(), asks.tolerations
        kept_off = [n for taint, n in self._tainted.items() if not any(one.tolerates(taint) for one in tolerated)]
        met = ~every
        for term in filter(None, asks.node_affinity):
            met |= self._all(map(self._meeting, term))
        return {
            "drained": ~self._any([self._drained]),
            "taints": ~self._any(kept_off),
            "nodes_allowed": every if asks.nodes_allowed is None else self._listed(names, asks.nodes_allowed),
            "nodes_excluded": ~self._listed(names, asks.nodes_excluded),
            "node_selector": self._all(self._listed(self._values[label], [value]) for label, value in selected),
            "node_affinity": met if asks.node_affinity else every,
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


def group_by_key(keys: Iterable[Hashable]) -> tuple[list[int], list[int]]:
    """Return the group of each key, numbered by first appearance, and the position of the first member of each."""
    numbers: dict[Hashable, int] = {}
    group: list[int] = []
    first: list[int] = []
    for position, key in enumerate(keys):
        number = numbers.setdefault(key, len(first))
        if number == len(first):
            first.append(position)
        group.append(number)
    return group, first


def numbered(rows: np.ndarray) -> IntArray:
    """Shape (n,): numbers that are equal for equal rows of an array, (n, anything)."""
    numbers: IntArray = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    return numbers


def job_classes(
    jobs: tuple[Job, ...], policy: Policy, holds: Iterable[Hold] = (), now_ms: int = 0
) -> tuple[list[Job], IntArray]:
    """Return one member of each class, and the class of every job; ``holds``: one of each kind."""
    keys = label_keys(jobs)
    canonical: dict[object, int] = {}
    by_identity: dict[tuple[int, ...], tuple[int, ...]] = {}  # jobs often share these objects: hash them once

    def key(job: Job) -> tuple[object, ...]:
        parts = _shareable(job)
        address = tuple(map(id, parts))
        shape = by_identity.get(address)
        if shape is None:
            shape = by_identity[address] = tuple([canonical.setdefault(part, len(canonical)) for part in parts])
        return (*shape, *_plain(job, policy, holds, now_ms, keys))

    job_class, firsts = group_by_key(map(key, jobs))
    return [jobs[j] for j in firsts], np.array(job_class, dtype=np.int64)


def class_key(
    job: Job, policy: Policy, holds: Iterable[Hold] = (), now_ms: int = 0, keys: tuple[str, ...] = ()
) -> tuple[object, ...]:
    """Return what is equal for two jobs just if they are of one class; ``keys``: `label_keys` of all jobs."""
    return (*_shareable(job), *_plain(job, policy, holds, now_ms, keys))


def label_keys(jobs: Iterable[Job]) -> tuple[str, ...]:
    """Return the labels of jobs at which relations of some jobs look."""
    every = {id(job.relations): job.relations for job in jobs if job.relations}
    return tuple(sorted({one.key for found in every.values() for relation in found for one in relation.selector}))


def exempt_of(job: Job, holds: Iterable[Hold], now_ms: int) -> frozenset[str]:
    """Return the ids of the holds, one of each kind, that do not count against a job."""
    return frozenset([hold.id for hold in holds if not hold.counts_against(job, now_ms)])


_shareable = attrgetter(*RECORDS)


def _plain(job: Job, policy: Policy, holds: Iterable[Hold], now_ms: int, keys: tuple[str, ...]) -> tuple[object, ...]:
    return (
        exempt_of(job, holds, now_ms) if holds else None,
        job.profile,
        job.queue if policy.queues else None,
        job.utility_min_thousandths,
        tuple([job.labels.get(key) for key in keys]),
    )


def node_classes(instance: Instance, members: Iterable[Job], flavors: Sequence[int]) -> tuple[IntArray, list[int]]:
    """Return the class of every node, and one node of each: those of a class offer the same to all ``members``."""
    nodes, held, kinds = instance.cluster.nodes, dict[str, list[object]](), instance.hold_kinds
    for hold in instance.holds_now:
        amounts = (hold.gpus, hold.cpu_millicores, hold.memory_mib, tuple(hold.resources.items()), hold.until_ms)
        held.setdefault(hold.node, []).append((kinds[hold.kind].id, *amounts))
    asked = {choices_of(job): job for job in members if job.conditions.restricts}
    views: Sequence[Iterable[int]] = [()] * len(nodes)
    if asked:
        admission = Admission(nodes, effective_labels(instance))
        masks = dict.fromkeys(np.packbits(admission.chosen(job)).tobytes() for job in asked.values())
        chosen = np.array([np.frombuffer(mask, dtype=np.uint8) for mask in masks])
        views = np.packbits(np.unpackbits(chosen, axis=1, count=len(nodes)), axis=0).T.tolist()
    node_class, firsts = group_by_key(
        (node.machine, node.taints, node.drained, flavor, bytes(view), tuple(held.get(node.id, ())))
        for node, flavor, view in zip(nodes, flavors, views, strict=True)
    )
    return np.array(node_class, dtype=np.int64), firsts


def allowed_nodes(instance: Instance, members: list[Job], class_nodes: list[int]) -> BoolArray:
    """Shape (K, C): whether conditions, taints and drain admit the class's jobs to the node class."""
    nodes = [instance.cluster.nodes[n] for n in class_nodes]
    admission = Admission(nodes, effective_labels(instance, nodes))
    return np.array([admission.admitted(job) for job in members], dtype=bool).reshape(len(members), len(nodes))
