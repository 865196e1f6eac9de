"""Tasks dealt to two halves of the hardware by utility (SC'17 algorithm 3), again and again down to its leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from placeopt.heuristics.drb.fiduccia_mattheyses import grown, least_cut
from placeopt.heuristics.drb.hardware_tree import HalvingTree
from placeopt.problem import IntArray


class Half(NamedTuple):
    """What one half of the hardware offers."""

    room: int  # tasks that it can take
    inside: Callable[[int], float]  # distance between two of its places if that many of the job's tasks are in it
    worth: Callable[[int, int], float]
    """Co-runner and fragmentation terms of one more task, by the tasks there already and in the other half."""


class Hardware(Protocol):
    """What tasks are dealt to: the nodes of a cluster, or the GPUs of a machine."""

    tree: HalvingTree
    room: IntArray
    """Shape (parts,): tasks that each part can take."""

    def halves(self, parts: tuple[int, int], leaf_of: dict[int, int]) -> tuple[Half, Half, float]:
        """Return two halves, and the distance between them; ``leaf_of`` has the tasks that have a leaf."""


def assign(tasks: list[int], weights: IntArray | None, hardware: Hardware, path_weight: float) -> dict[int, int] | None:
    """
    Return the leaf of every task, None where they find no room.

    ``tasks`` are rows of ``weights``, the traffic between tasks (None: all pairs communicate alike).
    ``path_weight`` is the weight of the path term in the utility.
    """
    tree, room, second = hardware.tree, hardware.room.tolist(), hardware.tree.second.tolist()
    leaf_of: dict[int, int] = {}
    open_parts = [(tasks, 0)]
    if len(tasks) > sum(room[:1]):  # without hardware there is no part 0
        return None
    while open_parts:  # the first half of a part, whole, before its second
        tasks, part = open_parts.pop()
        if second[part] < 0 or (weights is None and len(tasks) == room[part]):  # they need all there is
            below = slice(part, int(tree.last[part]))
            rooms = hardware.room[below][tree.second[below] < 0]
            leaf_of.update(zip(tasks, np.repeat(tree.leaves(part), rooms).tolist(), strict=False))
            continue
        parts = part + 1, second[part]
        if room[parts[0]] and room[parts[1]]:
            side = _deal(tasks, weights, hardware.halves(parts, leaf_of), path_weight)
        else:
            side = [int(not room[parts[0]])] * len(tasks)
        for y in (1, 0):
            dealt = [task for task, at in zip(tasks, side, strict=True) if at == y]
            if dealt:
                open_parts.append((dealt, parts[y]))
    return leaf_of


def _deal(
    tasks: list[int], weights: IntArray | None, hardware: tuple[Half, Half, float], path_weight: float
) -> list[int]:
    """
    Return the half of each task, which find room together; both halves have some.

    The utility of a half for a task is eq. 2 with every term as best over actual. Its path: to the job's tasks that are
    in the half or in the other one, and to those to come, which are assumed to follow as far as there is room. (Without
    that, the first of two tasks would go to the last free GPU of a full machine.) The half of greater utility gets the
    task, the first of equal ones; the other one only where that is full. Where tasks communicate differently, the split
    is then refined by Fiduccia-Mattheyses, which the paper leaves open; it only ever cuts less.
    """
    halves, across, count = hardware[:2], hardware[2], [0, 0]
    table = None if weights is None else weights[np.ix_(tasks, tasks)]
    side, ties = [-1] * len(tasks), [0.0, 0.0, 0.0]
    for number, task in enumerate(range(len(tasks)) if table is None else _by_ties(table), 1):
        left, winner = len(tasks) - number, int(count[0] == halves[0].room)
        if not winner and count[1] < halves[1].room:
            if table is None:
                ties = [*count, left]
            else:
                ties = [float(table[task][np.array(side) == where].sum()) for where in (0, 1, -1)]
            paths = [_path(y, halves[y], ties, across, count[y], left) for y in (0, 1)]
            near = [path_weight * (min(paths) / path if path > min(paths) else 1.0) for path in paths]
            worth = [near[y] + halves[y].worth(count[y], count[1 - y]) for y in (0, 1)]
            winner = int(worth[1] > worth[0])
        side[task] = winner
        count[winner] += 1
    rooms = halves[0].room, halves[1].room
    alike = table is None or len(tasks) < 2 or bool(np.ptp(table[np.triu_indices(len(table), 1)]) == 0)
    if table is not None and not (alike and sum(rooms) == len(tasks)):
        starts = [np.array([side]), *([] if 0 in count else [grown(table, (count[0], count[1]))])]
        side = least_cut(table, rooms, np.concatenate(starts)).tolist()
    return side


def _path(y: int, half: Half, ties: list[float], across: float, held: int, left: int) -> float:
    """Return what the task's traffic costs from half ``y``, which holds ``held`` tasks while ``left`` are to come."""
    follow = max(0, min(left, half.room - held - 1))
    to_come = ties[2] * follow / left if left else 0.0
    return (ties[y] + to_come) * half.inside(held + 1 + follow) + (ties[1 - y] + ties[2] - to_come) * across


def _by_ties(table: IntArray) -> list[int]:
    """Order tasks so that each communicates most with those before it; of equal ones the busiest."""
    tied, order = table.sum(axis=1), list[int]()
    before = np.zeros(len(table), dtype=np.int64)
    for _ in range(len(table)):
        task = int(np.lexsort((-tied, -before))[0])
        order.append(task)
        before += table[task]
        before[order] = -1
    return order
