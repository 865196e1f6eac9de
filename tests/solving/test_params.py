"""One record of options: what it refuses, and that every signature agrees with it."""

import inspect
from dataclasses import fields

import pytest

from placeopt import BadInput, Engine, solve
from placeopt.solving.api import Solver
from placeopt.solving.params import SolveParams

DEFAULTS = {field.name: getattr(SolveParams(), field.name) for field in fields(SolveParams)}
NOT_OF_SOLVE = {"memory_limit_mib", "solver_options"}
"""Options of an engine only."""


def test_every_option_is_a_keyword_with_the_same_default() -> None:
    """Issue 17: an option that one signature lacks, or states with another default, would be read differently."""
    for call, missing in ((Solver.solve, set()), (solve, NOT_OF_SOLVE), (Engine.place, NOT_OF_SOLVE)):
        stated = inspect.signature(call).parameters
        options = {name: value for name, value in DEFAULTS.items() if name not in missing}
        assert set(options) <= set(stated)
        given = {name: stated[name].default for name in options if stated[name].default is not None}
        assert given == {name: options[name] for name in given}


def test_an_engine_solves_with_the_signature_of_a_solver() -> None:
    """It delegates; help and completion show the keywords all the same."""
    assert inspect.signature(Engine.solve) == inspect.signature(Solver.solve)
    assert Engine.solve.__doc__ == Solver.solve.__doc__


def test_its_keywords_are_those_of_solve() -> None:
    """The command line passes them on as they are."""
    assert SolveParams(seed=3, solver_options={"presolve": "off"}).keywords() == {
        **DEFAULTS,
        "seed": 3,
        "solver_options": {"presolve": "off"},
    }


@pytest.mark.parametrize(("options", "words"), [({"seed": -1}, "seed: -1, expected 0 to"), ({"gap": 2}, "gap: 2,")])
def test_what_is_out_of_range_is_refused(options: dict[str, int], words: str) -> None:
    """By name, with the value and what is expected."""
    with pytest.raises(BadInput, match=words):
        SolveParams(**options).check()  # type: ignore[arg-type]
