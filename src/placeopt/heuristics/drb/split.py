"""
Tasks dealt to two halves of the hardware by utility (SC'17 algorithm 3), recursively down to the GPUs of one node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placeopt.heuristics.drb.fiduccia_mattheyses import Graph, bisect, graph_of, refine
from placeopt.heuristics.drb.hardware_tree import HalvingTree
from placeopt.problem import IntArray

EDGES_A_SPLIT = 20_000
"""Edges x starts that the search for a smaller cut may look at: eight starts up to 2,500 edges, one above 20,000."""


@dataclass(frozen=True)
class Half:
    """What one half of the hardware offers."""

    room: int  # tasks that it can take
    inside: Callable[[int], float]  # distance between two of its places if that many of the job's tasks are in it
    worth: Callable[[int, int], float]
    """Co-runner and fragmentation terms of one more task, by the tasks there already and in the other half."""


def split(
    tasks: list[int],
    weights: IntArray | None,
    halves: tuple[Half, Half],
    across: float,
    path_weight: float,
    rng: np.random.Generator,
) -> tuple[list[int], list[int]] | None:
    """
    Deal tasks to two halves; None where they do not fit.

    ``tasks`` are rows of ``weights`` (None: all pairs communicate alike), ``across`` is the distance between places in
    different halves, ``path_weight`` that of the path term in the utility; ``Half.worth`` has the other two terms.

    The utility of a half for a task is eq. 2 with every term as best over actual. Its path: to the job's tasks that are
    in the half or in the other one, and to those to come, which are assumed to follow as far as there is room. (Without
    that, the first of two tasks would go to the last free GPU of a full machine.) The half of greater utility gets the
    task, the first of equal ones; the other one only where that is full. Where tasks communicate differently, the split
    is then refined by Fiduccia-Mattheyses, which the paper leaves open; it only ever cuts less.
    """
    if halves[0].room + halves[1].room < len(tasks):
        return None
    for y in (0, 1):
        if not halves[y].room:
            return ([], tasks) if y == 0 else (tasks, [])
    table = None if weights is None else weights[np.ix_(tasks, tasks)].astype(float)
    order = range(len(tasks)) if table is None else _by_ties(table)
    side = np.full(len(tasks), -1)
    count, left = [0, 0], len(tasks)
    for task in order:
        left -= 1
        if count[0] < halves[0].room and count[1] < halves[1].room:
            ties = _ties(table, task, side, count, left)
            paths = [_path(y, halves[y], ties, across, count[y], left) for y in (0, 1)]
            worth = [halves[y].worth(count[y], count[1 - y]) for y in (0, 1)]
            near = [path_weight * (min(paths) / path if path > min(paths) else 1.0) for path in paths]
            winner = 0 if near[0] + worth[0] >= near[1] + worth[1] else 1
        else:
            winner = 0 if count[0] < halves[0].room else 1
        side[task] = winner
        count[winner] += 1
    if table is not None:
        side = _cut_less(table, side, (halves[0].room, halves[1].room), rng)
    return [t for t, y in zip(tasks, side, strict=True) if y == 0], [t for t, y in zip(tasks, side, strict=True) if y]


def _ties(
    table: np.ndarray | None, task: int, side: np.ndarray, count: list[int], left: int
) -> tuple[float, float, float]:
    """Return the task's traffic with tasks in either half and with those to come."""
    if table is None:
        return float(count[0]), float(count[1]), float(left)
    row = table[task]
    return float(row[side == 0].sum()), float(row[side == 1].sum()), float(row[side < 0].sum() - row[task])


def _path(y: int, half: Half, ties: tuple[float, float, float], across: float, held: int, left: int) -> float:
    """Return what the task's traffic costs from half ``y``, which holds ``held`` tasks while ``left`` are to come."""
    follow = max(0, min(left, half.room - held - 1))
    inside = half.inside(held + 1 + follow)
    to_come = ties[2] * follow / left if left else 0.0
    return (ties[y] + to_come) * inside + (ties[1 - y] + ties[2] - to_come) * across


