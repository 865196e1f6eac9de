"""When jobs end: worked by hand."""

from itertools import pairwise
from typing import Any

import pytest

from helpers.scenarios import PLAIN, policy, random_scenario, scenario, timed
from placeopt.build import running
from placeopt.model import Job, Slowdown
from placeopt.scheduling import Scheduling
from placeopt.simulation import simulate

SOCKET = (Slowdown(profile="a", beside="b", socket_thousandths=500, gpu_thousandths=1000),)
BOTH = (Slowdown(profile="a", beside="b", socket_thousandths=500, node_thousandths=500),)
PAIR = [timed("a", 0, 3000, profile="a"), timed("b", 0, 1500, profile="b")]
THREE = [timed("a", 0, 1000, profile="a"), timed("b", 0, 9000, profile="b"), timed("c", 0, 9000, profile="b")]
APART = [timed("pair", 0, 1000, gpus=2, spread=300), timed("left", 0, 9000), timed("right", 0, 9000)]
HELD = (running(APART[1], [("n0", (1,))]), running(APART[2], [("n0", (3,))]))
STEPS = [timed("0", 513, 69_165, gpus=4), timed("1", 600, 1000, gpus=4)]
AT_ONCE = [timed("0", 0, 5, gpus=4), timed("1", 5, 10, gpus=4)]
HALVES = [timed(name, 0, 1000, gpu_milli=500, gpu_utilisation_percent=50) for name in "ab"]
EVERY_MINUTE = [timed(str(at), at, 1) for at in (1, 2, 60_000, 60_001)]
OVERCOMMIT = PLAIN.model_copy(update={"share_mode": "overcommit", "jobs_per_gpu_max": 2})


def sharing(*percents: int, run_ms: tuple[int, ...] = (1000, 1000)) -> list[Job]:
    """Return two jobs on all GPUs, of these utilisations."""
    used = zip(percents, run_ms, strict=True)
    return [timed(f"j{i}", 0, ms, gpus=4, gpu_utilisation_percent=percent) for i, (percent, ms) in enumerate(used)]


CASES: dict[str, tuple[list[Job], dict[str, Any], Scheduling, list[int]]] = {
    "the actual time, not the predicted one": ([timed("x", 7, 1000)], {"actual": {"x": 2500}}, policy(), [2507]),
    # a goes at 1 / 1.5 until b ends, having done 1000; 2000 are left; nobody slows b
    "a neighbour in the socket slows while it is there": (PAIR, {"slowdowns": SOCKET}, policy(), [3500, 1500]),
    # the longest it ever looked like: 3000 x 1.5
    "by the artifact's rule one moment beside it costs the whole": (
        PAIR,
        {"slowdowns": SOCKET, "physics": {"rule": "sc17"}},
        policy(),
        [4500, 1500],
    ),
    # GPUs 0 and 2: 19 farther apart than need be, which is all of a machine's span: 1000 x 1.3
    "across sockets": (APART, {"running": HELD}, policy(), [1300, 9000, 9000]),
    "the sum of two neighbours": (
        THREE,
        {"slowdowns": BOTH, "physics": {"interference": "pairwise"}},
        policy(),
        [2000],
    ),
    "the worst neighbour": (THREE, {"slowdowns": BOTH, "physics": {"interference": "worst"}}, policy(), [1500]),
    # full use: f(1) = 1.164 by the RTX 2080's quadratic, rounded to thousandths
    "by the curve": (HALVES, {"physics": {"interference": "curve"}}, policy("best-fit"), [1164, 1164]),
    # a GPU does no more than all of its work, also where no slowdown is stated: each gets half
    "both use all": (sharing(100, 100), {}, policy(policy=OVERCOMMIT), [2000, 2000]),
    "140 %": (sharing(60, 80), {}, policy(policy=OVERCOMMIT), [1400, 1400]),
    "150 %": (sharing(100, 50), {}, policy(policy=OVERCOMMIT), [1500, 1500]),
    "enough for both": (sharing(50, 50), {}, policy(policy=OVERCOMMIT), [1000, 1000]),
    # the other has done one of its three seconds by then
    "the rest of the GPU when the neighbour ends": (
        sharing(100, 100, run_ms=(1000, 3000)),
        {},
        policy(policy=OVERCOMMIT),
        [2000, 4000],
    ),
    # the artifact's clock: 513 is taken in at 1100; 69,165 ms later, by the step of 1100 + 69,300, it is over, and its
    # GPUs are free for the round of the step after
    "steps round up": (STEPS, {"physics": {"step_ms": 1100}}, policy(), [70_400, 71_500 + 1100]),
    "what ends frees its GPUs for the round of the same moment": (AT_ONCE, {}, policy(), [5, 15]),
    # at the next multiple, however many events ask for it
    "rounds at intervals": (EVERY_MINUTE, {}, policy(interval_ms=60_000), [60_001, 60_001, 60_001, 120_001]),
}


@pytest.mark.parametrize(("jobs", "fields", "rules", "expected"), CASES.values(), ids=CASES)
def test_when_jobs_end(jobs: list[Job], fields: dict[str, Any], rules: Scheduling, expected: list[int]) -> None:
    ends = [job.end_ms for job in simulate(scenario(jobs, **fields), rules).jobs]
    assert ends[: len(expected)] == expected


@pytest.mark.parametrize("seed", range(3))
def test_no_job_ends_early_or_late(seed: int) -> None:
    """
    The progress of every job is put together again from the outcome, in fractions.

    Slowdowns only where GPUs are shared, so that who is beside whom can be read off the placements.
    """
    world = random_scenario(seed, jobs=80, nodes=2, spread=False)
    only_gpu = tuple(s.model_copy(update={"socket_thousandths": 0, "node_thousandths": 0}) for s in world.slowdowns)
    jobs = simulate(world.model_copy(update={"slowdowns": only_gpu}), policy("best-fit")).jobs
    excess = {(s.profile, s.beside): s.gpu_thousandths for s in only_gpu}
    profile = {one.job.id: one.job.profile for one in world.arrivals}
    gpus = {j.job: {(a.node, gpu) for a in j.placement.assignments for gpu in a.gpus} for j in jobs}
    moments = sorted({t for j in jobs for t in (j.start_ms, j.end_ms)})
    shared = 0
    for j in jobs:
        done = last = 0
        for begin, end in pairwise(t for t in moments if j.start_ms <= t <= j.end_ms):
            there = [k for k in jobs if k is not j and k.start_ms <= begin < k.end_ms and gpus[j.job] & gpus[k.job]]
            slow = 1000 + sum(excess.get((profile[j.job], profile[k.job]), 0) for k in there)
            shared += slow > 1000
            last = 1000 / slow
            done += (end - begin) * last
        assert j.alone_ms - 1e-6 <= done
        assert done - last < j.alone_ms + 0.01  # a millisecond before it was not done, but for rounding
    assert shared
