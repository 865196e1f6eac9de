"""Small models with known answers, and one that no solver solves soon."""

import numpy as np
from numpy.typing import ArrayLike

from placeopt.linear import NO_LOWER, IntArray, LinearModel, ModelBuilder, Sense

Row = tuple[ArrayLike, int, int]
"""Coefficients of all columns, least and most."""


def model(
    sense: Sense, costs: list[int], *rows: Row, low: ArrayLike = 0, high: ArrayLike = 1, offset: int = 0
) -> LinearModel:
    """Return the model with a column for each of ``costs``, from ``low`` to ``high``, and these rows."""
    builder = ModelBuilder()
    x = builder.add_variables(low, high, count=len(costs))
    for coefficients, least, most in rows:
        builder.add_row(x, coefficients, least, most)
    builder.set_objective(x, costs, sense, offset)
    return builder.build()


def knapsack() -> LinearModel:
    """Max 60x + 100y + 120z + 7 with weights 10, 20, 30 and room 50: take y and z, 227."""
    return model("max", [60, 100, 120], ([10, 20, 30], NO_LOWER, 50), offset=7)


def covering() -> LinearModel:
    """Min 5x + 4y - 3 with 2x + y >= 7, x + 3y >= 9 and x, y in 0..9: at x = 2, y = 3, 19."""
    return model("min", [5, 4], ([2, 1], 7, 99), ([1, 3], 9, 99), high=9, offset=-3)


def general() -> LinearModel:
    """Max 2x - y over -5..5, x - 3y = 1: x = 4, y = 1 gives 7."""
    return model("max", [2, -1], ([1, -3], 1, 1), low=-5, high=5)


def feasibility() -> LinearModel:
    """No objective: any of three binaries, exactly two of them; the objective is the offset, 4."""
    return model("min", [0, 0, 0], ([1, 1, 1], 2, 2), offset=4)


def constant() -> LinearModel:
    """As that, but a maximum: CP-SAT reports a bound of 0 where no variable has a price; the offset is the answer."""
    return model("max", [0, 0], ([1, 1], 1, 2), offset=8)


def nothing() -> LinearModel:
    """A round without jobs is a model without variables; HiGHS knows a status of its own for it."""
    return model("max", [], offset=3)


def cbc_trap() -> LinearModel:
    """Three jobs on three nodes, two of them together; optimum 64. CBC with its preprocessing says 89, 'Optimal'."""
    builder = ModelBuilder()
    u = builder.add_variables(0, 1, count=3)
    x = builder.add_variables(0, 1, count=9).reshape(3, 3)
    for job in range(3):
        builder.add_row([u[job], *x[job]], 1, 1, 1)
    builder.add_row(u[1:], [1, -1], 0, 0)
    memory = ([64, 58, 61], [64, 58, 61], [62, 58, 61])
    for node, (gpus, mib) in enumerate(((4, 124), (1, 7), (0, 99))):
        builder.add_row(x[:, node], [1, 2, 1], NO_LOWER, gpus)
        builder.add_row(x[:, node], memory[node], NO_LOWER, mib)
    costs = [51, 14, 37, 13, 19, 24, 24, 0, 22, 14, 8, 23]
    builder.set_objective([*u, *x.ravel()], costs, "min")
    return builder.build()


def placement(rng: np.random.Generator) -> LinearModel:
    """A tiny round: two to five jobs, each on one node or none, by GPUs and memory, some of them together."""
    jobs, nodes = int(rng.integers(2, 6)), int(rng.integers(2, 4))
    builder = ModelBuilder()
    u = builder.add_variables(0, 1, count=jobs)
    x = builder.add_variables(0, 1, count=jobs * nodes).reshape(jobs, nodes)
    for job in range(jobs):
        builder.add_row([u[job], *x[job]], 1, 1, 1)
    if rng.random() < 0.5:
        pair = rng.choice(jobs, 2, replace=False)
        builder.add_row(u[pair], [1, -1], 0, 0)
    gpus, memory = rng.integers(1, 5, jobs), rng.integers(1, 80, jobs)
    for node in range(nodes):
        builder.add_row(x[:, node], gpus, NO_LOWER, int(rng.integers(0, 6)))
        builder.add_row(x[:, node], memory, NO_LOWER, int(rng.integers(0, 150)))
    if rng.random() < 0.2:  # more than there may be room for: some of these rounds are infeasible
        builder.add_row(u, 1, NO_LOWER, int(rng.integers(0, jobs)))
    costs = np.concatenate([rng.integers(1, 60, jobs), rng.integers(0, 30, jobs * nodes)])
    if rng.random() < 0.5:
        builder.set_objective([*u, *x.ravel()], costs, "min", offset=int(rng.integers(-9, 10)))
    else:
        builder.set_objective([*u, *x.ravel()], -costs, "max", offset=int(rng.integers(-9, 10)))
    return builder.build()


def infeasible() -> LinearModel:
    """Three binaries that sum to 1 by pairs: no parity allows it."""
    return model("max", [1, 1, 1], ([1, 1, 0], 1, 1), ([0, 1, 1], 1, 1), ([1, 0, 1], 1, 1))


def hard(seed: int = 1, columns: int = 400, rows: int = 60) -> LinearModel:
    """A multi-dimensional knapsack: first solutions at once, a proof not within minutes."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 60, (rows, columns)) * (rng.random((rows, columns)) < 0.5)
    row, column = np.nonzero(matrix)
    builder = ModelBuilder()
    x = builder.add_variables(0, 1, count=columns)
    builder.add_rows(row, column, matrix[row, column], NO_LOWER, matrix.sum(axis=1) // 3)
    builder.set_objective(x, rng.integers(1, 100, columns), "max", offset=5)
    return builder.build()


def filled(model: LinearModel) -> IntArray:
    """Values of a `hard` model: each column at 1 in turn, where every row still has room."""
    values = np.zeros(model.num_variables, dtype=np.int64)
    for column in range(model.num_variables):
        values[column] = 1
        values[column] = model.is_feasible(values)
    return values


KNOWN = {
    "knapsack": (knapsack, 227),
    "covering": (covering, 19),
    "general": (general, 7),
    "feasibility": (feasibility, 4),
    "constant": (constant, 8),
    "nothing": (nothing, 3),
    "cbc_trap": (cbc_trap, 64),
}
"""Models by name, with the optimum."""
INFEASIBLE = {
    "parity": infeasible(),
    "2x = 3": model("max", [1], ([2], 3, 3), high=5),  # divided by two the bounds of the row cross
    "bounds that cross": model("max", [0], low=2),  # CP-SAT calls such a domain an invalid model, HiGHS warns
    "nothing, and a row": model("max", [], ([], 1, 2)),
    # CBC finds the next one infeasible, says so, and dies of a segmentation fault over the solution file
    "crash": model(
        "min", [-6, 0], ([4, 1], -10, -1), ([5, -2], -6, 3), ([-4, -3], -10, -1), ([-1, 1], 1, 2), low=-1, high=2
    ),
}
"""Models without a solution."""


def same(one: LinearModel, other: LinearModel) -> bool:
    """Whether two models say the same in the same order."""
    arrays = ("lower", "upper", "row_start", "columns", "coefficients", "row_lower", "row_upper", "objective")
    equal = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)
    return equal and (one.offset, one.sense) == (other.offset, other.sense)