def _by_ties(table: np.ndarray) -> list[int]:
    """Order tasks so that each communicates most with those before it; the first communicates most overall."""
    tied = table.sum(axis=1)
    out: list[int] = []
    reach = tied * 1e-9  # among those that talk alike with what came before, the busiest
    waiting = np.zeros(len(table))
    for _ in range(len(table)):
        task = int((reach + waiting).argmax())
        out.append(task)
        reach = reach + table[task]
        waiting[task] = -np.inf
    return out


def _cut_less(table: np.ndarray, side: np.ndarray, rooms: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Refine a split, and try others with as many tasks in each half; the smallest cut counts."""
    off = table[np.triu_indices(len(table), 1)]
    counts = (int((side == 0).sum()), int((side == 1).sum()))
    if not len(off) or ((off == off[0]).all() and counts == rooms):
        return side
    graph: Graph = graph_of(table.astype(np.int64))
    best, cut = refine(graph, side.tolist(), rooms)
    if 0 in counts or cut == 0:
        return np.array(best)
    edges = max(1, sum(len(near) for near in graph.near) // 2)
    other = bisect(graph, counts, rng, starts=max(1, min(8, EDGES_A_SPLIT // edges)))
    return np.array(best if other is None or cut <= other[1] else other[0])


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
    """The recursion inside one machine: tasks are GPUs' worths of workers, leaves are its g GPUs."""

    tree: HalvingTree
    distances: IntArray  # (g, g)
    usable: np.ndarray  # (g,) GPUs that a task may have
    free: np.ndarray  # (g,) GPUs that no job holds
    sockets: IntArray  # (g,) numbered from 0
    excess: np.ndarray  # (g,) thousandths by which a task slows and is slowed there
    path_weight: float  # of the path term in the utility
    worth_of: Callable[[float, float], float]  # the other two terms, by slowdown and by what stays free

    def drb(
        self,
        tasks: list[int],
        weights: IntArray | None,
        part: int,
        gpu_of: dict[int, int],
        rng: np.random.Generator,
    ) -> bool:
        """Write task -> GPU of the machine to ``gpu_of``; false where there is no room."""
        if not tasks:
            return True
        if self.tree.second[part] < 0:
            gpu_of[tasks[0]] = int(self.tree.leaves(part)[0])
            return len(tasks) == 1 and bool(self.usable[gpu_of[tasks[0]]])
        sides = [part + 1, int(self.tree.second[part])]
        gpus = [self._usable(side) for side in sides]
        for side, other in ((0, 1), (1, 0)):
            if not len(gpus[other]):
                return self.drb(tasks, weights, sides[side], gpu_of, rng)
        across = float(self.distances[np.ix_(*gpus)].mean())
        dealt = split(
            tasks,
            weights,
            (self._half(gpus[0], gpus[1], gpu_of), self._half(gpus[1], gpus[0], gpu_of)),
            across,
            self.path_weight,
            rng,
        )
        return dealt is not None and all(
            self.drb(mine, weights, side, gpu_of, rng) for mine, side in zip(dealt, sides, strict=True)
        )

    def _usable(self, part: int) -> IntArray:
        leaves = self.tree.leaves(part)
        usable: IntArray = leaves[self.usable[leaves]]
        return usable

    def _half(self, gpus: IntArray, others: IntArray, gpu_of: dict[int, int]) -> Half:
        """Return what a half offers by its usable GPUs, beside the other half's and what the job has elsewhere."""
        near = np.sort(self.distances[np.ix_(gpus, gpus)], axis=1).cumsum(axis=1)
        excess = np.sort(self.excess[gpus])
        mine, theirs = (half[self.free[half]].tolist() for half in (gpus, others))
        before = list(gpu_of.values())

        def inside(count: int) -> float:
            """Mean distance from the most central GPU to the nearest ``count`` of the half."""
            return float(near[:, count - 1].min()) / (count - 1) if count > 1 else 0.0

        def worth(held: int, beside: int) -> float:
            taken = (*before, *mine[: held + 1], *theirs[:beside])
            return self.worth_of(float(excess[min(held, len(excess) - 1)]), eq5(self.sockets, self.free, taken))

        return Half(len(gpus), inside, worth)
