"""Jobs one by one: moves keep every rule and their limits, quotas are kept, and refusals are the quota's."""

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from helpers.plan_records import plan_of
from placeopt import BadInput, Instance, Policy, Unsupported, violations
from placeopt.build import instance, job, machine, node, running
from placeopt.heuristics import Candidates, greedy, place, score_named
from placeopt.model import Gpu
from placeopt.problem import Problem, State, compile_problem
from placeopt_papers.one_at_a_time.online_placer import DemandQuota, Moves, OnlinePlacer

MANY = Moves(most=100, every=3, tried=100, least_saving_micro=1)
"""As often, as many and for as little as can be."""


def crowded(seed: int, *, busy: bool = False) -> Instance:
    """Six nodes of one model, three of another that some need; shares, whole GPUs and CPU jobs, more than fit."""
    dice = Random(seed)
    machines = [machine("m"), machine("a", gpus=[Gpu(model="A100", memory_mib=40_960)] * 4)]
    nodes = [node(f"n{i}", "m" if i < 6 else "a") for i in range(9)]
    jobs = []
    for i in range(120):
        gpus = dice.choice((0, 1, 1, 1, 1, 1, 2))
        share = 1000 if gpus != 1 else dice.choice((190, 250, 300, 500, 810, 1000))
        models = ("A100",) if gpus and dice.random() < 0.3 else ()
        cpu = dice.choice((500, 1000, 4000, 8000, 16_000))
        jobs.append(job(f"j{i:03}", gpus=gpus, gpu_milli=share, gpu_models=models, cpu_millicores=cpu))
    there = job("there", gpus=2)
    held = {"running": [running(there, [("n1", [0, 3])])]} if busy else {}
    if busy:
        jobs.append(there)
    return instance(nodes, jobs, machines=machines, policy=Policy(share_mode="fraction"), **held)


def play(problem: Problem, **arguments: object) -> OnlinePlacer:
    """Let all jobs that wait come in their order."""
    game = OnlinePlacer(problem, **arguments)
    for one in range(problem.num_jobs):
        if one not in problem.running:
            game.arrive(one)
    return game


def half_of(problem: Problem) -> DemandQuota:
    """Of every class half of those there are, or none of a single one and of every third class."""
    there = np.bincount(problem.job_class)
    planned = np.where(np.arange(len(there)) % 3, there / 2, 0)
    return DemandQuota(there, planned)


