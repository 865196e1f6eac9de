"""Brute force, each formulation by each solver, and each relaxation: one optimum, and no bound on its wrong side."""

from pathlib import Path

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from helpers.differential import ROUTES, examine
from placeopt import Instance, build, read_instance
from placeopt.model import Changes, Fragmentation, Gpu, Policy, Split
from strategies import Choice, choices, odd_rounds, rounds

ROUNDS = Path(__file__).resolve().parents[1] / "data" / "rounds"
QUICK = tuple(route for route in ROUTES if route.solver != "pulp-cbc")
CBC_EVERY = 5
"""A call of a program costs ten of a library."""
seeds = st.integers(0, 2**32 - 1)


def mismatches(round_: Instance, seed: int) -> list[str]:
    """Take a round by all routes; moves and allocations for comparisons follow from the seed."""
    routes = QUICK if seed % CBC_EVERY else ROUTES
    return examine(round_, np.random.default_rng(seed), routes).mismatches


@given(round_=st.one_of(rounds(), rounds(resources=True)), seed=seeds)
def test_of_a_round(round_: Instance, seed: int) -> None:
    """Each route is written once and trusted by the engine; disagreement is the only sign that one of them errs."""
    assert mismatches(round_, seed) == []


@given(round_=rounds(), choice=choices, seed=seeds)
def test_of_jobs_inside_a_part_of_a_machine(round_: Instance, choice: Choice, seed: int) -> None:
    """All GPUs of a job in one socket, or below one switch."""
    jobs = []
    for job in round_.jobs:
        inside = Split(level=choice.pick(("socket", "switch")), domains=1)
        with_part = tuple(o.model_copy(update={"splits": (*o.splits, inside)}) for o in job.options)
        jobs.append(job.model_copy(update={"options": with_part}) if choice.chance(0.5) else job)
    assert mismatches(round_.model_copy(update={"jobs": tuple(jobs), "running": ()}), seed) == []


WIDE = build.job("wide", workers=3, workers_min=1, gpus=2, value=10, value_per_worker=2)
WORTH = build.job("worth", gpus=2, value=9)
IN_PLACE = build.running(WIDE, [("n0", [gpu, gpu + 1]) for gpu in (0, 2, 4)], shrinkable=True, movable=True)


def half(**changes: int) -> Instance:
    """Return a round in which a gang of two GPUs a worker gives one to a job that is worth more."""
    policy = Policy(changes=Changes(move_price=1, shrink_price_per_worker=1, **changes))
    return build.instance(1, [WIDE, WORTH], machines=[build.machine(gpus=6)], running=[IN_PLACE], policy=policy)


@example(round_=half(shrinks_max=1), seed=0)  # what is left holds both GPUs of its own; one worker's price is due
@example(round_=half(moves_max=1), seed=0)  # with fewer workers in place it starts again, which is a move
@given(round_=rounds(changes=True, resources=True), seed=seeds)
def test_of_changes_to_running_jobs(round_: Instance, seed: int) -> None:
    """Keep, shrink, move, preempt: what each may be is enumerated from the records, and so are prices and limits."""
    assert mismatches(round_, seed) == []


GANG = build.job("gang", workers=2, workers_min=1, splits=(Split(level="node", domains=1),))
ON_A_LOST_NODE = build.running(GANG, [("lost", [0]), ("lost", [1])], shrinkable=True)
SHRINKS = build.instance(1, [GANG], running=[ON_A_LOST_NODE], policy=Policy(changes=Changes(shrinks_max=1)))
ALIKE = build.instance(
    1,
    [build.job("any", gpus=0), build.job("model", gpus=0, gpu_models=["B"])],
    machines=[build.machine(gpus=[Gpu(model="B")])],
    policy=Policy(fragmentation=Fragmentation(form="fgd")),
)
TOO_MUCH, MODEST = build.job("too-much", gpu_memory_mib=3000), build.job("modest")
TWO_A_GPU = Policy(share_mode="overcommit", jobs_per_gpu_max=2)
BEYOND = build.instance(
    1,
    [TOO_MUCH, MODEST],
    machines=[build.machine(gpus=[Gpu(model="small", memory_mib=2000)])],
    running=[build.running(TOO_MUCH, [("n0", [0])])],
    policy=TWO_A_GPU,
)


@example(round_=ALIKE, seed=0)  # two workers of the target workload that may use the same GPUs are one
@example(round_=BEYOND, seed=0)  # a GPU that holds more than its memory was closed to who asks for none
@example(round_=SHRINKS, seed=0)  # the referee counted no node for its split
@example(
    round_=read_instance(ROUNDS / "gang-moves-below-exceeded-uplink.json"), seed=1
)  # moved as a whole it takes its load off the uplink again; the row had dropped what is below 0
@given(round_=odd_rounds(), seed=seeds)
def test_of_rounds_in_which_something_stands(round_: Instance, seed: int) -> None:
    """What runs beyond a limit, or on what is gone, stays and is in the way of nothing that does not add to it."""
    assert mismatches(round_, seed) == []
