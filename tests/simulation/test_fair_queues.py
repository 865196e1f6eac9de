"""Turns of users and clusters of jobs, worked by hand; no job is lost in any queue."""

import random
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import get_args

import pytest

from helpers.scenarios import policy, random_scenario, scenario, timed
from placeopt.build import job, option, placement
from placeopt.model import Job
from placeopt.model.scheduling import JobOrder
from placeopt.simulation import JobQueue, named_policy, simulate
from placeopt.simulation.scheduling.drf_queue import DrfQueue
from placeopt.simulation.scheduling.waiting_queue import SortedQueue, by_run_time
from placeopt.simulation.scheduling.weighted_fair_queue import WeightedFairQueue, similar_clusters, weight_of

CLUSTER = scenario([], nodes=2).cluster


def shape_of(job: Job) -> object:
    """What the tests tell jobs apart by."""
    return job.options[0].demand


def drained(queue: JobQueue, jobs: list[Job], now_ms: int = 0) -> list[str]:
    """Let every job start that is offered; what it holds is GPU 0 upwards of n0."""
    by_name, taken = {job.id: job for job in jobs}, []
    for name, shape in queue.in_order(set(), now_ms):
        queue.take(name, shape)
        held = tuple(range(by_name[name].options[0].demand.gpus))
        queue.update_held(by_name[name], placement(by_name[name], [("n0", held)]), 1)
        taken.append(name)
    return taken


def test_the_user_with_the_smallest_share_comes_next() -> None:
    """
    Eight GPUs. ann's first job takes 4 (1/2), so ben has his three of one (1/8, 2/8, 3/8) before her second.
    """
    jobs = [
        timed("a1", 0, 1, gpus=4, user="ann"),
        timed("a2", 1, 1, gpus=4, user="ann"),
        *(timed(f"b{i}", 2 + i, 1, user="ben") for i in range(3)),
    ]
    queue = DrfQueue(CLUSTER)
    for one in jobs:
        queue.add(one, shape_of(one))
    assert drained(queue, jobs) == ["a1", "b0", "b1", "b2", "a2"]
    assert queue.num_jobs == 0


def test_the_dominant_resource_counts() -> None:
    """cpu holds one GPU of eight but half of the memory; gpus holds three of eight GPUs: gpus comes first."""
    queue = DrfQueue(CLUSTER)
    heavy = timed("cpu", 0, 1, user="cpu", memory_mib=262_144)
    light = timed("gpus", 0, 1, gpus=3, user="gpus")
    for one, held in ((heavy, (0,)), (light, (1, 2, 3))):
        queue.update_held(one, placement(one, [("n0", held)]), 1)
    assert (queue.share("cpu"), queue.share("gpus")) == (0.5, 0.375)
    waiting = [timed("more-cpu", 1, 1, user="cpu"), timed("more-gpus", 1, 1, user="gpus")]
    for one in waiting:
        queue.add(one, one.id)
    assert drained(queue, waiting) == ["more-gpus", "more-cpu"]
    queue.update_held(heavy, placement(heavy, [("n0", (0,))]), -1)
    assert queue.share("cpu") == 1 / 8  # what has just started is left


def test_a_user_whose_jobs_find_no_room_is_passed_over() -> None:
    """And his other kinds of job are tried before."""
    queue = DrfQueue(CLUSTER)
    jobs = [timed("wide", 0, 1, gpus=4, user="u"), timed("small", 1, 1, user="u"), timed("other", 2, 1, user="v")]
    for one in jobs:
        queue.add(one, shape_of(one))
    assert [name for name, _ in queue.in_order(set(), 0)] == ["wide", "small", "other"]


def test_weights_by_hand() -> None:
    """Three jobs that waited 1, 10 and 100 s: 10 x 3; new ones count by their number."""
    assert weight_of([1_000, 10_000, 100_000]) == 30
    assert weight_of([0, 0]) == 2


def test_kinds_of_jobs_in_clusters() -> None:
    """By utilisation 10, 12 | 90; one cluster holds all; more clusters than kinds are not needed."""
    kinds = [(1, 10, 1, 100), (1, 90, 1, 100), (1, 12, 1, 100)]
    two = similar_clusters(kinds, 2)
    assert two[0] == two[2] != two[1]
    assert similar_clusters(kinds, 1) == [0, 0, 0]
    assert len(set(similar_clusters(kinds, 9))) == 3
    assert similar_clusters([], 3) == []


def test_batches_by_weight() -> None:
    """
    Two clusters at time 20 s: four light jobs that wait 10 s (weight 40), two heavy ones that wait 20 s (weight 40).

    A batch of four takes them in turns: at 1/40 both, the first cluster first, then at 2/40; the light ones that are
    left make the second batch.
    """
    jobs = [timed(f"l{i}", 10_000, 1, gpu_utilisation_percent=10) for i in range(4)]
    jobs += [timed(f"h{i}", 0, 1, gpu_utilisation_percent=90) for i in range(2)]
    queue = WeightedFairQueue(2, 4)
    for one in jobs:
        queue.add(one, shape_of(one))
    assert drained(queue, jobs, now_ms=20_000) == ["l0", "h0", "l1", "h1", "l2", "l3"]


