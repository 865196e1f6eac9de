"""The queue gives jobs out in its order, shape by shape."""

import pytest

from placeopt.model.scheduling import JobOrder
from placeopt.simulation.scheduling.waiting_queue import SortedQueue
from scenarios import timed

JOBS = [
    timed("late", 30, 10, priority=5),
    timed("first", 10, 500),
    timed("twin", 10, 300),
    timed("wide", 20, 100, gpus=2),
]


def queue_of(order: JobOrder) -> SortedQueue:
    """All of them, told apart by their GPUs."""
    waiting = SortedQueue(order)
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
    assert waiting.number == 0


def test_a_shape_that_does_not_fit_is_passed_over() -> None:
    """Once it was refused; one that is skipped from the start is not offered at all."""
    assert [name for name, _ in queue_of("fcfs").in_order(set(), 0)] == ["first", "wide"]
    assert [name for name, _ in queue_of("fcfs").in_order({1}, 0)] == ["wide"]


def test_any_job_can_be_removed() -> None:
    """A log tells who started; that need not be the first of its shape."""
    waiting = queue_of("fcfs")
    waiting.take("twin", 1)
    waiting.take("wide", 2)
    assert waiting.number == 2
    assert [name for name, _ in waiting.in_order(set(), 0)] == ["first"]


def test_gpu_time_counts_every_gpu() -> None:
    """2 GPUs x 200 ms against 1 x 300: the shorter job is the larger one."""
    for order, expected in (("srtf", ["wide", "long"]), ("srsf", ["long", "wide"])):
        waiting = SortedQueue(order)
        for one in (timed("wide", 0, 200, gpus=2), timed("long", 0, 300)):
            waiting.add(one, one.id)
        assert [name for name, _ in waiting.in_order(set(), 0)] == expected
