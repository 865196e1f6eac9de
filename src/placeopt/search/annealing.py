"""Simulated annealing (Kirkpatrick et al. 1983) of the cost, while the value never falls; the best plan is kept."""

from __future__ import annotations

from placeopt.search import memory, moves, rng
from placeopt.search.state import State

try:
    import cython
except ImportError:  # it is needed to compile, not to run
    from placeopt import uncompiled as cython


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
    value, cost, changes, move = s.value, s.cost, s.away_count + s.out_count, moves.draw(s)
    moves.change(s, move)
    decide(s, move, value, cost, changes, temperature)


def decide(s: State, move: int, value: int, cost: int, changes: int, temperature: float) -> bool:
    """Keep what a move made of a plan of some value, cost and number of changes, or take it back where it is worse."""
    s.tried[move] += 1
    if _is_worse(s, value, cost, changes, temperature):
        memory.undo(s)
        return False
    s.kept[move] += 1
    memory.keep(s)
    if (
        s.value > s.best_value
        or (s.value == s.best_value and s.cost < s.best_plan_cost)
        or (s.value == s.best_value and s.cost == s.best_plan_cost and s.away_count + s.out_count < s.best_changes)
    ):
        memory.save(s)
        s.better[move] += 1
    return True


def _is_worse(s: State, value: int, cost: int, changes: int, temperature: float) -> bool:
    """
    Return whether the plan is worth less, costs more than it may, or more running jobs are changed than may be.

    At the same value also whether it costs more, by too much for the temperature, or changes more for the same cost.
    """
    if s.away_count > s.away_most or s.out_count > s.out_most or s.value < value:
        return True
    if s.cost > cost and s.cost > s.most_cost:
        return True
    if s.value > value or s.cost < cost:
        return False
    if s.cost == cost:
        return s.away_count + s.out_count > changes
    return 1.0 * (s.cost - cost) >= temperature * s.quantiles[rng.below(s, 1024)]
