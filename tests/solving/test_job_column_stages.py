"""Stages ``columns`` and ``gangs``: a bound that no plan passes, checked plans, and limits that never make it worse."""

import pytest

from placeopt import Engine, generate
from placeopt.check import violations
from placeopt.model import Plan
from placeopt.solving.stages import gang_diving, job_columns


def names(plan: Plan) -> list[str]:
    return [stage.name for stage in plan.stages]


@pytest.mark.parametrize("seed", [3, 4])
def test_gangs_are_dived_for(seed: int) -> None:
    """Columns raise the bound of flows, and the plan keeps every rule; a longer limit gives none that is worse."""
    of = generate("gangs", jobs=300, nodes=64, gpus=8, seed=seed)
    with Engine() as engine:
        short, long, longest = (engine.solve(of, time_limit_s=s, deterministic=True) for s in (1, 3, 10))
    plans = [short, long, longest]
    for plan in plans:
        assert violations(of, plan) == []
        bound = plan.levels[1].bound
        assert plan.limit == "time" if bound is None else bound <= plan.levels[1].objective
    if "time" not in {plan.limit for plan in plans}:  # a machine that is too slow ends rounds by the clock
        assert "columns" not in names(short)
        assert {"columns", "gangs"} <= set(names(long))
        flows, columns = (next(s for s in long.stages if s.name == name) for name in ("flows", "columns"))
        assert flows.bound is not None
        assert columns.bound is not None
        assert columns.bound > flows.bound
        reached = [(-plan.levels[0].objective, plan.levels[1].objective) for plan in plans]
        assert reached == sorted(reached, reverse=True)


def test_rounds_without_gangs_have_no_columns() -> None:
    """One bundle a job: flows are exact for these, and nothing is generated."""
    of = generate("varied", jobs=200, nodes=40, gpus=4, seed=3)
    of = of.model_copy(update={"jobs": tuple(job for job in of.jobs if job.options[0].workers == 1)})
    with Engine() as engine:
        plan = engine.solve(of, time_limit_s=3, deterministic=True)
    assert not {"columns", "gangs"} & set(names(plan))


def test_a_program_that_fails_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a solution of any program the bound is that of flows, and the plan is made as before."""
    of = generate("gangs", jobs=300, nodes=64, gpus=8, seed=3)
    for module in (job_columns, gang_diving):
        monkeypatch.setattr(module, "solve_master", lambda *_: (None, None))
    with Engine() as engine:
        plan = engine.solve(of, time_limit_s=3, deterministic=True)
    assert violations(of, plan) == []
    assert plan.levels[1].bound is not None
