"""Rule: what the jobs of a queue, and of those below it, hold together."""

from __future__ import annotations

from functools import partial

import numpy as np

from placeopt.linear import NO_LOWER, ModelBuilder
from placeopt.problem import UNLIMITED, BoolArray, IntArray, Placement, State
from placeopt.terms.standing import add_exceeded, add_limits
from placeopt.terms.variables import Variables


class QueueShare:
    """SODA V-C: what the jobs of a queue hold together, running ones included; in trees, and by flavor of nodes."""

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
        add_queue_limits(builder, v.state, v.start, v.start_option, v.starts_new, v.excess["queue_used"])


def add_queue_limits(
    builder: ModelBuilder,
    state: State,
    columns: IntArray,
    option: IntArray,
    new: BoolArray | None = None,
    excess: IntArray | None = None,
) -> None:
    """
    Add a row per queue and amount.

    A queue that keeps more than its jobs hold counts above it with a column of its own: by how much its jobs exceed
    what it keeps.

    - ``columns``, ``option``: Shape (n,): they count whole jobs, each in an option.
    - ``new``: Shape (n,): whether such a job starts or moves; None: all do.
    - ``excess``: Shape (Q, A): by how much running jobs exceed each limit; None: none.
    """
    problem = state.problem
    queue_of = problem.class_queue[problem.options.job_class[option]]
    use = problem.queue_use[option] * (queue_of >= 0)[:, None]
    new = np.ones(len(columns), dtype=bool) if new is None else new
    for r in range(state.queue_used.shape[1]) if problem.policy.queues else ():
        takes = np.flatnonzero(use[:, r])
        over = np.zeros(len(state.queue_used), dtype=np.int64) if excess is None else excess[:, r]
        _add_amount(builder, state, r, columns[takes], queue_of[takes], use[takes, r], new[takes], over)


def _add_amount(
    builder: ModelBuilder,
    state: State,
    r: int,
    columns: IntArray,
    queue: IntArray,
    amounts: IntArray,
    new: BoolArray,
    excess: IntArray,
) -> None:
    """Add the rows of one amount, of which ``columns`` take."""
    tree, used = state.problem.queue_tree, state.queue_used[:, r]
    limited, unused = tree.ceilings[:, r] < UNLIMITED, np.maximum(tree.kept[:, r] - used, 0)
    room = np.where(limited, tree.ceilings[:, r] - used, UNLIMITED)
    below = {q for own in set(queue.tolist()) for q in tree.above[own]}
    keeping = [q for q in below if unused[q] and limited[tree.above[q][1:]].any()]
    keeping.sort(key=lambda q: -len(tree.above[q]))
    most = [max(0, int((room + excess)[tree.above[q][1:]].min() + unused[tree.above[q][1:]].sum())) for q in keeping]
    more = builder.add_variables(0, np.array(most, dtype=np.int64))
    columns, amounts = np.append(columns, more), np.append(amounts, np.ones(len(more), dtype=np.int64))
    new = np.append(new, np.zeros(len(more), dtype=bool))
    chains = [tree.above[q] for q in queue.tolist()] + [tree.above[q][1:] for q in keeping]
    for i, chain in enumerate(chains):  # what a queue that keeps counts with, and not its jobs, stands above it
        ends = [n for n, q in enumerate(chain, 1) if q in keeping]
        chains[i] = chain[: ends[0]] if ends else chain
    item = np.repeat(np.arange(len(chains)), [len(chain) for chain in chains])
    row = np.array([q for chain in chains for q in chain], dtype=np.int64)
    for q, column in zip(keeping, more.tolist(), strict=True):
        terms, each = columns[item[row == q]], amounts[item[row == q]]
        builder.define(np.array([column]), partial(_beyond, terms, each, int(unused[q])))
        builder.add_row(np.append(terms, column), np.append(each, -1), NO_LOWER, int(unused[q]))
    simple = np.ones(len(room), dtype=bool)
    for q in [q for q in np.flatnonzero(excess).tolist() if any(q in tree.above[k][1:] for k in keeping)]:
        simple[q] = False
        inside, counts = [i for i in np.flatnonzero(new) if q in tree.above[queue[i]]], item[row == q]
        if inside:
            taken = max(int(room[q]), 0) + sum(int(unused[k]) for k in keeping if q in tree.above[k][1:])
            parts = (columns[counts], amounts[counts], columns[inside], amounts[inside])
            add_exceeded(builder, *parts, int(room[q]), int(excess[q]), taken)
    kept, number = simple[row], np.cumsum(simple) - 1
    item, row = item[kept], number[row[kept]]
    add_limits(builder, row, columns[item], amounts[item], new[item], room[simple], excess[simple])


def _beyond(columns: IntArray, each: IntArray, most: int, values: IntArray) -> IntArray:
    return np.array([max(0, int(each @ values[columns]) - most)])
