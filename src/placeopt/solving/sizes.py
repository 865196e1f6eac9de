"""The sizes between which a form is worth its time: one table, chosen by measurements up to commit 9be9233c."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placeopt.solving.context import SolveContext

FILE = "sizes.json"


@dataclass(frozen=True)
class Sizes:
    """Limits of ``auto``, and of every method with an exact stage."""

    exact_columns: int  # columns of a model up to which an exact stage solves it
    exact_product: dict[str, int]
    """By formulation: waiting and movable jobs x GPUs up to which its model is built to be counted."""
    patterns_product: int
    """The same from which patterns of whole nodes come before exact stages, which prove smaller rounds sooner."""
    search_product: int  # the same from which large neighbourhoods come before exact stages where costs count


def read_sizes() -> Sizes:
    """Return the table that is stored beside this file."""
    return Sizes(**json.loads(files("placeopt.solving").joinpath(FILE).read_text(encoding="utf-8")))


SIZES = read_sizes()


def product(context: SolveContext) -> int:
    """Return waiting and movable jobs x GPUs: what the size of an exact model grows with."""
    return waiting(context) * context.problem.num_gpus


def waiting(context: SolveContext) -> int:
    """Return the number of jobs whose place is to be chosen."""
    return sum(placement is None for placement in context.base.placements) + len(context.problem.may_move)


def is_built(context: SolveContext, formulation: str) -> bool:
    """Tell whether the round is small enough for the exact model of a formulation to be built."""
    return product(context) <= SIZES.exact_product[formulation]
