"""One job's choice of GPUs in large machines: as trying everything, bounded in work, stopped by the clock."""

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from placeopt.build import instance, job, machine
from placeopt.check import distances as referee
from placeopt.check.case import Directory
from placeopt.errors import OutOfTime
from placeopt.heuristics import Candidates, assign_gpus, greedy, swaf, window
from placeopt.heuristics import candidates as module
from placeopt.heuristics.candidates import closest
from placeopt.heuristics.scores.fit import BestFit
from placeopt.model import Link
from placeopt.problem import State, compile_problem, growth
from placeopt.problem.growth import grown_sets, starts


def tried_out(distance: np.ndarray, fullness: list[int], need: int) -> list[int]:
    """The choice as it is defined, GPU by GPU: from every one, always the nearest, of equals the fullest."""
    best: tuple[tuple[int, int], list[int]] | None = None
    for first in range(len(distance)):
        taken, total = [first], 0
        while len(taken) < need:
            left = [i for i in range(len(distance)) if i not in taken]
            near = min(left, key=lambda i: (sum(int(distance[i, t]) for t in taken), fullness[i], i))
            total += sum(int(distance[near, t]) for t in taken)
            taken.append(near)
        key = (total, sum(fullness[i] for i in taken))
        if best is None or key < best[0]:
            best = (key, taken)
    assert best is not None
    return sorted(best[1])


def random_distances(rng: np.random.Generator, size: int) -> np.ndarray:
    distance = rng.integers(1, 6, (size, size))
    distance = np.triu(distance, 1)
    return distance + distance.T


@pytest.mark.parametrize("seed", range(60))
def test_issue16_a3_the_choice_equals_trying_everything(seed: int) -> None:
    """Issue 16, A3: the choice made by arrays is the one that the loops made, ties included."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 12))
    distance, free = random_distances(rng, size), rng.integers(0, 3, size)
    problem = SimpleNamespace(
        gpu_socket=np.zeros(size, dtype=np.int64),
        shares_bind=True,
        topology=SimpleNamespace(node_distances=lambda gpus: distance[np.ix_(gpus, gpus)]),
    )
    need = int(rng.integers(1, size + 1))
    found = closest(SimpleNamespace(problem=problem, gpu_free_milli=free), list(range(size)), need)
    assert list(found) == tried_out(distance, free.tolist(), need)


@pytest.mark.parametrize(("gpus", "size"), [(8, 8), (72, 72), (161, 161), (256, 64), (1024, 4)])
def test_issue16_a3_all_gpus_are_tried_first_where_machines_are_small(gpus: int, size: int) -> None:
    assert starts(gpus, size, module.STEPS).tolist() == list(range(gpus))


@pytest.mark.parametrize(("gpus", "size"), [(1024, 512), (1024, 1024), (512, 512), (300, 200), (1024, 16)])
def test_issue16_a3_a_choice_takes_a_bounded_number_of_steps(gpus: int, size: int) -> None:
    """Issue 16, A3: 512 of 1,024 GPUs took 400 million steps from each first GPU; now four million in all."""
    first = starts(gpus, size, module.STEPS)
    assert 1 <= len(first) * gpus * size <= module.STEPS
    assert len(set(first.tolist())) == len(first)
    assert first.max() < gpus


def test_issue16_a3_half_of_a_ring_is_one_arc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 16, A3: 512 of 1,024 GPUs in a ring, grown from 8 of them: an arc of neighbours."""
    rows: list[int] = []
    monkeypatch.setattr(module, "grown_sets", lambda d, n, first: rows.append(len(first)) or grown_sets(d, n, first))
    links = tuple(Link(gpus=(i, (i + 1) % 1024), weight=1) for i in range(1024))
    gpu = machine(gpus=1).gpus[0].model_copy(update={"uplink_weight": 1000})
    ring = machine(gpus=[gpu] * 1024, links=links, cpu_millicores=10**7)
    problem = compile_problem(instance(1, [job("a", gpus=512, communication={"weight": 1})], machines=[ring]))
    found = greedy(problem, np.array([0])).allocation[0]
    assert rows == [8]
    assert found is not None
    steps = np.diff([*found.gpus, found.gpus[0] + 1024])
    assert sorted(steps.tolist())[-1] == 513  # one gap, of all GPUs that are free
    assert sorted(steps.tolist())[:-1] == [1] * 511


