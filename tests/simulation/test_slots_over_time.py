"""Shares of GPUs with profiles in simulations: in slots of their own at all times, and no job waits that has room."""

import pytest

from helpers.scenarios import policy, timed
from placeopt.build import machine, nodes, option
from placeopt.build import scenario as make_scenario
from placeopt.model import Gpu, Job, Profile
from placeopt.scheduling import Scheduling
from placeopt.simulation import Arrival, History, Scenario, simulate
from placeopt.topology import mig_profiles
from strategies.choice import Choice, seeded

ON_DEMAND = (*mig_profiles("A30-24GB"), Profile(id=None, width=4, starts=(0,)))
"""Also for jobs that name no profile, as a whole."""
A30 = {one.id: one for one in ON_DEMAND}
A100 = {one.id: one for one in mig_profiles("A100-80GB")}
GEOMETRY = {("n0", "0"): A30, ("n0", "1"): A100, ("n1", "0"): A30, ("n1", "1"): A100}
BOX = machine(gpus=[Gpu(model="GPU", memory_mib=81_920, profiles=of) for of in (ON_DEMAND, mig_profiles("A100-80GB"))])
PLAIN, WHOLE = policy("best-fit"), policy("auto", rounds="whole")
PRIORITY = policy("best-fit", order="priority", preempts="priority")
LOAD, PODS = policy("best-fit", elastic="load"), policy("fcfs", elastic="pods")


def share(name: str, arrival_ms: int, run_ms: int, profile: str | None, **fields: object) -> Job:
    """Return a job with one share of a GPU; None: the whole."""
    return timed(name, arrival_ms, run_ms, gpu_milli=125 if profile else 1000, gpu_profile=profile, **fields)


def drawn(choice: Choice, *, elastic: bool) -> Scenario:
    """Return jobs with shares of two nodes' GPUs; ``elastic``: some with one to three workers."""
    jobs: list[Job | Arrival] = []
    for i in range(14):
        profile = choice.pick([*A30, *A100])
        at, run = choice.number(0, 60), choice.number(10, 80)
        if elastic and choice.chance(0.5):
            many = option(
                workers=3,
                workers_min=1,
                value=3,
                run_time_ms=run,
                gpu_milli=125 if profile else 1000,
                gpu_profile=profile,
            )
            jobs.append(Arrival(job=timed(f"j{i}", at, 1, options=(many,)), workers_asked=1))
        else:
            jobs.append(share(f"j{i}", at, run, profile, priority=choice.number(0, 2)))
    return make_scenario(nodes(2), jobs, machines=[BOX])


def profile_of(history: History) -> dict[str, str | None]:
    """Return the profile of each job."""
    jobs = (arrival.job for arrival in history.scenario.arrivals)
    return {one.id: one.options[0].demand.gpu_profile for one in jobs}


def taken_at(history: History, now_ms: int) -> dict[tuple[str, str], set[int]]:
    """Return the slots of each GPU that shares take; every share begins where its profile may, in slots of its own."""
    profiles = profile_of(history)
    taken: dict[tuple[str, str], set[int]] = {gpu: set() for gpu in GEOMETRY}
    for job in history.jobs:
        for span in job.spans:
            now = span.end_ms is not None and span.start_ms <= now_ms < span.end_ms
            for a in span.placement.assignments if now else ():
                assert a.starts.keys() == a.gpus.keys()
                for gpu, start in a.starts.items():
                    profile = GEOMETRY[a.node, gpu][profiles[job.job]]
                    mine = set(range(start, start + profile.width))
                    assert start in profile.starts
                    assert not mine & taken[a.node, gpu]
                    taken[a.node, gpu] |= mine
    return taken


def has_room(profile: str | None, taken: dict[tuple[str, str], set[int]]) -> bool:
    """Return whether one more share of a profile has free slots on some GPU."""
    for gpu, geometry in GEOMETRY.items():
        of = geometry.get(profile)
        if of and any(not taken[gpu] & set(range(start, start + of.width)) for start in of.starts):
            return True
    return False


@pytest.mark.parametrize(
    "scheduling", [PLAIN, WHOLE, PRIORITY, LOAD, PODS], ids=["each", "whole", "stops", "load", "pods"]
)
@pytest.mark.parametrize("seed", range(6))
def test_every_moment(seed: int, scheduling: Scheduling) -> None:
    """All jobs end; no single share waits that has room."""
    elastic = scheduling in (LOAD, PODS)
    world = drawn(seeded(f"slots-{seed}"), elastic=elastic)
    history = simulate(world, scheduling)
    assert history.stranded == ()
    profiles = profile_of(history)
    for now in range(max(job.end_ms or 0 for job in history.jobs)):
        taken = taken_at(history, now)
        for job in history.jobs if not elastic else ():
            waits = job.arrival_ms <= now and not any(s.start_ms <= now < (s.end_ms or 0) for s in job.spans)
            if waits and now < (job.end_ms or 0):
                assert not has_room(profiles[job.job], taken)


def test_a_share_is_stopped_for_its_slot() -> None:
    """Of two small shares at either half one goes for a wide one, which lacks slots alone, not part of a GPU."""
    world = make_scenario(
        nodes(1),
        [
            share("left", 0, 90, "3g.40gb"),
            share("right", 1, 90, "1g.10gb"),
            share("wide", 5, 10, "4g.40gb", priority=1),
        ],
        machines=[machine(gpus=[BOX.gpus[1]])],
    )
    ends = {job.job: (job.end_ms, job.stops) for job in simulate(world, PRIORITY).jobs}
    assert ends["wide"] == (15, 0)
    assert sum(stops for _, stops in ends.values()) == 1


def test_an_elastic_job_grows_into_free_slots() -> None:
    """Of three workers with a half each, two find one on the node's GPUs; the wide share leaves the third no slots."""
    many = option(workers=3, workers_min=1, value=3, run_time_ms=100, gpu_milli=125, gpu_profile="4g.40gb")
    grows = Arrival(job=timed("grows", 0, 1, options=(many,)), workers_asked=1)
    box = machine(gpus=[BOX.gpus[1]] * 3)
    world = make_scenario(nodes(1), [share("wide", 0, 500, "7g.80gb"), grows], machines=[box])
    (assignment,) = simulate(world, LOAD).jobs[1].spans[-1].placement.assignments
    assert set(assignment.starts.values()) == {0}
    assert len(assignment.starts) == 2
