"""A table of costs decides as candidates do, job by job, whatever comes and goes."""

import numpy as np
import pytest

from placeopt.build import instance, job, machine, node
from placeopt.generators import generate
from placeopt.heuristics import Candidates, ScoreTable, place, score_named, table_for
from placeopt.heuristics.score_cache import option_shapes
from placeopt.heuristics.scores.fragmentation import FragmentationGradient
from placeopt.heuristics.scores.prices import PriceScore
from placeopt.heuristics.scores.table import NEVER, serves
from placeopt.model import Gpu, Instance, Policy
from placeopt.problem import Problem, State, compile_problem

FRACTIONS = Policy(share_mode="fraction")


def drawn(seed: int) -> Instance:
    """Four kinds of nodes, one without GPUs; jobs of shares, of GPUs and of none, some bound to a model."""
    rng = np.random.default_rng(seed)
    gpu = [Gpu(model=model, memory_mib=16_384) for model in ("A", "B")]
    machines = [
        machine("two", gpus=[gpu[0]] * 2, cpu_millicores=20_000),
        machine("four", gpus=[gpu[1]] * 4),
        machine("eight", gpus=[gpu[0]] * 8, memory_mib=131_072),
        machine("none", gpus=0),
    ]
    nodes = [node(f"n{i:02}", str(rng.choice(["two", "four", "eight", "none"]))) for i in range(12)]
    jobs = []
    for i in range(60):
        gpus = int(rng.choice([0, 1, 1, 1, 2, 4, 8]))
        share = int(rng.choice([190, 320, 470, 650, 810, 1000])) if gpus == 1 else 1000
        needs = {"cpu_millicores": int(rng.integers(0, 12)) * 500, "memory_mib": int(rng.integers(0, 40)) * 1024}
        models = (str(rng.choice(["A", "B"])),) if gpus and rng.random() < 0.3 else ()
        jobs.append(job(f"j{i:02}", gpus=gpus, gpu_milli=share, gpu_models=models, **needs))
    return instance(nodes, jobs, machines=machines, policy=FRACTIONS)


def problems(seed: int) -> Problem:
    """Rounds drawn here, and generated ones with running jobs."""
    if seed % 3 == 0:
        return compile_problem(generate("fractions", jobs=80, nodes=20, gpus=4, seed=seed))
    return compile_problem(drawn(seed))


@pytest.mark.parametrize("score", ["prices", "share_prices", "fgd"])
@pytest.mark.parametrize("seed", range(9))
def test_same_placements_as_candidates(seed: int, score: str) -> None:
    """Jobs come in any order, and now and then one that runs goes."""
    problem = problems(seed)
    assert serves(problem)
    rng = np.random.default_rng(seed)
    left, right = State(problem), State(problem)
    table, candidates = table_for(left, score), Candidates(right, score_named(score, problem))
    assert table is not None
    running: dict[int, object] = {}
    for one in rng.permutation(np.flatnonzero([p is None for p in left.placements])).tolist():
        placement = table.place(one)
        assert placement == place(candidates, one)
        changes = [] if placement is None else [(one, placement, 1)]
        if placement is not None:
            running[one] = placement
        if running and rng.random() < 0.3:
            gone = int(rng.choice(list(running)))
            changes.append((gone, running.pop(gone), -1))
        for number, where, sign in changes:
            for state, chooser in ((left, table), (right, candidates)):
                state.take(number, where, sign)
                for n in where.nodes:
                    chooser.changed(n)


@pytest.mark.parametrize("name", ["prices", "fgd"])
@pytest.mark.parametrize("seed", range(6))
def test_columns_are_the_score(seed: int, name: str) -> None:
    """On nodes in any state: the same integers, and never where a job has no room."""
    problem = problems(seed)
    state, rng = State(problem), np.random.default_rng(seed)
    state.gpu_free_milli[:] = rng.choice([0, 190, 350, 530, 1000], len(state.gpu_free_milli))
    state.node_free[:, :2] = state.node_free[:, :2] * rng.random((problem.num_nodes, 1)) // 1
    score = score_named(name, problem)
    assert isinstance(score, PriceScore | FragmentationGradient)
    candidates, table = Candidates(state, score), ScoreTable(state, score)
    shapes = option_shapes(problem)
    for shape in sorted(set(shapes)):
        expected = candidates.scores(shapes.index(shape))
        found = table._cost[shape]
        fits = np.isfinite(expected)
        assert found[fits].tolist() == expected[fits].tolist()
        assert (found[~fits] >= NEVER // 2).all()
        assert [table.cost(shapes.index(shape), n) for n in range(problem.num_nodes)] == found.tolist()


@pytest.mark.parametrize("score", ["prices", "fgd"])
def test_no_job_requests_a_gpu(score: str) -> None:
    """No jobs at all, only jobs without GPUs, no GPUs at all (regression: an empty table of floats)."""
    for jobs, gpus in (([], 4), ([job("j", gpus=0, cpu_millicores=1000)], 4), ([job("j", gpus=0)], 0)):
        problem = compile_problem(instance(2, jobs, machines=[machine(gpus=gpus)], policy=FRACTIONS))
        table = table_for(State(problem), score)
        assert table is not None
        assert [table.place(one) is None for one in range(len(jobs))] == [False] * len(jobs)


def test_where_no_table_serves() -> None:
    """Jobs of several workers, needs of GPU memory, GPUs that one job has, nodes of mixed models."""
    mixed = machine(gpus=[Gpu(model=model, memory_mib=16_384) for model in "AB"])
    plain = job("j", gpu_milli=500)
    assert serves(compile_problem(instance(2, [plain], policy=FRACTIONS)))
    for jobs, fields in (
        ([job("j", workers=2)], {}),
        ([job("j", gpu_memory_mib=1024)], {}),
        ([plain], {"machines": [mixed]}),
        ([plain], {"policy": Policy(share_mode="overcommit", jobs_per_gpu_max=2)}),
        ([job("j")], {"policy": Policy(share_mode="exclusive")}),
    ):
        problem = compile_problem(instance(2, jobs, **{"policy": FRACTIONS, **fields}))
        assert not serves(problem)
        assert table_for(State(problem), "prices") is None
