"""The scores that greedy knows by name."""

from __future__ import annotations

from collections.abc import Callable

from placeopt.heuristics.candidates import Score
from placeopt.heuristics.sc17 import LastMachine, LastMachineFullestSocket
from placeopt.heuristics.scores.fit import Stranding, best_fit, first_fit
from placeopt.heuristics.scores.fragmentation import FragmentationGradient
from placeopt.heuristics.scores.packing import Random, dot_product, gpu_clustering, gpu_packing
from placeopt.heuristics.scores.prices import PriceScore
from placeopt.heuristics.scores.sharing import HorusByCost, MostFreeMemory
from placeopt.heuristics.scores.slowdown import LeastSlowdown
from placeopt.problem import IntArray, Problem

SCORES: dict[str, Callable[[Problem], Score]] = {
    "first_fit": lambda problem: first_fit,  # noqa: ARG005 - needs nothing of the problem
    "best_fit": lambda problem: best_fit,  # noqa: ARG005
    "dot_product": lambda problem: dot_product,  # noqa: ARG005
    "gpu_packing": lambda problem: gpu_packing,  # noqa: ARG005
    "gpu_clustering": lambda problem: gpu_clustering,  # noqa: ARG005
    "random": Random,
    "horus": HorusByCost,
    "obp": MostFreeMemory,
    "fgd": FragmentationGradient,
    "stranding": Stranding,
    "least_slowdown": LeastSlowdown,
    "prices": PriceScore,
    "share_prices": lambda problem: PriceScore(problem, nodes=False),
    "sc17_fcfs": lambda problem: LastMachine(),  # noqa: ARG005
    "sc17_bf": lambda problem: LastMachineFullestSocket(),  # noqa: ARG005
}


def score_named(name: str, problem: Problem, seed: int = 0, counts: IntArray | None = None) -> Score:
    """
    Return the score called ``name``.

    ``seed`` is for those that draw; ``counts``, shape (K,), for those that go by the mix of jobs: how many there are of
    each class, those of the problem if left out.
    """
    if name == "random":
        return Random(problem, seed)
    if name == "stranding":
        return Stranding(problem, counts)
    if name == "fgd":
        return FragmentationGradient(problem, counts)
    if name in ("prices", "share_prices"):
        return PriceScore(problem, counts, nodes=name == "prices")
    return SCORES[name](problem)
