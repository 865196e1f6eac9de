"""Jobs that never end come first, with the reason; means over survivors say so."""

import io
from dataclasses import asdict
from typing import Any

import pytest
from rich.console import Console

from helpers.scenarios import policy, scenario, timed
from placeopt.build import machine, node
from placeopt.model import Arrays, Arrival, Cluster, Gpu, Part, Scenario
from placeopt.report.text import simulation_facts, simulation_table
from placeopt.simulation import named_policy, simulate, summarise
from placeopt.simulation.replay import measures_of as measured_by_replay


def blocked() -> Any:
    """Return a scenario whose first job asks for more GPUs than any node has; two small ones come after."""
    jobs = [timed("huge", 0, 1000, gpus=5), timed("a", 0, 10_000), timed("b", 1000, 10_000)]
    return scenario(jobs)


def text_of(*policies: Any) -> str:
    """Return the table of simulations of the blocked scenario, 100 columns wide."""
    out = io.StringIO()
    Console(file=out, width=100).print(
        *simulation_table([summarise(simulate(blocked(), one)) for one in policies]), sep="\n"
    )
    return out.getvalue()


def test_a_blocked_queue_names_the_job_that_blocks_it() -> None:
    """All wait behind a job that nothing can place."""
    found = summarise(simulate(blocked(), named_policy("fcfs")))
    assert (found.jobs, found.ended, found.stranded) == (3, 0, 3)
    huge, a, b = found.never_ends
    assert huge.job == "huge"
    assert huge.why == "finds no place on the idle cluster: GPU count (5 GPUs)"
    assert (a.job, a.why) == ("a", "waits behind huge: under this policy no job overtakes")
    assert b.job == "b"
    overtaken = summarise(simulate(blocked(), named_policy("best-fit")))
    assert [one.job for one in overtaken.never_ends] == ["huge"]


def test_means_over_survivors_are_marked() -> None:
    """Wait 0.0 s stood there as if it were the best of all; now ended / never ends stand first."""
    text = text_of(named_policy("fcfs"), named_policy("best-fit"))
    head, fcfs, best_fit = (line.split() for line in text.splitlines()[1:4])
    assert head[:4] == ["policy", "ended", "never", "end"]
    assert fcfs[:3] == ["fcfs", "0", "3"]
    assert best_fit[:3] == ["best-fit", "2", "1"]
    assert "0 s*" in " ".join(best_fit)
    assert best_fit.count("0*") == 1  # slowed
    words = " ".join(text.split())
    assert "* of the jobs that ended alone: does not compare with policies under which all end" in words
    assert "huge: finds no place on the idle cluster: GPU count (5 GPUs)" in words


def test_where_all_end_nothing_is_marked() -> None:
    """And no star means nothing."""
    out = io.StringIO()
    done = summarise(simulate(scenario([timed("a", 0, 1000)]), policy()))
    Console(file=out, width=100).print(*simulation_table([done]), sep="\n")
    assert "*" not in out.getvalue()
    assert out.getvalue().splitlines()[2].split()[:3] == ["fcfs", "1", "0"]


def test_json_has_the_reasons() -> None:
    """As plain data."""
    [facts] = simulation_facts([summarise(simulate(blocked(), named_policy("best-fit")))])
    assert facts["stranded"] == 1
    assert facts["never_ends"] == ({"job": "huge", "why": "finds no place on the idle cluster: GPU count (5 GPUs)"},)


def test_shares_of_all_jobs_count_those_that_never_end() -> None:
    """A job that never ends is not in time, and one that never starts did not start at once."""
    jobs = [timed("huge", 0, 1000, gpus=5, deadline_ms=9000), timed("a", 0, 1000, deadline_ms=9000)]
    found = summarise(simulate(scenario(jobs), named_policy("best-fit")))
    assert (found.in_time, found.started_at_once) == (0.5, 0.5)


def test_goals_about_slowed_jobs_are_not_met_by_survivors() -> None:
    """``slowed<=0`` of a replay in which jobs never end is not told."""
    found = measured_by_replay(simulate(blocked(), named_policy("best-fit")))
    assert (found["slowed"], found["delayed"], found["mean_wait"], found["makespan"]) == (None, None, None, None)


@pytest.mark.parametrize(
    ("fields", "scheduling", "words"),
    [
        ({"gpu_models": ("H100",)}, policy(), "GPU model (H100)"),
        (
            {"utility_min_thousandths": 600, "utility_thousandths": 500},
            policy(),
            "utility of at least 600/1000",
        ),
        ({"gpus": 4}, policy(order="capacity", arrays=Arrays(by="user")), "quota of queue"),
    ],
)
def test_reasons(fields: dict[str, Any], scheduling: Any, words: str) -> None:
    """By the policy of the round, and by what the job asks for."""
    jobs = [timed("odd", 0, 1000, **{"user": "u", **fields}), timed("even", 0, 1000, user="v")]
    found = summarise(simulate(scenario(jobs), scheduling))
    assert [one.job for one in found.never_ends] == ["odd"]
    assert words in found.never_ends[0].why


def test_many_that_never_end_are_judged_once_a_kind() -> None:
    """Ten are named, all are counted."""
    jobs = [timed(f"huge-{i}", i, 1000, gpus=5) for i in range(500)]
    found = summarise(simulate(scenario(jobs), named_policy("best-fit")))
    assert (found.stranded, len(found.never_ends)) == (500, 10)
    assert asdict(found)["never_ends"][0]["job"] == "huge-0"


def test_a_minimal_utility_that_no_place_has() -> None:
    """The GPUs that are close together stand in a node with too little CPU; across sockets the utility is 0.2535."""
    parts = (Part(id="s0", level="socket"), Part(id="s1", level="socket"))
    matrix = ((0, 20), (20, 0)), ((0, 1), (1, 0))
    gpus = [[Gpu(model="P100", memory_mib=1, part=part) for part in on] for on in (("s0", "s1"), ("s0", "s0"))]
    far = machine("far", gpus=gpus[0], parts=parts, gpu_distance_matrix=matrix[0])
    close = machine("close", gpus=gpus[1], parts=parts, gpu_distance_matrix=matrix[1], cpu_millicores=0)
    odd = timed("odd", 0, 1000, gpus=2, spread=300, cpu_millicores=1000, utility_min_thousandths=500)
    world = Scenario(
        cluster=Cluster(machines=(far, close), nodes=(node("n0", "far"), node("n1", "close"))),
        arrivals=(Arrival(job=odd),),
    )
    [told] = summarise(simulate(world, named_policy("topo-aware-p"))).never_ends
    assert told.why == "its utility is 253/1000 at best on the idle cluster, it asks for 500/1000"
