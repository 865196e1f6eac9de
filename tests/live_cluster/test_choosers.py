"""Jobs placed by bi-partitioning on a cluster that stays go where one that has just been loaded puts them."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_rounds import random_round
from placeopt import Engine, Instance, Plan, Policy
from placeopt.build import instance, job, node
from placeopt.heuristics import CHOOSERS, greedy
from placeopt.heuristics.drb import node_signatures
from placeopt.model import Communication, Interference, Job, Slowdown, Weights
from placeopt.problem import compile_problem
from placeopt.solving.draft import draft_plan
from placeopt.topology import dgx1, minsky

WEIGHTS = Weights(communication=334, interference=333, fragmentation=333)
PROFILES = ("quiet", "loud", None)


def afresh(cluster: Instance, names: list[str], method: str) -> dict[str, object]:
    """Where greedy puts some jobs beside what runs, with nothing known from before."""
    problem = compile_problem(cluster)
    numbers = [problem.job_ids.index(name) for name in names]
    found = greedy(problem, np.array(numbers), chooser=CHOOSERS[method]).allocation
    return kept(draft_plan(cluster, problem, found), names)


def kept(plan: Plan, names: list[str]) -> dict[str, object]:
    """Where the resident cluster puts them."""
    return {one.job: one.assignments for one in plan.placements if one.job in names}


@pytest.mark.parametrize("method", list(CHOOSERS))
def test_random_rounds_of_every_feature(method: str) -> None:
    """Each waiting job, one after the other."""
    some = 0
    for seed in range(40):
        round_ = random_round(np.random.default_rng(seed))
        if round_.policy.postpone.rule == "lookahead":
            continue
        with Engine(isolation="thread") as engine:
            engine.load(round_)
            held = {one.job for one in round_.running}
            for name in [one.id for one in round_.jobs if one.id not in held]:
                expected = afresh(engine.snapshot, [name], method)
                plan = engine.place([name], method=method, explain=False)
                assert kept(plan, [name]) == expected, (seed, name)
                some += bool(expected)
                engine.commit(plan)
    assert some > 40


def newcomer(name: str, rng: np.random.Generator, *, shares: bool) -> Job:
    """One or two GPUs, or part of one, with a profile or none: few kinds, so that they are not learnt for long."""
    gpus = int(rng.integers(1, 3))
    return job(
        name,
        gpus=gpus,
        gpu_milli=400 if shares and gpus == 1 else 1000,
        profile=PROFILES[int(rng.integers(3))],
        communication=Communication(weight=1),
        gpu_utilisation_percent=40,
    )


@pytest.mark.parametrize("spare", [0, 1000])
@pytest.mark.parametrize("mode", ["exclusive", "fraction", "curve"])
@pytest.mark.parametrize("method", list(CHOOSERS))
def test_jobs_that_come_and_go(method: str, mode: str, spare: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes come to look as they did before, or differ in who is beside whom; and looks may be forgotten."""
    monkeypatch.setattr(node_signatures, "SPARE", spare)
    rng = np.random.default_rng(7)
    policy = Policy(
        share_mode="exclusive" if mode == "exclusive" else "fraction",
        weights=WEIGHTS,
        interference=Interference(model="curve" if mode == "curve" else "worst"),
    )
    slow = tuple(
        Slowdown(profile=one, beside=other, gpu_thousandths=500, socket_thousandths=300 - 90 * i, node_thousandths=20)
        for i, (one, other) in enumerate([("quiet", "loud"), ("loud", "quiet"), ("loud", "loud")])
    )
    nodes = [*(node(f"n{i}", "minsky") for i in range(3)), node("n3", "dgx-1")]
    some = 0
    with Engine(isolation="thread") as engine:
        engine.load(instance(nodes, machines=[minsky(), dgx1()], slowdowns=slow, policy=policy))
        for step in range(60):
            names = [f"j{step}-{i}" for i in range(1 + step % 2)]
            engine.update(add_jobs=[newcomer(name, rng, shares=mode != "exclusive") for name in names])
            if step % 2:  # a whole round
                held = {one.job for one in engine.snapshot.running}
                names = [one.id for one in engine.snapshot.jobs if one.id not in held]
            expected = afresh(engine.snapshot, names, method)
            plan = engine.place(None if step % 2 else names, method=method, warm=False, prove=False, explain=False)
            assert kept(plan, names) == expected, step
            some += len(expected)
            engine.commit(plan)
            for one in engine.snapshot.running:
                if rng.random() < 0.2:
                    engine.release(one.job)
    assert some > 40
