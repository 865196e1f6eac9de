"""What happens to a cluster over time, as steps: nodes fail and return, the cluster grows, jobs are withdrawn."""

from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from helpers.changing_scenarios import audit, lively_scenario
from helpers.night import tried_by_day
from helpers.scenarios import log_lines, policy, random_scenario, timed
from placeopt import BadInput, build
from placeopt.model import Policy, Queue, Quota
from placeopt.scheduling import Scheduling
from placeopt.simulation import Scenario, round_at, simulate, summarise
from simulation.test_play import CALM, LIVELY, PHYSICS

FCFS = policy("fcfs")
WHOLE = Scheduling(name="whole", method="stranding")
DRAIN, BACK = {"do": "drain", "nodes": ("node-0",), "stop": True}, {"do": "undrain", "nodes": ("node-0",)}


def with_events(world: Scenario, *events: tuple[int, *tuple[dict[str, Any], ...]]) -> Scenario:
    """Return a scenario with steps at times in ms, as a file states them."""
    listed = [{"at_ms": at, "steps": steps} for at, *steps in events]
    return Scenario.model_validate({**dict(world), "events": listed})


def ran(world: Scenario, scheduling: Scheduling) -> dict[str, list[tuple[str, int, int | None]]]:
    """Return of every job the nodes on which it began, and from when until when it was there."""
    return {
        job.job: [(span.placement.assignments[0].node, span.start_ms, span.end_ms) for span in job.spans]
        for job in simulate(world, scheduling).jobs
    }


NODES = [build.node("node-0"), build.node("node-1")]


@pytest.mark.parametrize("scheduling", [FCFS, WHOLE], ids=["job by job", "whole"])
class TestEachKind:
    """One or two jobs that need a whole node of 4 GPUs for 10 s; times are worked out by hand."""

    def test_a_node_fails_and_returns(self, scheduling: Scheduling) -> None:
        """The job keeps 4 s of its work, waits 3 s for the only node, and has 6 s left."""
        world = with_events(build.scenario(NODES[:1], [timed("a", 0, 10_000, gpus=4)]), (4000, DRAIN), (7000, BACK))
        assert ran(world, scheduling) == {"a": [("node-0", 0, 4000), ("node-0", 7000, 13_000)]}
        assert summarise(simulate(world, scheduling)).stops == 1

    def test_a_node_that_fails_is_no_place(self, scheduling: Scheduling) -> None:
        """Removed for good, by name or by level: the job goes on elsewhere, at once."""
        fails = {"do": "fail", "level": "node", "domains": ("node-0",)}
        for step in ({"do": "remove_nodes", "nodes": ("node-0",)}, fails):
            world = with_events(build.scenario(NODES, [timed("a", 0, 10_000, gpus=4)]), (4000, step))
            assert ran(world, scheduling) == {"a": [("node-0", 0, 4000), ("node-1", 4000, 10_000)]}

    def test_a_node_that_is_drained_runs_empty(self, scheduling: Scheduling) -> None:
        """What runs there ends there; nothing starts."""
        jobs = [timed("a", 0, 10_000, gpus=4), timed("b", 1000, 10_000, gpus=4)]
        world = with_events(build.scenario(NODES[:1], jobs), (500, {**DRAIN, "stop": False}), (15_000, BACK))
        assert ran(world, scheduling) == {"a": [("node-0", 0, 10_000)], "b": [("node-0", 15_000, 25_000)]}

    def test_the_cluster_grows(self, scheduling: Scheduling) -> None:
        """By a copy of a node, and by one of a type that comes; shares of GPU time count all nodes always."""
        jobs = [timed(name, 0, 10_000, gpus=4) for name in "abc"]
        big = build.machine("big", gpus=4).model_dump(mode="json")
        put = {"do": "put_nodes", "nodes": [{"id": "new", "machine": "big"}]}
        copy = {"do": "add_nodes", "like": "node-0", "prefix": "copy"}
        world = with_events(
            build.scenario(NODES[:1], jobs), (1000, copy), (2000, {"do": "add_machines", "machines": [big]}, put)
        )
        assert ran(world, scheduling) == {
            "a": [("node-0", 0, 10_000)], "b": [("copy-0", 1000, 11_000)], "c": [("new", 2000, 12_000)]
        }  # fmt: skip
        history = simulate(world, scheduling)
        assert summarise(history).occupancy.gpus == 12
        assert [node.id for node in round_at(history, 1500).cluster.nodes] == ["node-0", "copy-0"]

    def test_a_taint_and_a_label(self, scheduling: Scheduling) -> None:
        """A job that asks for a label waits for it; a tainted node takes nothing."""
        job = timed("a", 0, 10_000, gpus=4, node_selector={"disk": "ssd"})
        label = {"do": "label", "labels": {"disk": "ssd"}, "nodes": ("node-1",)}
        taint = {"do": "taint", "taint": {"key": "bad"}, "nodes": ("node-1",)}
        world = with_events(build.scenario(NODES, [job]), (1000, taint, label), (2000, {**taint, "do": "untaint"}))
        assert ran(world, scheduling) == {"a": [("node-1", 2000, 12_000)]}

    def test_jobs_are_withdrawn(self, scheduling: Scheduling) -> None:
        """One runs, one waits, one never arrives; what is free is used, and none of them has ended."""
        jobs = [timed(name, at, 10_000, gpus=4) for name, at in [("a", 0), ("b", 1), ("c", 2), ("d", 9000)]]
        gone = {"do": "remove_jobs", "jobs": ("a", "b", "d")}
        world = with_events(build.scenario(NODES[:1], jobs), (3000, gone))
        assert ran(world, scheduling) == {"a": [("node-0", 0, 3000)], "b": [], "c": [("node-0", 3000, 13_000)], "d": []}
        told = {job.job: job.end_ms for job in simulate(world, scheduling).jobs}
        assert told == {"a": None, "b": None, "c": 13_000, "d": None}

    def test_what_comes_after_the_last_job_changes_nothing(self, scheduling: Scheduling) -> None:
        """The simulation ends with the last job."""
        world = with_events(build.scenario(NODES, [timed("a", 0, 10_000, gpus=4)]), (50_000, DRAIN))
        assert simulate(world, scheduling).now_ms == 10_000


