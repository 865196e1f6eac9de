"""Who runs beside a bundle on several nodes, in arrays, and by how much each slows it and is slowed."""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

import numpy as np

from placeopt.problem import IntArray, State
from placeopt.terms.costs.horus import excess_table


class CoRunners(NamedTuple):
    """C co-runners of a bundle on nodes of g GPUs each, node after node."""

    node: IntArray  # (C,) position of the node
    meeting: IntArray  # (C, g) level at which each GPU of the node meets the co-runner's
    suffered: IntArray  # (C, 4) thousandths by which it slows the bundle where they meet at a level
    caused: IntArray  # (C, 4) thousandths by which the bundle slows it

    def excess(self, sets: IntArray) -> tuple[IntArray, IntArray]:
        """
        Return by how much each slows the bundle, and is slowed, in thousandths: shape (C, S) each.

        ``sets``, shape (nodes, S, k): GPUs of each node by index, S choices of k.
        """
        row = np.arange(len(self.node))[:, None]
        nearest = self.meeting[row[:, None], sets[self.node]].min(axis=2)
        return self.suffered[row, nearest], self.caused[row, nearest]


def co_runners(state: State, option: int, nodes: IntArray, levels: IntArray) -> CoRunners:
    """
    Return the co-runners of a bundle of ``option`` on each of ``nodes``, all of one kind of machine.

    A pair of profiles counts at the closest part that the two share, ``levels`` (g, g) for two GPUs: 0 the GPU, 1 a
    switch, 2 a socket, 3 the node. Under ``curve`` a co-runner is a job on one GPU, disturbed there.
    """
    problem, first = state.problem, state.problem.node_gpu_start[nodes]
    if problem.policy.interference.model == "curve":
        slots = first[:, None] + np.arange(len(levels))
        jobs, used, more = state.gpu_jobs[slots], state.gpu_utilisation[slots], int(problem.options.utilisation[option])
        table = excess_table(problem.policy.interference.curve, int(used.max(initial=0)) + more)
        after = table[used + more]
        node, gpu = np.divmod(np.repeat(np.arange(jobs.size), jobs.ravel()), len(levels))
        slowed = np.stack([after, after - np.where(jobs > 1, table[used], 0)])[:, node, gpu]
        suffered, caused = slowed[:, :, None] * (np.arange(4) == 0)
        return CoRunners(node, levels[gpu], suffered, caused)
    tenants = [state.tenants[node].items() if state.tenants else () for node in nodes.tolist()]
    held = [(at, profile, gpus, count) for at, here in enumerate(tenants) for (profile, gpus), count in here]
    count = np.array([row[3] for row in held], dtype=np.int64)
    node, other = (np.repeat(np.array([row[i] for row in held], dtype=np.int64), count) for i in (0, 1))
    meeting = np.zeros((0, len(levels)), dtype=np.int64)
    if held:
        sizes = np.array([len(row[2]) for row in held])
        start = np.repeat(first[[row[0] for row in held]], sizes)
        gpus = np.array(list(chain.from_iterable(row[2] for row in held))) - start
        meeting = np.repeat(np.minimum.reduceat(levels[gpus], np.cumsum(sizes) - sizes), count, axis=0)
    profile = int(problem.class_profile[problem.options.job_class[option]])
    some, harmless = (other >= 0)[:, None], np.zeros((len(other), 4), dtype=np.int64)
    if profile < 0 or not len(other):
        return CoRunners(node, meeting, harmless, harmless)
    slowdown = problem.slowdown
    return CoRunners(node, meeting, slowdown[:, profile, other].T * some, slowdown[:, other, profile].T * some)
