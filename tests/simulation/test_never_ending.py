"""Jobs that never end come first, with the reason; means over survivors say so."""

import io
from dataclasses import asdict
from typing import Any

import pytest
from rich.console import Console

from helpers.scenarios import policy, scenario, timed
from placeopt import build
from placeopt.build import machine, node
from placeopt.model import Gpu, Part
from placeopt.report.terminal import view_page
from placeopt.report.views import simulation_view
from placeopt.scheduling import named_policy
from placeopt.simulation import Scenario, Summary, simulate, summarise
from placeopt.simulation.replay import measures_of
from placeopt.systems.soda import Arrays

BLOCKED = scenario([timed("huge", 0, 1000, gpus=5), timed("a", 0, 10_000), timed("b", 1000, 10_000)])
"""The first job asks for more GPUs than any node has; two small ones come after."""
NO_PLACE = "finds no place on the idle cluster: GPU count (5 GPUs)"


def played(name: str, world: Scenario = BLOCKED) -> Summary:
    """Return the figures of a scenario under a policy that comes with placeopt."""
    return summarise(simulate(world, named_policy(name)))


def text_of(*figures: Summary) -> str:
    """Return the view of simulations, 100 columns wide."""
    out = io.StringIO()
    Console(file=out, width=100).print(*view_page(simulation_view(figures)), sep="\n")
    return out.getvalue()


def test_a_blocked_queue_names_the_job_that_blocks_it() -> None:
    """All wait behind a job that nothing can place."""
    found = played("fcfs")
    assert (found.jobs, found.ended, found.stranded) == (3, 0, 3)
    behind = "waits behind huge: under this policy no job overtakes"
    assert [(one.job, one.why) for one in found.never_ends[:2]] == [("huge", NO_PLACE), ("a", behind)]
    assert found.never_ends[2].job == "b"
    assert [one.job for one in played("best-fit").never_ends] == ["huge"]


def test_means_over_survivors_are_marked() -> None:
    """Wait 0.0 s stood there as if it were the best of all; ended and never end stand first, and a note says it."""
    view = simulation_view([played("fcfs"), played("best-fit")])
    policies = view.table("Policies")
    assert [column.name for column in policies.columns[:3]] == ["policy", "ended", "never end"]
    assert [row[:3] for row in policies.rows] == [("fcfs", 0, 3), ("best-fit", 2, 1)]
    words = " ".join(text_of(played("fcfs"), played("best-fit")).split())
    warning = "Not all jobs ended under fcfs, best-fit: means over other jobs do not compare."
    assert warning in words
    assert view.verdict == "bad"
    assert f"huge: {NO_PLACE}" in words
    done = simulation_view([played("best-fit", scenario([timed("a", 0, 1000)]))])
    assert not any("do not compare" in note for note in done.notes)
    assert done.verdict == ""
    assert done.table("Policies").rows[0][:3] == ("best-fit", 1, 0)
    assert (done.figure("ended"), done.figure("never end")) == (1, 0)


def test_figures_count_those_that_never_end() -> None:
    """Json has the reasons; such a job is not in time, did not start at once, and leaves no mean and no slowed<=0."""
    view = simulation_view([played("best-fit")])
    assert view.figure("never end") == 1
    assert view.table("Jobs that never end").rows == (("best-fit", "huge", NO_PLACE),)
    jobs = [timed("huge", 0, 1000, gpus=5, deadline_ms=9000), timed("a", 0, 1000, deadline_ms=9000)]
    found = played("best-fit", scenario(jobs))
    assert (found.in_time, found.started_at_once) == (0.5, 0.5)
    measured = measures_of(simulate(BLOCKED, named_policy("best-fit")))
    assert [measured[name] for name in ("slowed", "delayed", "mean_wait", "makespan")] == [None] * 4


@pytest.mark.parametrize(
    ("fields", "scheduling", "words"),
    [
        ({"gpu_models": ("H100",)}, policy(), "GPU model (H100)"),
        ({"utility_min_thousandths": 600, "utility_thousandths": 500}, policy(), "utility of at least 600/1000"),
        ({"gpus": 4}, policy(order="capacity", divides=Arrays(rule="arrays", by="user")), "quota of queue"),
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
    found = played("best-fit", scenario(jobs))
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
    world = build.scenario([node("n0", "far"), node("n1", "close")], [odd], machines=[far, close])
    [told] = played("topo-aware-p", world).never_ends
    assert played("placeopt", world).never_ends == (), "it does not judge utilities"
    assert told.why == "its utility is 253/1000 at best on the idle cluster, it asks for 500/1000"
