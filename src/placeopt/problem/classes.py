"""Classes: jobs that ask for the same and nodes that offer the same, and the waiting jobs of each class."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np

from placeopt.model import Instance, Job, Node, Policy, Split, Spread
from placeopt.problem.arrays import BoolArray, IntArray
from placeopt.problem.problem import Problem
from placeopt.problem.state import State


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


def waiting_per_class(state: State) -> IntArray:
    """Shape (K,): jobs of each class that are not placed in ``state``."""
    problem = state.problem
    unplaced = np.array([placement is None for placement in state.placements], dtype=bool)
    return np.bincount(problem.job_class[unplaced], minlength=problem.num_classes)


def startable_options(state: State) -> tuple[IntArray, IntArray]:
    """Return the options in which an unplaced job may start on some idle node, (Y,), and how many such jobs wait."""
    options, waiting = state.problem.options, waiting_per_class(state)
    startable = np.flatnonzero((waiting[options.job_class] > 0) & options.node_class_ok.any(axis=1))
    return startable, waiting[options.job_class[startable]]


def job_classes(jobs: tuple[Job, ...], policy: Policy) -> tuple[list[Job], IntArray]:
    """Return one member of each class, and the class of every job."""
    canonical: dict[object, int] = {}
    by_identity: dict[tuple[int, int], tuple[int, int]] = {}  # jobs from columns share these objects: hash them once

    def key(job: Job) -> tuple[object, ...]:
        address = (id(job.options), id(job.communication))
        shape = by_identity.get(address)
        if shape is None:
            options = canonical.setdefault(job.options, len(canonical))
            shape = by_identity[address] = (options, canonical.setdefault(job.communication, len(canonical)))
        return (*shape, *_conditions(job, policy))

    job_class, firsts = group_by_key(map(key, jobs))
    return [jobs[j] for j in firsts], np.array(job_class, dtype=np.int64)


def class_key(job: Job, policy: Policy) -> tuple[object, ...]:
    """Return what is equal for two jobs just if they are of one class."""
    return (job.options, job.communication, *_conditions(job, policy))


def _conditions(job: Job, policy: Policy) -> tuple[object, ...]:
    return (
        job.profile,
        job.queue if policy.queues else None,
        job.utility_min_thousandths,
        tuple(sorted(job.node_selector.items())) if job.node_selector else (),
        job.nodes_allowed,
        job.tolerations,
    )


def effective_labels(instance: Instance, nodes: Sequence[Node] | None = None) -> list[dict[str, str]]:
    """Return each node's own labels plus, for every domain above it, level -> domain id; of all nodes, or of these."""
    above: dict[str | None, dict[str, str]] = {None: {}}
    for domain in instance.cluster.domains:
        above[domain.id] = {**above[domain.parent], domain.level: domain.id}
    return [{**above[node.domain], **node.labels} for node in (instance.cluster.nodes if nodes is None else nodes)]


def node_classes(instance: Instance, members: list[Job]) -> tuple[IntArray, list[int]]:
    """Return the class of every node, and one node of each class."""
    return classes_by_view(instance, *views(members))


Views = tuple[frozenset[str], tuple[frozenset[str], ...]]
"""What jobs look at in a node beside machine, taints and drain: labels, and lists of nodes allowed."""


def views(members: list[Job]) -> Views:
    """Return the labels and lists of nodes by which some class of jobs chooses; others do not distinguish nodes."""
    asked = frozenset(label for job in members for label in job.node_selector)
    lists = dict.fromkeys(job.nodes_allowed for job in members if job.nodes_allowed is not None)
    return asked, tuple(dict.fromkeys(frozenset(names) for names in lists))


def classes_by_view(
    instance: Instance, asked: frozenset[str], allowed: tuple[frozenset[str], ...]
) -> tuple[IntArray, list[int]]:
    """Return the class of every node, and one node of each class, in the order of the file."""
    groups: dict[str, list[int]] = {}
    for i, names in enumerate(allowed):
        for name in names:
            groups.setdefault(name, []).append(i)
    labels = effective_labels(instance) if asked else []
    node_class, firsts = group_by_key(
        (
            node.machine,
            node.taints,
            node.drained,
            tuple(sorted((label, labels[n][label]) for label in asked & labels[n].keys())) if asked else (),
            tuple(groups.get(node.id, ())) if groups else (),
        )
        for n, node in enumerate(instance.cluster.nodes)
    )
    return np.array(node_class, dtype=np.int64), firsts


def allowed_nodes(instance: Instance, members: list[Job], class_nodes: list[int]) -> BoolArray:
    """Shape (K, C): whether selector, list of nodes, taints and drain admit the class's jobs to the node class."""
    labels = effective_labels(instance, [instance.cluster.nodes[n] for n in class_nodes])
    out = np.ones((len(members), len(class_nodes)), dtype=bool)
    for c, n in enumerate(class_nodes):
        node = instance.cluster.nodes[n]
        for k, job in enumerate(members):
            out[k, c] = admits(node, labels[c], job)
    return out


def admits(node: Node, labels: Mapping[str, str], job: Job) -> bool:
    """Return whether a node would let a job start, apart from room; ``labels``: its ``effective_labels``."""
    return not node.drained and chooses(node, labels, job) and all(taint in job.tolerations for taint in node.taints)


def chooses(node: Node, labels: Mapping[str, str], job: Job) -> bool:
    """Return whether a job's own conditions admit a node, whatever keeps jobs off it."""
    return all(labels.get(label) == value for label, value in job.node_selector.items()) and (
        job.nodes_allowed is None or node.id in job.nodes_allowed
    )


def eligible_domains(problem: Problem, option: int, rule: Split | Spread) -> frozenset[int]:
    """Return the domains with which ``skew_max`` compares: those with a node that the option's job chooses."""
    if isinstance(rule, Split) or rule.skew_max is None:
        return frozenset()
    job = problem.instance.jobs[int(np.argmax(problem.job_class == problem.options.job_class[option]))]
    labels, nodes = effective_labels(problem.instance), problem.instance.cluster.nodes
    chosen = [chooses(node, mine, job) for node, mine in zip(nodes, labels, strict=True)]
    domains = problem.split_domain[rule.level][np.array(chosen, dtype=bool)]
    return frozenset(domains[domains >= 0].tolist())
