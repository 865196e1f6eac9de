"""Stored scenarios: SC'17's against its authors' artifact, the day of Philly; and the catalogue of policies."""

from pathlib import Path

import pytest

from helpers.scenarios import random_scenario
from placeopt import BadInput, read_scenario
from placeopt.scheduling import named_policy, policy_names
from placeopt.simulation import Physics, Scenario, round_at, simulate, summarise
from placeopt.solving import METHODS

PAPERS = Path(__file__).resolve().parents[2] / "instances" / "papers"

ARTIFACT = {  # last end in s by policy; SC'17's artifact, repaired of its double booking
    ("sc17-workloads-5", "sc17-fcfs"): 440.0,
    ("sc17-workloads-5", "sc17-bf"): 440.0,
    ("sc17-workloads-5", "sc17-topo-aware"): 433.4,
    ("sc17-workloads-5", "sc17-topo-aware-p"): 396.0,
    ("sc17-workloads-100", "sc17-fcfs"): 1425.6,
    ("sc17-workloads-100", "sc17-bf"): 1458.6,
    ("sc17-workloads-100", "sc17-topo-aware"): 1338.7,
    ("sc17-workloads-100", "sc17-topo-aware-p"): 1320.0,
}


@pytest.mark.parametrize(("name", "policy"), ARTIFACT)
def test_totals_are_those_of_the_artifact(name: str, policy: str) -> None:
    """Within 2 %."""
    found = summarise(simulate(read_scenario(PAPERS / f"{name}.json"), named_policy(policy)))
    assert found.last_end_s == pytest.approx(ARTIFACT[name, policy], rel=0.02)
    assert found.ended == found.jobs


def test_placements_of_table_1_job_by_job() -> None:
    """The artifact's own times under FCFS and TOPO-AWARE-P, grid and all: (start, end) in s."""
    world = read_scenario(PAPERS / "sc17-workloads-5.json")
    fcfs = {job.job: (job.start_ms, job.end_ms) for job in simulate(world, named_policy("sc17-fcfs")).jobs}
    expected = [(1.1, 77.0), (16.5, 132.0), (25.3, 138.6), (78.1, 270.6), (139.7, 312.4), (271.7, 440.0)]
    assert len(fcfs) == len(expected)
    for job, (start, end) in enumerate(expected):
        begun, ended = fcfs[str(job)]
        assert begun / 1000 == pytest.approx(start, abs=1.2)
        assert ended / 1000 == pytest.approx(end, abs=1.2)


def test_the_published_order_of_policies_on_the_paper_s_job_list() -> None:
    """
    SC'17 5.2.2: TOPO-AWARE puts job 1 on the socket that job 0 is not on, and ends before FCFS.

    Published: 356.9, 454.2 and 456.2 s. Equation 5 is a mean over all sockets of the machine; over those of one half,
    job 1 joined job 0 and TOPO-AWARE ended with FCFS.
    """
    stored = read_scenario(PAPERS / "sc17-workloads-5.json")
    world = stored.model_copy(update={"physics": Physics(rule="rate", interference="worst")})
    played = {name: simulate(world, named_policy(name)) for name in ("topo-aware-p", "topo-aware", "fcfs")}
    ends = [summarise(history).last_end_s for history in played.values()]
    assert ends == pytest.approx([391.6, 453.0, 457.5], abs=0.1)
    held = [job.placement for job in played["topo-aware"].jobs[:2]]
    sockets = [{int(gpu) // 2 for one in at.assignments for gpu in one.gpus} for at in held if at is not None]
    assert len(sockets[0]) == len(sockets[1]) == 1
    assert sockets[0] != sockets[1]


def test_placeopt_s_own_policy_on_table_1() -> None:
    """The best schedule known that never idles: 327.8 s; nobody is slowed by more than 10 %."""
    found = summarise(simulate(read_scenario(PAPERS / "sc17-workloads-5.json"), named_policy("placeopt")))
    assert found.last_end_s <= 327.8
    assert found.slowed == 0


@pytest.mark.parametrize("name", policy_names())
def test_policies_name_their_paper(name: str) -> None:
    """Each is read strictly, is called as its file, names its paper, and its method exists."""
    policy = named_policy(name)
    assert policy.name == policy.policy.name == name
    assert policy.method in METHODS
    assert policy.about
    assert (policy.source is None) == (name == "rounds" or name.startswith("placeopt"))


@pytest.mark.parametrize("name", policy_names())
def test_every_policy_plays_any_scenario_to_its_end(name: str) -> None:
    """Gangs, shares of GPUs, CPU jobs, several users: nobody waits for ever, and GPU time adds up."""
    made = random_scenario(7, jobs=10)
    history = simulate(made, named_policy(name))
    found = summarise(history)
    assert (found.ended, found.stranded) == (10, 0)
    assert found.occupancy.idle >= 0
    if round_at(history, made.arrivals[0].job.arrival_ms).policy.share_mode != "overcommit":
        assert found.occupancy.granted + found.occupancy.idle == 1000 * found.occupancy.total


def test_no_two_policies_differ_in_name_only() -> None:
    """Two that decide alike are one."""
    assert len({named_policy(name).digest for name in policy_names()}) == len(policy_names())


def test_an_unknown_policy_is_reported_with_the_known_ones() -> None:
    """As everywhere."""
    with pytest.raises(BadInput, match=r"no policy 'fifo'; known: .*fcfs"):
        named_policy("fifo")


@pytest.fixture(scope="module")
def day() -> Scenario:
    """1,494 jobs of one day, on 44 nodes of 8 GPUs."""
    return read_scenario(PAPERS / "philly-40+1-x44-s0.json.gz")


def test_its_load_is_that_of_its_note(day: Scenario) -> None:
    """GPU time asked for over the GPU time between the first and the last arrival; a node fewer would be above 0.9."""
    asked = sum(
        arrival.job.options[0].workers * arrival.job.options[0].demand.gpus * (arrival.actual_run_time_ms or 0)
        for arrival in day.arrivals
    )
    came = [arrival.job.arrival_ms for arrival in day.arrivals]
    loads = [asked / (8 * nodes * (max(came) - min(came))) for nodes in (len(day.cluster.nodes), 43)]
    assert (len(day.arrivals), len(day.cluster.nodes), max(came) < 86_400_000) == (1494, 44, True)
    assert loads[0] <= 0.9 < loads[1]


def test_played_to_its_end(day: Scenario) -> None:
    """Nobody is lost or ends early, GPU time granted and idle is all there is, and users are its virtual clusters."""
    history = simulate(day, named_policy("best-fit"))
    found = summarise(history)
    assert (found.finished, found.ended, found.stranded) == (True, 1494, 0)
    assert all(job.placed_ms >= job.alone_ms for job in history.jobs)
    held = found.occupancy
    assert held.granted + held.idle == held.window_ms * held.gpus * 1000
    assert sum(one.ended for one in found.users) == 1494
    assert 1 / len(found.users) < found.fairness < 1


def test_of_its_first_jobs_ours_are_slowed_least(day: Scenario) -> None:
    """What the page of policies shows of whole days, on what is played in a second."""
    first = day.model_copy(update={"arrivals": day.arrivals[:250]})
    ours, best_fit = (summarise(simulate(first, named_policy(name))) for name in ("placeopt-queue", "best-fit"))
    assert ours.completion_s.mean < best_fit.completion_s.mean
    assert ours.slowed < best_fit.slowed
