"""Relations between optima: they hold, for exact answers and for bounds; and a broken model does not keep them."""

from collections.abc import Callable
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from helpers.metamorphic import RELATIONS, Answer, Solve, Trial, answer_of, provable
from made_rounds import generate
from placeopt import Engine, Instance
from placeopt.build import instance, job
from strategies import rounds

METHODS = ("counts", "assignment", "counts-cpsat", "assignment-highs")
SPECS = ("uniform", "varied", "gangs", "fractions", "cubemesh")
seeds = st.integers(0, 2**32 - 1)
small = st.one_of(rounds(), rounds(), rounds(changes=True))


def exact(engine: Engine, seed: int) -> Solve:
    """Return a solver that takes another method each time, so that a round and its change go different ways."""
    methods = cycle(METHODS[seed % len(METHODS) :] + METHODS[: seed % len(METHODS)])
    return lambda round_: answer_of(engine.solve(round_, method=next(methods), time_limit_s=60, threads=1))


def faults(relation: str, solve: Solve, round_: Instance, seed: int) -> list[str]:
    """Return how a relation is broken; what the change is follows from the seed."""
    return RELATIONS[relation](Trial(round_, solve(round_), solve, np.random.default_rng(seed)))


@pytest.mark.parametrize("relation", RELATIONS)
@given(round_=small, seed=seeds)
def test_optima_keep_the_relation(engine: Engine, relation: str, round_: Instance, seed: int) -> None:
    """Values must be proven, or there would be nothing to compare."""
    solve = exact(engine, seed)

    def proven(round_: Instance) -> Answer:
        answer = solve(round_)
        assert answer.value[0] == answer.value[1] or not provable(round_)
        return answer

    assert faults(relation, proven, round_, seed) == []


@settings(max_examples=settings().max_examples // 4)
@pytest.mark.parametrize("relation", RELATIONS)
@given(spec=st.sampled_from(SPECS), seed=st.integers(0, 10**6))
def test_bounds_keep_the_relation(engine: Engine, relation: str, spec: str, seed: int) -> None:
    """On rounds that are only bounded: no bound below what a related round reaches."""
    round_ = generate(spec, jobs=30, nodes=6, gpus=8, seed=seed)
    assert faults(relation, lambda r: answer_of(engine.solve(r, method="stranding")), round_, seed) == []


def sees_names(solve: Solve, round_: Instance) -> Answer:
    """A model that forgets the job whose name comes first."""
    first = min((job.id for job in round_.jobs if all(held.job != job.id for held in round_.running)), default="")
    return solve(round_.model_copy(update={"jobs": tuple(job for job in round_.jobs if job.id != first)}))


def shifted(change: Callable[[int, Answer, Instance], int]) -> Callable[[Solve, Instance], Answer]:
    """Return a model that states another value than is true."""

    def model(solve: Solve, round_: Instance) -> Answer:
        answer = solve(round_)
        low, high = (change(value, answer, round_) for value in answer.value)
        return replace(answer, value=(low, high))

    return model


BROKEN = {
    "permuted": sees_names,
    "scaled": shifted(lambda value, answer, round_: min(value, 8)),
    "added node": shifted(lambda value, answer, round_: value - len(round_.cluster.nodes)),
    "dropped job": shifted(lambda value, answer, round_: value - len(answer.plan.unplaced)),
    "merged nodes": shifted(
        lambda value, answer, round_: min(value, len({node.machine for node in round_.cluster.nodes}))
    ),
}
"""
Models that do not keep a relation: the first job forgotten, values that end at 8, a node or a waiting job that costs
value, nodes of one machine type taken for one.
"""


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_broken_model_is_caught(engine: Engine, relation: str) -> None:
    """Within as many rounds as the relation is tried on in each run of the tests."""

    def caught(case: tuple[Instance, int]) -> bool:
        round_, seed = case
        solve = exact(engine, seed)
        return bool(faults(relation, lambda r: BROKEN[relation](solve, r), round_, seed))

    find(st.tuples(small, seeds), caught, settings=settings(settings.get_profile("ci"), phases=[Phase.generate]))


def test_greedy_sold_as_the_optimum_is_caught(engine: Engine) -> None:
    """A valid plan that is not the best, with a bound made up to match it: ``first`` leaves no room for ``dear``."""
    round_ = instance(1, [job("first", gpus=3), job("dear", gpus=2, value=9, arrival_ms=1)])

    def greedy(round_: Instance) -> Answer:
        answer = answer_of(engine.solve(round_, method="fcfs", time_limit_s=60))
        return replace(answer, value=(answer.value[0], answer.value[0]))

    wrong = [text for seed in range(8) for text in faults("dropped job", greedy, round_, seed)]
    assert any(text.startswith("without a waiting job the value rises") for text in wrong)
