"""Errors leave worker processes: pickled and back, each is what it was."""

import pickle

import pytest

from placeopt import BadInput, EngineInUse, InternalFault, SolverFault, StaleSnapshot, Unsupported
from placeopt.errors import PlaceoptError


@pytest.mark.parametrize(
    "error",
    [
        BadInput("file: wrong"),
        EngineInUse("place", "update"),
        InternalFault("contradiction"),
        SolverFault("nonsense"),
        StaleSnapshot(3, 5, ("a",), ("n0",), "job 'a' ended"),
        Unsupported("too large"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_survives_pickling(error: PlaceoptError) -> None:
    """`EngineInUse` and `StaleSnapshot` could not be read back: their arguments are not their message."""
    back = pickle.loads(pickle.dumps(error))  # noqa: S301 - made here
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert vars(back) == vars(error)
