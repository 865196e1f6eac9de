"""Running commands inside this process, which is what makes hundreds of them affordable."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from placeopt.cli.run import run

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
MINSKY = INSTANCES / "hand" / "minsky-1.json"
DGX1 = INSTANCES / "hand" / "dgx1-1.json"
GANGS = INSTANCES / "generated" / "gangs-20x16x4-s0.json.gz"


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


Cli = Callable[..., Outcome]


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
    """The optimal plan of the smallest hand-made round."""
    path = tmp_path_factory.mktemp("plans") / "minsky.json"
    assert run(["solve", str(MINSKY), "--out", str(path), "--quiet"]) == 0
    return path


def said(outcome: Outcome, code: int, *words: str) -> None:
    """Assert an exit code and one error message of one line with these words in it."""
    assert outcome.code == code, outcome
    assert outcome.err.startswith("error: "), outcome
    assert outcome.err.count("\n") == 1, outcome.err
    for word in words:
        assert word in outcome.err, outcome.err
