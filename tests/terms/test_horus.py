"""Memory and utilisation of the GPUs in use, with the published quadratics of Horus fig. 4."""

import numpy as np
import pytest

from placeopt import BadInput
from placeopt.build import instance, job, machine
from placeopt.formats.documents import loads
from placeopt.model import Gpu, Horus, Interference, Policy
from placeopt.problem import Placement, Problem, compile_problem
from placeopt.terms.costs.horus import HorusCost, cost_table, excess_table, most_percent, slowdown

TERM = HorusCost()


def overcommitted(curve: str = "gtx-1080", memory: int = 500, utilisation: int = 500) -> Problem:
    """Jobs of 2000 MiB at 40 % and of 3000 MiB at 60 % on a node of two GPUs of 8000 MiB, two jobs a GPU."""
    policy = Policy(
        share_mode="overcommit",
        jobs_per_gpu_max=2,
        interference=Interference(curve=curve),
        horus=Horus(memory_thousandths=memory, utilisation_thousandths=utilisation),
    )
    jobs = [
        job("a", gpu_memory_mib=2000, gpu_utilisation_percent=40),
        job("b", gpu_memory_mib=3000, gpu_utilisation_percent=60),
    ]
    return compile_problem(
        instance(1, jobs, machines=[machine(gpus=[Gpu(model="G", memory_mib=8000)] * 2)], policy=policy)
    )


def test_two_jobs_on_one_gpu_by_hand() -> None:
    """
    w1 x memory: 500 x 2000/8000 = 125 and 500 x 3000/8000 = 187.5, to even 188. w2 x f(1.0): f(1) = 1.32198 - 0.00728
    + 0.00006 = 1.31476, so 657.38 -> 657.
    """
    problem = overcommitted()
    both = (Placement(0, (0,), (0,)), Placement(1, (0,), (0,)))
    assert TERM.score(problem, both) == 125 + 188 + 657


def test_two_jobs_apart_by_hand() -> None:
    """
    f(0.4) = 1.32198 x 0.16 - 0.00728 x 0.4 + 0.00006 = 0.2086648 -> 104; f(0.6) = 0.4759128 - 0.004368 + 0.00006 =
    0.4716048 -> 236.
    """
    problem = overcommitted()
    apart = (Placement(0, (0,), (0,)), Placement(1, (0,), (1,)))
    assert TERM.score(problem, apart) == 125 + 188 + 104 + 236


def test_the_other_curve() -> None:
    """RTX 2080: f(1) = 1.16664 - 0.00302 + 0.00004 = 1.16366."""
    assert slowdown("rtx-2080", 1.0) == pytest.approx(1.16366)
    problem = overcommitted("rtx-2080", memory=0, utilisation=1000)
    assert TERM.score(problem, (Placement(0, (0,), (0,)), Placement(1, (0,), (0,)))) == 1164


def test_unknown_curves_are_refused_at_the_door() -> None:
    """A name that is no curve, and a curve by which jobs would get faster; the referee would know neither."""
    for curve, word in (('"v100"', "expected 'gtx-1080' or 'rtx-2080'"), ('{"square_millionths": 999999}', "999999")):
        with pytest.raises(BadInput, match=word):
            loads(Policy, f'{{"interference": {{"curve": {curve}}}}}')


def test_a_gpu_in_use_costs_f_of_0_even_without_utilisation() -> None:
    """gtx-1080: f(0) = 6e-5; with w2 = 1000 that is 60 a GPU. The linear form once forgot it."""
    policy = Policy(
        interference=Interference(curve="gtx-1080"),
        horus=Horus(memory_thousandths=0, utilisation_thousandths=1_000_000),
    )
    problem = compile_problem(instance(1, [job("a", gpus=2)], policy=policy))
    assert TERM.score(problem, (Placement(0, (0,), (0, 1)),)) == 2 * 60
    assert TERM.form(problem) == "exact"


def test_a_gpu_of_unknown_memory_costs_none() -> None:
    """Its size stands as 0, by which nothing can be divided."""
    problem = compile_problem(instance(1, [job("a")], machines=[machine(gpus=[Gpu(model="G")])]))
    assert TERM.score(problem, (Placement(0, (0,), (0,)),)) == 0


@pytest.mark.parametrize(
    ("policy", "milli", "most"),
    [
        (Policy(share_mode="exclusive"), 1000, 70),
        (Policy(), 1000, 70),
        (Policy(), 300, 210),
        (Policy(jobs_per_gpu_max=2), 300, 140),
        (Policy(jobs_per_gpu_max=9), 300, 210),
        (Policy(share_mode="overcommit", jobs_per_gpu_max=4), 300, 280),
    ],
)
def test_how_far_the_tables_must_reach(policy: Policy, milli: int, most: int) -> None:
    """Shares and the number of jobs both limit how many meet: too short a table breaks, too long a one blurs W."""
    problem = compile_problem(instance(1, [job("a", gpu_milli=milli, gpu_utilisation_percent=70)], policy=policy))
    assert most_percent(problem) == most


@pytest.mark.parametrize("curve", ["gtx-1080", "rtx-2080"])
def test_tables_never_fall(curve: str) -> None:
    """Bounds lean on it: a job more on a GPU never makes it cheaper."""
    assert (np.diff(excess_table(curve, 400)) >= 0).all()
    assert (np.diff(cost_table(curve, 123_457, 400)) >= 0).all()


@pytest.mark.parametrize("curve", ["gtx-1080", "rtx-2080"])
@pytest.mark.parametrize("weight", [1, 500, 77_777, 1_000_000])
def test_what_jobs_add_to_an_idle_gpu_bounds_what_they_cost_together(curve: str, weight: int) -> None:
    """The bound used where jobs meet, for all pairs up to 100 %: f(0) + rise(x) + rise(y) <= f(x + y)."""
    cost = cost_table(curve, weight, 200)
    rise = np.maximum(cost - cost[0] - 1, 0)
    x, y = np.meshgrid(np.arange(101), np.arange(101))
    assert (cost[0] + rise[x] + rise[y] <= cost[x + y]).all()
    assert (cost[x] + rise[y] <= cost[x + y]).all()
