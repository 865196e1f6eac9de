"""Folding of what is alike: one number per key, and the waiting jobs of each class."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from placeopt.problem.arrays import IntArray
from placeopt.problem.state import State


def group_by_key(keys: Iterable[Hashable]) -> tuple[list[int], list[int]]:
    """
    Fold what has equal keys.

    Returns
    -------
    tuple
        The group of each key, numbered by first appearance; and the position of the first member of each group.
    """
    numbers: dict[Hashable, int] = {}
    group: list[int] = []
    first: list[int] = []
    for position, key in enumerate(keys):
        number = numbers.setdefault(key, len(first))
        if number == len(first):
            first.append(position)
        group.append(number)
    return group, first


def waiting_per_class(state: State) -> IntArray:
    """Shape (K,): jobs of each class that are not placed in ``state``."""
    problem = state.problem
    unplaced = np.array([placement is None for placement in state.placements], dtype=bool)
    return np.bincount(problem.job_class[unplaced], minlength=len(problem.class_communication))


def startable_options(state: State) -> tuple[IntArray, IntArray]:
    """Return the options in which an unplaced job may start on some idle node, (Y,), and how many such jobs wait."""
    options, waiting = state.problem.options, waiting_per_class(state)
    startable = np.flatnonzero((waiting[options.job_class] > 0) & options.node_class_ok.any(axis=1))
    return startable, waiting[options.job_class[startable]]
