"""One record of options: what it refuses, and that every signature agrees with it."""

import inspect
from dataclasses import fields

import pytest

from placeopt import BadInput, Engine, read_instance, solve
from placeopt.solving import SolveOptions, SolveParams, Solver

DEFAULTS = {field.name: getattr(SolveParams(), field.name) for field in fields(SolveParams)}
MINSKY = "instances/hand/minsky-1.json"


def test_the_keywords_are_the_fields() -> None:
    """For type checkers the keywords of ``solve`` stand in a dictionary of their own."""
    assert list(SolveOptions.__annotations__) == [field.name for field in fields(SolveParams)]


def test_no_signature_states_an_option_again() -> None:
    """Issue 17: an option is one field and, in the command line, one flag."""
    for call in (solve, Solver.solve, Engine.solve, Engine.place):
        assert not set(inspect.signature(call).parameters) & set(DEFAULTS)


def test_an_unknown_option_is_refused_by_name() -> None:
    """It used to leave as an internal fault."""
    instance = read_instance(MINSKY)
    with pytest.raises(BadInput, match="time_limit: no such option; expected method, time_limit_s"):
        solve(instance, time_limit=3)  # type: ignore[call-arg]  # the mistake tested
    with Engine() as engine, pytest.raises(BadInput, match="time_limit: no such option"):
        engine.solve(instance, time_limit=3)  # type: ignore[call-arg]  # the mistake tested


def test_none_is_the_default_of_method_and_solver_options() -> None:
    """Callers pass on what they were given; a time limit or a gap of None is a mistake."""
    assert SolveParams.of({"threads": None, "solver_options": None, "method": None}) == SolveParams()


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
        SolveParams(**options).check()  # type: ignore[arg-type]  # the mistake tested
