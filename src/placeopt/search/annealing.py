"""Simulated annealing (Kirkpatrick et al. 1983) of the cost, while the value never falls; the best plan is kept."""

from __future__ import annotations

from placeopt.search import memory, moves, rng
from placeopt.search.state import State

try:
    import cython
except ImportError:  # it is needed to compile, not to run
    from placeopt.search import uncompiled as cython


def is_compiled() -> bool:
    """Return whether the search is compiled."""
    return bool(cython.compiled)


def anneal(s: State, steps: int, heat: float, cooling: float) -> int:
    """
    Take some steps, at ``heat`` in units of what a placed job costs, which each step multiplies by ``cooling``.

    Returns how many; fewer where another thread stops it: compiled, none waits for it.
    """
    with cython.nogil:
        return _anneal(s, steps, heat, cooling)


def _anneal(s: State, steps: int, heat: float, cooling: float) -> int:
    for taken in range(steps):
        if s.stopped:
            return taken
        _step(s, heat * s.best_plan_cost / (s.placed_count + 1))
        heat *= cooling
    return steps


def _step(s: State, temperature: float) -> None:
    """Make a move, and decide on it."""
    value, cost, move = s.value, s.cost, moves.draw(s)
    moves.change(s, move)
    decide(s, move, value, cost, temperature)


def decide(s: State, move: int, value: int, cost: int, temperature: float) -> bool:
    """Keep what a move made of a plan of some value and cost, or take it back where it is too much worse."""
    s.tried[move] += 1
    too_many = s.away_count > s.away_most or s.out_count > s.out_most
    if (
        too_many
        or s.value < value
        or (
            s.value == value
            and s.cost > cost
            and 1.0 * (s.cost - cost) >= temperature * s.quantiles[rng.below(s, 1024)]
        )
    ):
        memory.undo(s)
        return False
    s.kept[move] += 1
    memory.keep(s)
    if s.value > s.best_value or (s.value == s.best_value and s.cost < s.best_plan_cost):
        memory.save(s)
        s.better[move] += 1
    return True
