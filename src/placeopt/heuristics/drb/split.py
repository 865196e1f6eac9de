"""Tasks dealt to two halves of the hardware by utility (SC'17 algorithm 3), again and again down to its leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placeopt.heuristics.drb.fiduccia_mattheyses import grown, least_cut
from placeopt.heuristics.drb.hardware_tree import HalvingTree
from placeopt.problem import BoolArray, IntArray, Problem
from placeopt.terms.costs.communication import rank_traffic


class Hardware(NamedTuple):
    """What tasks are dealt to: the nodes of a cluster, or the GPUs of a machine."""

    tree: HalvingTree
    rooms: IntArray
    """Shape (n,): tasks that each leaf can take."""
    worth: np.ndarray
    """Shape (n,): co-runner and fragmentation terms of the utility of a task on each leaf."""


class _Half(NamedTuple):
    """One half of some hardware."""

    room: int
    worth: list[float]  # of the places, the best first
    rooms: IntArray  # of its parts
    height: np.ndarray  # of its parts

    def path(self, here: float, there: float, to_come: float, held: int, left: int, across: float) -> float:
        """
        Return what a task's traffic to the tasks here, in the other half and to come costs from this half.

        It holds ``held`` tasks, ``left`` are to come. Tasks here are as far apart as the closest part with room is.
        """
        follow = max(0, min(left, self.room - held - 1))
        near, count = here + (to_come * follow / left if left else 0.0), held + 1 + follow
        inside = float(self.height[self.rooms >= count].min()) if count > 1 else 0.0
        return near * inside + (here + there + to_come - near) * across


def task_traffic(problem: Problem, option: int, ranks: Sequence[int], each: int = 1) -> IntArray | None:
    """Shape (k, k), zero diagonal: weights between ``each`` tasks of some ranks, rank after rank; None: all alike."""
    communication = problem.class_communication[problem.options.job_class[option]]
    if not communication.edges:
        return None
    between = rank_traffic(communication, int(problem.options.workers[option]))[np.ix_(ranks, ranks)]
    np.fill_diagonal(between, communication.weight)
    weights: IntArray = between.repeat(each, axis=0).repeat(each, axis=1)
    np.fill_diagonal(weights, 0)
    return weights


def assign(count: int, weights: IntArray | None, hardware: Hardware, path_weight: float) -> list[int] | None:
    """
    Return the leaf of every one of ``count`` tasks, None where they find no room.

    ``weights``, (count, count), is the traffic between tasks (None: all pairs communicate alike), ``path_weight`` the
    weight of the path term in the utility.
    """
    tree, rooms, worth = hardware
    places = tree.order.repeat(rooms[tree.order])
    worth_at, leaf_of, second = worth[places].tolist(), [-1] * count, tree.second
    start, end = tree.sums(rooms)
    room = end - start
    open_parts = [(list(range(count)), 0)]
    if count > len(places):
        return None
    while open_parts:
        tasks, part = open_parts.pop()
        if second[part] < 0 or (weights is None and len(tasks) == room[part]):  # they need all there is
            for task, leaf in zip(tasks, places[start[part] : end[part]].tolist(), strict=False):
                leaf_of[task] = leaf
            continue
        halves = []
        for half in (part + 1, second[part]):
            below, best = tree.below(half), sorted(worth_at[start[half] : end[half]], reverse=True)
            halves.append(_Half(len(best), best, room[below], tree.height[below]))
        table = None if weights is None else weights[np.ix_(tasks, tasks)]
        side = _deal(len(tasks), table, halves, float(tree.height[part]), path_weight)
        for y, half in enumerate((part + 1, second[part])):
            if dealt := [task for task, at in zip(tasks, side, strict=True) if at == y]:
                open_parts.append((dealt, half))
    return leaf_of


def _deal(count: int, table: IntArray | None, halves: list[_Half], across: float, path_weight: float) -> list[int]:
    """
    Return the half of each task, which find room together.

    The utility of a half for a task is eq. 2 with every term as best over actual. Its path: to the job's tasks that are
    in the half or in the other one, ``across`` from it, and to those to come, which are assumed to follow as far as
    there is room. (Without that, the first of two tasks would go to the last free GPU of a full machine.) The half of
    greater utility takes the task, the first of equal ones; the other one only where that is full. Where tasks
    communicate differently, the split is then refined by Fiduccia-Mattheyses, which the paper leaves open; it only ever
    cuts less.
    """
    held, side, ties = [0, 0], [-1] * count, [0.0, 0.0, 0.0]
    for number, task in enumerate(range(count) if table is None else _by_ties(table), 1):
        left, winner = count - number, int(held[0] == halves[0].room)
        if not winner and held[1] < halves[1].room:
            if table is None:
                ties = [*held, left]
            else:
                ties = [float(table[task][np.array(side) == where].sum()) for where in (0, 1, -1)]
            paths = [halves[y].path(ties[y], ties[1 - y], ties[2], held[y], left, across) for y in (0, 1)]
            near = [path_weight * (min(paths) / path if path > min(paths) else 1.0) for path in paths]
            utility = [near[y] + halves[y].worth[held[y]] for y in (0, 1)]
            winner = int(utility[1] > utility[0])
        side[task] = winner
        held[winner] += 1
    if table is None or 0 in (halves[0].room, halves[1].room):
        return side
    starts = [np.array([side]), *([] if 0 in held else [grown(table, (held[0], held[1]))])]
    refined: list[int] = least_cut(table, (halves[0].room, halves[1].room), np.concatenate(starts)).tolist()
    return refined


def assign_alike(count: int, tree: HalvingTree, usable: BoolArray, worth: np.ndarray, path_weight: float) -> IntArray:
    """
    Shape (R, count): what ``assign`` finds where all pairs communicate alike, on R machines of one kind side by side.

    ``usable``, (R, n), tells the leaves that can take a task, ``count`` of them at least on every machine, and
    ``worth``, (R, n), is theirs. The parts of one depth are dealt to at once, task by task.
    """
    usable, worth = usable[:, tree.order], np.where(usable, worth, -np.inf)[:, tree.order]
    place, part, row = np.arange(len(tree.order)), np.arange(len(tree.second)), np.arange(len(usable))[:, None]
    inside = (tree.first[:, None] <= place) & (place < tree.end[:, None])  # (parts, places)
    below = (part[:, None] <= part) & (tree.first < tree.end[:, None])  # (parts, parts)
    halves = np.column_stack((part + 1, tree.second))
    room, before = usable @ inside.T.astype(np.int64), usable @ (place[:, None] < tree.first).astype(np.int64)
    held, at = np.zeros_like(room), np.zeros((len(usable), count), dtype=np.int64)
    held[:, 0] = count
    rank = np.tile(np.arange(count), (len(usable), 1))  # of a task among those of its part
    while (dealt := held[row, at] < room[row, at]).any():  # where tasks need all there is, none is dealt any more
        turn = np.where(dealt, rank, -1)
        for step in range(int(turn.max()) + 1):
            here, task = (turn == step).nonzero()  # a task of every part
            whole, each = at[here, task], here[:, None]
            pair, one = halves[whole], np.arange(len(here))
            has, total = held[each, pair], held[here, whole][:, None]
            most = np.minimum(total - has[:, ::-1], room[each, pair])  # tasks of a half if those to come follow
            near, fits = np.maximum(most - 1, 0), below[pair] & (room[here][:, None] >= most[:, :, None])
            inner = np.where(fits, tree.height, np.inf).min(axis=2)
            path = near * inner + (total - 1 - near) * tree.height[whole][:, None]
            least = path.min(axis=1, keepdims=True)
            ratio = np.divide(least, path, out=np.ones_like(path), where=path > least)
            ranked = np.sort(np.where(inside[pair], -worth[here][:, None], np.inf), axis=2)
            utility = path_weight * ratio - ranked[one[:, None], [0, 1], has]  # of a full half -inf
            winner = (utility[:, 1] > utility[:, 0]).astype(np.int64)
            at[here, task], rank[here, task] = pair[one, winner], has[one, winner]
            held[here, pair[one, winner]] += 1
    places = np.argsort(~usable, axis=1, kind="stable")
    found: IntArray = tree.order[places[row, before[row, at] + rank]]
    return found


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
