"""Shares of GPUs are granted by the rule in every plan and at every moment of a live cluster."""

from hypothesis import event, given
from hypothesis import strategies as st

from helpers.brute_force import optimum
from helpers.granted_shares import wrong_shares
from helpers.live_engine import engine_of, release, runs
from placeopt import Engine, Instance, audit, violations
from placeopt.documents import dumps, loads
from placeopt.problem import compile_problem
from strategies import Choice, choices, policies, rounds

STEPS = 8
limited = st.booleans().flatmap(
    lambda changes: rounds(
        policy=policies(share_mode="fraction"), changes=changes, minima=None if changes else False, fractions=True
    )
)


@given(round_=limited)
def test_of_a_plan(engine: Engine, round_: Instance) -> None:
    """Only requests count for the optimum, and for what the plan says is placed."""
    plan = engine.solve(round_, time_limit_s=1, deterministic=True)
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


@given(round_=limited, choice=choices)
def test_of_a_live_cluster(engine: Engine, round_: Instance, choice: Choice) -> None:
    """Plans for single jobs, whole rounds, releases: each snapshot can be loaded, and is solved as when made anew."""
    with engine_of(round_) as live:
        for _ in range(STEPS):
            snapshot, held = live.snapshot, runs(live)
            waiting = [job.id for job in snapshot.jobs if job.id not in held]
            match choice.number(0, 3):
                case 0 if held:
                    release(live, choice.pick(held))
                case 1:
                    plan = live.place(method="stranding", deterministic=True, warm=False)
                    anew = engine.solve(snapshot, method="stranding", deterministic=True)
                    assert plan.placements == anew.placements
                    assert wrong_shares(snapshot, plan.placements) == []
                    live.commit(plan, movable=True, shrinkable=True, preemptible=True)
                case _ if waiting:
                    plan = live.place(choice.shuffled(waiting)[: choice.number(1, 2)], explain=False)
                    placed = {placement.job for placement in plan.placements}
                    named = plan.model_copy(update={"instance": plan.instance.model_copy(update={"digest": None})})
                    assert [str(found) for found in violations(snapshot, named)] == []
                    assert wrong_shares(snapshot, (*plan.placements, *snapshot.running), placed) == []
                    live.commit(plan)
            now = live.snapshot
            if now is not round_:
                assert wrong_shares(now, now.running) == []
            with engine_of(loads(Instance, dumps(now))) as other:
                assert other.snapshot == now
