"""Look-ahead by hand, on Minskys with a GPU busy in each socket: wait where that ends earlier, and only there."""

from collections.abc import Sequence

import pytest

from placeopt import Engine, audit, violations
from placeopt.build import instance, job, machine, running
from placeopt.explain import explain
from placeopt.model import (
    Communication,
    Gpu,
    Instance,
    Interference,
    Job,
    Part,
    Plan,
    Policy,
    Postpone,
    Slowdown,
    Weights,
)

MINSKY = machine(
    gpus=[Gpu(model="P100", memory_mib=16_384, part=f"s{i // 2}") for i in range(4)],
    parts=(Part(id="s0", level="socket"), Part(id="s1", level="socket")),
    gpu_distance_matrix=((0, 1, 20, 20), (1, 0, 20, 20), (20, 20, 0, 1), (20, 20, 1, 0)),
)
LOOKAHEAD = Postpone(rule="lookahead")
NOW = 1_000_000


def pair(name: str, *nodes: str, run_ms: int | None = 100_000, **fields: object) -> Job:
    """Two GPUs that talk: 100 s in a socket, 130 s across."""
    fields = {"communication": Communication(weight=1), **fields}
    return job(name, gpus=2, nodes_allowed=tuple(nodes) or None, run_time_ms=run_ms, **fields)


def minskys(
    jobs: Sequence[Job], ends: Sequence[tuple[int | None, int | None]], postpone: Postpone = LOOKAHEAD
) -> Instance:
    """On node i one job runs in each socket, on GPUs 0 and 2, for so many ms more; None: nobody knows."""
    held = {(i, s): job(f"held-{i}-{s}") for i in range(len(ends)) for s in (0, 1)}
    runs = [
        running(one, [(f"n{i}", [2 * s])], expected_end_ms=None if (left := ends[i][s]) is None else NOW + left)
        for (i, s), one in held.items()
    ]
    policy = Policy(share_mode="exclusive", order="fcfs", postpone=postpone)
    return instance(len(ends), [*held.values(), *jobs], machines=[MINSKY], running=runs, now_ms=NOW, policy=policy)


def solved(engine: Engine, round_: Instance) -> Plan:
    """Solve, and let referee and audit read the plan."""
    plan = engine.solve(round_, time_limit_s=10)
    assert violations(round_, plan) == []
    assert audit(round_, plan) == []
    return plan


def waits(plan: Plan) -> dict[str, str]:
    """Details of the jobs that wait for the better."""
    return {unplaced.job: unplaced.detail for unplaced in plan.unplaced if unplaced.reason == "postponed"}


def test_it_waits_where_that_ends_earlier_and_nowhere_else(engine: Engine) -> None:
    """
    ``soon``'s socket is whole in 5 s: 105 s against 130. ``late``'s in 500 s: 130 against 600.

    So always placing ends them after 130 and 130 s, a minimal utility of 300 after 105 and 600, look-ahead after 105
    and 130: less than either, together and for each.
    """
    jobs = [pair("soon", "n0", utility_min_thousandths=300), pair("late", "n1", utility_min_thousandths=300)]
    ends = [(5_000, 900_000), (500_000, 900_000)]
    plan = solved(engine, minskys(jobs, ends))
    assert waits(plan) == {"soon": "starts in about 5.0 s on node 'n0'; now it would end in 130.0 s, then in 105.0 s"}
    assert plan.placement_of("late") is not None
    assert not solved(engine, minskys(jobs, ends, Postpone())).unplaced
    assert set(waits(solved(engine, minskys(jobs, ends, Postpone(rule="utility"))))) == {"soon", "late"}


def test_the_bound_is_of_the_whole_round(engine: Engine) -> None:
    """
    Of two pairs worth 2 each one waits: 2 beside the running jobs' 2, where 4 can be had, and no bound says less.

    So it is not optimal, and the plan says what its bound leaves out; the cost has no bound at all.
    """
    jobs, ends = [pair("soon", "n0", value=2), pair("late", "n1", value=2)], [(5_000, 900_000), (500_000, 900_000)]
    placed, plan = solved(engine, minskys(jobs, ends, Postpone())), solved(engine, minskys(jobs, ends))
    value, running_ = plan.levels[0], 4
    assert placed.levels[0].objective == running_ + 4
    assert (value.objective, value.bound) == (running_ + 2, running_ + 4)
    assert (plan.status, plan.limit, plan.levels[1].bound) == ("feasible", "none", None)
    assert plan.bound_relaxes[-2] == "1 job that by look-ahead should wait may start now"
    assert plan.stages[0].detail.startswith("1 job ends earlier by waiting; stages after this one")
    found = explain(minskys(jobs, ends), plan, "soon", isolation="thread")
    assert found.reason == "postponed"
    assert "starts in about 5.0 s" in found.detail


def test_optimal_only_where_nothing_is_given_away(engine: Engine) -> None:
    """A job worth nothing waits: the value is the most there is. Costs of plans in which it starts are unknown."""
    round_ = minskys([pair("soon", value=0)], [(5_000, 900_000)])
    plan = solved(engine, round_)
    assert (plan.status, plan.levels[0].bound) == ("feasible", plan.levels[0].objective)
    assert "plans that keep to look-ahead" in plan.bound_relaxes[0]
    free = Weights(communication=0, interference=0, fragmentation=0)
    unpriced = round_.model_copy(update={"policy": round_.policy.model_copy(update={"weights": free})})
    assert solved(engine, unpriced).status == "optimal"


