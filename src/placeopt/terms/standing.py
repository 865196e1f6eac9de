"""
Limits that running jobs exceed when the round begins: what holds there instead.

Running jobs may stay, however much they exceed a limit. Whatever starts, or moves, keeps every limit that it adds to:
so where it adds to one at all, what stays must have come down to the limit first. In a linear model a binary says which
of the two it is; a relaxation may leave it out, and then the limit is what stands.

To close such a place for the round would need no binary, but a stop by itself gains nothing: a queue beyond a quota
that was lowered would be closed for ever to jobs that are worth more than those it runs. So what starts may come with
the stops that bring the place below its limit.
"""

from __future__ import annotations

from copy import copy

import numpy as np

from placeopt.linear import NO_LOWER, ModelBuilder
from placeopt.problem import BoolArray, IntArray, State


def excess_of(everything: State) -> dict[str, IntArray]:
    """
    Return what running jobs hold beyond each limit: by the field of a state that it is of, with that field's shape.

    ``everything``: A state with just these jobs in their places.
    """
    problem, most = everything.problem, everything.problem.jobs_per_gpu
    beyond = {
        "node_free": -everything.node_free,
        "gpu_free_memory": -everything.gpu_free_memory,
        "gpu_jobs": everything.gpu_jobs - (problem.num_jobs if most is None else most),
        "queue_used": everything.queue_used - problem.queue_tree.ceilings,
        "link_load": everything.link_load - problem.link_mbps,
    }
    return {name: np.maximum(array, 0) for name, array in beyond.items()}


def relaxed_state(state: State, everything: State | None = None) -> State:
    """
    Return a state with room for all that stands: for bounds, which hold for every plan that keeps to less.

    ``state``: With some of the running jobs in place, such as those that must stay as they are. ``everything``: With
    all of them, if that is at hand.

    Returns the same object where no limit is exceeded. Otherwise a copy whose free amounts are larger by the excess, to
    be read only.
    """
    problem = state.problem
    if not problem.running and problem.base_load is None and not problem.policy.queues:
        return state  # what queues keep may exceed a limit above them, though no job runs
    excess = excess_of(everything or State(problem))
    out = copy(state) if any(array.any() for array in excess.values()) else state
    for name, more in excess.items() if out is not state else ():
        setattr(out, name, getattr(state, name) + (more if "free" in name else -more))
    return out


def add_limits(
    builder: ModelBuilder,
    rows: IntArray,
    columns: IntArray,
    amounts: IntArray,
    starts: BoolArray,
    room: IntArray,
    excess: IntArray,
) -> None:
    """
    Add limits on sums: one row each, or two and a binary where running jobs exceed the limit.

    - ``rows``, ``columns``, ``amounts``, ``starts``: Shape (n,): the limit, what takes of it, how much, and whether
      that is something that starts or moves; the others are what stays of running jobs.
    - ``room``: Shape (limits,): what jobs that must stay as they are leave of it, below 0 where they exceed it.
    - ``excess``: Shape (limits,): by how much all running jobs together exceed it.
    """
    over = np.flatnonzero(excess)
    if not len(over):
        builder.add_rows(rows, columns, amounts, NO_LOWER, room)
        return
    kept = excess == 0
    mine = kept[rows]
    number = np.cumsum(kept) - 1
    builder.add_rows(number[rows[mine]], columns[mine], amounts[mine], NO_LOWER, room[kept])
    for limit in over.tolist():
        mine = (rows == limit) & (amounts != 0)  # below 0 where a worker more in a domain takes load off its uplink
        new, stays = mine & starts, mine & ~starts
        if new.any() and not stays.any():
            builder.add_row(columns[new], amounts[new], NO_LOWER, max(int(room[limit]), 0))
        elif new.any():  # what stays may stay
            beyond, free = int(excess[limit]), int(room[limit])
            add_exceeded(builder, columns[mine], amounts[mine], columns[new], amounts[new], free, beyond, max(free, 0))


def add_exceeded(
    builder: ModelBuilder,
    columns: IntArray,
    amounts: IntArray,
    new: IntArray,
    each: IntArray,
    room: int,
    excess: int,
    most: int,
) -> None:
    """Add the rows of one limit that running jobs exceed; what starts, ``each`` of ``new``, takes up to ``most``."""
    some = builder.add_variables(0, 1, count=1)
    builder.define(some, lambda values: np.array([(each * values[new]).sum() > 0]))
    builder.add_row(np.append(new, some), np.append(each, -most), NO_LOWER, 0)
    builder.add_row(np.append(columns, some), np.append(amounts, excess), NO_LOWER, room + excess)
