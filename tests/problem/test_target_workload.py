"""The target workload of ``fgd``: who is typical, and with what frequency, by hand."""

from typing import Any

import pytest

from placeopt.build import instance, job, machine
from placeopt.model import Fragmentation, Gpu, Job, Policy, TargetWorker
from placeopt.problem import compile_problem


def rows(*jobs: Job, models: str = "AB", form: Any = "fgd", target: tuple[TargetWorker, ...] = ()) -> Any:
    """(GPUs, milli, CPU, types, frequency) of each typical worker, on a node of these models."""
    policy = Policy(fragmentation=Fragmentation(form=form, target=target))
    kinds = [machine(gpus=[Gpu(model=model, memory_mib=1) for model in models])]
    found = compile_problem(instance(1, jobs, machines=kinds, policy=policy)).target
    assert found.total == sum(found.parts.tolist())
    columns = (found.gpus, found.milli, found.cpu, found.type_ok, found.parts)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_none_unless_the_form_is_fgd() -> None:
    assert rows(job("a"), form="partial", target=(TargetWorker(),)) == rows() == []


def test_workers_of_the_first_option_by_frequency() -> None:
    """
    3 of two GPUs, 2 of a half with 7 cores, 2 of a whole; of equals the smaller first.

    A worker without GPUs asks for a share of 1, which is none; each model counts once, in any order.
    """
    jobs = [
        job("whole", workers=2),
        job("half", workers=2, gpu_milli=500, cpu_millicores=7),
        job("two", workers=3, gpus=2, gpu_models=("B", "A", "B")),
        job("again", workers=1, gpus=2, gpu_models=("A", "B")),
        job("cpu", gpus=0, workers=2, cpu_millicores=3),
        job("b", workers=1, gpu_models=("B",)),
    ]
    assert rows(*jobs, models="ABC") == [
        (2, 1000, 0, [True, True, False], 4),
        (0, 1, 3, [True] * 3, 2),
        (1, 500, 7, [True] * 3, 2),
        (1, 1000, 0, [True] * 3, 2),
        (1, 1000, 0, [False, True, False], 1),
    ]


@pytest.mark.parametrize(("rare", "parts"), [(5, [1]), (6, [95, 6])])
def test_until_95_percent_are_covered(rare: int, parts: list[int]) -> None:
    """95 of 100 are 95 %, of 101 less."""
    found = rows(job("often", workers=95), job("rare", workers=rare, gpus=2))
    assert [row[4] for row in found] == parts


def test_frequencies_are_divided_by_what_they_have_in_common() -> None:
    """6, 4 and 4 are 3, 2 and 2."""
    jobs = [job("a", workers=6), job("b", workers=4, gpus=2), job("c", workers=4, gpus=3)]
    assert [row[4] for row in rows(*jobs)] == [3, 2, 2]


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
    assert [row[4] for row in rows(target=workers)] == parts


def test_a_stated_target_is_taken_as_it_is() -> None:
    """Counts of equal kinds add up; all of them stay, however rare; the instance's jobs do not count."""
    target = (
        TargetWorker(gpus=1, gpu_milli=500, gpu_models=("B", "A"), count=1),
        TargetWorker(gpus=2, cpu_millicores=9, count=97),
        TargetWorker(gpus=1, gpu_milli=500, gpu_models=("A", "B"), count=2),
    )
    assert rows(job("a", gpus=4), models="CA", target=target) == [
        (2, 1000, 9, [True, True], 97),
        (1, 500, 0, [False, True], 3),
    ]
