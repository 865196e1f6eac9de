"""The target workload of the ``fgd`` fragmentation: the workers that are expected to ask for the remaining GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import TypeVar

import numpy as np

from placeopt.model import Instance, Policy
from placeopt.problem.arrays import BoolArray, Frozen, IntArray

MOST_PARTS = 1000
"""
Frequencies are integers: the counts, divided by what they have in common, while these sum to at most this; beyond,
scaled to this sum. Small rounds thus have small coefficients, which solvers can prove optima with.
"""

COVERED_PERCENT = 95
"""Share of the workers that the typical ones cover (Weng et al., ATC'23)."""

Worker = tuple[int, int, int, tuple[str, ...]]
"""GPUs, GPU-milli of each, CPU millicores, GPU models allowed (sorted; empty: any)."""

Kind = TypeVar("Kind", Worker, tuple[int, int, int, bytes])
"""A worker; ``weigh`` has the mask of GPU types allowed in place of their models."""


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
    counts: Counter[Worker] = Counter()
    covered_percent = 100
    if policy.fragmentation.form == "fgd":
        for stated in policy.fragmentation.target:
            models = tuple(sorted(set(stated.gpu_models)))
            counts[stated.gpus, stated.gpu_milli, stated.cpu_millicores, models] += stated.count
        if not counts:
            covered_percent = COVERED_PERCENT
            for job in instance.jobs:
                d, models = job.options[0].demand, tuple(sorted(set(job.options[0].demand.gpu_models)))
                counts[d.gpus, d.gpu_milli if d.gpus else 1, d.cpu_millicores, models] += job.options[0].workers
    typical = _typical(counts, covered_percent)
    type_ok = [[not models or model in models for model in type_model] for *_, models in typical]
    return _target(typical, counts, np.array(type_ok, dtype=bool).reshape(len(typical), len(type_model)))


def weigh(gpus: IntArray, milli: IntArray, cpu: IntArray, type_ok: BoolArray, counts: IntArray) -> Target:
    """
    Compile a target from arrays of kinds of workers, (M,) each, ``type_ok`` (M, T).

    The most frequent ones until 95 % of ``counts`` are covered, as in ``target_workload``; kinds that are equal in all
    of this count as one.
    """
    counted: Counter[tuple[int, int, int, bytes]] = Counter()
    masks = [row.tobytes() for row in type_ok]
    kinds = zip(gpus.tolist(), milli.tolist(), cpu.tolist(), masks, strict=True)
    for kind, count in zip(kinds, counts.tolist(), strict=True):
        counted[kind] += count
    typical = _typical(counted, COVERED_PERCENT)
    allowed = np.array([np.frombuffer(mask, dtype=bool) for *_, mask in typical], dtype=bool)
    return _target(typical, counted, allowed.reshape(len(typical), type_ok.shape[1]))


def _typical(counts: Counter[Kind], covered_percent: int) -> list[Kind]:
    """Return the most frequent workers until ``covered_percent`` are covered, equally frequent ones ascending."""
    typical: list[Kind] = []
    covered, total = 0, counts.total()
    for worker in sorted(counts, key=lambda worker: (-counts[worker], worker)):
        if 100 * covered >= covered_percent * total:
            break
        typical.append(worker)
        covered += counts[worker]
    return typical


def _target(typical: Sequence[Kind], counts: Counter[Kind], type_ok: BoolArray) -> Target:
    return Target(
        gpus=_ints([worker[0] for worker in typical]),
        milli=_ints([worker[1] for worker in typical]),
        cpu=_ints([worker[2] for worker in typical]),
        type_ok=type_ok,
        parts=_parts([counts[worker] for worker in typical]),
    )


def _parts(counts: list[int]) -> IntArray:
    """Return integers in proportion to ``counts``; where these are too large by largest remainder, the first first."""
    common = gcd(*counts)
    counts = [count // common for count in counts]
    total = sum(counts)
    if total <= MOST_PARTS:
        return _ints(counts)
    parts = [count * MOST_PARTS // total for count in counts]
    for i in sorted(range(len(counts)), key=lambda i: -(counts[i] * MOST_PARTS % total))[: MOST_PARTS - sum(parts)]:
        parts[i] += 1
    return _ints(parts)


def _ints(values: list[int]) -> IntArray:
    return np.array(values, dtype=np.int64)
