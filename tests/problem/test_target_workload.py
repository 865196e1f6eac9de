"""The target workload of ``fgd``: who is typical, and with what frequency, by hand."""

from typing import Any

import numpy as np
import pytest

from placeopt.build import instance, job
from placeopt.model import Fragmentation, Job, Policy, TargetWorker
from placeopt.problem.target import Target, target_workload, weigh

FGD = Policy(fragmentation=Fragmentation(form="fgd"))


def rows(target: Target) -> list[tuple[int, int, int, list[bool], int]]:
    """(GPUs, milli, CPU, types, frequency) of each typical worker."""
    assert len(target) == len(target.gpus)
    assert target.total == sum(target.parts.tolist())
    return list(
        zip(
            target.gpus.tolist(),
            target.milli.tolist(),
            target.cpu.tolist(),
            target.type_ok.tolist(),
            target.parts.tolist(),
            strict=True,
        )
    )


def own(*jobs: Job, models: tuple[str, ...] = ("A", "B")) -> list[Any]:
    return rows(target_workload(instance(1, jobs), FGD, models))


def test_none_unless_the_form_is_fgd() -> None:
    stated = Fragmentation(target=(TargetWorker(),))
    target = target_workload(instance(1, [job("a")]), Policy(fragmentation=stated), ("A",))
    assert (rows(target), target.total, target.type_ok.shape) == ([], 0, (0, 1))
    assert own() == []


def test_workers_of_the_first_option_by_frequency() -> None:
    """
    3 of two GPUs, 2 of a half with 7 cores, 2 of a whole; of equals the smaller first.

    A worker without GPUs asks for a share of 1, which is none; models are sorted and each counts once.
    """
    jobs = [
        job("whole", workers=2),
        job("half", workers=2, gpu_milli=500, cpu_millicores=7),
        job("two", workers=3, gpus=2, gpu_models=("B", "A", "B")),
        job("again", workers=1, gpus=2, gpu_models=("A", "B")),
        job("cpu", gpus=0, workers=2, cpu_millicores=3),
        job("b", workers=1, gpu_models=("B",)),
    ]
    assert own(*jobs, models=("A", "B", "C")) == [
        (2, 1000, 0, [True, True, False], 4),
        (0, 1, 3, [True] * 3, 2),
        (1, 500, 7, [True] * 3, 2),
        (1, 1000, 0, [True] * 3, 2),
        (1, 1000, 0, [False, True, False], 1),
    ]


@pytest.mark.parametrize(("rare", "kept"), [(5, [95]), (6, [95, 6])])
def test_until_95_percent_are_covered(rare: int, kept: list[int]) -> None:
    """95 of 100 are 95 %, of 101 less."""
    jobs = [job("often", workers=95), job("rare", workers=rare, gpus=2)]
    assert [row[4] for row in own(*jobs)] == [part // (95 if len(kept) == 1 else 1) for part in kept]


def test_frequencies_are_divided_by_what_they_have_in_common() -> None:
    """6, 4 and 4 are 3, 2 and 2."""
    jobs = [job("a", workers=6), job("b", workers=4, gpus=2), job("c", workers=4, gpus=3)]
    assert [row[4] for row in own(*jobs)] == [3, 2, 2]


@pytest.mark.parametrize(
    ("counts", "parts"),
    [
        ((501, 499), [501, 499]),  # 1000 together: as they are
        ((600, 401), [599, 401]),  # 1001: 599.4 and 400.6, the larger remainder gets the one that is missing
        ((667, 667, 666), [334, 333, 333]),  # 333.5, 333.5 and 333: of equal remainders the first
        ((1000, 500, 251), [571, 286, 143]),  # 571.1, 285.55, 143.35
        ((998, 997, 1), [500, 499, 1]),  # 500.0, 499.5, 0.5: two are left to give
    ],
)
def test_large_frequencies_are_scaled_to_a_thousand(counts: tuple[int, ...], parts: list[int]) -> None:
    """By largest remainder; a stated target is not cut at 95 %."""
    workers = tuple(TargetWorker(gpus=i + 1, count=count) for i, count in enumerate(counts))
    policy = Policy(fragmentation=Fragmentation(form="fgd", target=workers))
    assert [row[4] for row in rows(target_workload(instance(1), policy, ("A",)))] == parts


def test_a_stated_target_is_taken_as_it_is() -> None:
    """Counts of equal kinds add up; all of them stay, however rare; the instance's jobs do not count."""
    target = (
        TargetWorker(gpus=1, gpu_milli=500, gpu_models=("B", "A"), count=1),
        TargetWorker(gpus=2, cpu_millicores=9, count=97),
        TargetWorker(gpus=1, gpu_milli=500, gpu_models=("A", "B"), count=2),
    )
    policy = Policy(fragmentation=Fragmentation(form="fgd", target=target))
    assert rows(target_workload(instance(1, [job("a", gpus=4)]), policy, ("C", "A"))) == [
        (2, 1000, 9, [True, True], 97),
        (1, 500, 0, [False, True], 3),
    ]


def test_weigh() -> None:
    """
    Kinds from arrays: equal ones count as one; of equal frequency the smaller first; cut at 95 %; divided.

    10 + 30 of the first kind, 40 of another type, 20 of two GPUs, and 4 that are above 95 % of 104: 98.8.
    """
    target = weigh(
        gpus=np.array([1, 1, 2, 1, 3]),
        milli=np.array([500, 500, 1000, 500, 1000]),
        cpu=np.array([7, 7, 0, 7, 1]),
        type_ok=np.array([[True, False], [False, True], [True, True], [True, False], [True, True]]),
        counts=np.array([10, 40, 20, 30, 4]),
    )
    assert rows(target) == [
        (1, 500, 7, [False, True], 2),
        (1, 500, 7, [True, False], 2),
        (2, 1000, 0, [True, True], 1),
    ]
    assert len(weigh(*(np.zeros(0, dtype=np.int64) for _ in range(3)), np.zeros((0, 2), dtype=bool), np.zeros(0))) == 0


@pytest.mark.parametrize(("rare", "kept"), [(5, 1), (6, 2)])
def test_weigh_stops_at_95_percent(rare: int, kept: int) -> None:
    one = np.array([1, 2])
    target = weigh(one, one, one, np.ones((2, 1), dtype=bool), np.array([95, rare]))
    assert len(target) == kept