@pytest.mark.parametrize("seed", range(30))
def test_issue16_a3_paths_of_all_sizes_come_from_one_growth(seed: int) -> None:
    """Issue 16, A3: the reference path of every size, for solver and referee, against growing each size by itself."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 10))
    distance = random_distances(rng, size)

    def path(k: int) -> int:
        taken = tried_out(distance, [0] * size, k) if k else []
        return int(distance[np.ix_(taken, taken)].sum()) // 2

    expected = [path(k) for k in range(size + 1)]
    assert growth.grown_paths(distance, size).tolist() == expected
    stated = machine(gpus=size, gpu_distance_matrix=tuple(tuple(row) for row in distance.tolist()))
    evaluate = referee.Distances(Directory(instance(1, machines=[stated])))
    assert evaluate.grown("m", tuple(range(size)), size) == expected


@pytest.mark.parametrize("steps", [1, 60, 200])
def test_issue16_a3_solver_and_referee_grow_from_the_same_gpus(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 16, A3: where not every GPU is tried, the reference path is a convention, and both sides keep it."""
    monkeypatch.setattr(growth, "STEPS", steps)
    monkeypatch.setattr(referee, "STEPS", steps)
    distance = random_distances(np.random.default_rng(1), 9)
    stated = machine(gpus=9, gpu_distance_matrix=tuple(tuple(row) for row in distance.tolist()))
    evaluate = referee.Distances(Directory(instance(1, machines=[stated])))
    assert evaluate.grown("m", tuple(range(9)), 9) == growth.grown_paths(distance, 9).tolist()


def test_grown_sets_by_hand() -> None:
    """By hand: on a line 0-1-2-3, from 1: 0 (of 0 and 2 the first), then 2 (1 + 2), then 3 (1 + 2 + 3)."""
    line = np.abs(np.arange(4)[:, None] - np.arange(4)[None, :])
    members, path = grown_sets(line, 4, np.array([1]))
    assert (members.tolist(), path.tolist()) == ([[1, 0, 2, 3]], [[0, 1, 4, 10]])
    assert growth.FAR > 10**15


def stopped_after(asks: int) -> Callable[[], bool]:
    """Not over for so many questions, and over from then on."""
    left = iter(range(asks))
    return lambda: next(left, None) is None


@pytest.mark.parametrize("run", ["greedy", "swaf", "window"])
def test_issue16_a3_the_clock_stops_inside_one_jobs_choice(run: str) -> None:
    """Issue 16, A3: a job of 12 workers asks before each of them; stopped at the fifth question, it was not reached."""
    problem = compile_problem(instance(3, [job("a", workers=12)]))
    order = np.array([0])

    def placed(cancelled: Callable[[], bool]) -> tuple[bool, tuple[int, ...]]:
        if run == "greedy":
            result = greedy(problem, order, cancelled=cancelled)
        elif run == "swaf":
            result = swaf(problem, order, cancelled=cancelled)
        else:
            result = window(problem, order, "best_fit", cancelled=cancelled)
        return result.allocation[0] is not None, result.not_reached

    assert placed(stopped_after(5)) == (False, (0,))
    assert placed(stopped_after(50)) == (True, ())


def test_issue16_a3_the_deadline_stops_assign_gpus() -> None:
    """Issue 16, A3: a mix of 423 jobs got its GPUs for seconds past the limit; the rest of it is passed over."""
    problem = compile_problem(instance(2, [job("a", workers=2), job("b", workers=2)]))
    wanted = [(0, 0, (0, 1)), (1, 0, (0, 1))]
    assert [held is not None for held in assign_gpus(problem, wanted)] == [True, True]
    assert [held is not None for held in assign_gpus(problem, wanted, stopped_after(3))] == [True, False]


def test_issue16_a3_a_passed_deadline_stops_the_choice() -> None:
    """Issue 16, A3: candidates refuse to choose once their time is over."""
    problem = compile_problem(instance(1, [job("a", gpus=2)]))
    state = State(problem)
    with pytest.raises(OutOfTime):
        Candidates(state, BestFit(problem), lambda: True).choose_gpus(0, 0)
    assert len(Candidates(state, BestFit(problem)).choose_gpus(0, 0)) == 2
