"""What any plan in hindsight could have placed of jobs one at a time, and policies that move or refuse some."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))

from builders import instance, job, machine
from hindsight import hindsight, placeable
from own_policies import refusing, with_moves
from placeopt.model import Policy
from placeopt.papers.one_at_a_time.arrivals import arrivals_of


def test_hindsight_is_what_fits_or_what_came() -> None:
    """Eight GPUs; jobs of 600 fit one a GPU. After five of them 3,000 (37.5 %), after twelve never more than 4,800."""
    arrivals = arrivals_of(instance(2, [job(f"j{i}", gpu_milli=600) for i in range(12)]))
    order = np.arange(12)
    assert placeable(arrivals, order[:5]) == 3000
    assert placeable(arrivals, order) == 4800
    assert hindsight(arrivals, order, 38) == 37.5
    assert hindsight(arrivals, order, 90) == 60.0


def test_hindsight_chooses_among_what_came() -> None:
    """One GPU; first a job of 600, then one of 1000 in whose place it would be left out."""
    arrivals = arrivals_of(instance(1, [job("a", gpu_milli=600), job("b")], machines=[machine(gpus=1)]))
    assert placeable(arrivals, np.arange(2)) == 1000


def test_who_knows_the_horizon_refuses_what_packs_badly() -> None:
    """Four GPUs; four whole ones and four times 810 come in turns: only whole ones are taken. Moves refuse nobody."""
    jobs = [job(f"j{i}", gpu_milli=1000 if i % 2 else 810) for i in range(8)]
    arrivals = arrivals_of(instance(1, jobs, policy=Policy(share_mode="fraction")))
    order = np.arange(8)
    demand = round(100 * int(arrivals.milli.sum()) / arrivals.capacity)
    assert refusing(demand)(arrivals, order, 0).tolist() == [False, True] * 4
    assert with_moves(3)(arrivals, order, 0).tolist() == [True] * 4 + [False] * 4
