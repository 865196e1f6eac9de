"""A plan that states something wrong of itself is caught."""

import pytest

from placeopt import Engine, Instance, Plan, Policy, audit, generate, read_instance, violations
from placeopt.build import instance, job, machine, node, placement
from placeopt.model import Cost, Weights


@pytest.fixture(scope="module")
def tour(engine: Engine) -> tuple[Instance, Plan]:
    """The optimum of a hand-made round: value 8000, communication 27."""
    round_ = read_instance("instances/hand/dgx1-tour.json")
    return round_, engine.solve(round_, time_limit_s=20)


def test_every_figure_counts(tour: tuple[Instance, Plan]) -> None:
    """One figure changed at a time, on a plan that passes untouched."""
    round_, plan = tour
    assert audit(round_, plan) == []
    value, cost = plan.levels
    raw = plan.costs["communication"]

    def tampered(**fields: object) -> list[str]:
        return audit(round_, plan.model_copy(update=fields))

    def level(which: int, **fields: object) -> list[str]:
        levels = [value, cost]
        levels[which] = levels[which].model_copy(update=fields)
        return tampered(levels=tuple(levels))

    assert "value is stated as 8001" in level(0, objective=8001)[0]
    assert "cost is stated as 0" in level(1, objective=0)[0]
    assert any("wrong side" in found for found in level(0, bound=7999))
    assert any("wrong side" in found for found in level(1, bound=cost.objective + 1))
    assert any("sense" in found for found in level(0, sense="min"))
    assert "levels" in tampered(levels=(value,))[0]
    assert "levels" in tampered(levels=(value, value, cost))[0]
    for wrong in ({"raw": raw.raw + 1}, {"weight": raw.weight + 1}, {"worst": raw.worst + 1}):
        costs = {"communication": raw.model_copy(update=wrong)}
        assert "communication should be" in tampered(costs=costs)[0]
    assert "communication should be" in tampered(costs={})[0]
    extra = {**plan.costs, "horus": Cost(raw=0, weight=1, worst=1, unit="thousandths")}
    assert "do not count" in tampered(costs=extra)[0]
    assert "gap" in tampered(gap=0.1)[0]
    assert "gap" in tampered(gap=None)[0]
    assert "status" in tampered(status="feasible")[0]
    assert any("status" in found for found in level(0, bound=8001))


def test_a_placement_moved_behind_its_back(engine: Engine) -> None:
    """The costs belong to another place then."""
    pair = job("pair", gpus=2, communication={"weight": 1})
    machines = [machine(gpu_distance_matrix=((0, 1, 9, 9), (1, 0, 9, 9), (9, 9, 0, 1), (9, 9, 1, 0)))]
    policy = Policy(weights=Weights(communication=1000, interference=0, fragmentation=0))
    round_ = instance([node("n0")], [pair], machines=machines, policy=policy)
    plan = engine.solve(round_)
    assert audit(round_, plan) == []
    across = plan.model_copy(update={"placements": (placement(pair, [("n0", [1, 2])]),)})
    assert violations(round_, across) == []
    assert any("communication should be raw 9" in found for found in audit(round_, across))


def test_a_plan_from_which_a_placed_job_is_dropped(engine: Engine) -> None:
    """With the figures of the plan before, its value is missed."""
    round_ = generate("uniform", jobs=60, nodes=10, gpus=8, seed=3)
    plan = engine.solve(round_, method="stranding")
    assert audit(round_, plan) == []
    runs = {held.job for held in round_.running}
    started = next(held for held in plan.placements if held.job not in runs)
    waits = plan.unplaced[0].model_copy(update={"job": started.job})
    less = plan.model_copy(
        update={
            "placements": tuple(held for held in plan.placements if held is not started),
            "unplaced": (*plan.unplaced, waits),
        }
    )
    assert any("value is stated as" in fault for fault in audit(round_, less))
