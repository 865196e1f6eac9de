"""Which jobs meet on a node, and at which of its levels: all pairs at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placeopt.problem import BoolArray, IntArray, Problem

Pairs = tuple[IntArray, IntArray, IntArray]
"""Jobs a < b and the closest level at which they meet: 0 GPU, 1 switch, 2 socket, 3 node; (n,) each."""

PAIRS_AT_ONCE = 1 << 21


def colocated_pairs(problem: Problem, job: IntArray, gpu: IntArray) -> Iterator[Pairs]:
    """
    Yield every pair of jobs that have GPUs on one node, each pair once, in portions.

    ``job``, ``gpu``: Shapes (H,): who holds which GPU.

    Pairs are written down node by node, once for every domain that they share, and the closest kept. Jobs over several
    nodes may meet on several of them, so pairs of those wait for the end.
    """
    node = problem.gpu_node[gpu]
    order = np.argsort(node, kind="stable")
    job, gpu, node = job[order], gpu[order], node[order]
    several = _on_several_nodes(job, node, problem.num_jobs)
    kept: list[IntArray] = []
    size = problem.num_jobs
    for start, end in _portions(node):
        by_level = [_keys(problem, job[start:end], gpu[start:end], level) for level in range(4)]
        keys = _closest(np.concatenate(by_level))
        twice = several[keys // 4 // size] & several[keys // 4 % size]
        kept.append(keys[twice])
        yield _pairs(keys[~twice], size)
    yield _pairs(_closest(np.concatenate(kept)) if kept else np.zeros(0, dtype=np.int64), size)


def _on_several_nodes(job: IntArray, node: IntArray, num_jobs: int) -> BoolArray:
    """Shape (J,)."""
    lowest, highest = np.full(num_jobs, np.iinfo(np.int64).max), np.full(num_jobs, -1, dtype=np.int64)
    np.minimum.at(lowest, job, node)
    np.maximum.at(highest, job, node)
    several: BoolArray = highest > lowest
    return several


def _portions(node: IntArray) -> Iterator[tuple[int, int]]:
    """Cut ascending ``node`` where it changes, so that a portion has few grants, and so few pairs."""
    if not len(node):
        return
    starts = np.flatnonzero(np.diff(node, prepend=-1))
    counts = np.diff(starts, append=len(node))
    work = np.cumsum(counts * counts)
    portion = work // PAIRS_AT_ONCE
    first = starts[np.flatnonzero(np.diff(portion, prepend=-1))]
    yield from zip(first.tolist(), [*first[1:].tolist(), len(node)], strict=True)


def _keys(problem: Problem, job: IntArray, gpu: IntArray, level: int) -> IntArray:
    """Return ``(a x J + b) x 4 + level`` for all a < b with GPUs in one domain of the level."""
    size = problem.num_jobs
    domain = (gpu, problem.gpu_switch[gpu], problem.gpu_socket[gpu], problem.gpu_node[gpu])[level]
    there = _distinct(domain[domain >= 0] * size + job[domain >= 0])  # each job once a domain
    domain, job = there // size, there % size
    a, b = pairs_inside(domain)
    keys: IntArray = (job[a] * size + job[b]) * 4 + level
    return keys


def pairs_inside(group: IntArray) -> tuple[IntArray, IntArray]:
    """Return all positions a < b with equal entries of ``group``, which ascends; (n,) each."""
    size = len(group)
    partners = np.searchsorted(group, group, side="right") - np.arange(size) - 1
    a = np.repeat(np.arange(size), partners)
    return a, a + 1 + np.arange(len(a)) - np.repeat(np.cumsum(partners) - partners, partners)


def _closest(keys: IntArray) -> IntArray:
    """Of the keys of a pair keep the one with the lowest level."""
    keys = np.sort(keys)
    return keys[np.flatnonzero(np.diff(keys // 4, prepend=-1))]


def _distinct(keys: IntArray) -> IntArray:
    """As ``np.unique``, which hashes and takes five times as long here."""
    keys = np.sort(keys)
    return keys[np.flatnonzero(np.diff(keys, prepend=-1))]


def _pairs(keys: IntArray, size: int) -> Pairs:
    return keys // 4 // size, keys // 4 % size, keys % 4
