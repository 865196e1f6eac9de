"""A solver of the registry that answers what a test says; see `installed`."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from placeopt.linear import LinearModel
from placeopt.solvers import SOLVERS, Entry, Solution, SolveOptions, load

Answer = Callable[[LinearModel, SolveOptions], Solution]
_answers: list[Answer] = []
_highs = load("highs")


def solve(reading: Any, stop: threading.Event) -> Solution:
    """Answer integer models as the test says; relaxations are solved by HiGHS."""
    if reading.options.relax:
        return _highs(reading.model, reading.options, None, stop)
    return _answers[-1](reading.model, reading.options)


@contextmanager
def installed(answer: Answer, *names: str) -> Iterator[None]:
    """Let the solvers of these names answer so, in engines of ``isolation="thread"``."""
    entries = {name: Entry(__name__, SOLVERS[name].package, SOLVERS[name].capability) for name in names}
    _answers.append(answer)
    with mock.patch("placeopt.solvers.registry.SOLVERS", {**SOLVERS, **entries}):
        yield
    _answers.pop()
