"""The queue gives jobs out in its order, shape by shape."""

import pytest

from helpers.scenarios import policy, scenario, timed
from placeopt.model.scheduling import JobOrder
from placeopt.simulation import JobQueue, QueueContext
from placeopt.simulation.scheduling.queue_orders import queue_order

JOBS = [
    timed("late", 30, 10, priority=5),
    timed("first", 10, 500),
    timed("twin", 10, 300),
    timed("wide", 20, 100, gpus=2),
]


def empty_queue(order: JobOrder) -> JobQueue:
    """Return the queue that a policy makes."""
    rules = policy(order=order)
    return queue_order(rules).make_queue(QueueContext(scenario([]), rules, None, lambda _: 0))


def queue_of(order: JobOrder) -> JobQueue:
    """Return the queue with all jobs; their shape is the number of GPUs."""
    waiting = empty_queue(order)
    for one in JOBS:
        waiting.add(one, one.options[0].demand.gpus)
    return waiting


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("fcfs", ["first", "twin", "wide", "late"]),
        ("priority", ["late", "first", "twin", "wide"]),
        ("srtf", ["late", "wide", "twin", "first"]),
    ],
)
def test_orders(order: JobOrder, expected: list[str]) -> None:
    """All are taken, one after the other; ties by the order of coming."""
    waiting, taken = queue_of(order), []
    for name, shape in waiting.in_order(set(), 0):
        taken.append(name)
        waiting.take(name, shape)
    assert taken == expected
    assert waiting.num_jobs == 0


def test_a_shape_that_does_not_fit_is_passed_over() -> None:
    """Once it was refused; one that is skipped from the start is not offered at all."""
    assert [name for name, _ in queue_of("fcfs").in_order(set(), 0)] == ["first", "wide"]
    assert [name for name, _ in queue_of("fcfs").in_order({1}, 0)] == ["wide"]


def test_any_job_can_be_removed() -> None:
    """A log tells who started; that need not be the first of its shape."""
    waiting = queue_of("fcfs")
    waiting.take("twin", 1)
    waiting.take("wide", 2)
    assert waiting.num_jobs == 2
    assert [name for name, _ in waiting.in_order(set(), 0)] == ["first"]


def test_gpu_time_counts_every_gpu() -> None:
    """2 GPUs x 200 ms against 1 x 300: the shorter job is the larger one."""
    orders: dict[JobOrder, list[str]] = {"srtf": ["wide", "long"], "srsf": ["long", "wide"]}
    for order, expected in orders.items():
        waiting = empty_queue(order)
        for one in (timed("wide", 0, 200, gpus=2), timed("long", 0, 300)):
            waiting.add(one, one.id)
        assert [name for name, _ in waiting.in_order(set(), 0)] == expected
