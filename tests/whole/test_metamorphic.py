"""Relations between optima: they hold, for exact answers and for bounds; and what is broken does not keep them."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from helpers.metamorphic import RELATIONS, Answer, Solve, Trial, answer_of, provable
from helpers.small_rounds import random_round
from placeopt import Engine, Instance, generate
from placeopt.build import instance, job

METHODS = ("counts", "assignment", "counts-cpsat", "assignment-highs")
SEEDS = range(800_000, 800_025)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine(isolation="thread") as engine:
        yield engine


def exact(engine: Engine, seed: int) -> Solve:
    """Return a solver that takes another method each time."""
    methods = iter(METHODS[seed % len(METHODS) :] + METHODS * 3)
    return lambda round_: answer_of(engine.solve(round_, method=next(methods), time_limit_s=60, threads=1))


def faults(relation: str, solve: Solve, round_: Instance, seed: int) -> list[str]:
    return RELATIONS[relation](Trial(round_, solve(round_), solve, np.random.default_rng(seed)))


def small(seed: int) -> Instance:
    return random_round(np.random.default_rng(seed), changes=seed % 4 == 0)


@pytest.mark.parametrize("relation", RELATIONS)
def test_optima_keep_the_relation(relation: str, engine: Engine) -> None:
    """A short run of the campaign; values must be proven, or there would be nothing to compare."""
    wrong = []
    for seed in SEEDS:
        solve, open_ = exact(engine, seed), []

        def proven(round_: Instance, solve: Solve = solve, open_: list[int] = open_, seed: int = seed) -> Answer:
            answer = solve(round_)
            open_ += [seed] if answer.value[0] != answer.value[1] and provable(round_) else []
            return answer

        wrong += [f"seed {seed}: {text}" for text in faults(relation, proven, small(seed), seed)]
        assert not open_
    assert wrong == []


@pytest.mark.parametrize("relation", RELATIONS)
def test_bounds_keep_the_relation(relation: str, engine: Engine) -> None:
    """On rounds that are only bounded: no bound below what a related round reaches."""
    for seed, spec in enumerate(("varied", "gangs", "fractions")):
        round_ = generate(spec, jobs=30, nodes=6, gpus=8, seed=900 + seed)

        def bounded(round_: Instance) -> Answer:
            return answer_of(engine.solve(round_, method="stranding", time_limit_s=60))

        assert faults(relation, bounded, round_, seed) == []


def sees_names(solve: Solve, round_: Instance) -> Answer:
    """A model that forgets the job whose name comes first."""
    first = min((job.id for job in round_.jobs if all(held.job != job.id for held in round_.running)), default="")
    return solve(round_.model_copy(update={"jobs": tuple(job for job in round_.jobs if job.id != first)}))


def has_an_absolute_limit(solve: Solve, round_: Instance) -> Answer:
    """A model in which values end at 8."""
    answer = solve(round_)
    return replace(answer, value=(min(answer.value[0], 8), min(answer.value[1], 8)))


def charges_for_nodes(solve: Solve, round_: Instance) -> Answer:
    """A model in which a node costs value by being there."""
    answer, nodes = solve(round_), len(round_.cluster.nodes)
    return replace(answer, value=(answer.value[0] - nodes, answer.value[1] - nodes))


def charges_for_waiting(solve: Solve, round_: Instance) -> Answer:
    """A model in which a job that waits costs value."""
    answer = solve(round_)
    waiting = len(answer.plan.unplaced)
    return replace(answer, value=(answer.value[0] - waiting, answer.value[1] - waiting))


def counts_machine_records(solve: Solve, round_: Instance) -> Answer:
    """A model in which nodes of one machine type are taken for one node."""
    answer, types = solve(round_), len({node.machine for node in round_.cluster.nodes})
    return replace(answer, value=(min(answer.value[0], types), min(answer.value[1], types)))


BROKEN = {
    "permuted": sees_names,
    "scaled": has_an_absolute_limit,
    "added node": charges_for_nodes,
    "dropped job": charges_for_waiting,
    "merged nodes": counts_machine_records,
}


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_broken_model_is_caught(relation: str, engine: Engine) -> None:
    """Within as many rounds as the test above has."""
    for seed in SEEDS:
        solve = exact(engine, seed)

        def broken(round_: Instance, solve: Solve = solve) -> Answer:
            return BROKEN[relation](solve, round_)

        if faults(relation, broken, small(seed), seed):
            return
    pytest.fail(f"{BROKEN[relation].__name__} keeps the relation in {len(SEEDS)} rounds")


def test_greedy_sold_as_the_optimum_is_caught(engine: Engine) -> None:
    """A valid plan that is not the best, with a bound made up to match it: ``first`` leaves no room for ``dear``."""
    round_ = instance(1, [job("first", gpus=3), job("dear", gpus=2, value=9, arrival_ms=1)])

    def greedy(round_: Instance) -> Answer:
        answer = answer_of(engine.solve(round_, method="fcfs", time_limit_s=60))
        return replace(answer, value=(answer.value[0], answer.value[0]))

    wrong = [text for seed in range(8) for text in faults("dropped job", greedy, round_, seed)]
    assert any(text.startswith("without a waiting job the value rises") for text in wrong)
