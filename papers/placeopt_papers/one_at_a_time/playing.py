"""Places jobs that arrive one at a time by a score of greedy."""

from __future__ import annotations

import numpy as np

from placeopt import BadInput
from placeopt.heuristics import SCORES, Candidates, Score, place, score_named
from placeopt.problem import IntArray, State
from placeopt_papers.one_at_a_time.arrivals import Arrivals
from placeopt_papers.one_at_a_time.points import RoundedGradient, RoundedScore

POINTS = ":points"
"""Suffix of a score's name: rounded to whole points, as the authors' simulator compares."""


def place_by(score: str, arrivals: Arrivals, order: IntArray, seed: int) -> np.ndarray:
    """
    Place jobs in order of arrival by a score, rounded if its name ends in ``:points``.

    Parameters
    ----------
    score
        Name of a method of greedy; ``random`` draws by the seed.
    arrivals
        Jobs and nodes; the first of several best nodes is taken.
    order
        Jobs in order of arrival.

    Returns
    -------
    numpy.ndarray
        Shape of ``order``: whether each was placed.

    Raises
    ------
    BadInput
        If there is no such score.
    """
    name, points, _ = score.partition(POINTS)
    if name not in SCORES:
        raise BadInput(f"score: no score {name!r}; known: {', '.join(SCORES)}")
    problem = arrivals.problem
    state = State(problem)
    by: Score
    if not points:
        by = score_named(name, problem, seed)
    elif name == "fgd":
        by = RoundedGradient(problem, arrivals.instance.jobs)
    else:
        by = RoundedScore(name, problem)
    candidates = Candidates(state, by, for_many=True)
    placed, hopeless = np.zeros(len(order), dtype=bool), set()
    classes = problem.job_class.tolist()
    for i, job in enumerate(order.tolist()):
        if classes[job] in hopeless:
            continue
        placement = place(candidates, job)
        if placement is None:
            hopeless.add(classes[job])  # nothing ever leaves
            continue
        state.take(job, placement)
        for node in placement.nodes:
            if name == "gpu_clustering" and placement.gpus:  # this score reads the jobs of a node
                state.node_jobs[node][job] = None
                state.placements[job] = placement
            candidates.changed(node)
        placed[i] = True
    return placed
