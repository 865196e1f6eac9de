"""What holds for all tests: Hypothesis' profiles, how it prints a round, and one engine whose solvers stay warm."""

import io
import os
import signal
import sys
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from hypothesis.vendor.pretty import RepresentationPrinter

from helpers import warm_workers
from helpers.command_line import Cli, Outcome
from placeopt import Engine
from placeopt.cli.run import run
from placeopt.model import Instance, Plan
from placeopt.simulation import Scenario

signal.signal(signal.SIGINT, signal.default_int_handler)
"""In the background of a shell it is ignored, and would be in all programs that tests start and interrupt."""

HOUR_S = 3600.0
SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
"""How fast the machine draws examples and runs them decides no test."""
settings.register_profile(
    "ci", deadline=None, derandomize=True, max_examples=8, suppress_health_check=SLOW, database=None
)
settings.register_profile("unshrunk", settings.get_profile("ci"), phases=[Phase.explicit, Phase.generate])
settings.register_profile(
    "night",
    deadline=None,
    max_examples=int(os.environ.get("PLACEOPT_EXAMPLES", "25000")),
    suppress_health_check=SLOW,
    print_blob=True,
    database=None,
)
settings.load_profile("ci")
# Hypothesis mixes constants of the modules that are loaded into what it draws: then a test that ran before, on the same
# worker, would decide which examples are tried, whatever the seed.
pytest.MonkeyPatch().setattr(providers, "_get_local_constants", Constants)


def _as_json(record: Instance | Plan | Scenario, printer: RepresentationPrinter, cycle: bool) -> None:
    """Print a record as the expression that reads it: what a failing property shrank to can be pasted into a test."""
    text = record.model_dump_json(exclude_defaults=True, by_alias=True)
    printer.text(f"{type(record).__name__}.model_validate_json({text!r})")


for kind in (Instance, Plan, Scenario):
    kind._repr_pretty_ = _as_json


@pytest.fixture(scope="session", autouse=True)
def _solvers_stay_warm() -> Iterator[None]:
    """Let solver processes go from one call to the next."""
    with warm_workers.workers(warm_workers.take_over, warm_workers.leave):
        yield


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """Return one engine for the session: its solvers run in this process and stay loaded."""
    with Engine(isolation="thread") as warm:
        yield warm


@pytest.fixture
def own_processes() -> Iterator[None]:
    """Let the calls of a test start solver processes and end them, as they do for users."""
    with warm_workers.workers(warm_workers.START, warm_workers.CLOSE):
        yield


@pytest.fixture(scope="module")
def unhurried() -> Iterator[None]:
    """
    Let the calls of a module begin an hour from now by their own clock: none ends for want of time on a busy machine.

    Work in deterministic mode follows the limit that is stated, not the clock.
    """
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + HOUR_S)

    def begin_slices(budget: Any) -> None:
        budget.slices_began, budget.lasting = time.monotonic(), budget.limit
        budget.first_slice_s = budget.slices_began - budget.started + HOUR_S

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("placeopt.solving.api.time", later)
        patch.setattr("placeopt.solving.budget.Budget.begin_slices", begin_slices)
        yield


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command line in this process, so that hundreds are affordable; ``stdin``: on its standard input."""

    def call(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Outcome(int(code), out, err)

    return call
