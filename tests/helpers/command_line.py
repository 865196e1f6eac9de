"""What tests of commands share: stored rounds, what a command leaves behind, and what a refusal looks like."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
INSTANCES, EXAMPLES = ROOT / "instances", ROOT / "examples"
MINSKY = INSTANCES / "hand" / "minsky-1.json"
DGX1 = INSTANCES / "hand" / "dgx1-1.json"
GANGS = INSTANCES / "generated" / "gangs-20x16x4-s0.json.gz"


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


Cli = Callable[..., Outcome]


def said(outcome: Outcome, code: int, *words: str) -> None:
    """Assert an exit code and one error message of one line with these words in it."""
    assert outcome.code == code, outcome
    assert outcome.err.startswith("error: "), outcome
    assert outcome.err.count("\n") == 1, outcome.err
    for word in words:
        assert word in outcome.err, outcome.err
