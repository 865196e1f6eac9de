"""Policies for jobs that arrive one at a time, by name: who is placed of those that arrive."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from own_policies import refusing, with_moves
from placeopt.papers.one_at_a_time.arrivals import Arrivals
from placeopt.papers.one_at_a_time.playing import POINTS, placed_by

Run = Callable[[Arrivals, np.ndarray, int], np.ndarray]
"""Pods and nodes, the order of arrival, a seed: which of those that arrive are placed."""

BOUND = "hindsight"
PEERS = ("random", "dot_product", "gpu_clustering", "gpu_packing", "best_fit", "fgd")
"""Published by Weng et al., ATC'23."""


MOVES = 10
"""Running jobs moved after every hundred arrivals, at most."""


def by_score(score: str) -> Run:
    """Let greedy decide, by a score."""
    return lambda arrivals, order, seed: placed_by(score, arrivals, order, seed)


NAMES = (*PEERS, *(f"{name}{POINTS}" for name in PEERS[1:]), "stranding", "prices")
POLICIES: dict[str, Run] = {
    **{name: by_score(name) for name in NAMES},
    "prices:moves": with_moves(MOVES),
    **{f"prices:until {percent}": refusing(percent) for percent in (100, 130)},
}


def title(policy: str) -> str:
    """Return the name for people."""
    name, _, kind = policy.partition(":")
    if policy == BOUND:
        return "*any, in hindsight, at most*"
    if kind == "moves":
        return f"{name}, and at most {MOVES} moves after every 100 arrivals"
    if kind.startswith("until"):
        return f"*{name}, knowing mix and horizon ({kind.split()[1]} %), refusing*"
    return policy.replace("_", " ").replace(":", ", in ")
