"""Questions solve in this process: starting one takes longer than most rounds of a property."""

import inspect
from collections.abc import Iterator

import pytest

from placeopt import Engine, explain
from placeopt.solvers import InProcess


@pytest.fixture(scope="module", autouse=True)
def in_this_process() -> Iterator[None]:
    """Let what does not say otherwise use threads; what processes add is tested in ``tests/solving``."""
    with pytest.MonkeyPatch.context() as patch:
        for ask in (Engine.__init__, inspect.unwrap(explain.explain)):
            patch.setitem(ask.__kwdefaults__, "isolation", "thread")
        patch.setattr("placeopt.whatif.marginal_prices.Worker", InProcess)
        yield
