"""The scores that methods name. A new score is a file of its own and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from placeopt.heuristics.scores.close_fit import CloseFit
from placeopt.heuristics.scores.fit import BestFit, FirstFit, Stranding
from placeopt.heuristics.scores.fragmentation import FragmentationGradient
from placeopt.heuristics.scores.prices import PriceScore
from placeopt.heuristics.scores.published import (
    DotProduct,
    GpuClustering,
    GpuPacking,
    HorusByCost,
    LastMachine,
    LastMachineFullestSocket,
    MostFreeMemory,
    Random,
)
from placeopt.heuristics.scores.score import Score
from placeopt.heuristics.scores.slowdown import LeastSlowdown
from placeopt.problem import IntArray, Problem


@dataclass(frozen=True)
class ScoreSpec:
    """
    How a score is made, and what it depends on.

    Attributes
    ----------
    make
        Called with the problem, returns the score (`placeopt.heuristics.scores.score.Score`).
    needs_seed
        Whether the score draws random numbers: ``make`` takes the keyword ``seed``.
    needs_mix
        Whether the score depends on how many jobs there are of each class: ``make`` takes the keyword ``counts``, shape
        (K,); None stands for the jobs of the problem.
    local
        Whether the score of a node depends on its free capacity alone, not on the jobs there or on earlier calls. Only
        such scores can place some jobs of a live cluster, which keeps no more than free capacity.
    """

    make: Callable[..., Score]
    needs_seed: bool = False
    needs_mix: bool = False
    local: bool = True


SCORES: dict[str, ScoreSpec] = {
    "first_fit": ScoreSpec(FirstFit),
    "best_fit": ScoreSpec(BestFit),
    "close_fit": ScoreSpec(CloseFit, local=False),
    "dot_product": ScoreSpec(DotProduct),
    "gpu_packing": ScoreSpec(GpuPacking),
    "gpu_clustering": ScoreSpec(GpuClustering, local=False),
    "random": ScoreSpec(Random, needs_seed=True, local=False),
    "horus": ScoreSpec(HorusByCost),
    "obp": ScoreSpec(MostFreeMemory),
    "fgd": ScoreSpec(FragmentationGradient, needs_mix=True),
    "stranding": ScoreSpec(Stranding, needs_mix=True),
    "least_slowdown": ScoreSpec(LeastSlowdown),
    "prices": ScoreSpec(PriceScore, needs_mix=True),
    "share_prices": ScoreSpec(partial(PriceScore, nodes=False), needs_mix=True),
    "sc17_fcfs": ScoreSpec(LastMachine),
    "sc17_bf": ScoreSpec(LastMachineFullestSocket),
}


def score_named(name: str, problem: Problem, seed: int = 0, counts: IntArray | None = None) -> Score:
    """
    Return the score called ``name``.

    ``seed`` is for scores that draw random numbers; ``counts``, (K,), the jobs of each class, for scores that depend on
    the mix of jobs, None for those of the problem.
    """
    spec = SCORES[name]
    arguments: dict[str, object] = {}
    if spec.needs_seed:
        arguments["seed"] = seed
    if spec.needs_mix:
        arguments["counts"] = counts
    return spec.make(problem, **arguments)
