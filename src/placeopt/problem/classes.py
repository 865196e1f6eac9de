"""Classes: jobs that ask for the same and nodes that offer the same, and the waiting jobs of each class."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from operator import attrgetter

import numpy as np

from placeopt.model import Hold, Instance, Job, Policy, Split, Spread
from placeopt.problem.admission import NO_CHOICE, Admission, choices_of, effective_labels
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


_shareable = attrgetter("options", "communication", "node_affinity", "tolerations", "nodes_allowed", "relations")


def _plain(job: Job, policy: Policy, holds: Iterable[Hold], now_ms: int, keys: tuple[str, ...]) -> tuple[object, ...]:
    return (
        exempt_of(job, holds, now_ms) if holds else None,
        job.profile,
        job.queue if policy.queues else None,
        job.utility_min_thousandths,
        tuple(sorted(job.node_selector.items())) if job.node_selector else (),
        job.nodes_excluded,
        tuple([job.labels.get(key) for key in keys]),
    )


def node_classes(instance: Instance, members: Iterable[Job], flavors: Sequence[int]) -> tuple[IntArray, list[int]]:
    """Return the class of every node, and one node of each: those of a class offer the same to all ``members``."""
    nodes, held, kinds = instance.cluster.nodes, dict[str, list[object]](), instance.hold_kinds
    for hold in instance.holds_now:
        amounts = (hold.gpus, hold.cpu_millicores, hold.memory_mib, tuple(hold.resources.items()), hold.until_ms)
        held.setdefault(hold.node, []).append((kinds[hold.kind].id, *amounts))
    asked = {choices_of(job): job for job in members}
    asked.pop(NO_CHOICE, None)
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


def eligible_domains(problem: Problem, option: int, rule: Split | Spread) -> frozenset[int]:
    """Return the domains with which ``skew_max`` compares: those with a node that the option's job chooses."""
    if isinstance(rule, Split) or rule.skew_max is None:
        return frozenset()
    job = problem.class_member[problem.options.job_class[option]]
    domains = problem.split_domain[rule.level][problem.admission.chosen(job)]
    return frozenset(domains[domains >= 0].tolist())
