"""The registry of costs: what each states agrees with the file format, and every name stands once a policy."""

import pytest

from placeopt.model import Fragmentation, Policy, Weights
from placeopt.terms.costs import COSTS, costs_of


@pytest.mark.parametrize("cost", COSTS, ids=lambda cost: type(cost).__name__)
def test_each_cost_has_a_weight_in_the_policy(cost) -> None:  # type: ignore[no-untyped-def]
    """The field of ``policy.weights`` that a cost names exists, and its default is the one that the cost states."""
    assert Weights.model_fields[cost.name].default == cost.default_weight


def test_the_policy_has_no_weight_without_a_cost() -> None:
    assert set(Weights.model_fields) == {cost.name for cost in COSTS}


@pytest.mark.parametrize("form", ["partial", "fgd"])
def test_a_policy_selects_one_form_of_each_cost(form: str) -> None:
    names = [cost.name for cost in costs_of(Policy(fragmentation=Fragmentation.model_validate({"form": form})))]
    assert names == ["communication", "interference", "fragmentation", "horus", "resource"]
