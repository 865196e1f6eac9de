"""The sizes between which a form is worth its time: one table, measured and written by ``bench/sizes.py``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files

from placeopt.solving.context import SolveContext

FILE = "sizes.json"


@dataclass(frozen=True)
class Sizes:
    """
    Limits of ``auto``, and of every method with an exact stage.

    Attributes
    ----------
    exact_columns
        Columns of a model up to which an exact stage solves it.
    exact_product
        By formulation: waiting and movable jobs x GPUs up to which its model is built to be counted.
    patterns_product
        The same from which fillings of whole nodes come before exact stages, which prove smaller rounds sooner.
    search_product
        The same from which large neighbourhoods come before exact stages where costs count.
    """

    exact_columns: int
    exact_product: dict[str, int]
    patterns_product: int
    search_product: int


def read_sizes() -> Sizes:
    """Return the table that is stored beside this file."""
    return Sizes(**json.loads(files("placeopt.solving").joinpath(FILE).read_text(encoding="utf-8")))


def product(context: SolveContext) -> int:
    """Waiting and movable jobs x GPUs: what the size of an exact model grows with."""
    return waiting(context) * context.problem.num_gpus


def waiting(context: SolveContext) -> int:
    """Jobs whose place is to be chosen."""
    return sum(placement is None for placement in context.base.placements) + len(context.problem.may_move)


SIZES = read_sizes()
