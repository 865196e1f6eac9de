"""Mechanisms of a policy that act in a round are counted."""

import threading
from typing import Any

import pytest

from helpers.live_host import Host
from helpers.machines import SC17_MATRIX, sockets
from helpers.scenarios import policy, timed
from placeopt import Engine
from placeopt.build import instance, job, machine, node, running
from placeopt.model import Cluster, Communication
from placeopt.scheduling import LiveScheduler, named_policy


def host(nodes: int, gpus: int) -> Host:
    """Return a host of nodes with GPUs on one socket."""
    box = machine(gpus=gpus, cpu_millicores=32_000)
    return Host(Cluster(machines=(box,), nodes=tuple(node(f"n{i}") for i in range(nodes))))


def turn(there: Host, live: LiveScheduler, now_ms: int, *jobs: Any) -> dict[str, int]:
    """Let jobs come, and one round be made; return what acted."""
    there.now_ms = now_ms
    there.jobs |= {one.id: one for one in jobs}
    there.turn(live)
    return dict(live.fired)


def test_an_order_that_lets_a_later_job_start_first_overtakes(engine: Engine) -> None:
    """One GPU: the shorter of two jobs starts, though it came later; by arrival nothing overtakes."""
    jobs = timed("long", 0, 9_000), timed("short", 1, 1_000)
    for rule, count in (("srtf", 1), ("fcfs", 0)):
        live = LiveScheduler(engine, policy(order=rule))
        acted = turn(host(1, 1), live, 1, *jobs)
        assert acted.get(f"order {rule}: overtook", 0) == count
        assert acted["method fcfs: placed"] == 1


def test_inference_stops_a_job_and_the_rule_is_named(engine: Engine) -> None:
    there, live = host(1, 1), LiveScheduler(engine, policy(preempts="inference"))
    assert turn(there, live, 0, timed("t", 0, 9_000, kind="training")) == {"method fcfs: placed": 1}
    acted = turn(there, live, 5, timed("i", 5, 9_000, kind="inference"))
    assert acted["preempts inference: stopped"] == 1


def test_workers_that_are_taken_and_given(engine: Engine) -> None:
    """Four GPUs: of an elastic job of four workers two make room for a job of two, and come again once it has ended."""
    elastic = job("e", workers=4, workers_min=1, value=4, value_per_worker=1, kind="training")
    there, live = host(1, 4), LiveScheduler(engine, policy(elastic="load"))
    assert turn(there, live, 0, elastic)["gang: placed"] == 1
    acted = turn(there, live, 5, timed("two", 5, 9_000, gpus=2))
    assert acted["elastic load: shrank"] == 1
    there.end("two")
    assert live.wants_round
    assert turn(there, live, 9)["elastic load: grew"] == 1


def test_one_of_several_options_is_settled_on_and_a_part_lends(engine: Engine) -> None:
    """Arrays of two users have two GPUs each by equal parts; the first user's third job of one GPU borrows."""
    live = LiveScheduler(
        engine,
        policy(order={"rule": "capacity"}, divides={"rule": "arrays", "by": "user", "borrow_percent": 100}),
    )
    jobs = [timed(f"a{i}", i, 9_000, user="a") for i in range(3)]
    acted = turn(host(1, 4), live, 5, *jobs, timed("b", 4, 9_000, user="b", gpus=4))
    assert acted["divides arrays: lent"] == 3  # all that start in an array that holds more than its part then


def test_room_is_held_for_a_job_that_waits_long(engine: Engine) -> None:
    there, live = host(1, 2), LiveScheduler(engine, policy(method="best-fit", hold_after_ms=10))
    turn(there, live, 0, timed("one", 0, 9_000), timed("two", 1, 9_000, gpus=2))
    assert "hold_after: held room" not in live.fired
    acted = turn(there, live, 20, timed("three", 20, 9_000))
    assert acted == {"hold_after: held room": 1}


@pytest.mark.parametrize("name", ["rounds", "topo-aware-p", "genie"])
def test_policies_of_each_kind_say_how_they_placed(name: str, engine: Engine) -> None:
    live = LiveScheduler(engine, named_policy(name))
    acted = turn(host(2, 4), live, 0, timed("one", 0, 9_000, gpus=2), timed("two", 0, 9_000, gpus=2))
    assert acted[f"method {named_policy(name).method}: placed"] == 2


def test_a_job_whose_utility_would_be_too_low_waits_though_there_is_room(engine: Engine) -> None:
    """One GPU of each socket is busy: a pair would run across at 253 of the 300 it asks for."""
    a, b = job("a"), job("b")
    pair = job("pair", gpus=2, communication=Communication(weight=1), utility_min_thousandths=300)
    runs = [running(a, [("n0", [0])]), running(b, [("n0", [2])])]
    live = LiveScheduler(engine, named_policy("topo-aware-p"))
    live.follow(instance(1, [a, b, pair], machines=[sockets(2, 2, gpu_distance_matrix=SC17_MATRIX)], running=runs))
    live.decide(5.0, threading.Event(), deterministic=True)
    assert live.fired["postpone utility: waits"] == 1


def test_parts_of_gpus_are_counted(engine: Engine) -> None:
    """Two halves of one GPU, under DynamoML's fractions."""
    live = LiveScheduler(engine, named_policy("dynamoml"))
    halves = [timed(f"half{i}", 0, 9_000, gpu_milli=500) for i in range(2)]
    assert turn(host(1, 1), live, 0, *halves)["share: placed"] == 2


def test_coda_stops_cpu_jobs_beyond_their_part_of_a_node(engine: Engine) -> None:
    """A CPU job has borrowed all cores of the only node; a job of a GPU takes its place."""
    there, live = host(1, 2), LiveScheduler(engine, named_policy("coda"))
    fills = timed("fills", 0, 90_000, gpus=0, cpu_millicores=32_000, kind="cpu")
    assert turn(there, live, 0, fills)["method best-fit: placed"] == 1
    acted = turn(there, live, 5, timed("gpu", 5, 90_000, cpu_millicores=4_000))
    assert acted["preempts node_capacity: stopped"] == 1
