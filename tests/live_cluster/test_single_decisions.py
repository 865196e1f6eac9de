"""A cluster that stays decides for single jobs as greedy does on a round compiled from nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.live_engine import engine_of, places, release, update
from helpers.machines import sockets
from helpers.plan_records import plan_of
from placeopt import Instance, Plan, Policy
from placeopt.build import instance, job, machine, node, running
from placeopt.heuristics import CHOOSERS, greedy
from placeopt.model import Communication, Interference, Job, LabelExpression, Relation, Slowdown, Split, Weights
from placeopt.problem import compile_problem
from placeopt.topology import dgx1, minsky
from strategies import rounds

SCORES = {"stranding": "stranding", "best-fit": "best_fit", "prices": "prices", "fgd": "fgd"}
METHODS = (*SCORES, *CHOOSERS)
OF_A_MIX = ("prices", "fgd")
"""They price nodes by the jobs that come, of which a cluster that stays has seen more than its snapshot holds."""


def where(plan: Plan, name: str) -> list[tuple[str, list[int]]]:
    """Return the nodes of a job, and its GPUs there; none if it waits."""
    return sorted((node, sorted(gpus)) for node, gpus in places(plan).get(name, ()))


def afresh(cluster: Instance, name: str, method: str) -> list[tuple[str, list[int]]]:
    """Where greedy puts a job beside what runs, with nothing known from before."""
    problem = compile_problem(cluster)
    chooser = {"score": SCORES[method]} if method in SCORES else {"chooser": CHOOSERS[method]}
    found = greedy(problem, np.array([problem.job_ids.index(name)]), **chooser)
    return where(plan_of(problem, found.allocation), name)


@given(rounds(), st.sampled_from(METHODS))
def test_any_round(round_: Instance, method: str) -> None:
    """Each waiting job, one after the other, each committed."""
    held = {one.job for one in round_.running}
    with engine_of(round_) as engine:
        for name in [one.id for one in round_.jobs if one.id not in held]:
            expected = afresh(engine.snapshot, name, method)
            plan = engine.place([name], method=method, explain=False)
            assert bool(where(plan, name)) == bool(expected)
            assert where(plan, name) == expected or round_.policy.postpone.rule != "none"
            engine.commit(plan)


@pytest.mark.parametrize("method", SCORES)
def test_what_looks_beyond_room(method: str) -> None:
    """GPUs of one socket, a node without jobs of a label: scores that know all places at once ask for these, too."""
    crosswise, label = job("r", gpus=2), {"app": "db"}
    apart = Relation(kind="apart", level="node", selector=(LabelExpression(key="app", operator="In", values=("db",)),))
    whole = job("whole", gpus=2, splits=(Split(level="socket", domains=1),))
    db, web = job("db", labels=label), job("web", relations=(apart,))
    held = [running(crosswise, [("n0", [0, 2])])]
    with engine_of(instance(2, [crosswise, whole], machines=[sockets(2, 2)], running=held)) as engine:
        (at,) = where(engine.place(["whole"], method=method, explain=False), "whole")
        assert at in [("n1", [0, 1]), ("n1", [2, 3])]
    held = [running(db, [("n0", [0])])]
    with engine_of(instance(2, [db, web], machines=[sockets(2, 2)], running=held)) as engine:
        assert [node for node, _ in where(engine.place(["web"], method=method, explain=False), "web")] == ["n1"]


def newcomer(name: str, rng: np.random.Generator, *, shares: bool) -> Job:
    """One or two GPUs, or part of one, or none, with a profile or none: few kinds, so that nodes come to look alike."""
    gpus = int(rng.choice([0, 1, 1, 2]))
    return job(
        name,
        gpus=gpus,
        gpu_milli=int(rng.choice([190, 400, 650])) if shares and gpus == 1 else 1000,
        cpu_millicores=int(rng.integers(0, 4)) * 1000,
        profile=("quiet", "loud", None)[int(rng.integers(3))],
        communication=Communication(weight=1),
        gpu_utilisation_percent=40,
    )


@pytest.mark.parametrize("mode", ["exclusive", "fraction", "curve"])
@pytest.mark.parametrize("method", [name for name in METHODS if name not in OF_A_MIX])
def test_jobs_that_come_and_go(method: str, mode: str) -> None:
    """Nodes come to look as they did before, or differ in who is beside whom; some are drained, and some added."""
    rng = np.random.default_rng(7)
    policy = Policy(
        share_mode="exclusive" if mode == "exclusive" else "fraction",
        weights=Weights(communication=334, interference=333, fragmentation=333),
        interference=Interference(model="curve" if mode == "curve" else "worst"),
    )
    slow = tuple(
        Slowdown(profile=one, beside=other, gpu_thousandths=500, socket_thousandths=300 - 90 * i, node_thousandths=20)
        for i, (one, other) in enumerate([("quiet", "loud"), ("loud", "quiet"), ("loud", "loud")])
    )
    kinds = [minsky(), dgx1(), machine("two", gpus=2, cpu_millicores=12_000)]
    nodes = [*(node(f"n{i}", "minsky") for i in range(3)), node("n3", "dgx-1")]
    some = 0
    with engine_of(nodes, machines=kinds, slowdowns=slow, policy=policy) as engine:
        for step in range(40):
            name = f"j{step}"
            update(engine, add_jobs=[newcomer(name, rng, shares=mode != "exclusive")])
            expected = afresh(engine.snapshot, name, method)
            plan = engine.place([name], method=method, explain=False)
            assert where(plan, name) == expected, step
            some += bool(expected)
            engine.commit(plan)
            for one in engine.snapshot.running:
                if rng.random() < 0.1:
                    release(engine, one.job)
            if step % 15 == 7:
                update(
                    engine, nodes={"n0": "drain" if step < 20 else "undrain", f"new{step}": node(f"new{step}", "two")}
                )
    assert some > 25