def test_a_policy_changes() -> None:
    """A quota is raised, and the second job starts; policies that place job by job refuse that by name."""
    jobs = [timed(name, 0, 10_000, gpus=4, queue="q") for name in "ab"]
    queue = Queue(id="q", quota=Quota(gpu_milli=4000))
    step = {"do": "change_queue", "queue": "q", "fields": {"quota": {"gpu_milli": 8000}}}
    world = with_events(build.scenario(NODES, jobs), (4000, step))
    ruled = Policy(queues=(queue,))
    for half_life_ms in (None, 60_000):
        rules = Scheduling(name="w", method="stranding", policy=ruled, usage_half_life_ms=half_life_ms)
        assert ran(world, rules) == {"a": [("node-0", 0, 10_000)], "b": [("node-1", 4000, 14_000)]}
    with pytest.raises(BadInput, match=r"events\[0\].*no queue 'q'"):
        simulate(world, WHOLE)
    by_job = policy("fcfs", policy=Policy(queues=(queue,)))
    with pytest.raises(BadInput, match=r"events\[0\].steps: policy.queues changes.*whole rounds"):
        simulate(world, by_job)
    shared = with_events(build.scenario(NODES, jobs), (1, {"do": "set_policy", "fields": {"share_mode": "exclusive"}}))
    with pytest.raises(BadInput, match=r"events\[0\].steps: policy.share_mode changes"):
        simulate(shared, Scheduling(name="w", method="stranding", policy=Policy(queues=(queue,))))


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([(1, {"do": "remove_nodes", "nodes": ("x",)})], r"events.0..steps.0. .remove_nodes.: nodes: no node 'x'"),
        ([(2, DRAIN), (1, BACK)], r"events\[1\].at_ms: 1, but the event before is at 2"),
        ([(1, {"do": "add_jobs", "jobs": ({"id": "x"},)})], r"steps\[0\] \(add_jobs\): expected steps about nodes"),
        ([(1, {"do": "remove_jobs", "jobs": ("x",)})], "no job 'x' among the arrivals"),
        ([(1, {"do": "remove_jobs", "jobs": ("a",)}), (2, {"do": "remove_jobs", "jobs": ("a",)})], "withdrawn once"),
        ([(1, {"do": "set_amount", "resource": "memory_mib", "amount": 1, "at": "machine"})], "machine .m. would"),
        ([(1, {"do": "fail", "level": "gpu", "domains": ("node-0/gpu0",)})], "in a simulation nodes fail whole"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(events: Any, words: str) -> None:
    """When the scenario is read, with the event and the step."""
    with pytest.raises(ValueError, match=words):
        with_events(build.scenario(NODES, [timed("a", 0, 10_000)]), *events)


def stormy(world: Scenario) -> Scenario:
    """Nodes fail, return, drain, come and go while jobs run; some jobs are withdrawn."""
    first, second = (node.id for node in world.cluster.nodes[:2])
    return with_events(
        world,
        (4000, {"do": "drain", "nodes": (first,), "stop": True}, {"do": "add_nodes", "like": first, "prefix": "spare"}),
        (9000, {"do": "undrain", "nodes": (first,)}, {"do": "remove_jobs", "jobs": (world.arrivals[3].job.id,)}),
        (15_000, {"do": "drain", "nodes": (second,)}, {"do": "label", "labels": {"a": "b"}}),
        (22_000, {"do": "remove_nodes", "nodes": ("spare-0",)}, {"do": "undrain"}),
        (26_000, {"do": "fail", "level": "node", "domains": (first,)}),
        (30_000, {"do": "put_nodes", "nodes": (world.cluster.nodes[0].model_dump(mode="json"),)}),
    )


STORMS = [(rules, stormy(random_scenario(11, jobs=14))) for rules in CALM]
STORMS += [
    (rules, stormy(lively_scenario(3, jobs=14, **physics)))
    for rules, physics in zip(LIVELY, cycle(PHYSICS), strict=False)
]


@pytest.mark.parametrize(("scheduling", "world"), tried_by_day(STORMS, 2), ids=lambda one: getattr(one, "name", ""))
def test_every_decision_is_lawful_whatever_happens(scheduling: Scheduling, world: Scenario, tmp_path: Path) -> None:
    """The log alone, read by a stranger; and the same bytes again."""
    one, other = tmp_path / "one", tmp_path / "other"
    history = simulate(world, scheduling, log=one, seed=4)
    assert history.finished
    count = audit(world, scheduling, one)
    assert summarise(history).stops == count["stop"]
    assert sum(line["e"] == "edit" for line in log_lines(one)[1:]) >= 3
    again = simulate(world, scheduling, log=other, seed=4)
    assert other.read_bytes() == one.read_bytes()
    assert (again.jobs, again.rounds.held) == (history.jobs, history.rounds.held)
