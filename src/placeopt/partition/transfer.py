"""
What goes to the process of a part and comes back: the part's round by columns, and places as arrays.

A record that is pickled by itself names all its fields; columns name each of them once, and state once what many rows
share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np

from placeopt.model import Assignment, Instance, Job, Node, Running, WorkerGpus
from placeopt.model.base import Record, trusted
from placeopt.partition.splitting import Part
from placeopt.problem import Allocation, IntArray, Placement, Problem

R = TypeVar("R", bound=Record)
NESTED: dict[str, type[Record]] = {"assignments": Assignment, "workers": WorkerGpus}
"""Fields that hold tuples of records which rows do not share."""
SHARED = ("options", "communication")
"""Fields of jobs with records that many rows have alike."""


@dataclass(frozen=True)
class Columns:
    """Records of one kind: a list for each field, with a value for each row."""

    kind: type[Record]
    values: tuple[list[Any], ...]
    inner: dict[int, Columns]
    """Fields by number that hold tuples of records: all of them, row after row; ``values`` has how many in each row."""

    @classmethod
    def of(cls, kind: type[Record], rows: Iterable[Record]) -> Columns:
        """Take records apart."""
        names = tuple(kind.model_fields)
        read = itemgetter(*names)
        held = zip(*[read(row.__dict__) for row in rows], strict=True)
        values = [list(column) for column in held] or [[] for _ in names]
        inner = {}
        for number, name in enumerate(names):
            if name in NESTED:
                inner[number] = cls.of(NESTED[name], chain.from_iterable(values[number]))
                values[number] = [len(records) for records in values[number]]
            elif name in SHARED:
                values[number] = _alike(values[number])
        return cls(kind, tuple(values), inner)

    def records(self) -> tuple[Any, ...]:
        """Return the records."""
        values = list(self.values)
        for number, columns in self.inner.items():
            ends = np.cumsum([0, *values[number]]).tolist()
            every = columns.records()
            values[number] = [every[first:last] for first, last in pairwise(ends)]
        kind, names = self.kind, tuple(self.kind.model_fields)
        return tuple([trusted(kind, dict(zip(names, row, strict=True))) for row in zip(*values, strict=True)])


def _alike(values: list[Any]) -> list[Any]:
    """Return one and the same object for equal values."""
    by_value: dict[Any, Any] = {}
    by_identity = {id(value): value for value in values}
    of = {number: by_value.setdefault(value, value) for number, value in by_identity.items()}
    return [of[id(value)] for value in values]


@dataclass(frozen=True)
class PackedRound:
    """A round that is quick to pickle."""

    rest: Instance
    """The round without nodes, jobs and running ones."""
    nodes: Columns
    jobs: Columns
    running: Columns

    @classmethod
    def of(cls, instance: Instance) -> PackedRound:
        """Pack a round."""
        cluster = instance.cluster.model_copy(update={"nodes": ()})
        return cls(
            instance.model_copy(update={"cluster": cluster, "jobs": (), "running": ()}),
            Columns.of(Node, instance.cluster.nodes),
            Columns.of(Job, instance.jobs),
            Columns.of(Running, instance.running),
        )

    def unpacked(self) -> Instance:
        """Return the round."""
        cluster = self.rest.cluster.model_copy(update={"nodes": self.nodes.records()})
        jobs, running = self.jobs.records(), self.running.records()
        return self.rest.model_copy(update={"cluster": cluster, "jobs": jobs, "running": running})


@dataclass(frozen=True, eq=False)
class Places:
    """Where P waiting jobs of a part were placed; everything by numbers of the part's problem."""

    job: IntArray  # (P,)
    way: IntArray  # (P,) option, counted from the first one of the job
    workers: IntArray  # (P,)
    gpus: IntArray  # (P,) GPUs of all workers
    node: IntArray  # (workers,) job after job, in rank order
    gpu_node: IntArray  # (GPUs,) node of each GPU, job after job, worker after worker
    gpu: IntArray  # (GPUs,) counted from the first one of its node


NO_PLACES = Places(*[np.zeros(0, dtype=np.int64)] * 7)


def places_of(problem: Problem, allocation: Allocation) -> Places:
    """Return the places of the jobs that start."""
    placed = [(j, p) for j, p in enumerate(allocation) if p is not None and j not in problem.running]
    job = np.array([j for j, _ in placed], dtype=np.int64)
    option = np.array([p.option for _, p in placed], dtype=np.int64)
    gpu = _chained(p.gpus for _, p in placed)
    gpu_node = problem.gpu_node[gpu]
    return Places(
        job=job,
        way=option - problem.class_option_start[problem.job_class[job]],
        workers=np.array([len(p.nodes) for _, p in placed], dtype=np.int64),
        gpus=np.array([len(p.gpus) for _, p in placed], dtype=np.int64),
        node=_chained(p.nodes for _, p in placed),
        gpu_node=gpu_node,
        gpu=gpu - problem.node_gpu_start[gpu_node],
    )


def _chained(numbers: Iterable[Sequence[int]]) -> IntArray:
    return np.fromiter(chain.from_iterable(numbers), dtype=np.int64)


def joined(problem: Problem, parts: Sequence[Part], places: Iterable[tuple[int, Places]]) -> Allocation:
    """Return the allocation of the whole from the places of parts by number; running jobs stay as they are."""
    allocation: list[Placement | None] = [None] * problem.num_jobs
    for job, placement in problem.running.items():
        allocation[job] = placement
    for number, here in places:
        jobs, nodes = parts[number].jobs[here.job], parts[number].nodes
        option = problem.class_option_start[problem.job_class[jobs]] + here.way
        node = nodes[here.node].tolist()
        gpu = (problem.node_gpu_start[nodes[here.gpu_node]] + here.gpu).tolist()
        ends = zip(np.cumsum(here.workers).tolist(), np.cumsum(here.gpus).tolist(), strict=True)
        first_node = first_gpu = 0
        for job, row, (last_node, last_gpu) in zip(jobs.tolist(), option.tolist(), ends, strict=True):
            allocation[job] = Placement(row, tuple(node[first_node:last_node]), tuple(gpu[first_gpu:last_gpu]))
            first_node, first_gpu = last_node, last_gpu
    return tuple(allocation)
