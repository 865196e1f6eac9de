"""Stored instances that hold every field and rule of the format are solved by every method."""

from pathlib import Path

import pytest

from placeopt import Engine, Instance, audit, read_instance, violations
from placeopt.model import Postpone
from placeopt.solving.methods import METHODS

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = sorted((ROOT / "tests" / "data" / "golden").glob("instance-*.json"))
HAND = sorted((ROOT / "instances" / "hand").glob("*.json"))


def variants(round_: Instance) -> list[Instance]:
    """The round under look-ahead and under minimal utility, with both forms of fragmentation."""
    base = round_.policy
    return [
        round_.model_copy(
            update={
                "policy": base.model_copy(
                    update={
                        "name": f"{form}-{rule}",
                        "postpone": Postpone(rule=rule),
                        "fragmentation": base.fragmentation.model_copy(update={"form": form}),
                    }
                )
            }
        )
        for form in ("partial", "fgd")
        for rule in ("none", "lookahead", "utility")
    ]


@pytest.mark.parametrize("path", [*GOLDEN, *HAND], ids=lambda path: path.stem)
def test_every_method_solves_it(path: Path) -> None:
    """
    Issue 16, A1: ``instance-1.json`` asks for ``fgd`` and ``lookahead`` together, which no method could solve.

    A fault inside a stage is an error here (``tests/conftest.py``). Time is limited, and no answer but a checked plan
    is asked for.
    """
    round_ = read_instance(path)
    with Engine() as engine:
        for method in METHODS:
            plan = engine.solve(round_, method=method, time_limit_s=0.5)
            assert violations(round_, plan) == [], method
            assert audit(round_, plan) == [], method


@pytest.mark.parametrize("path", [*GOLDEN[-1:], *HAND], ids=lambda path: path.stem)
def test_every_rule_of_postponing_goes_with_both_forms_of_fragmentation(path: Path) -> None:
    """Issue 16, A1: what look-ahead does to GPU types reaches every cost that looks at them."""
    with Engine() as engine:
        for round_ in variants(read_instance(path)):
            for method in ("auto", "drb", "fgd", "assignment"):
                plan = engine.solve(round_, method=method, time_limit_s=0.5)
                assert violations(round_, plan) == [], (round_.policy.name, method)
                assert audit(round_, plan) == [], (round_.policy.name, method)
