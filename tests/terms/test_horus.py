"""Memory and utilisation of the GPUs in use, with the published quadratics of Horus fig. 4."""

from typing import Any

import pytest

from placeopt import BadInput
from placeopt.build import instance, job, machine
from placeopt.documents import loads
from placeopt.model import Gpu, Interference, Policy
from placeopt.problem import Placement, compile_problem
from placeopt.terms.costs import HorusCost

TERM = HorusCost()


@pytest.mark.parametrize(
    ("curve", "memory", "utilisation", "second", "score"),
    [
        # w1 x memory: 500 x 2000/8000 = 125 and 500 x 3000/8000 = 187.5, to even 188. w2 x f(1.0): f(1) = 1.32198
        # - 0.00728 + 0.00006 = 1.31476, so 657.38 -> 657
        ("gtx-1080", 500, 500, 0, 125 + 188 + 657),
        # f(0.4) = 1.32198 x 0.16 - 0.00728 x 0.4 + 0.00006 = 0.2086648 -> 104; f(0.6) = 0.4759128 - 0.004368
        # + 0.00006 = 0.4716048 -> 236
        ("gtx-1080", 500, 500, 1, 125 + 188 + 104 + 236),
        # f(1) = 1.16664 - 0.00302 + 0.00004 = 1.16366
        ("rtx-2080", 0, 1000, 0, 1164),
    ],
)
def test_two_jobs_by_hand(curve: Any, memory: int, utilisation: int, second: int, score: int) -> None:
    """2000 MiB at 40 % on GPU 0 and 3000 MiB at 60 % there or on GPU 1, of 8000 MiB each, two jobs a GPU."""
    policy = Policy(
        share_mode="overcommit",
        jobs_per_gpu_max=2,
        interference=Interference(curve=curve),
        costs={"horus": {"memory_thousandths": memory, "utilisation_thousandths": utilisation}},
    )
    needs = ((2000, 40), (3000, 60))
    jobs = [job(f"{mib}", gpu_memory_mib=mib, gpu_utilisation_percent=percent) for mib, percent in needs]
    kinds = [machine(gpus=[Gpu(model="G", memory_mib=8000)] * 2)]
    problem = compile_problem(instance(1, jobs, machines=kinds, policy=policy))
    assert TERM.score(problem, (Placement(0, (0,), (0,)), Placement(1, (0,), (second,)))) == score


def test_unknown_curves_are_refused_at_the_door() -> None:
    """A name that is no curve, and a curve by which jobs would get faster; the referee would know neither."""
    for curve, word in (('"v100"', "expected 'gtx-1080' or 'rtx-2080'"), ('{"square_millionths": 999999}', "999999")):
        with pytest.raises(BadInput, match=word):
            loads(Policy, f'{{"interference": {{"curve": {curve}}}}}')


def test_a_gpu_in_use_costs_f_of_0_even_without_utilisation() -> None:
    """gtx-1080: f(0) = 6e-5; with w2 = 1000 that is 60 a GPU. The linear form once forgot it."""
    policy = Policy(
        interference=Interference(curve="gtx-1080"),
        costs={"horus": {"memory_thousandths": 0, "utilisation_thousandths": 1_000_000}},
    )
    problem = compile_problem(instance(1, [job("a", gpus=2)], policy=policy))
    assert TERM.score(problem, (Placement(0, (0,), (0, 1)),)) == 2 * 60
    assert TERM.form(problem) == "exact"


def test_a_gpu_of_unknown_memory_costs_none() -> None:
    """Its size stands as 0, by which nothing can be divided."""
    problem = compile_problem(instance(1, [job("a")], machines=[machine(gpus=[Gpu(model="G")])]))
    assert TERM.score(problem, (Placement(0, (0,), (0,)),)) == 0
