"""Integer models from files, and the same models with rows and columns in another order."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from placeopt.benchmark.gap import gap_model
from placeopt.benchmark.mps import mps_model
from placeopt.errors import BadInput
from placeopt.formats.bounds import check_lines
from placeopt.formats.files import read_bytes
from placeopt.linear import IntArray, LinearModel, ModelBuilder


def read_model(path: Path) -> LinearModel:
    """
    Return the integer model of a file; the ending of its name states the format.

    Raises
    ------
    BadInput
        If the file cannot be read or is malformed.
    Unsupported
        If the model needs what `placeopt.linear` does not have.
    """
    try:
        text = read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 at offset {error.start}; expected text") from None
    check_lines(text, str(path))
    read = gap_model if path.name.removesuffix(".gz").endswith(".gap") else mps_model
    return read(text, str(path))


def permuted(model: LinearModel, seed: int) -> tuple[LinearModel, IntArray]:
    """
    Return the model with rows and columns shuffled, and where each of its columns stood before, shape ``(n,)``.

    ``values[np.argsort(before)]`` brings values of the shuffled model into the order of ``model``.
    """
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
