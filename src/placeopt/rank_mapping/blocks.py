"""Distances between GPUs -> a tree of blocks, found from the matrix alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.problem import IntArray
from placeopt.rank_mapping.case import FloatArray, MappingProblem
from placeopt.topology.machine_distances import components


@dataclass(frozen=True)
class Block:
    """
    A set of GPUs: a single one, a *star*, whose children are all equally far apart, or a *table*, where no rule holds.

    Distances are those without the ways out of the GPUs, ``Blocks.inner``.
    """

    gpus: tuple[int, ...]
    apart: float = 0.0  # of a star: distance of two GPUs of different children
    children: tuple[Block, ...] = ()

    @property
    def is_table(self) -> bool:
        """Whether only the matrix has the distances inside."""
        return not self.children and len(self.gpus) > 1

    @property
    def leaves(self) -> list[Block]:
        """Single GPUs and tables, from left to right."""
        return [leaf for child in self.children for leaf in child.leaves] if self.children else [self]


@dataclass(frozen=True, eq=False)
class Blocks:
    """
    The distance of two GPUs is ``out[p] + out[q] + inner[p, q]``, and ``inner`` follows the tree below ``root``.

    Whatever the matrix is, this is exact: at worst the root is a table.
    """

    out: FloatArray  # (n,) way out of each GPU: to the GPU farthest from it
    inner: FloatArray  # (n, n) the rest of the distances, 0 or below; the diagonal has no meaning
    root: Block


def find_blocks(case: MappingProblem) -> Blocks:
    """
    Return the tree of blocks of a case's distances; with ranks of several GPUs whole groups are blocks of it.

    In a tree the way to the farthest leaf is the way to the tree's centre plus a constant (Jordan 1869). Less these
    ways, distances of leaves are an ultrametric (Farris, Kluge and Eckardt 1970): two leaves are as far apart as the
    vertex where their ways to the centre meet says. So cutting the largest distances again and again finds the tree.
    """
    out = case.distances.max(axis=1, initial=0)
    inner = case.distances - out[:, None] - out
    root = _divide(case, inner, np.arange(case.num_tasks))
    if case.size > 1 and any(len(np.unique(case.groups[list(leaf.gpus)])) > 1 for leaf in root.leaves):
        root = Block(root.gpus)  # a table of several groups does not show where a rank may be
    return Blocks(out, inner, root)


def _divide(case: MappingProblem, inner: FloatArray, gpus: IntArray) -> Block:
    if len(gpus) == 1:
        return Block((int(gpus[0]),))
    far = inner[np.ix_(gpus, gpus)]
    apart = float(far[~np.eye(len(gpus), dtype=bool)].max())
    near = far < apart
    if case.size > 1:
        groups = case.groups[gpus]
        if (groups != groups[0]).any():
            near |= groups[:, None] == groups
    part = components(near)
    members, first = tuple(gpus.tolist()), np.unique(part).tolist()
    if len(first) == 1:
        return Block(members)
    return Block(members, apart, tuple(_divide(case, inner, gpus[part == one]) for one in first))
