"""Prices of GPU models by hand, and whom they send where."""

import numpy as np
import pytest

from placeopt.build import instance, job, machine, node
from placeopt.heuristics import greedy
from placeopt.heuristics.scores.prices import cpu_of_cpu_only, prices_of_nodes
from placeopt.model import Gpu, Instance
from placeopt.problem import compile_problem


def round_() -> Instance:
    """Two GPUs of model A, two of B; jobs: two bound to A, four free, one without a GPU."""
    machines = [machine(name, gpus=[Gpu(model=name.upper(), memory_mib=16_384)] * 2) for name in "ab"]
    jobs = [job(f"bound{i}", gpu_models=("A",)) for i in range(2)]
    jobs += [job("free"), *(job(f"half{i}", gpu_milli=500) for i in range(2)), job("cpu", gpus=0, cpu_millicores=1000)]
    return instance([node("n0", "a"), node("n1", "b")], jobs, machines=machines)


def test_load_under_an_even_spread() -> None:
    """Bound: 2 GPUs on 2. Free: 2 GPUs on 4. All of it is as much as the cluster has. A: 1 + 1/2, B: 1/2."""
    problem = compile_problem(round_())
    counts = np.bincount(problem.job_class)
    assert prices_of_nodes(problem, counts)[problem.node_class].tolist() == pytest.approx([1.5, 0.5])


def test_large_jobs_are_bound_to_large_nodes() -> None:
    """Nodes of two and of four GPUs; a job of four runs on the latter only, four of one anywhere."""
    machines = [machine("two", gpus=2), machine("four", gpus=4)]
    jobs = [job("large", gpus=4), *(job(f"small{i}") for i in range(4))]
    problem = compile_problem(instance([node("n0", "two"), node("n1", "four")], jobs, machines=machines))
    prices = prices_of_nodes(problem, np.bincount(problem.job_class))
    assert prices[problem.node_class].tolist() == pytest.approx([6 / 8 * 2 / 3, 6 / 8 * (2 / 3 + 1)])


def test_flexible_jobs_leave_the_scarce_model_free() -> None:
    """Free jobs come first, and yet all six jobs with GPUs find a place."""
    problem = compile_problem(round_())
    order = np.array([2, 3, 4, 0, 1, 5])
    allocation = greedy(problem, order, "prices").allocation
    assert [placement is not None for placement in allocation] == [True] * 6
    by_stranding = greedy(problem, order, "stranding").allocation
    assert sum(placement is not None for placement in by_stranding) < 6


def test_cpu_only_jobs_take_the_surplus_first() -> None:
    """Two nodes, 2 GPUs and 16 cores each; a GPU needs 2 cores, so 12 of a node are surplus: two CPU-only jobs of 5."""
    machines = [machine("m", gpus=2, cpu_millicores=16_000)]
    for cpu_only, expected in ((0, 0), (4, 0), (6, 30_000 / 4)):
        jobs = [job(f"gpu{i}", cpu_millicores=2000) for i in range(4)]
        jobs += [job(f"cpu{i}", gpus=0, cpu_millicores=5000) for i in range(cpu_only)]
        problem = compile_problem(instance([node("n0", "m"), node("n1", "m")], jobs, machines=machines))
        assert cpu_of_cpu_only(problem, problem.jobs_per_class, 2000) == pytest.approx(expected)
