"""``assignment``: a column for every job, node and GPU, as in Horus eq. 3-6. For tests, tiny rounds, odd hardware."""

from __future__ import annotations

from placeopt.formulations.columns import add_columns
from placeopt.linear import ModelBuilder
from placeopt.problem import State
from placeopt.terms.variables import Variables


def add_assignment(builder: ModelBuilder, state: State) -> Variables:
    """Fold nothing: every job not fixed in ``state`` is a unit, every GPU a cell."""
    waiting = [(job,) for job in range(state.problem.num_jobs) if state.placements[job] is None]
    return add_columns(builder, state, waiting, [(gpu,) for gpu in range(state.problem.num_gpus)])
