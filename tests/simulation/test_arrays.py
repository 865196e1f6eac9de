"""The cluster divided between arrays: who is of which, what is theirs, whose turn it is."""

import pytest

from helpers.scenarios import scenario, timed
from placeopt.build import placement
from placeopt.model import Arrays, Placement
from placeopt.simulation.scheduling.drf_queue import ArrayDivision, JobArrayQueue
from placeopt.simulation.scheduling.placement_amounts import amounts_of, cluster_amounts

JOBS = [
    timed("small", 0, 1000, gpus=1, user="u"),
    timed("large", 0, 3000, gpus=4, user="u"),
    timed("cpu", 0, 1000, gpus=0, cpu_millicores=8000, kind="cpu", user="v"),
]


def test_by_size_as_soda_has_it() -> None:
    """CPU jobs, jobs of fewer than four GPUs, and larger ones; a third of 4 GPUs is 1,334 thousandths, rounded up."""
    division = ArrayDivision(scenario(JOBS), Arrays(by="size"))
    assert len({division.of(job) for job in JOBS}) == 3
    assert division.of(timed("other", 0, 1, gpus=3)) == division.of(JOBS[0])
    assert {part[0] for part in division.part.values()} == {1334}


def test_parts_by_demand() -> None:
    """1 GPU x 1 s and 4 GPUs x 3 s: a thirteenth and twelve; the array that alone asks for cores has them all."""
    division = ArrayDivision(scenario(JOBS), Arrays(by="size", parts="demand"))
    small, large, cpu = (division.part[division.of(job)] for job in JOBS)
    assert (small[0], large[0], cpu[0]) == (308, 3693, 0)
    assert (small[1], large[1], cpu[1]) == (0, 0, cluster_amounts(scenario(JOBS).cluster)[1])


def test_quota_and_what_may_be_borrowed() -> None:
    """Two users, halves: each may hold its half, and half as much again."""
    division = ArrayDivision(scenario(JOBS), Arrays(by="user", borrow_percent=50))
    assert [(queue.quota.gpu_milli, queue.borrow.gpu_milli) for queue in division.queues] == [(2000, 1000)] * 2


def test_users_in_turns_within_an_array() -> None:
    """Of small jobs ann has come first with two, ben then with one: his turn is after her first."""
    jobs = [timed("a1", 0, 1, user="ann"), timed("a2", 1, 1, user="ann"), timed("b", 2, 1, user="ben")]
    world = scenario(jobs)
    for fair, second in ((False, "a2"), (True, "b")):
        turns = JobArrayQueue(world.cluster, ArrayDivision(world, Arrays(by="size")), fair=fair)
        for job in jobs:
            turns.add(job, job.id)
        assert next(turns.in_order(set(), 0))[0] == "a1"
        turns.take("a1", "a1")
        turns.update_held(jobs[0], placement(jobs[0], [("n0", (0,))]), 1)
        assert next(turns.in_order(set(), 0))[0] == second


def test_the_array_that_holds_least_of_its_part_comes_next() -> None:
    """After a job of two GPUs of one user it is the other's turn."""
    world = scenario(JOBS)
    turns = JobArrayQueue(world.cluster, ArrayDivision(world, Arrays(by="user")))
    held: Placement = placement(timed("x", 0, 1, gpus=3, user="u"), [("n0", (0, 1, 2))])
    for job in JOBS:
        turns.add(job, job.id)
    assert next(turns.in_order(set(), 0))[0] == "small"
    turns.update_held(timed("x", 0, 1, gpus=3, user="u"), held, 1)
    assert next(turns.in_order(set(), 0))[0] == "cpu"
    mine = turns.user(JOBS[0])
    assert turns.share(mine) == pytest.approx(1.5)
    assert turns.exceeds_part(mine)
    assert not turns.exceeds_part(turns.user(JOBS[2]), (2000, 0, 0))
    assert turns.exceeds_part(turns.user(JOBS[2]), (2001, 0, 0))
    assert amounts_of(held)[0] == 3000
