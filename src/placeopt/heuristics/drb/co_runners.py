"""Slowdowns that a bundle would suffer and cause beside the jobs on a node."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from placeopt.problem import IntArray, State
from placeopt.terms.costs.horus import excess_table


class CoRunners:
    """
    The co-runners of a bundle on a node: pairs of profiles count at the closest part that they share.

    Under ``curve`` a co-runner is a job on a GPU, disturbed there.
    """

    def __init__(self, state: State, option: int, node: int) -> None:
        problem, here = state.problem, slice(state.problem.first_gpu[node], state.problem.first_gpu[node + 1])
        self.by_curve, size = problem.policy.interference.model == "curve", here.stop - here.start
        if self.by_curve:
            jobs, used = state.gpu_jobs[here], state.gpu_utilisation[here]
            more = int(problem.options.utilisation[option])
            table = excess_table(problem.policy.interference.curve, int(used.max(initial=0)) + more)
            gpu = np.repeat(np.arange(size), jobs)
            self._on = gpu[:, None] == np.arange(size)  # (co-runners, GPUs)
            after = table[used + more]
            self._suffered, self._caused = after[gpu], (after - np.where(jobs > 1, table[used], 0))[gpu]
            return
        self._slowdown, self._profile = problem.slowdown, int(problem.class_profile[problem.options.job_class[option]])
        tenants = state.tenants[node] if state.tenants else {}
        level = meeting_levels(*(relative(part[here]).tobytes() for part in (problem.gpu_socket, problem.gpu_switch)))
        rows = [
            (profile, level[np.array(gpus) - here.start].min(axis=0))
            for (profile, gpus), count in tenants.items()
            for _ in range(count)
        ]
        self._others = np.array([profile for profile, _ in rows], dtype=np.int64)
        self._level = np.array([row for _, row in rows], dtype=np.int64).reshape(-1, size)  # (co-runners, GPUs)

    def excess(self, sets: IntArray) -> tuple[IntArray, IntArray]:
        """
        Return by how much each co-runner slows the bundle, and is slowed, in thousandths: shape (co-runners, m) each.

        ``sets``, shape (m, k): GPUs of the node by index, m choices of k.
        """
        if self.by_curve:
            on = self._on[:, sets].any(axis=2)
            return on * self._suffered[:, None], on * self._caused[:, None]
        nearest, other = self._level[:, sets].min(axis=2), self._others[:, None]
        if self._profile < 0 or not len(other):
            return np.zeros_like(nearest), np.zeros_like(nearest)
        suffered, caused = self._slowdown[nearest, self._profile, other], self._slowdown[nearest, other, self._profile]
        return suffered * (other >= 0), caused * (other >= 0)


def relative(part: IntArray) -> IntArray:
    """Number the sockets or switches of a node's GPUs from 0, as on any node of the same hardware; -1: none."""
    inside = part >= 0
    return np.where(inside, part - part[inside].min(), -1) if inside.any() else part


@lru_cache(maxsize=256)
def meeting_levels(sockets: bytes, switches: bytes) -> IntArray:
    """Shape (g, g): where two GPUs of a node meet: 0 the same GPU, 1 a switch, 2 a socket, 3 the node."""
    parts = [np.frombuffer(part, dtype=np.int64) for part in (sockets, switches)]
    level = np.full((len(parts[0]), len(parts[0])), 3)
    for at, part in zip((2, 1), parts, strict=True):
        level[(part[:, None] == part) & (part >= 0)] = at
    np.fill_diagonal(level, 0)
    return level
