"""When jobs end: worked by hand."""

from itertools import pairwise

import pytest

from helpers.scenarios import policy, random_scenario, scenario, timed
from placeopt.build import running
from placeopt.model import Slowdown
from placeopt.simulation import simulate

HARM = (Slowdown(profile="a", beside="b", socket_thousandths=500, gpu_thousandths=1000),)


def ends(world, scheduling=None) -> dict[str, int | None]:
    """Return when each job ended."""
    return {job.job: job.end_ms for job in simulate(world, scheduling or policy()).jobs}


def test_alone_it_takes_what_it_takes() -> None:
    """The actual time, not the predicted one."""
    assert ends(scenario([timed("x", 7, 1000)], actual={"x": 2500})) == {"x": 2507}


def test_a_neighbour_in_the_socket_slows_while_it_is_there() -> None:
    """
    a (3000 ms of work) and b (1500 ms) share a socket from 0; a goes at 1 / 1.5 until b ends, having done 1000.

    Then 2000 are left: a ends at 3500. Nobody slows b.
    """
    world = scenario([timed("a", 0, 3000, profile="a"), timed("b", 0, 1500, profile="b")], slowdowns=HARM)
    assert ends(world) == {"a": 3500, "b": 1500}


def test_by_the_artifact_s_rule_one_moment_beside_it_costs_the_whole() -> None:
    """The longest it ever looked like: 3000 x 1.5."""
    world = scenario(
        [timed("a", 0, 3000, profile="a"), timed("b", 0, 1500, profile="b")],
        slowdowns=HARM,
        physics={"rule": "sc17"},
    )
    assert ends(world) == {"a": 4500, "b": 1500}


def test_a_job_across_sockets_is_slowed_by_its_spread() -> None:
    """GPUs 0 and 2: 19 farther apart than need be, which is all of a machine's span: 1000 x 1.3."""
    jobs = [timed("pair", 0, 1000, gpus=2, spread=300), timed("left", 0, 9000), timed("right", 0, 9000)]
    held = [running(jobs[1], [("n0", (1,))]), running(jobs[2], [("n0", (3,))])]
    assert ends(scenario(jobs, running=tuple(held)))["pair"] == 1300


@pytest.mark.parametrize(("model", "expected"), [("pairwise", 1000 * 2), ("worst", 1500)])
def test_several_neighbours(model: str, expected: int) -> None:
    """Two of 500 thousandths, in the socket and on the node: 1 + 0.5 + 0.5, or the worst alone."""
    harm = (Slowdown(profile="a", beside="b", socket_thousandths=500, node_thousandths=500),)
    jobs = [timed("a", 0, 1000, profile="a"), timed("b", 0, 9000, profile="b"), timed("c", 0, 9000, profile="b")]
    assert ends(scenario(jobs, slowdowns=harm, physics={"interference": model}))["a"] == expected


def test_sharing_a_gpu_by_the_curve() -> None:
    """Two jobs of 50 % on one GPU: full use, f(1) = 1.164 by the RTX 2080's quadratic, rounded to thousandths."""
    half = {"gpu_milli": 500, "gpu_utilisation_percent": 50}
    jobs = [timed("a", 0, 1000, **half), timed("b", 0, 1000, **half)]
    world = scenario(jobs, physics={"interference": "curve"})
    assert ends(world, policy("best-fit")) == {"a": 1164, "b": 1164}


def test_steps_round_up() -> None:
    """
    The artifact's clock: arrival at 513 is taken in at 1100; 69 165 ms later, by the step of 1100 + 69 300, it is over.

    Its GPU is free for the round of the step after.
    """
    jobs = [timed("0", 513, 69_165, gpus=4), timed("1", 600, 1000, gpus=4)]
    world = scenario(jobs, physics={"step_ms": 1100})
    assert ends(world) == {"0": 70_400, "1": 71_500 + 1100}


@pytest.mark.parametrize("seed", range(3))
def test_no_job_ends_early_or_late(seed: int) -> None:
    """
    The progress of every job is put together again from the outcome, in fractions.

    Slowdowns only where GPUs are shared, so that who is beside whom can be read off the placements.
    """
    world = random_scenario(seed, jobs=80, nodes=2)
    only_gpu = tuple(s.model_copy(update={"socket_thousandths": 0, "node_thousandths": 0}) for s in world.slowdowns)
    bare = tuple(
        one.model_copy(update={"job": one.job.model_copy(update={"communication": type(one.job.communication)()})})
        for one in world.arrivals
    )
    world = world.model_copy(update={"slowdowns": only_gpu, "arrivals": bare})
    jobs = simulate(world, policy("best-fit")).jobs
    excess = {(s.profile, s.beside): s.gpu_thousandths for s in only_gpu}
    profile = {one.job.id: one.job.profile for one in world.arrivals}
    gpus = {j.job: {(a.node, gpu) for a in j.placement.assignments for gpu in a.gpus} for j in jobs}
    moments = sorted({t for j in jobs for t in (j.start_ms, j.end_ms)})
    shared = 0
    for j in jobs:
        done = last = 0
        for begin, end in pairwise(moments):
            if j.start_ms <= begin < j.end_ms:
                beside = [
                    k for k in jobs if k is not j and k.start_ms <= begin < k.end_ms and gpus[j.job] & gpus[k.job]
                ]
                slow = 1000 + sum(excess.get((profile[j.job], profile[k.job]), 0) for k in beside)
                shared += slow > 1000
                last = 1000 / slow
                done += (end - begin) * last
        assert j.alone_ms - 1e-6 <= done
        assert done - last < j.alone_ms + 0.01  # a millisecond before it was not done, but for rounding
    assert shared