def test_two_do_not_wait_for_the_same_socket(engine: Engine) -> None:
    """Each has its own, be it the one that is free 1 s later; with one socket the second waits until the first ends."""
    both = waits(solved(engine, minskys([pair("a"), pair("b")], [(5_000, 6_000)])))
    assert both["a"].startswith("starts in about 5.0 s on node 'n0'; now it would end in 130.0 s")
    assert both["b"].startswith("starts in about 6.0 s on node 'n0', ends in 106.0 s")
    one = waits(solved(engine, minskys([pair("a"), pair("b")], [(5_000, 900_000)])))
    assert one["b"].startswith("starts in about 105.0 s on node 'n0', ends in 205.0 s")


@pytest.mark.parametrize(("run_ms", "fits"), [(0, True), (4_000, True), (90_000, False), (None, False)])
def test_others_may_use_kept_gpus_if_they_end_in_time(run_ms: int | None, fits: bool, engine: Engine) -> None:
    """GPU 1 is needed in 5 s, GPU 3 is nobody's: of two cheap jobs both start only if they are short enough."""
    small = [job("x", run_time_ms=run_ms), job("y", run_time_ms=run_ms)]
    plan = solved(engine, minskys([pair("a", value=20), *small], [(5_000, 900_000)]))
    assert plan.placement_of("a") is None
    assert [plan.placement_of(name) is not None for name in "xy"].count(True) == (2 if fits else 1)


def test_alike_nodes_are_distinguished_where_gpus_are_kept(engine: Engine) -> None:
    """Three of four free GPUs are nobody's: of four long jobs one waits, and none stands on GPU 1 of n0."""
    small = [job(name, run_time_ms=500_000) for name in "wxyz"]
    plan = solved(engine, minskys([pair("a", "n0"), *small], [(5_000, 900_000), (900_000, 900_000)]))
    held = {(one.node, gpu) for p in plan.placements for one in p.assignments for gpu in one.gpus}
    assert len(plan.placements) == 4 + 3
    assert ("n0", "1") not in held
    assert [unplaced.reason for unplaced in plan.unplaced] == ["postponed", "postponed"]


@pytest.mark.parametrize(
    ("one", "ends"),
    [
        (pair("ends-unknown", run_ms=10_000_000), (None, None)),
        (pair("ends-beyond-the-window-of-600-s", run_ms=10_000_000), (700_000, 900_000)),
        (pair("its-own-run-time-unknown", run_ms=None), (5_000, 900_000)),
        (job("quiet", gpus=2, run_time_ms=100_000), (5_000, 900_000)),  # it does not mind the path
    ],
    ids=lambda value: value.id if isinstance(value, Job) else "",
)
def test_it_places_where_waiting_is_not_known_to_be_better(
    one: Job, ends: tuple[int | None, int | None], engine: Engine
) -> None:
    assert not solved(engine, minskys([one], [ends])).unplaced


def test_run_times_by_hand(engine: Engine) -> None:
    """
    Across, 1 + 0.3; beside neighbours that cost a fifth, + 0.2; the job's own spread slowdown counts instead.

    In a socket that is whole, in 5 s, none of it is lost.
    """
    soon = [(5_000, 900_000)]
    round_ = minskys([pair("plain", profile="calm")], soon)
    loud = tuple(one.model_copy(update={"profile": "loud"}) if one.id != "plain" else one for one in round_.jobs)
    worst = round_.policy.model_copy(update={"interference": Interference(model="worst")})
    noise = (Slowdown(profile="calm", beside="loud", socket_thousandths=200),)
    noisy = round_.model_copy(update={"jobs": loud, "policy": worst, "slowdowns": noise})
    assert "now it would end in 150.0 s, then in 105.0 s" in waits(solved(engine, noisy))["plain"]
    own = pair("tough", communication=Communication(weight=1, spread_slowdown_thousandths=70))
    assert "now it would end in 107.0 s, then in 105.0 s" in waits(solved(engine, minskys([own], soon)))["tough"]


def test_ends_are_worked_out_where_they_are_not_stated(engine: Engine) -> None:
    """Started 30 s ago for 130 s across: it ends in 100 s; one that is overdue says nothing."""
    wide = pair("wide", run_ms=1_000_000)
    for run_ms, expected in ((100_000, {"wide": "starts in about 100.0 s on node 'n0'"}), (10_000, {})):
        split = pair("split", run_ms=run_ms)
        round_ = instance(
            1,
            [split, wide],
            machines=[MINSKY],
            running=[running(split, [("n0", [0, 2])], started_ms=NOW - 30_000)],
            now_ms=NOW,
            policy=Policy(share_mode="exclusive", order="fcfs", postpone=LOOKAHEAD),
        )
        found = waits(solved(engine, round_))
        assert found.keys() == expected.keys()
        assert all(found[name].startswith(words) for name, words in expected.items())


def test_the_fullest_nodes_are_not_all_that_is_looked_at(engine: Engine) -> None:
    """On twelve of them somebody disturbs; the only quiet place is the one that scores keep for others."""
    loud = [job(f"r{i}", gpus=2, run_time_ms=600_000, profile="a") for i in range(12)]
    coming = job("w", gpus=1, run_time_ms=600_000, profile="a")
    runs = [running(one, [(f"n{i}", [0, 2])], expected_end_ms=NOW + 600_000) for i, one in enumerate(loud)]
    noise, policy = (Slowdown(profile="a", beside="a", socket_thousandths=900),), Policy(postpone=LOOKAHEAD)
    fields = {"machines": [MINSKY], "running": runs, "slowdowns": noise, "now_ms": NOW, "policy": policy}
    placed = solved(engine, instance(13, [*loud, coming], **fields)).placement_of("w")
    assert placed is not None
    assert placed.assignments[0].node == "n12"
