"""Stranding with a price for GPU models that others depend on: for jobs that arrive one at a time."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.scores import Stranding
from placeopt.problem import IntArray, Problem

PRICE_WEIGHT = 1.0
"""Weight of the price of a whole GPU beside ``STRANDING_WEIGHT`` for a stranded one; more helps those who are bound."""


class ScarceModels:
    """
    Stranding plus the price of the GPUs taken: how much of their type is spoken for by those who may take it. Ours.

    The price of a type is the sum, over kinds of jobs that may take it, of the kind's demand over the GPUs of all types
    that the kind may take: the type's load if everybody spread evenly. Demand is scaled so that all of it is the
    capacity of the cluster; no horizon is known. A kind that may take every type raises all prices alike, so only jobs
    bound to models make a difference. Without any the order is that of ``stranding``.
    """

    sees_state_only = True

    def __init__(self, problem: Problem, counts: IntArray | None = None) -> None:
        """Take the mix of jobs from the problem, or so many of each class, shape (K,)."""
        if counts is None:
            counts = np.bincount(problem.job_class, minlength=len(problem.class_communication))
        self._stranding = Stranding(problem, counts)
        self.price = prices_of_types(problem, counts)
        gpus = np.diff(problem.node_gpu_start)
        total = np.bincount(problem.gpu_node, weights=self.price[problem.gpu_type], minlength=problem.num_nodes)
        self._node_price = total / np.maximum(gpus, 1)

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Score ``nodes``, on all of which a bundle of ``option`` fits; mixed nodes by the mean of their GPUs."""
        options = candidates.problem.options
        asked = int(options.bundle_workers[option] * options.gpus[option] * options.milli[option]) / 1000
        score: np.ndarray = self._stranding(candidates, option, nodes)
        return score + PRICE_WEIGHT * asked * self._node_price[nodes]


def prices_of_types(problem: Problem, counts: IntArray) -> np.ndarray:
    """Shape (T,): load of each type of GPU if ``counts``, (K,), jobs spread evenly over what they may take."""
    options, has = problem.options, np.flatnonzero(np.diff(problem.class_option_start) > 0)
    first = problem.class_option_start[:-1][has]
    demand = counts[has] * options.total_milli[first]
    capacity = np.bincount(problem.gpu_type, minlength=len(problem.type_model))
    allowed = options.gpu_type_ok[first] & (demand > 0)[:, None]
    eligible = allowed @ capacity
    even = np.where(eligible > 0, demand / np.maximum(eligible, 1), 0)
    prices: np.ndarray = (even @ allowed) * problem.num_gpus / max(int(demand.sum()), 1)
    return prices
