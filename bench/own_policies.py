"""Our policies for jobs that arrive one at a time: by prices; with a few moves; and one that refuses, by a horizon."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hindsight import relaxation, solved
from placeopt.heuristics import Table
from placeopt.heuristics.prices import Prices
from placeopt.papers.one_at_a_time.arrivals import Arrivals
from placeopt.problem import IntArray, Placement, State

Run = Callable[[Arrivals, np.ndarray, int], np.ndarray]

EVERY, TRIED = 100, 50
"""Arrivals between rounds of moves, and running jobs that are looked at in a round, drawn by the seed."""

WORTH_MOVING = 20_000
"""Millionths of a GPU that a move must save."""


def with_moves(most: int) -> Run:
    """Place by prices; after every 100 arrivals move up to ``most`` running jobs to where they cost less."""

    def run(arrivals: Arrivals, order: np.ndarray, seed: int) -> np.ndarray:
        problem = arrivals.problem
        state, rng = State(problem), np.random.default_rng(seed)
        table = Table(state, Prices(problem))
        running: list[tuple[int, Placement]] = []
        placed = np.zeros(len(order), dtype=bool)

        def change(job: int, placement: Placement, sign: int) -> None:
            state.take(job, placement, sign)
            table.changed(placement.nodes[0])

        for i, job in enumerate(order.tolist()):
            placement = table.place(job)
            if placement is not None:
                change(job, placement, 1)
                running.append((job, placement))
                placed[i] = True
            if i % EVERY or not running:
                continue
            moved = 0
            for one in rng.choice(len(running), min(TRIED, len(running)), replace=False).tolist():
                mover, before = running[one]
                change(mover, before, -1)
                after = table.place(mover)
                assert after is not None
                saved = table.cost(before.option, before.nodes[0]) - table.cost(after.option, after.nodes[0])
                if saved < WORTH_MOVING:
                    after = before
                change(mover, after, 1)
                running[one] = (mover, after)
                moved += after is not before
                if moved == most:
                    break
        return placed

    return run


def refusing(percent: int) -> Run:
    """
    Place by prices, but only of each class the part that the best plan for so much demand would place.

    The plan is the relaxation over fillings, for the mix of the list scaled to ``percent`` of the capacity: the mix and
    the horizon are known, who comes when is not.
    """

    def run(arrivals: Arrivals, order: np.ndarray, seed: int) -> np.ndarray:
        del seed
        problem = arrivals.problem
        counts, parts = _accepted(arrivals, percent)
        state = State(problem)
        table = Table(state, Prices(problem, counts))
        came, taken = np.zeros(len(counts)), np.zeros(len(counts))
        placed = np.zeros(len(order), dtype=bool)
        classes = problem.job_class.tolist()
        for i, job in enumerate(order.tolist()):
            k = classes[job]
            came[k] += 1
            if taken[k] + 0.5 > parts[k] * came[k]:
                continue
            placement = table.place(job)
            if placement is not None:
                state.take(job, placement)
                table.changed(placement.nodes[0])
                taken[k] += 1
                placed[i] = True
        return placed

    return run


def _accepted(arrivals: Arrivals, percent: int) -> tuple[IntArray, np.ndarray]:
    """Return for every class how many jobs the best plan places of the demand at the horizon, and their part of it."""
    problem = arrivals.problem
    there = np.bincount(problem.job_class)
    demand = np.rint(there * percent / 100 * arrivals.capacity / int(arrivals.milli.sum())).astype(np.int64)
    member = np.unique(problem.job_class, return_index=True)[1]
    fillings = relaxation(arrivals, np.repeat(member, demand))
    solution = solved(fillings.model)  # of value, in which pods without a GPU count a little
    assert solution.relaxed_values is not None
    asked, started = np.repeat(np.arange(len(there)), demand), np.zeros(len(there))
    for column, jobs in zip(fillings.start.tolist(), fillings.start_jobs, strict=True):
        started[asked[jobs[0]]] += solution.relaxed_values[column]
    return np.rint(started).astype(np.int64), started / np.maximum(demand, 1)
