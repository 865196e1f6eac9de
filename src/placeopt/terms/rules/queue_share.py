"""Rule: what the jobs of a queue, and of those below it, hold together."""

from __future__ import annotations

from functools import partial

import numpy as np

from placeopt.linear import NO_LOWER, ModelBuilder
from placeopt.problem import UNLIMITED, BoolArray, IntArray, Placement, Problem, State
from placeopt.terms.standing import add_limits
from placeopt.terms.variables import Variables


class QueueShare:
    """SODA V-C: what the jobs of a queue hold together, running ones included; in trees, and by flavor of nodes."""

    name = "queue_share"

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether the job's queue, and all above it, may hold that much more."""
        problem = state.problem
        queue = problem.class_queue[problem.job_class[job]] if problem.policy.queues else -1
        if queue < 0:
            return True
        use = problem.queue_use[placement.option]
        return bool(((use <= problem.queue_tree.room(state.queue_used, queue)) | (use == 0)).all())

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """One row per queue and amount."""
        v = variables
        if v.problem.policy.queues:
            rows = _Rows(v.problem, v.state.queue_used, v.start, v.start_option, v.starts_new)
            for r in range(v.excess.queue.shape[1]):
                rows.add(builder, r, v.excess.queue[:, r])


def add_queue_limits(builder: ModelBuilder, state: State, columns: IntArray, option: IntArray) -> None:
    """Add a row per queue and amount, over ``columns`` that count whole jobs, each in its ``option``, shape (n,)."""
    if state.problem.policy.queues:
        rows = _Rows(state.problem, state.queue_used, columns, option, np.ones(len(columns), dtype=bool))
        for r in range(state.queue_used.shape[1]):
            rows.add(builder, r, np.zeros(len(state.queue_used), dtype=np.int64))


class _Rows:
    """
    Limits of queues on columns that count jobs, (n,), each in an option; ``new``: whether such a job starts or moves.

    A queue that keeps more than its jobs hold in ``used``, (Q, A), counts above it with a column of its own: by how
    much its jobs exceed what it keeps.
    """

    def __init__(self, problem: Problem, used: IntArray, columns: IntArray, option: IntArray, new: BoolArray) -> None:
        queue = problem.class_queue[problem.options.job_class[option]]
        mine = np.flatnonzero(queue >= 0)
        self._tree, self._used = problem.queue_tree, used
        self._columns, self._queue, self._new = columns[mine], queue[mine], new[mine]
        self._use = problem.queue_use[option[mine]]

    def add(self, builder: ModelBuilder, r: int, excess: IntArray) -> None:
        """Add the rows of amount ``r``; ``excess``, (Q,): by how much running jobs exceed each limit."""
        takes = np.flatnonzero(self._use[:, r])
        tree, limited = self._tree, self._tree.ceilings[:, r] < UNLIMITED
        room = np.where(limited, self._tree.ceilings[:, r] - self._used[:, r], UNLIMITED)
        unused = np.maximum(self._tree.kept[:, r] - self._used[:, r], 0)
        below = {q for queue in set(self._queue[takes].tolist()) for q in tree.above[queue]}
        keeping = [q for q in below if unused[q] and limited[tree.above[q][1:]].any()]
        keeping.sort(key=lambda q: -len(tree.above[q]))
        more = builder.add_variables(0, self._most_beyond(keeping, room + excess, unused)) if keeping else _NONE
        columns = np.concatenate([self._columns[takes], more])
        amounts = np.concatenate([self._use[takes, r], np.ones(len(keeping), dtype=np.int64)])
        starts = np.concatenate([self._new[takes], np.zeros(len(keeping), dtype=bool)])
        queue = np.concatenate([self._queue[takes], np.array([tree.above[q][1] for q in keeping], dtype=np.int64)])
        item, row = self._counted(queue, keeping)
        for q, column in zip(keeping, more.tolist(), strict=True):
            inside, most = item[row == q], int(unused[q])
            terms, each = columns[inside], amounts[inside]
            builder.define(np.array([column]), partial(_beyond, terms, each, most))
            builder.add_row(np.append(terms, column), np.append(each, -1), NO_LOWER, most)
        simple = np.ones(len(room), dtype=bool)
        for q in [q for q in np.flatnonzero(excess).tolist() if any(q in tree.above[k][1:] for k in keeping)]:
            simple[q] = False
            new = np.array([i for i in takes[self._new[takes]] if q in tree.above[self._queue[i]]], dtype=np.int64)
            if len(new):
                inside, slack = item[row == q], sum(int(unused[k]) for k in keeping if q in tree.above[k][1:])
                some = builder.add_variables(0, 1, count=1)
                builder.define(some, partial(_any, self._columns[new]))
                most = max(int(room[q]), 0) + slack
                builder.add_row(np.append(self._columns[new], some), np.append(self._use[new, r], -most), NO_LOWER, 0)
                terms, each = np.append(columns[inside], some), np.append(amounts[inside], excess[q])
                builder.add_row(terms, each, NO_LOWER, int(room[q] + excess[q]))
        kept = simple[row]
        number = np.cumsum(simple) - 1
        item, row = item[kept], number[row[kept]]
        add_limits(builder, row, columns[item], amounts[item], starts[item], room[simple], excess[simple])

    def _most_beyond(self, keeping: list[int], room: IntArray, unused: IntArray) -> IntArray:
        """Shape (keeping,): by how much the jobs of a queue may exceed what it keeps, by the limits above it."""
        most = []
        for q in keeping:
            above, between = self._tree.above[q][1:], 0
            found = []
            for a in above:
                found.append(max(0, int(room[a])) + between)
                between += int(unused[a])
            most.append(min(found))
        return np.array(most, dtype=np.int64)

    def _counted(self, queue: IntArray, keeping: list[int]) -> tuple[IntArray, IntArray]:
        """Return pairs of a column, by its position in ``queue``, and a queue in whose row it stands itself."""
        reach = {}
        for q in set(queue.tolist()):
            chain = self._tree.above[q]
            ends = [i + 1 for i, at in enumerate(chain) if at in keeping]
            reach[q] = chain[: ends[0]] if ends else chain
        chains = [reach[q] for q in queue.tolist()]
        item = np.repeat(np.arange(len(chains)), [len(chain) for chain in chains])
        return item, np.array([q for chain in chains for q in chain], dtype=np.int64)


def _beyond(columns: IntArray, each: IntArray, most: int, values: IntArray) -> IntArray:
    return np.array([max(0, int(each @ values[columns]) - most)])


def _any(columns: IntArray, values: IntArray) -> IntArray:
    return np.array([int(values[columns].any())])


_NONE = np.empty(0, dtype=np.int64)
