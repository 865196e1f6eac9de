"""Policies for jobs that arrive one at a time, by name: who is placed of those that arrive."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placeopt.heuristics import DemandQuota, Moves, OnlinePlacer
from placeopt_papers.one_at_a_time.arrivals import Arrivals
from placeopt_papers.one_at_a_time.horizon import quota_until
from placeopt_papers.one_at_a_time.playing import POINTS, place_by

Run = Callable[[Arrivals, np.ndarray, int], np.ndarray]
"""Pods and nodes, the order of arrival, a seed: which of those that arrive are placed."""

BOUND = "hindsight"
PEERS = ("random", "dot_product", "gpu_clustering", "gpu_packing", "best_fit", "fgd")
"""Published by Weng et al., ATC'23."""

MOVES = Moves()


def by_score(score: str) -> Run:
    """Let greedy decide, by a score."""
    return lambda arrivals, order, seed: place_by(score, arrivals, order, seed)


def one_by_one(*, moves: Moves | None = None, until: int | None = None) -> Run:
    """Place by prices, with moves, or with the quotas of a horizon."""

    def run(arrivals: Arrivals, order: np.ndarray, seed: int) -> np.ndarray:
        quota: DemandQuota | None = None if until is None else quota_until(arrivals, until, isolation="thread")
        game = OnlinePlacer(arrivals.problem, quota=quota, moves=moves, seed=seed)
        return np.array([game.arrive(job) is not None for job in order.tolist()])

    return run


NAMES = (*PEERS, *(f"{name}{POINTS}" for name in PEERS[1:]), "stranding", "prices")
POLICIES: dict[str, Run] = {
    **{name: by_score(name) for name in NAMES},
    "prices:moves": one_by_one(moves=MOVES),
    **{f"prices:until {percent}": one_by_one(until=percent) for percent in (100, 130)},
}


def title(policy: str) -> str:
    """Return the name for people."""
    name, _, kind = policy.partition(":")
    if policy == BOUND:
        return "*any, in hindsight, at most*"
    if kind == "moves":
        return f"{name}, and at most {MOVES.most} moves after every {MOVES.every} arrivals"
    if kind.startswith("until"):
        return f"*{name}, knowing mix and horizon ({kind.split()[1]} %), refusing*"
    return policy.replace("_", " ").replace(":", ", in ")
