"""Least slowdown on shared GPUs: by what is stated of two profiles, by utilisation, and where nothing is known."""

import pytest

from placeopt import Engine
from placeopt.build import instance, job, machine, running
from placeopt.model import Policy, Slowdown, Weights

SHARING = Policy(
    share_mode="overcommit",
    jobs_per_gpu_max=4,
    weights=Weights(communication=0, interference=0, fragmentation=0),
)


def starts(
    engine: Engine, waiting: dict, held: dict, slowdowns: tuple[Slowdown, ...] = (), *, gpus: int = 1
) -> list[int] | None:
    """Return the GPUs that a job gets on a machine whose first GPU another holds; None if it waits."""
    there, comes = job("there", **held), job("comes", **waiting)
    round_ = instance(
        1,
        [there, comes],
        machines=[machine(gpus=gpus)],
        running=[running(there, [("n0", [0])])],
        slowdowns=slowdowns,
        policy=SHARING,
    )
    plan = engine.solve(round_, method="least-slowdown")
    found = [one for one in plan.placements if one.job == "comes"]
    return sorted(int(gpu) for one in found[0].assignments for gpu in one.gpus) if found else None


def stated(mine: int, theirs: int) -> tuple[Slowdown, ...]:
    """What a newcomer of profile ``new`` and one of ``old`` lose beside each other on a GPU."""
    return (
        Slowdown(profile="new", beside="old", gpu_thousandths=mine),
        Slowdown(profile="old", beside="new", gpu_thousandths=theirs),
    )


def test_idle_gpus_come_first(engine: Engine) -> None:
    """Though hardly anything would be lost by sharing."""
    lights = {"gpu_utilisation_percent": 10}
    assert starts(engine, lights, lights, gpus=2) == [1]


@pytest.mark.parametrize(("mine", "theirs"), [(200, 200), (300, 340), (900, 20)])
def test_stated_slowdowns(mine: int, theirs: int, engine: Engine) -> None:
    """1/1.2 - (1 - 1/1.2) = 0.67; 1/1.3 - (1 - 1/1.34) = 0.515; 1/1.9 - 0.02 = 0.507: at least 0.5 is shared."""
    assert starts(engine, {"profile": "new"}, {"profile": "old"}, stated(mine, theirs)) == [0]


@pytest.mark.parametrize(("mine", "theirs"), [(400, 400), (1000, 10)])
def test_stated_slowdowns_too_large(mine: int, theirs: int, engine: Engine) -> None:
    """1/1.4 - (1 - 1/1.4) = 0.43; 1/2 - 0.01 = 0.49."""
    assert starts(engine, {"profile": "new"}, {"profile": "old"}, stated(mine, theirs)) is None


def test_by_utilisation(engine: Engine) -> None:
    """30 + 40 %: each takes 11 % longer; 90 + 90 %: 3.8 times as long."""
    assert starts(engine, {"gpu_utilisation_percent": 30}, {"gpu_utilisation_percent": 40}) == [0]
    assert starts(engine, {"gpu_utilisation_percent": 90}, {"gpu_utilisation_percent": 90}) is None


def test_nothing_known_is_divided_in_time(engine: Engine) -> None:
    """Two at half speed get no more done than one."""
    assert starts(engine, {}, {}) is None
    assert starts(engine, {"profile": "new"}, {"profile": "old"}) is None


def test_gangs_ask_every_gpu(engine: Engine) -> None:
    """Of two workers one would have to share."""
    heavy = {"gpu_utilisation_percent": 90}
    assert starts(engine, {**heavy, "workers": 2}, heavy, gpus=2) is None
    assert starts(engine, {**heavy, "workers": 2}, heavy, gpus=3) == [1, 2]
