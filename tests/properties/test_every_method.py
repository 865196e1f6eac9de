"""Every method on every kind of round: a lawful plan, the same again by the same seed, and bounds that are true."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.brute_force import optimum
from helpers.claims import complaints, untrue
from placeopt import Engine, Instance, Unsupported, read_instance
from placeopt.model import Postpone
from placeopt.problem import compile_problem
from placeopt.solving import METHODS
from strategies import odd_rounds, rounds

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = sorted((ROOT / "tests" / "data" / "golden").glob("instance-*.json"))
HAND = sorted((ROOT / "instances" / "hand").glob("*.json"))
FOUND = sorted((ROOT / "tests" / "data" / "rounds").glob("*.json"))
"""Random rounds that once broke something."""
PROGRAMS = tuple(name for name in METHODS if "cbc" in name)
"""Methods that start a program for each model."""


@settings(max_examples=settings().max_examples // 2)
@given(round_=st.one_of(rounds(), rounds(changes=True, resources=True), odd_rounds()), seed=st.integers(0, 99))
def test_on_random_rounds(engine: Engine, round_: Instance, seed: int) -> None:
    """Methods that start a program take turns; heuristics solve twice, which gives the same plan byte for byte."""
    best, least, _ = optimum(compile_problem(round_))
    wrong = []
    for name, method in METHODS.items():
        if name in PROGRAMS and name != PROGRAMS[seed % len(PROGRAMS)]:
            continue
        try:
            plan = engine.solve(round_, method=name, seed=seed, time_limit_s=1, deterministic=True)
        except Unsupported:
            continue
        wrong += [f"{name}: {text}" for text in complaints(round_, plan) + untrue(plan, best, least)]
        if not method.exact and plan.limit != "time":  # where the clock cuts in nothing is promised
            again = engine.solve(round_, method=name, seed=seed, time_limit_s=1, deterministic=True)
            if again.limit != "time" and again.model_dump_json() != plan.model_dump_json():
                wrong.append(f"{name}: another plan with the same seed")
    assert wrong == []


@pytest.mark.parametrize("path", [*GOLDEN, *HAND, *FOUND], ids=lambda path: path.stem)
def test_on_stored_rounds(engine: Engine, path: Path) -> None:
    """Rounds that hold every field and rule of the format; time is limited, and a checked plan is all that is asked."""
    round_ = read_instance(path)
    for method in METHODS:
        plan = engine.solve(round_, method=method, time_limit_s=0.2)
        assert complaints(round_, plan) == [], method
        assert plan.levels[0].bound is not None


@pytest.mark.parametrize("path", [*GOLDEN[-1:], *HAND], ids=lambda path: path.stem)
def test_every_rule_of_postponing_goes_with_both_forms_of_fragmentation(engine: Engine, path: Path) -> None:
    """What look-ahead does to GPU types reaches every cost that looks at them."""
    round_ = read_instance(path)
    for form in ("partial", "fgd"):
        for rule in ("none", "lookahead", "utility"):
            fragmentation = round_.policy.fragmentation.model_copy(update={"form": form})
            update = {"postpone": Postpone(rule=rule), "fragmentation": fragmentation}
            variant = round_.model_copy(update={"policy": round_.policy.model_copy(update=update)})
            for method in ("auto", "drb", "fgd", "assignment"):
                assert complaints(variant, engine.solve(variant, method=method, time_limit_s=0.2)) == [], method
