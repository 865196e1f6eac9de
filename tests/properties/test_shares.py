"""Shares of GPUs are granted by the rule in every plan and at every moment of a live cluster."""

import numpy as np
from hypothesis import event, given
from hypothesis import strategies as st

from helpers.brute_force import optimum
from helpers.granted_shares import wrong_shares
from placeopt import Engine, Instance, audit, violations
from placeopt.formats import dumps, loads
from placeopt.problem import compile_problem
from strategies import policies, rounds

STEPS = 8
limited = st.booleans().flatmap(
    lambda changes: rounds(
        policy=policies(share_mode="fraction"), changes=changes, minima=None if changes else False, fractions=True
    )
)


@given(round_=limited)
def test_of_a_plan(engine: Engine, round_: Instance) -> None:
    """Only requests count for the optimum, and for what the plan says is placed."""
    plan = engine.solve(round_, time_limit_s=30)
    assert [str(found) for found in violations(round_, plan)] + audit(round_, plan) == []
    assert wrong_shares(round_, plan.placements) == []
    value, cost, _ = optimum(compile_problem(round_))
    reached = {level.name: level.objective for level in plan.levels}
    if plan.status == "optimal":
        assert (reached["value"], reached.get("cost", cost)) == (value, cost)
    demands = {(job.id, option.id): option.demand for job in round_.jobs for option in job.options}
    requested = sum(demands[p.job, p.option].gpu_milli * len(a.gpus) for p in plan.placements for a in p.assignments)
    assert plan.facts["gpu_milli_placed"] == requested
    above = any(
        milli > demands[p.job, p.option].gpu_milli
        for p in plan.placements
        for a in p.assignments
        for milli in a.gpus.values()
    )
    event("a share above the request" if above else "requests alone")


@given(round_=limited, seed=st.integers(0, 2**32 - 1))
def test_of_a_live_cluster(engine: Engine, round_: Instance, seed: int) -> None:
    """Plans for single jobs, whole rounds, releases: each snapshot can be loaded, and is solved as when made anew."""
    rng = np.random.default_rng(seed)
    with Engine(isolation="thread") as live, Engine(isolation="thread") as other:
        live.load(round_)
        for _ in range(STEPS):
            snapshot = live.snapshot
            runs = [held.job for held in snapshot.running]
            waiting = [job.id for job in snapshot.jobs if job.id not in runs]
            match int(rng.integers(4)):
                case 0 if runs:
                    live.release(runs[int(rng.integers(len(runs)))])
                case 1:
                    plan = live.place(method="stranding", deterministic=True, warm=False)
                    anew = engine.solve(snapshot, method="stranding", deterministic=True)
                    assert plan.placements == anew.placements
                    assert wrong_shares(snapshot, plan.placements) == []
                    live.commit(plan, movable=True, shrinkable=True, preemptible=True)
                case _ if waiting:
                    some = [str(name) for name in rng.permutation(waiting)[: int(rng.integers(1, 3))]]
                    plan = live.place(some, explain=False)
                    placed = {placement.job for placement in plan.placements}
                    named = plan.model_copy(update={"instance": plan.instance.model_copy(update={"digest": None})})
                    assert [str(found) for found in violations(snapshot, named)] == []
                    assert wrong_shares(snapshot, (*plan.placements, *snapshot.running), placed) == []
                    live.commit(plan)
            now = live.snapshot
            if now is not round_:
                assert wrong_shares(now, now.running) == []
            other.load(loads(Instance, dumps(now)))
