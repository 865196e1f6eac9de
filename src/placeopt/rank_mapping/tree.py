"""Distances between GPUs as a tree of blocks, found from the matrix alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.problem import IntArray
from placeopt.rank_mapping.case import FloatArray, MappingProblem
from placeopt.topology.machine_distances import components


@dataclass(frozen=True, eq=False)
class Block:
    """
    A set of GPUs: a single one, a *star*, whose children are all equally far apart, or a *table*, where no rule holds.

    Distances are those without the ways out of the GPUs, ``Tree.inner``.
    """

    gpus: IntArray  # (m,) those of one child after those of another
    apart: float = 0.0  # of a star: distance of two GPUs of different children; of a table: the least of two GPUs
    children: tuple[Block, ...] = ()


@dataclass(frozen=True, eq=False)
class Tree:
    """
    The distance of two GPUs is ``out[p] + out[q] + inner[p, q]``, and ``inner`` follows the blocks below ``root``.

    Whatever the matrix is, this is exact: at worst the root is a table.
    """

    out: FloatArray  # (n,) way out of each GPU: to the GPU farthest from it
    inner: FloatArray  # (n, n) the rest of the distances, 0 or below; the diagonal has no meaning
    root: Block


def find_tree(case: MappingProblem) -> Tree:
    """
    Return the tree of blocks of a case's distances; with ranks of several GPUs whole groups are blocks of it.

    In a tree the way to the farthest leaf is the way to the tree's centre plus a constant (Jordan 1869). Less these
    ways, distances of leaves are an ultrametric (Farris, Kluge and Eckardt 1970): two leaves are as far apart as the
    vertex where their ways to the centre meet says. So cutting the largest distances again and again finds the tree.
    """
    out = case.distances.max(axis=1, initial=0)
    inner = case.distances - out[:, None] - out
    return Tree(out, inner, _divide(case, inner, np.argsort(case.groups, kind="stable")))


def _divide(case: MappingProblem, inner: FloatArray, gpus: IntArray) -> Block:
    if len(gpus) == 1:
        return Block(gpus)
    far = inner[np.ix_(gpus, gpus)]
    apart = far[~np.eye(len(gpus), dtype=bool)]
    near = far < apart.max()
    groups = case.groups[gpus]
    if case.size > 1 and (groups != groups[0]).any():
        near |= groups[:, None] == groups
    part = components(near)
    if not part.any():
        return Block(gpus, float(apart.min()))
    children = tuple(_divide(case, inner, gpus[part == one]) for one in np.unique(part))
    return Block(np.concatenate([child.gpus for child in children]), float(apart.max()), children)
