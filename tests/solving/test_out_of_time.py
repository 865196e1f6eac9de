"""A round whose time is over before it is compiled: a lawful plan all the same."""

import pytest

from placeopt import BadInput, Engine, Unsupported, audit, violations
from placeopt.build import instance, job, running
from placeopt.errors import OutOfTime
from placeopt.linear import ENTRIES_PER_VARIABLE, ModelBuilder

NO_TIME_S = 1e-9


def test_greedys_first_plan_comes_whatever_the_time(engine: Engine) -> None:
    round_ = instance(1, [job("a")])
    plan = engine.solve(round_, time_limit_s=NO_TIME_S)
    assert [held.job for held in plan.placements] == ["a"]
    assert violations(round_, plan) == []
    assert audit(round_, plan) == []


def test_what_stands_is_listed_and_what_contradicts_itself_is_bad_input(engine: Engine) -> None:
    """A running job on a node that is not listed stands; the plan without time says so."""
    a, b = job("a"), job("b", gpus=2)
    round_ = instance(1, [a, b], running=[running(a, [("gone", [0])])])
    plan = engine.solve(round_, time_limit_s=NO_TIME_S)
    assert [entry.job for entry in plan.standing] == ["a"]
    assert violations(round_, plan) == []
    twice = [running(a, [("n0", [0])]), running(b, [("n0", [0, 1])])]
    with pytest.raises(BadInput, match="running placements"):
        engine.solve(instance(1, [a, b], running=twice), time_limit_s=NO_TIME_S)


def test_building_checks_its_deadline() -> None:
    """A model too large is refused at the first column too many, not after the last; and by the entries of its rows."""
    with pytest.raises(OutOfTime, match="no time left to build the model"):
        ModelBuilder(0.0).add_variables(0, 1, count=3)
    builder = ModelBuilder(most_variables=10)
    builder.add_variables(0, 1, count=10)
    assert not builder.is_full
    with pytest.raises(Unsupported, match="at least 11 columns and 0 entries of rows: too large"):
        builder.add_variables(0, 1)
    assert (builder.is_full, builder.num_variables) == (True, 10)
    dense = ModelBuilder(most_variables=10)
    columns = dense.add_variables(0, 1, count=10)
    for _ in range(ENTRIES_PER_VARIABLE):
        dense.add_row(columns, 1, 0, 5)
    with pytest.raises(Unsupported, match="at least 10 columns and 201 entries of rows: too large"):
        dense.add_row(columns[:1], 1, 0, 1)
    assert (dense.is_full, dense.num_rows) == (True, ENTRIES_PER_VARIABLE)
