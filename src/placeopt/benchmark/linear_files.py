"""Linear models from files (MPS, generalised assignment problems), and with rows and columns in another order."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from placeopt.benchmark.mps import mps_model
from placeopt.documents.files import as_text, check_lines, integers, read_bytes
from placeopt.errors import BadInput, Unsupported
from placeopt.linear import NO_LOWER, IntArray, LinearModel, ModelBuilder
from placeopt.solvers.mixed import MixedModel

MAX_ENTRIES = 5_000_000


def read_model(path: Path) -> LinearModel | MixedModel:
    """Return the model of a file, in integers if it can be stated so; the ending of its name states the format."""
    text = as_text(read_bytes(path), str(path), "text")
    check_lines(text, str(path))
    is_gap = path.name.removesuffix(".gz").endswith(".gap")
    return gap_model(text, str(path)) if is_gap else mps_model(text, str(path))


def permuted(model: LinearModel | MixedModel, seed: int) -> tuple[LinearModel | MixedModel, IntArray]:
    """
    Return the model with rows and columns shuffled, and where each of its columns stood before, shape ``(n,)``.

    ``values[np.argsort(before)]`` brings values of the shuffled model into the order of ``model``.
    """
    if isinstance(model, MixedModel):
        return model.permuted(seed)
    random = np.random.default_rng(seed)
    before, row_before = random.permutation(model.num_variables), random.permutation(model.num_rows)
    column_now, row_now = np.argsort(before), np.argsort(row_before)
    builder = ModelBuilder()
    builder.add_variables(model.lower[before], model.upper[before])
    if model.num_rows:
        builder.add_rows(
            row_now[model.row_of_nonzero],
            column_now[model.columns],
            model.coefficients,
            model.row_lower[row_before],
            model.row_upper[row_before],
        )
    builder.set_objective(np.arange(model.num_variables), model.objective[before], model.sense, model.offset)
    return builder.build(), before


def gap_model(text: str, source: str = "document") -> LinearModel:
    """
    Return the integer model of a generalised assignment problem: n items to m agents at least cost.

    ``text`` holds integers separated by white space: m, n; m rows of n costs; m rows of n weights; m capacities. Column
    ``a * n + i`` is 1 if agent ``a`` gets item ``i``; rows 0 to n - 1 assign every item once, the next m rows limit the
    weight of each agent. The OR-Library's own sets c and 1 to 12 are to be maximised; here costs are minimised, as in
    the collection that ``instances/README.md`` names, whose files say costs.
    """
    sizes = integers(text.split(None, 2)[:2], source)
    if len(sizes) < 2 or min(sizes) < 1:
        raise BadInput(f"{source}: expected the numbers of agents and items first, each 1 or more")
    agents, items = sizes
    expected = 2 + 2 * agents * items + agents
    if agents * items > MAX_ENTRIES:
        raise Unsupported(f"{source}: {agents} agents x {items} items; at most {MAX_ENTRIES:,} pairs")
    words = text.split(None, expected)
    numbers = integers(words[:expected], source)
    if len(words) != expected:
        held = f"more than {expected}" if len(words) > expected else str(len(words))
        raise BadInput(
            f"{source}: {held} numbers; {agents} agents and {items} items make {expected}. Where the first "
            "number is that of the problems, as in the OR-Library's files, expected a file for each problem, without it"
        )
    pairs = agents * items
    cost, weight, capacity = np.split(np.asarray(numbers[2:], dtype=np.int64), [pairs, 2 * pairs])
    builder = ModelBuilder()
    column = builder.add_variables(0, 1, pairs)
    item, agent = np.tile(np.arange(items), agents), np.repeat(np.arange(agents), items)
    builder.add_rows(item, column, 1, np.ones(items, dtype=np.int64), 1)
    builder.add_rows(agent, column, weight, NO_LOWER, capacity)
    builder.set_objective(column, cost, "min")
    return builder.build()
