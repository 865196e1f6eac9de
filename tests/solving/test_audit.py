"""A plan that states something wrong of itself is caught."""

from typing import Any

from placeopt import Engine, Policy, audit, generate, read_instance, violations
from placeopt.build import instance, job, machine, node, placement
from placeopt.model import Cost, Weights


def changed(record: Any, **fields: object) -> Any:
    return record.model_copy(update=fields)


def test_every_figure_counts(engine: Engine) -> None:
    """The optimum of a hand-made round, of value 8000 and communication 27, with one figure changed at a time."""
    round_ = read_instance("instances/hand/dgx1-tour.json")
    plan = engine.solve(round_, time_limit_s=20)
    assert audit(round_, plan) == []
    (value, cost), raw = plan.levels, plan.costs["communication"]
    extra = {**plan.costs, "horus": Cost(raw=0, weight=1, worst=1, unit="thousandths")}
    wrong: list[tuple[str, dict[str, object]]] = [
        ("value is stated as 8001", {"levels": (changed(value, objective=8001), cost)}),
        ("cost is stated as 0", {"levels": (value, changed(cost, objective=0))}),
        ("7999 of value is on the wrong side", {"levels": (changed(value, bound=7999), cost)}),
        ("of cost is on the wrong side", {"levels": (value, changed(cost, bound=cost.objective + 1))}),
        ("sense 'min'", {"levels": (changed(value, sense="min"), cost)}),
        ("levels: ['value'], expected", {"levels": (value,)}),
        ("levels: ['value', 'value', 'cost'], expected", {"levels": (value, value, cost)}),
        *(
            ("communication should be", {"costs": {"communication": changed(raw, **{name: getattr(raw, name) + 1})}})
            for name in ("raw", "weight", "worst")
        ),
        ("communication should be", {"costs": {}}),
        ("do not count", {"costs": extra}),
        ("gap: 0.1", {"gap": 0.1}),
        ("gap: None", {"gap": None}),
        ("status: 'feasible'", {"status": "feasible"}),
        ("status: 'optimal' with 1", {"levels": (changed(value, bound=8001), cost)}),
    ]
    for words, fields in wrong:
        assert any(words in fault for fault in audit(round_, changed(plan, **fields))), words


def test_a_placement_moved_behind_its_back(engine: Engine) -> None:
    """The costs belong to another place then."""
    pair = job("pair", gpus=2, communication={"weight": 1})
    machines = [machine(gpu_distance_matrix=((0, 1, 9, 9), (1, 0, 9, 9), (9, 9, 0, 1), (9, 9, 1, 0)))]
    policy = Policy(weights=Weights(communication=1000, interference=0, fragmentation=0))
    round_ = instance([node("n0")], [pair], machines=machines, policy=policy)
    plan = engine.solve(round_)
    assert audit(round_, plan) == []
    across = changed(plan, placements=(placement(pair, [("n0", [1, 2])]),))
    assert violations(round_, across) == []
    assert any("communication should be raw 9" in found for found in audit(round_, across))


def test_a_plan_from_which_a_placed_job_is_dropped(engine: Engine) -> None:
    """With the figures of the plan before, its value is missed."""
    round_ = generate("uniform", jobs=60, nodes=10, gpus=8, seed=3)
    plan = engine.solve(round_, method="stranding")
    assert audit(round_, plan) == []
    runs = {held.job for held in round_.running}
    started = next(held for held in plan.placements if held.job not in runs)
    left = tuple(held for held in plan.placements if held is not started)
    less = changed(plan, placements=left, unplaced=(*plan.unplaced, changed(plan.unplaced[0], job=started.job)))
    assert any("value is stated as" in fault for fault in audit(round_, less))
