"""Jobs with a traffic graph, taken out of a plan and placed again by bi-partitioning, where that costs less."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from placeopt.heuristics.drb.place import Bipartition
from placeopt.heuristics.greedy_pass import stop_at
from placeopt.problem import Allocation, Move, Problem, State
from placeopt.terms.objective import Weighted, cost_delta


def place_again(
    problem: Problem,
    allocation: Allocation,
    jobs: Sequence[int],
    weighted: tuple[Weighted, ...],
    most: int,
    *,
    deadline: float,
    cancelled: Callable[[], bool] | None = None,
) -> tuple[Allocation, int, bool]:
    """
    Place ``jobs`` again, which are placed and do not run yet: at most so many, those first that cost most.

    Each is placed beside all others, and stays where it was unless it is worth as much for less. Returns the
    allocation, how many jobs have moved, and whether all were tried.
    """
    state = State(problem, allocation)
    chooser = Bipartition(state)

    def change(move: Move) -> tuple[Move, int]:
        """Make a move; return its opposite, and by how much it raises the cost."""
        raises, back = cost_delta(state, move, weighted), state.apply(move)
        for held in (back.placement, move.placement):
            for node in () if held is None else dict.fromkeys(held.nodes):
                chooser.changed(node)
        return back, raises

    over, saved, moved = stop_at(deadline, cancelled), dict[int, int](), 0
    for job in jobs:
        if over():
            return allocation, 0, False
        saved[job] = cost_delta(state, Move(job, None), weighted)
    for tried, job in enumerate(sorted(jobs, key=saved.__getitem__)):
        if tried >= most or over():
            return state.allocation(), moved, False
        back, removed = change(Move(job, None))
        held, found = back.placement, chooser.place(job)
        assert held is not None  # noqa: S101 - the job was placed
        if found is not None and problem.options.value[found.option] >= problem.options.value[held.option]:
            again, added = change(Move(job, found))
            if removed + added < 0:
                moved += 1
                continue
            change(again)
        change(back)
    return state.allocation(), moved, True
