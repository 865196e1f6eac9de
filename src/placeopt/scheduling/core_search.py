"""Resources of a training job: the fewest cores for its full speed by SODA's search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from placeopt.errors import BadInput

Category = Literal["vision", "language", "speech"]
FIRST: dict[str, int] = {"vision": 3, "language": 5, "speech": 5}
"""Cores of a tenant's first job by category (SODA V-B 1)."""


def first_cores(
    category: Category | None = None,
    *,
    largest_before: int | None = None,
    pipelined: bool = False,
    many_weights: bool = False,
    heavy_preprocessing: bool = False,
) -> int:
    """
    Return the number of cores with which the search begins, at least 1 (SODA V-B 1).

    Parameters
    ----------
    category
        Category of the model; may be None if ``largest_before`` is given.
    largest_before
        Most cores of the owner's earlier jobs of the category; it takes precedence over the category's own figure.
    pipelined, many_weights, heavy_preprocessing
        One core less, one less, one more.

    Raises
    ------
    BadInput
        If neither category nor earlier jobs are known.
    """
    if largest_before is not None:
        start = largest_before
    elif category in FIRST:
        start = FIRST[category]
    else:
        raise BadInput(f"category: {category!r}; expected one of {', '.join(FIRST)}, or largest_before")
    return max(1, start - pipelined - many_weights + heavy_preprocessing)


def best_fit_cores(
    utilisation: Callable[[int], float], start: int, *, most: int, tolerance: float = 0.0
) -> tuple[int, int]:
    """
    Return the fewest cores with the highest GPU utilisation, found by measuring (SODA V-B 2).

    Parameters
    ----------
    utilisation
        Measures the job's GPU utilisation, or its speed, for a number of cores; called at most once per number.
    start
        See ``first_cores``.
    most
        Cores of a node.
    tolerance
        Differences up to this do not count.

    Returns
    -------
    tuple of int
        The cores, and the number of measurements.

    Notes
    -----
    The paper steps down first "until utilisation remains unchanged" where fewer cores raise it, else up while more
    raise it. A job at its best with fewer cores, on a plateau, would then keep the larger number, though III-A defines
    best fit as the fewest cores at the highest speed; read: it also steps down while nothing is lost.

    Raises
    ------
    BadInput
        If ``start`` is not between 1 and ``most``.
    """
    if not 1 <= start <= most:
        raise BadInput(f"start: {start}; expected 1 to {most}, the cores of a node")
    known: dict[int, float] = {}

    def at(cores: int) -> float:
        if cores not in known:
            known[cores] = utilisation(cores)
        return known[cores]

    best = start
    while best > 1 and at(best - 1) >= at(best) - tolerance:
        best -= 1
    if best == start:
        while best < most and at(best + 1) > at(best) + tolerance:
            best += 1
    return best, len(known)
