"""The GPUs of one node, told to a bundle's tasks by halving the machine again and again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placeopt.heuristics.drb.hardware_tree import HalvingTree
from placeopt.heuristics.drb.split import Half, split
from placeopt.problem import IntArray


def eq5(sockets: IntArray, free: np.ndarray, taken: tuple[int, ...] = ()) -> float:
    """
    Mean over all sockets of a node of the part that is free once ``taken`` are held: SC'17 eq. 5, of one machine.

    ``sockets`` numbers the socket of each of the node's GPUs from 0; numbers may be left out. The mean is over all
    sockets also where a decision is between two halves of the node. On sockets of equal size it is then the same for
    both halves. A mean over the sockets of one half instead would draw jobs to the fuller half, where the paper's
    prototype separates them (5.2.2, job 1).
    """
    left = free
    if taken:
        left = free.copy()
        left[list(taken)] = False
    total = np.bincount(sockets)
    here = total > 0
    return float((np.bincount(sockets[left], minlength=len(total))[here] / total[here]).mean())


@dataclass(frozen=True)
class Inside:
    """
    The recursion inside one machine: tasks are GPUs' worths of workers, leaves are its g GPUs.

    Attributes
    ----------
    tree, distances
        Of the machine; distances of shape ``(g, g)``.
    usable, free
        Shape ``(g,)``: GPUs that a task may have, and those that no job holds.
    sockets
        Shape ``(g,)``, numbered from 0.
    excess
        Shape ``(g,)``: thousandths by which a task slows and is slowed there.
    path_weight
        Of the path term in the utility.
    worth_of
        The other two terms, by slowdown and by what stays free.
    """

    tree: HalvingTree
    distances: IntArray
    usable: np.ndarray
    free: np.ndarray
    sockets: IntArray
    excess: np.ndarray
    path_weight: float
    worth_of: Callable[[float, float], float]

    def drb(
        self, tasks: list[int], weights: IntArray | None, part: int, found: dict[int, int], rng: np.random.Generator
    ) -> bool:
        """Write task -> GPU of the machine to ``found``; false where there is no room."""
        if not tasks:
            return True
        if self.tree.second[part] < 0:
            found[tasks[0]] = int(self.tree.leaves(part)[0])
            return len(tasks) == 1 and bool(self.usable[found[tasks[0]]])
        sides = [part + 1, int(self.tree.second[part])]
        gpus = [self._usable(side) for side in sides]
        for side, other in ((0, 1), (1, 0)):
            if not len(gpus[other]):
                return self.drb(tasks, weights, sides[side], found, rng)
        across = float(self.distances[np.ix_(*gpus)].mean())
        told = split(
            tasks,
            weights,
            (self._half(gpus[0], gpus[1], found), self._half(gpus[1], gpus[0], found)),
            across,
            self.path_weight,
            rng,
        )
        return told is not None and all(
            self.drb(own, weights, side, found, rng) for own, side in zip(told, sides, strict=True)
        )

    def _usable(self, part: int) -> IntArray:
        leaves = self.tree.leaves(part)
        usable: IntArray = leaves[self.usable[leaves]]
        return usable

    def _half(self, gpus: IntArray, others: IntArray, found: dict[int, int]) -> Half:
        """Return what a half offers by its usable GPUs, beside the other half's and what the job has elsewhere."""
        near = np.sort(self.distances[np.ix_(gpus, gpus)], axis=1).cumsum(axis=1)
        excess = np.sort(self.excess[gpus])
        own, theirs = (half[self.free[half]].tolist() for half in (gpus, others))
        before = list(found.values())

        def inside(count: int) -> float:
            """Mean way from the GPU nearest to so many of the half's GPUs."""
            return float(near[:, count - 1].min()) / (count - 1) if count > 1 else 0.0

        def worth(held: int, beside: int) -> float:
            taken = (*before, *own[: held + 1], *theirs[:beside])
            return self.worth_of(float(excess[min(held, len(excess) - 1)]), eq5(self.sockets, self.free, taken))

        return Half(len(gpus), inside, worth)
