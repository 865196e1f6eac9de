"""A solver of the registry that answers what a test says; see `installed`."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest import mock

from placeopt.linear import LinearModel
from placeopt.solvers import SOLVERS, Entry, Progress, Solution, SolveOptions, load

Answer = Callable[[LinearModel, SolveOptions], Solution]
_answers: list[Answer] = []
_highs = load("highs")


def solve(
    model: LinearModel,
    options: SolveOptions,
    on_progress: Callable[[Progress], None] | None = None,
    stop: threading.Event | None = None,
) -> Solution:
    """Answer integer models as the test says; relaxations are solved by HiGHS."""
    if options.relax:
        return _highs(model, options, on_progress, stop)
    return _answers[-1](model, options)


@contextmanager
def installed(answer: Answer, *names: str) -> Iterator[None]:
    """Let the solvers of these names answer so, in engines of ``isolation="thread"``."""
    entries = {name: Entry(__name__, SOLVERS[name].package, SOLVERS[name].capability) for name in names}
    _answers.append(answer)
    with mock.patch("placeopt.solvers.registry.SOLVERS", {**SOLVERS, **entries}):
        yield
    _answers.pop()