@pytest.mark.parametrize("quota", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_moves_break_no_rule(seed: int, quota: bool) -> None:
    """The referee finds nothing, what ran before stays, and the state is that of the placements, put in anew."""
    made = crowded(seed, busy=True)
    problem = compile_problem(made)
    game = play(problem, moves=MANY, quota=half_of(problem) if quota else None, seed=seed)
    assert sum(game.moved) > 10
    placed = dict(zip(game.jobs, game.placements, strict=True))
    allocation = tuple(placed.get(one, problem.running.get(one)) for one in range(problem.num_jobs))
    assert violations(made, plan_of(problem, allocation)) == []
    anew = State(problem, allocation)
    for of_state in ("node_free", "gpu_free_milli", "gpu_jobs"):
        assert np.array_equal(getattr(game.state, of_state), getattr(anew, of_state)), of_state


def test_never_more_moves_than_allowed_nor_at_another_time() -> None:
    """What changed its place, counted from outside: at most so many after the first and every fourth after it."""
    problem = compile_problem(crowded(0))
    free = play(problem, moves=Moves(most=100, every=4, tried=100, least_saving_micro=1))
    assert max(free.moved) > 2  # so the limit below binds
    game, rounds = OnlinePlacer(problem, moves=Moves(most=2, every=4, tried=100, least_saving_micro=1)), []
    for one in range(problem.num_jobs):
        before = list(game.placements)
        started = game.arrive(one)
        changed = sum(a != b for a, b in zip([*before, started], game.placements, strict=True))
        if one % 4:
            assert changed == 0
        else:
            rounds.append(changed)
    assert max(rounds) == 2
    assert rounds[-len(game.moved) :] == game.moved


def test_only_so_many_are_features_and_only_what_saves_enough_is_moved() -> None:
    """One that is drawn is one that moves, at most; nothing saves a thousand GPUs."""
    problem = compile_problem(crowded(0))
    assert max(play(problem, moves=Moves(most=9, every=4, tried=1, least_saving_micro=1)).moved) == 1
    assert set(play(problem, moves=Moves(every=4, least_saving_micro=10**9)).moved) == {0}


def test_a_move_goes_where_it_costs_less() -> None:
    """By the score that candidates work out anew, of the place and of where it was, both without the job."""
    problem = compile_problem(crowded(1))
    game = OnlinePlacer(problem, moves=Moves(most=1, every=2, tried=100, least_saving_micro=30_000))
    seen = 0
    for one in range(problem.num_jobs):
        before = list(game.placements)
        started = game.arrive(one)
        for arrival, (was, now) in enumerate(zip([*before, started], game.placements, strict=True)):
            if was != now:
                game.state.take(game.jobs[arrival], now, -1)
                scores = Candidates(game.state, score_named("prices", problem)).scores(now.option)
                game.state.take(game.jobs[arrival], now, 1)
                assert scores[was.nodes[0]] - scores[now.nodes[0]] >= 30_000
                assert scores[now.nodes[0]] == scores.min()
                seen += 1
    assert seen


def test_the_same_seed_draws_the_same_moves() -> None:
    """And another seed others."""
    problem = compile_problem(crowded(0))
    few = Moves(most=2, every=4, tried=3, least_saving_micro=1)
    first, again, other = (play(problem, moves=few, seed=seed) for seed in (7, 7, 8))
    assert first.placements == again.placements
    assert first.moved == again.moved
    assert first.placements != other.placements


@pytest.mark.parametrize("moves", [None, MANY])
def test_quotas_are_kept_and_only_they_refuse(moves: Moves | None) -> None:
    """At every arrival: no class beyond its part, refused only where one more would be, else only without room."""
    problem = compile_problem(crowded(2))
    quota = half_of(problem)
    game = OnlinePlacer(problem, quota=quota, moves=moves)
    came, taken = np.zeros_like(quota.expected), np.zeros_like(quota.expected)
    kinds = set()
    for one in [*range(problem.num_jobs)] * 2:
        k = int(problem.job_class[one])
        came[k] += 1
        allowed = quota.planned[k] / quota.expected[k] * came[k] + 0.5
        full = place(Candidates(game.state, score_named("prices", problem)), one) is None
        refused = len(game.refused)
        started = game.arrive(one) is not None
        taken[k] += started
        assert taken[k] <= allowed
        if len(game.refused) > refused:
            assert not started
            assert taken[k] + 1 > allowed
            kinds.add("refused")
        else:
            assert started != full
            kinds.add("started" if started else "full")
    assert kinds == {"refused", "started", "full"}


def test_without_moves_and_quota_it_is_greedy_by_prices() -> None:
    """Job for job."""
    problem = compile_problem(crowded(1))
    game = play(problem)
    assert tuple(game.placements) == greedy(problem, np.arange(problem.num_jobs), "prices").allocation
    assert (game.refused, game.moved) == ([], [])


def test_a_quota_gives_prices_their_mix() -> None:
    """One that refuses nobody: each goes where the score of that mix has him, elsewhere than by the problem's own."""
    problem = compile_problem(crowded(1))
    there = np.bincount(problem.job_class)
    odd = np.where(np.arange(len(there)) % 2, 50 * there, 1)
    game = OnlinePlacer(problem, quota=DemandQuota(odd, odd))
    for one in range(problem.num_jobs):
        expected = place(Candidates(game.state, score_named("prices", problem, counts=odd)), one)
        assert game.arrive(one) == expected
    assert game.refused == []
    assert game.placements != play(problem).placements


@pytest.mark.parametrize("name", ["most", "every", "tried", "least_saving_micro"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_moves_are_whole_numbers_of_one_or_more(name: str, value: object) -> None:
    """The field is named."""
    with pytest.raises(BadInput, match=f"Moves.{name}"):
        Moves(**{name: value})


@pytest.mark.parametrize(
    ("call", "refusal", "words"),
    [
        (lambda _: DemandQuota(np.array([1, 2]), np.array([1.0])), BadInput, "one number for each class"),
        (
            lambda _: DemandQuota(np.array([1, 2]), np.array([1.0, 3.0])),
            BadInput,
            r"planned\[1\]: 3.0, expected 0 to 2",
        ),
        (lambda p: OnlinePlacer(p, quota=DemandQuota(np.array([1]), np.array([1.0]))), BadInput, "quota: of 1 classes"),
        (lambda p: OnlinePlacer(p, seed=-1), BadInput, "seed: -1"),
        (lambda p: OnlinePlacer(p).arrive(-1), BadInput, "job: -1, expected 0 to 120"),
        (lambda p: OnlinePlacer(p).arrive(121), BadInput, "job: 121, expected 0 to 120"),
        (lambda p: OnlinePlacer(p).arrive(120), BadInput, r"'there'.*runs already"),
        (lambda _: OnlinePlacer(compile_problem(instance(2, [job("gang", workers=2)]))), Unsupported, "method prices"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(call: Callable, refusal: type[Exception], words: str) -> None:
    """Quotas of other shapes, or beyond what comes; jobs that are not there, or run; rounds where more binds."""
    with pytest.raises(refusal, match=words):
        call(compile_problem(crowded(0, busy=True)))
