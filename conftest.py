"""For all tests: a fault inside a stage, which a solve survives, fails the test that meets it."""

import pytest

from placeopt.solving import stage


@pytest.fixture(autouse=True)
def faults_are_loud(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let exceptions in stages out, but for tests that ask for the fixture ``survived_faults``."""
    if "survived_faults" in request.fixturenames:
        return

    def raise_it(context: object, stage: object, error: Exception, started: float) -> None:
        del context, stage, started
        if not isinstance(error, MemoryError):
            raise error

    monkeypatch.setattr(stage, "note_fault", raise_it)


@pytest.fixture
def survived_faults() -> None:
    """Mark a test that makes a stage fail and looks at the plan."""
