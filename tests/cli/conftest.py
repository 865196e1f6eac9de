"""A plan for commands that read one."""

from pathlib import Path

import pytest

from helpers.command_line import MINSKY
from placeopt.cli.run import run


@pytest.fixture(scope="session")
def minsky_plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plans") / "minsky.json"
    assert run(["solve", str(MINSKY), "--out", str(path), "--quiet"]) == 0
    return path
