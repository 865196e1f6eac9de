"""The target workload of the ``fgd`` fragmentation: the workers that are expected to ask for the remaining GPUs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import gcd

import numpy as np

from placeopt.model import Demand, Instance, Policy, TargetWorker
from placeopt.problem.arrays import BoolArray, Frozen, IntArray

MOST_PARTS = 1000
"""
Frequencies are integers: the counts, divided by what they have in common, while these sum to at most this; beyond,
scaled to this sum. Small rounds thus have small coefficients, which solvers can prove optima with.
"""

COVERED_PERCENT = 95
"""Share of the workers that the typical ones cover (Weng et al., ATC'23)."""

Worker = tuple[int, int, int, bytes]
"""GPUs, GPU-milli of each, CPU millicores, and as mask (T,) the GPU types allowed."""


@dataclass(frozen=True, eq=False)
class Target(Frozen):
    """Typical workers, the most frequent first, one entry each: M of them, over T GPU types."""

    gpus: IntArray  # (M,)
    milli: IntArray  # (M,) of each GPU
    cpu: IntArray  # (M,) millicores
    type_ok: BoolArray  # (M, T)
    parts: IntArray  # (M,) frequency

    def __len__(self) -> int:
        """M, the number of typical workers."""
        return len(self.parts)

    @property
    def total(self) -> int:
        """Sum of ``parts``; 0 where no worker is expected."""
        return int(self.parts.sum())


def target_workload(instance: Instance, policy: Policy, type_model: tuple[str, ...]) -> Target:
    """
    Compile the target workload of ``policy``; without entries unless its form of fragmentation is ``fgd``.

    ``policy.fragmentation.target`` counts as it is stated. Where it is empty, the instance's own jobs are the workload,
    running and waiting ones: every worker of each job's first option, the distinct ones by frequency until 95 % are
    covered (equally frequent ones in ascending order of what they ask for, so that the order of jobs does not matter).
    """
    counts, covered_percent = Counter[Worker](), 100

    def count(worker: Demand | TargetWorker, milli: int, number: int) -> None:
        allowed = bytes(not worker.gpu_models or model in worker.gpu_models for model in type_model)
        counts[worker.gpus, milli, worker.cpu_millicores, allowed] += number

    if policy.fragmentation.form == "fgd":
        for stated in policy.fragmentation.target:
            count(stated, stated.gpu_milli, stated.count)
        if not counts:
            covered_percent = COVERED_PERCENT
            for job in instance.jobs:
                demand = job.options[0].demand
                count(demand, demand.gpu_milli if demand.gpus else 1, job.options[0].workers)
    return _target(counts, covered_percent, len(type_model))


def weigh(gpus: IntArray, milli: IntArray, cpu: IntArray, type_ok: BoolArray, counts: IntArray) -> Target:
    """
    Compile a target from arrays of kinds of workers, (M,) each, ``type_ok`` (M, T).

    The most frequent ones until 95 % of ``counts`` are covered, as in ``target_workload``.
    """
    counted = Counter[Worker]()
    masks = [row.tobytes() for row in type_ok]
    for *kind, count in zip(gpus.tolist(), milli.tolist(), cpu.tolist(), masks, counts.tolist(), strict=True):
        counted[tuple(kind)] += count
    return _target(counted, COVERED_PERCENT, type_ok.shape[1])


def _target(counts: Counter[Worker], covered_percent: int, types: int) -> Target:
    """Return the most frequent workers until ``covered_percent`` are covered, equally frequent ones ascending."""
    typical: list[Worker] = []
    covered, total = 0, counts.total()
    for worker in sorted(counts, key=lambda worker: (-counts[worker], worker)):
        if 100 * covered >= covered_percent * total:
            break
        typical.append(worker)
        covered += counts[worker]
    gpus, milli, cpu = np.array([worker[:3] for worker in typical], dtype=np.int64).reshape(len(typical), 3).T.copy()
    allowed = np.frombuffer(b"".join(worker[3] for worker in typical), dtype=bool).reshape(len(typical), types)
    return Target(gpus, milli, cpu, allowed, _parts([counts[worker] for worker in typical]))


def _parts(counts: list[int]) -> IntArray:
    """Return integers in proportion to ``counts``; where these are too large by largest remainder, the first first."""
    common = gcd(*counts)
    parts = [count // common for count in counts]
    total = sum(parts)
    if total > MOST_PARTS:
        exact, parts = parts, [part * MOST_PARTS // total for part in parts]
        by_remainder = sorted(range(len(parts)), key=lambda i: -(exact[i] * MOST_PARTS % total))
        for i in by_remainder[: MOST_PARTS - sum(parts)]:
            parts[i] += 1
    return np.array(parts, dtype=np.int64)
