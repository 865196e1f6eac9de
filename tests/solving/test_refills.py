"""Stage ``refills``: runs where resources bind, is skipped where it cannot help, and repeats in deterministic mode."""

import pytest

import placeopt
from placeopt import Plan, generate
from placeopt.check import violations
from placeopt.model import Instance, Queue
from placeopt.solving import METHODS
from placeopt.solving.methods import solver_method
from placeopt.solving.stages.node_refills import RefillNodes


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method of greedy, bound and this stage."""
    monkeypatch.setitem(METHODS, "only-refills", solver_method(RefillNodes()))


def solved(round_: Instance, limit: float = 10) -> Plan:
    return placeopt.solve(round_, method="only-refills", time_limit_s=limit, deterministic=True)


def test_longer_limits_go_on() -> None:
    """The same plan twice, no worse plan at a longer limit, ended by work, a step further in each slice."""
    round_ = generate("resources", jobs=120, nodes=10, gpus=8, seed=46)
    plans = [solved(round_, limit) for limit in (3, 10, 30, 30)]
    values = [plan.levels[0].objective for plan in plans]
    assert values == sorted(values)
    assert plans[2].placements == plans[3].placements
    assert {plan.limit for plan in plans} == {"work"}
    assert [sum(stage.name == "refills" for stage in plan.stages) for plan in plans] == [3, 4, 5, 5]
    for plan in plans:
        assert violations(round_, plan) == []


def test_it_is_skipped_where_it_cannot_help() -> None:
    """Near the bound, in a strict queue, and where queues have limits."""
    near = generate("uniform", jobs=300, nodes=20, gpus=4, seed=1)
    far = generate("resources", jobs=60, nodes=5, gpus=8, seed=2)
    queues = far.model_copy(update={"policy": far.policy.model_copy(update={"queues": (Queue(id="any"),)})})
    for round_, runs in ((near, False), (far, True), (queues, False)):
        assert ("refills" in [stage.name for stage in solved(round_).stages]) == runs
