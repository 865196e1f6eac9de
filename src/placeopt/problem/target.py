"""The target workload of the ``fgd`` fragmentation: which workers are expected to ask for the GPUs that are left."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import gcd

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
    if policy.fragmentation.form == "fgd":
        for one in policy.fragmentation.target:
            counts[one.gpus, one.gpu_milli, one.cpu_millicores, tuple(sorted(set(one.gpu_models)))] += one.count
        if not counts:
            counts = _typical(instance)
    workers = sorted(counts, key=lambda worker: (-counts[worker], worker))
    parts = _parts([counts[worker] for worker in workers])
    models = [frozenset(worker[3]) for worker in workers]
    return Target(
        gpus=_ints([worker[0] for worker in workers]),
        milli=_ints([worker[1] for worker in workers]),
        cpu=_ints([worker[2] for worker in workers]),
        type_ok=np.array([[not m or t in m for t in type_model] for m in models], dtype=bool).reshape(
            len(workers), len(type_model)
        ),
        parts=parts,
    )


def _typical(instance: Instance) -> Counter[Worker]:
    counts: Counter[Worker] = Counter()
    for job in instance.jobs:
        option = job.options[0]
        d = option.demand
        counts[d.gpus, d.gpu_milli if d.gpus else 1, d.cpu_millicores, tuple(sorted(set(d.gpu_models)))] += (
            option.workers
        )
    typical: Counter[Worker] = Counter()
    for worker in sorted(counts, key=lambda worker: (-counts[worker], worker)):
        if 100 * typical.total() >= COVERED_PERCENT * counts.total():
            break
        typical[worker] = counts[worker]
    return typical


def weigh(gpus: IntArray, milli: IntArray, cpu: IntArray, type_ok: BoolArray, counts: IntArray) -> Target:
    """
    Compile a target from arrays of kinds of workers, (M,) each, ``type_ok`` (M, T).

    The most frequent ones until 95 % of ``counts`` are covered, as in ``target_workload``; kinds that are equal in all
    of this count as one.
    """
    counted: Counter[tuple[int, int, int, bytes]] = Counter()
    masks = [row.tobytes() for row in type_ok]
    for one, count in zip(zip(gpus.tolist(), milli.tolist(), cpu.tolist(), masks, strict=True), counts, strict=True):
        counted[one] += int(count)
    typical: list[tuple[int, int, int, bytes]] = []
    covered, total = 0, counted.total()
    for one in sorted(counted, key=lambda one: (-counted[one], one)):
        if 100 * covered >= COVERED_PERCENT * total:
            break
        typical.append(one)
        covered += counted[one]
    return Target(
        gpus=_ints([one[0] for one in typical]),
        milli=_ints([one[1] for one in typical]),
        cpu=_ints([one[2] for one in typical]),
        type_ok=np.array([np.frombuffer(one[3], dtype=bool) for one in typical], dtype=bool).reshape(
            len(typical), type_ok.shape[1]
        ),
        parts=_parts([counted[one] for one in typical]),
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
