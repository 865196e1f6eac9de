"""Running commands inside this process, which is what makes hundreds of them affordable."""

import io
import sys
from pathlib import Path

import pytest

from helpers.command_line import MINSKY, Cli, Outcome
from placeopt.cli.run import run


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command line; ``stdin`` is what it finds on standard input."""

    def call(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Outcome(int(code), out, err)

    return call


@pytest.fixture(scope="session")
def minsky_plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plans") / "minsky.json"
    assert run(["solve", str(MINSKY), "--out", str(path), "--quiet"]) == 0
    return path
