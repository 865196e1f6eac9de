"""Policies for jobs that arrive one at a time, by name: who is placed of those that arrive."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from arrivals import Arrivals
from own_policies import refusing, with_moves
from placeopt.heuristics import Candidates, Table, place, score_named, table_for
from placeopt.problem import State
from points import GradientInPoints, InPoints

Run = Callable[[Arrivals, np.ndarray, int], np.ndarray]
"""Pods and nodes, the order of arrival, a seed: which of those that arrive are placed."""

BOUND = "hindsight"
PEERS = ("random", "dot_product", "gpu_clustering", "gpu_packing", "best_fit", "fgd")
"""Published by Weng et al., ATC'23."""

POINTS = PEERS[1:]
"""Also as the authors' simulator compares them, in whole points."""


MOVES = 10
"""Running jobs moved after every hundred arrivals, at most."""


def by_score(score: str) -> Run:
    """Let greedy's candidates decide, by a score (``:points`` rounds it): who was placed, in order of arrival."""
    name, _, points = score.partition(":")

    def run(arrivals: Arrivals, order: np.ndarray, seed: int) -> np.ndarray:
        problem = arrivals.problem
        state = State(problem)
        if points:
            table = Table(state, GradientInPoints(problem, arrivals.instance.jobs)) if name == "fgd" else None
        else:
            table = table_for(state, name)
        if table is None:
            candidates = Candidates(state, InPoints(name, problem) if points else score_named(name, problem, seed))
        decide = (lambda job: place(candidates, job)) if table is None else table.place
        changed = candidates.changed if table is None else table.changed
        placed, hopeless = np.zeros(len(order), dtype=bool), set()
        classes = problem.job_class.tolist()
        for i, job in enumerate(order.tolist()):
            if classes[job] in hopeless:
                continue
            placement = decide(job)
            if placement is None:
                hopeless.add(classes[job])  # nothing ever leaves
                continue
            state.take(job, placement)
            for node in placement.nodes:
                if name == "gpu_clustering" and placement.gpus:  # asks who has GPUs there
                    state.node_jobs[node][job] = None
                    state.placements[job] = placement
                changed(node)
            placed[i] = True
        return placed

    return run


NAMES = (*PEERS, *(f"{name}:points" for name in POINTS), "stranding", "prices")
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
