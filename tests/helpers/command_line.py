"""What tests of commands share: stored rounds, what a command leaves behind, and what a refusal looks like."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel

from placeopt.documents import dumps, loads
from placeopt.view import Cell, View

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

    @property
    def data(self) -> Any:
        """Standard output as JSON; a code other than 0 and 1 fails."""
        assert self.code in (0, 1), self
        return json.loads(self.out)

    @property
    def view(self) -> View:
        """Standard output as a view; a code other than 0 and 1 fails."""
        assert self.code in (0, 1), self
        return loads(View, self.out)

    @property
    def words(self) -> str:
        """Standard output on one line: the same however wide the terminal is."""
        return " ".join(self.out.split())


Cli = Callable[..., Outcome]


def saved(path: Path, document: BaseModel) -> Path:
    """Write a round, a plan, a scenario, a machine or a job, and return its file."""
    path.write_bytes(dumps(document))
    return path


def cells(view: View, table: str, *key: str) -> dict[str, Cell]:
    """Return the row of a table that begins with these cells, by its columns."""
    found = view.table(table)
    (row,) = (row for row in found.rows if row[: len(key)] == key)
    return {column.name: cell for column, cell in zip(found.columns, row, strict=True)}


def said(outcome: Outcome, code: int, *words: str) -> None:
    """Assert an exit code and one error message of one line with these words in it."""
    assert outcome.code == code, outcome
    assert outcome.err.startswith("error: "), outcome
    assert outcome.err.count("\n") == 1, outcome.err
    for word in words:
        assert word in outcome.err, outcome.err
