"""Least slowdown on shared GPUs: by what is stated of two profiles, by utilisation, and where nothing is known."""

from typing import Any

import pytest

from placeopt import Engine
from placeopt.build import instance, job, machine, running
from placeopt.model import Policy, Slowdown, Weights

SHARING = Policy(
    share_mode="overcommit",
    jobs_per_gpu_max=4,
    weights=Weights(communication=0, interference=0, fragmentation=0),
)
NEW, OLD = {"profile": "new"}, {"profile": "old"}


def busy(percent: int, **fields: Any) -> dict[str, Any]:
    return {"gpu_utilisation_percent": percent, **fields}


def stated(mine: int, theirs: int) -> tuple[Slowdown, ...]:
    """What a newcomer of profile ``new`` and one of ``old`` lose beside each other on a GPU."""
    return (
        Slowdown(profile="new", beside="old", gpu_thousandths=mine),
        Slowdown(profile="old", beside="new", gpu_thousandths=theirs),
    )


@pytest.mark.parametrize(
    ("waiting", "held", "slowdowns", "gpus", "expected"),
    [
        # idle GPUs come first, though hardly anything would be lost by sharing
        (busy(10), busy(10), (), 2, [1]),
        # at least 0.5 is shared: 1/1.2 - (1 - 1/1.2) = 0.67; 1/1.3 - (1 - 1/1.34) = 0.515; 1/1.9 - 0.02 = 0.507
        (NEW, OLD, stated(200, 200), 1, [0]),
        (NEW, OLD, stated(300, 340), 1, [0]),
        (NEW, OLD, stated(900, 20), 1, [0]),
        # less is not: 1/1.4 - (1 - 1/1.4) = 0.43; 1/2 - 0.01 = 0.49
        (NEW, OLD, stated(400, 400), 1, None),
        (NEW, OLD, stated(1000, 10), 1, None),
        # by utilisation: 30 + 40 %: each takes 11 % longer; 90 + 90 %: 3.8 times as long
        (busy(30), busy(40), (), 1, [0]),
        (busy(90), busy(90), (), 1, None),
        # nothing known is divided in time: two at half speed get no more done than one
        ({}, {}, (), 1, None),
        (NEW, OLD, (), 1, None),
        # gangs ask every GPU: of two workers one would have to share
        (busy(90, workers=2), busy(90), (), 2, None),
        (busy(90, workers=2), busy(90), (), 3, [1, 2]),
    ],
)
def test_gpus_that_a_job_gets(
    engine: Engine, waiting: dict, held: dict, slowdowns: tuple[Slowdown, ...], gpus: int, expected: list[int] | None
) -> None:
    """On a machine whose first GPU another job holds; None: it waits."""
    there, comes = job("there", **held), job("comes", **waiting)
    fields = {"machines": [machine(gpus=gpus)], "running": [running(there, [("n0", [0])])], "slowdowns": slowdowns}
    plan = engine.solve(instance(1, [there, comes], policy=SHARING, **fields), method="least-slowdown")
    found = [one for one in plan.placements if one.job == "comes"]
    assert (sorted(int(gpu) for one in found[0].assignments for gpu in one.gpus) if found else None) == expected
