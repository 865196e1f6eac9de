"""Who starts in each round that places job by job: the order of the queue, and every job that finds room."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from helpers.scenarios import PLAIN, log_lines, policy, scenario, timed
from placeopt.build import job, option, running
from placeopt.model import Job, Placement
from placeopt.scheduling import QUEUE_ORDERS, Scheduling
from placeopt.simulation import JobHistory, Scenario, simulate, without_utilisation
from placeopt.systems.soda import Arrays
from strategies import scenarios

SHIPPED = tuple(QUEUE_ORDERS)
"""Before any test or example has registered another one."""

Amounts = np.ndarray[Any, Any]
"""GPU-milli, CPU millicores, MiB of memory."""


class State:
    """What jobs hold: free amounts are counted anew for every question."""

    def __init__(self, world: Scenario, rules: Scheduling) -> None:
        machines = {machine.id: machine for machine in world.cluster.machines}
        self.machine = {node.id: machines[node.machine] for node in world.cluster.nodes}
        self.rules, self.jobs = rules, {arrival.job.id: arrival.job for arrival in world.arrivals}
        self.placed: dict[str, Placement] = {}
        used = self.machine.values()
        self.whole = np.array([(1000 * len(m.gpus), m.cpu_millicores, m.memory_mib) for m in used]).sum(axis=0)

    def workers_on(self, node: str, job: Job, placed: dict[str, Placement]) -> int:
        """Return how many workers of a job find room on a node beside some placements."""
        machine, option, mode = self.machine[node], job.options[0], self.rules.policy.share_mode
        demand, most = option.demand, self.rules.policy.jobs_per_gpu_max
        there = [a for placement in placed.values() for a in placement.assignments if a.node == node]
        open_gpus = 0
        for gpu in map(str, range(len(machine.gpus))):
            shares = [a.gpus[gpu] for a in there if gpu in a.gpus]
            full = bool(shares) if mode == "exclusive" else most is not None and len(shares) >= most
            open_gpus += not full and (mode != "fraction" or sum(shares) + demand.gpu_milli <= 1000)
        room = [
            (open_gpus, demand.gpus),
            (machine.cpu_millicores - sum(a.cpu_millicores for a in there), demand.cpu_millicores),
            (machine.memory_mib - sum(a.memory_mib for a in there), demand.memory_mib),
        ]
        return min([option.workers, *(free // each for free, each in room if each)])

    def fits(self, job: Job, without: Collection[str] = ()) -> bool:
        """Return whether all workers of a job find room, were some jobs gone."""
        placed = {name: placement for name, placement in self.placed.items() if name not in without}
        return sum(self.workers_on(node, job, placed) for node in self.machine) >= job.options[0].workers

    def held(self, of: Callable[[Job], bool]) -> Amounts:
        """Return what some jobs hold."""
        mine = [a for name, placement in self.placed.items() if of(self.jobs[name]) for a in placement.assignments]
        amounts = [(sum(a.gpus.values()), a.cpu_millicores, a.memory_mib) for a in mine]
        return np.array([(0, 0, 0), *amounts]).sum(axis=0)


def asked(job: Job) -> Amounts:
    """Return what a job requests."""
    demand = job.options[0].demand
    return job.options[0].workers * np.array((demand.gpus * demand.gpu_milli, demand.cpu_millicores, demand.memory_mib))


@dataclass
class Owners:
    """Users or arrays, and their parts of the cluster: all of it (None), ``equal`` ones, or by ``demand``."""

    of: Callable[[Job], Hashable]
    parts: str | None = None
    borrow_percent: int = 0
    kinds: int = 3

    def part(self, job: Job, state: State) -> Amounts:
        """Return the part of a job's owner, rounded up; demand is amounts times run times."""
        if self.parts is None:
            return state.whole
        jobs = list(state.jobs.values())
        if self.parts == "equal":
            return -(-state.whole // len({self.of(one) for one in jobs}))
        weights = np.array([asked(one) * one.options[0].run_time_ms for one in jobs])
        own, every = weights[[self.of(one) == self.of(job) for one in jobs]].sum(axis=0), weights.sum(axis=0)
        return np.where(every, -(-state.whole * own // np.maximum(every, 1)), state.whole)

    def key(self, job: Job, state: State) -> tuple[Any, ...]:
        """Return the largest share that the owner holds of its part; ties by the owners' first arrivals."""
        held, part = state.held(lambda other: self.of(other) == self.of(job)), self.part(job, state)
        share = max((held / np.where(part, part, 1))[: self.kinds])
        return share, min(one.arrival_ms for one in state.jobs.values() if self.of(one) == self.of(job))

    def stays_within(self, job: Job, state: State) -> bool:
        """Return whether a job keeps its owner within its part and what it may borrow."""
        held, part = state.held(lambda other: self.of(other) == self.of(job)), self.part(job, state)
        return bool((held + asked(job) <= part + part * self.borrow_percent // 100).all())


def size(job: Job) -> int:
    """Return the array of a job by its size, as SODA has it: without GPUs, fewer than four, four or more."""
    gpus = job.options[0].workers * job.options[0].demand.gpus
    return (gpus > 0) + (gpus >= 4)


def run_ms(job: Job) -> int:
    """Return the predicted run time."""
    return job.options[0].run_time_ms or 0


def due_ms(job: Job) -> int:
    """Return the expected completion time; unstated, by the urgency (GENIE eq. 9)."""
    if job.expected_completion_ms is not None:
        return job.expected_completion_ms
    return job.arrival_ms + (2, 1, 0)[job.priority] * run_ms(job)


SORTED: dict[str, tuple[dict[str, Any], Callable[[Job], int]]] = {
    "fcfs": ({}, lambda job: 0),
    "priority": ({}, lambda job: -job.priority),
    "priority with aging": (
        {"order": {"rule": "priority", "aging_ms": 9000}},
        lambda job: job.arrival_ms - 9000 * job.priority,
    ),
    "srtf": ({}, run_ms),
    "srsf": ({}, lambda job: run_ms(job) * max(1, asked(job)[0])),
    "min_min": ({}, due_ms),
    "arrival_ect": ({}, lambda job: job.arrival_ms + due_ms(job)),
    "swaf": ({}, lambda job: due_ms(job) - run_ms(job)),
    "inference_first": ({}, lambda job: job.kind != "inference"),
}
"""Order -> fields of the policy, and the key; ties by arrival."""
USERS, GPUS = Owners(lambda job: job.user), Owners(lambda job: job.user, kinds=1)
USER_ARRAYS, SIZE_ARRAYS = Owners(lambda job: job.user, "demand", 50), Owners(size, "equal", 150)
BY_USER = Arrays(rule="arrays", by="user", parts="demand", borrow_percent=50)
BY_SIZE = Arrays(rule="arrays", by="size", borrow_percent=150)
OWNERS: dict[str, tuple[dict[str, Any], Owners, Owners | None]] = {
    "drf": ({"order": "drf"}, USERS, None),
    "drf of GPUs": ({"order": {"rule": "drf", "dominant": "gpu"}}, GPUS, None),
    "arrays by user": ({"order": "capacity", "divides": BY_USER}, USER_ARRAYS, None),
    "arrays by size": ({"order": "capacity", "divides": BY_SIZE}, SIZE_ARRAYS, None),
    "arrays by size, fair": (
        {"order": "drf", "divides": BY_SIZE},
        SIZE_ARRAYS,
        Owners(lambda job: (size(job), job.user)),
    ),
}
"""The same, the owners that are compared, and those within an owner."""
MODES = {"exclusive": None, "fraction": None, "overcommit": 2}
"""Share modes, and how many jobs may run on a GPU."""


@pytest.mark.parametrize("order", [*SORTED, *OWNERS])
@settings(max_examples=8)  # of each order: more than a hundred in all
@given(world=scenarios(most_jobs=30, within_ms=20_000), mode=st.sampled_from(sorted(MODES)))
def test_each_round_starts_what_finds_room_in_the_order_of_the_queue(world: Scenario, order: str, mode: str) -> None:
    """
    At every arrival and end a round takes the waiting jobs one after the other; the order is asked anew at each start.

    Rounds leave out what cannot change anything: which kinds are tried again, and the counts of free resources.
    """
    if order in SORTED:
        fields, sorted_by = SORTED[order]
        key, allowed = lambda job, _: (sorted_by(job), job.arrival_ms), lambda *_: True
    else:
        fields, owners, within = OWNERS[order]
        key = lambda job, now: (*owners.key(job, now), *(within.key(job, now) if within else ()), job.arrival_ms)  # noqa: E731
        allowed = owners.stays_within if owners.parts else lambda *_: True
    shared = PLAIN.model_copy(update={"share_mode": mode, "jobs_per_gpu_max": MODES[mode]})
    rules = policy("best-fit", policy=shared, **{"order": order, **fields})
    assume(not without_utilisation(world, rules))
    played = {job.job: job for job in simulate(world, rules).jobs}
    state = State(world, rules)
    waiting: list[Job] = []
    for now in sorted({at for one in played.values() for at in (one.arrival_ms, one.end_ms) if at is not None}):
        state.placed = {name: placement for name, placement in state.placed.items() if played[name].end_ms != now}
        waiting += [one for one in state.jobs.values() if one.arrival_ms == now]
        untried = list(waiting)
        while untried:
            one = min(untried, key=lambda job: key(job, state))  # ties by the order of arrival
            untried.remove(one)
            starts = allowed(one, state) and state.fits(one)
            assert (played[one.id].start_ms == now) == starts, (now, one.id)
            if starts:
                waiting.remove(one)
                state.placed[one.id] = played[one.id].placement
    assert {one.id for one in waiting} == {name for name, job in played.items() if job.start_ms is None}


def attained_level(history: JobHistory, now: int) -> int:
    """Return how many of the levels of 5 and 30 GPU-seconds a job has attained."""
    served = sum(
        (min(now, span.end_ms) - span.start_ms) * sum(sum(a.gpus.values()) for a in span.placement.assignments)
        for span in history.spans
        if span.start_ms < now
    )
    return sum(served >= 1_000_000 * bound for bound in (5, 30))


LEVELS = {"rule": "las", "levels_gpu_s": (5, 30)}
STOPS: dict[str, tuple[dict[str, Any], Callable[[Job, Job, int], bool]]] = {
    "priority": ({"order": "priority"}, lambda one, other, _: other.priority < one.priority),
    "inference": ({"order": "inference_first"}, lambda one, other, _: one.kind == "inference"),
    "las": ({"order": LEVELS, "preempts": {**LEVELS, "quantum_ms": 1000}}, lambda one, other, higher: higher > 0),
}
"""Rule -> fields of the policy, and whether a job may stop another, whose level of service is that much higher."""


@pytest.mark.parametrize("rule", STOPS)
@given(world=scenarios(most_jobs=20, within_ms=10_000), mode=st.sampled_from(["exclusive", "fraction"]))
def test_nobody_waits_who_finds_room_where_others_may_be_stopped(world: Scenario, rule: str, mode: str) -> None:
    """After every round, also where rounds and evictions are left out that could not change anything."""
    fields, may_stop = STOPS[rule]
    rules = policy("best-fit", policy=PLAIN.model_copy(update={"share_mode": mode}), **{"preempts": rule, **fields})
    played = {job.job: job for job in simulate(world, rules).jobs}
    spans = {name: job.spans for name, job in played.items()}
    moments = {at for job in played.values() for at in (job.arrival_ms, *(span.end_ms for span in job.spans))}
    if rule == "las":
        moments |= set(range(1000, max(moments), 1000))
    state = State(world, rules)
    for now in sorted(moments):
        state.placed = {name: s.placement for name in spans for s in spans[name] if s.start_ms <= now < s.end_ms}
        touched = {name for name in spans for s in spans[name] if now in (s.start_ms, s.end_ms)}  # once a round
        level = {name: attained_level(played[name], now) for name in state.placed}
        others = [state.jobs[name] for name in state.placed.keys() - touched if state.jobs[name].kind != "inference"]
        for name, one in state.jobs.items():
            if one.arrival_ms <= now < (played[name].end_ms or math.inf) and name not in (*state.placed, *touched):
                mine = attained_level(played[name], now)
                victims = {other.id for other in others if may_stop(one, other, level[other.id] - mine)}
                assert not state.fits(one, victims), (now, name)


WEIGHTED = [
    (2, 4, 1, 100_000, "l0 h0 l1 h1 l2 l3"),  # weights 4 x 10 (median) and 2 x 20: at 1/40 each in turns
    (2, 2, 1, 100_000, "l0 h0 l1 h1 l2 l3"),
    (1, 4, 1, 100_000, "l0 h0 h1 l1 l2 l3"),  # one cluster goes by arrival
    (9, 4, 1, 100_000, "l0 l2 h0 h1 l1 l3"),  # a cluster a kind: l0, l2 weigh 2 x 55, heavy ones 40, l1, l3 2 x 5.5
    (2, 4, 1, 99_001, "h0 l0 h1 l1 l2 l3"),  # weights 36 and 38
    (2, 4, 0, 500, "l0 l1 h0 l2 l3 h1"),  # new ones count by their number: 4 and 2, then 1 and 1
]


@pytest.mark.parametrize(("clusters", "batch", "scale", "end_ms", "order"), WEIGHTED)
def test_clusters_of_similar_jobs_by_weight(
    clusters: int, batch: int, scale: int, end_ms: int, order: str, tmp_path: Path
) -> None:
    """Horus 4.2.2, worked by hand: light jobs use 10 and 12 %, heavy ones 90; all start when two nodes come free."""
    kinds = [("l0", 0, 10), ("l1", 90, 12), ("l2", 90, 10), ("l3", 99, 12), ("h0", 80, 90), ("h1", 80, 90)]
    jobs = [timed(name, scale * 1000 * at, 1, gpu_utilisation_percent=percent) for name, at, percent in kinds]
    full = timed("full", 0, end_ms, gpus=4, workers=2)
    held = (running(full, [("n0", (0, 1, 2, 3)), ("n1", (0, 1, 2, 3))]),)
    rules = policy("best-fit", order={"rule": "clusters", "clusters": clusters, "batch": batch})
    simulate(scenario([full, *jobs], nodes=2, running=held), rules, log=tmp_path / "log")
    [started] = [line["start"] for line in log_lines(tmp_path / "log") if line["e"] == "round"]
    assert " ".join(placed["job"] for placed in started) == order


def test_a_policy_may_settle_on_an_option() -> None:
    """
    On two nodes of four: one GPU for 100 s, four on a node for 40, eight for 30.

    Costs (GENIE eq. 10) 1/8 + 0.4/2 = 0.325, 0.7, 1.4. CER = 1 / (latency x cost): 1/32.5, 1/28, 1/42. So four by CER,
    eight by rate; and where any will do, the most valuable, here one GPU.
    """
    shapes = tuple(
        option(f"x{workers * gpus}", workers=workers, gpus=gpus, run_time_ms=1000 * run, value=5 - workers * gpus // 2)
        for workers, gpus, run in ((1, 1, 100), (1, 4, 40), (2, 4, 30))
    )
    world = scenario([job("a", options=shapes)], nodes=2)
    for choice, end_ms in (("any", 100_000), ("rate", 30_000), ("cer", 40_000)):
        assert simulate(world, policy("best-fit", choice=choice)).jobs[0].end_ms == end_ms


def test_an_order_is_documented_where_people_look() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "simulation.md").read_text(encoding="utf-8")
    assert [order for order in SHIPPED if f"`{order}`" not in page] == []


def test_short_jobs_go_first_only_where_they_are_worth_more() -> None:
    """In whole rounds: a job of 90 s states more than two of 20 and 10 s; elastic jobs keep what they state."""
    wide = job("wide", options=(option(workers=4, workers_min=4, value=20_000, run_time_ms=9),))
    jobs = [timed("first", 0, 1_000, gpus=4, value=30_000), timed("long", 0, 90_000, gpus=4, value=9000), wide]
    jobs += [timed(f"short-{i}", 0, 10_000 * i, gpus=4, value=4000) for i in (2, 1)]
    for worth, order in (("stated", "first wide long short"), ("rate", "first short-1 short-2 long wide")):
        history = simulate(scenario(jobs), policy("auto", rounds="whole", worth=worth))
        started = " ".join(job.job for job in sorted(history.jobs, key=lambda job: job.start_ms or 0))
        assert started.startswith(order), worth