MAKERS: list[Callable[[], JobQueue]] = [
    lambda: SortedQueue(by_run_time),
    lambda: DrfQueue(CLUSTER),
    lambda: WeightedFairQueue(1, 3),
    lambda: WeightedFairQueue(3, 5),
]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("seed", range(5))
def test_no_queue_loses_a_job_or_offers_one_twice(make: Callable[[], JobQueue], seed: int) -> None:
    """Jobs come and go at random; a shape that was refused is not offered again in the same pass."""
    dice, queue, jobs, names = random.Random(seed), make(), {}, count()
    for step in range(30):
        for _ in range(dice.randrange(4)):
            job = timed(
                f"j{next(names)}", step, dice.randrange(99), gpus=dice.choice([1, 2, 3]), user=dice.choice("uv")
            )
            jobs[job.id] = job
            queue.add(job, shape_of(job))
        assert queue.num_jobs == len(jobs)
        seen: set[str] = set()
        refused: set[object] = set()
        for name, shape in queue.in_order(set(), step):
            assert name in jobs
            assert name not in seen
            assert shape == shape_of(jobs[name])
            seen.add(name)
            if isinstance(queue, DrfQueue) is False:
                assert shape not in refused
            if dice.random() < 0.3:
                queue.take(name, shape)
                del jobs[name]
            else:
                refused.add(shape)
    while jobs:
        name, shape = next(iter(queue.in_order(set(), 99)))
        queue.take(name, shape)
        del jobs[name]
    assert list(queue.in_order(set(), 99)) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"order": "drf"},
        {"order": "clusters", "clusters": 2, "batch": 4},
        {"order": "min_min"},
        {"order": "arrival_ect"},
        {"order": "swaf"},
    ],
    ids=lambda fields: fields["order"],
)
def test_whole_simulations(fields: dict) -> None:
    """Everything ends under every order, and a queue that is never short changes nothing."""
    world = random_scenario(2, jobs=20)
    assert simulate(world, policy("best-fit", **fields)).stranded == ()
    alone = [timed("a", 0, 100), timed("b", 5, 100), timed("c", 10, 100)]
    assert [job.start_ms for job in simulate(scenario(alone), policy(**fields)).jobs] == [0, 5, 10]


def test_expected_completion_times_order_the_queue() -> None:
    """Min-min: earliest ECT first. By the mean of arrival and ECT 600 + 900 comes after 2 + 950."""
    jobs = [
        timed("holder", 0, 1000, gpus=4),
        timed("x", 1, 10, gpus=4, expected_completion_ms=900),
        timed("y", 2, 10, gpus=4, expected_completion_ms=950),
        timed("z", 3, 10, gpus=4, expected_completion_ms=897),
    ]
    for order, expected in (("min_min", ["holder", "z", "x", "y"]), ("fcfs", ["holder", "x", "y", "z"])):
        done = simulate(scenario(jobs), policy(order=order)).jobs
        assert [job.job for job in sorted(done, key=lambda job: job.start_ms or 0)] == expected
    late = jobs[1].model_copy(update={"arrival_ms": 600})
    done = simulate(scenario([jobs[0], late, jobs[2]]), policy(order="arrival_ect")).jobs
    assert [job.job for job in sorted(done, key=lambda job: job.start_ms or 0)] == ["holder", "y", "x"]


def test_waiting_allowances_order_the_queue() -> None:
    """Allowances 900 - 10, 950 - 100 and 897 - 1: the one with the latest ECT can wait least."""
    jobs = [
        timed("holder", 0, 1000, gpus=4),
        timed("x", 1, 10, gpus=4, expected_completion_ms=900),
        timed("y", 2, 100, gpus=4, expected_completion_ms=950),
        timed("z", 3, 1, gpus=4, expected_completion_ms=897),
    ]
    done = simulate(scenario(jobs), policy(order="swaf")).jobs
    assert [job.job for job in sorted(done, key=lambda job: job.start_ms or 0)] == ["holder", "y", "x", "z"]


def test_jobs_overtake_one_whose_shape_finds_no_room_under_genie() -> None:
    """The paper says that a task waits when the cluster cannot meet its request, not whether those behind it do."""
    jobs = [
        timed("runs", 0, 9000, gpus=2),
        timed("large", 1, 1000, gpus=4, priority=2),
        timed("small", 2, 1000, expected_completion_ms=10**6),
    ]
    genie = named_policy("genie")
    starts = {one.job: one.start_ms for one in simulate(scenario(jobs), genie).jobs}
    assert starts == {"runs": 0, "small": 2, "large": 9000}
    assert genie.source is not None
    assert any("overtake" in told for told in genie.source.departures)


def test_an_order_is_documented_where_people_look() -> None:
    """Every one of them, by its name."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "simulation.md").read_text(encoding="utf-8")
    assert [order for order in get_args(JobOrder) if f"`{order}`" not in page] == []


def test_parts_that_do_not_go_together_are_refused() -> None:
    """At the door."""
    with pytest.raises(ValueError, match="needs both"):
        policy(order="clusters", clusters=2)
    with pytest.raises(ValueError, match="needs both"):
        policy(order="fcfs", batch=2)
    with pytest.raises(ValueError, match="no first job"):
        policy(order="drf", strict=True)


def test_a_policy_may_settle_on_an_option() -> None:
    """
    On two nodes of four: one GPU for 100 s, four on a node for 40, eight for 30.

    Costs (GENIE eq. 10) 1/8 + 0.4/2 = 0.325, 0.7, 1.4. CER = 1 / (latency x cost): 1/32.5, 1/28, 1/42. So four by CER,
    eight by rate; and where any will do, the most valuable, here one GPU.
    """
    shapes = tuple(
        option(f"x{workers * gpus}", workers=workers, gpus=gpus, run_time_ms=1000 * run, value=5 - workers * gpus // 2)
        for workers, gpus, run in ((1, 1, 100), (1, 4, 40), (2, 4, 30))
    )
    world = scenario([job("a", options=shapes)], nodes=2)
    ends = {
        choice: simulate(world, policy("best-fit", choice=choice)).jobs[0].end_ms for choice in ("any", "rate", "cer")
    }
    assert ends == {"any": 100_000, "rate": 30_000, "cer": 40_000}
