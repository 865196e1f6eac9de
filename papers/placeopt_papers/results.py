"""Rows of simulations: what was simulated, by which commit, and its measures; kept as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from placeopt import BadInput

RESULTS = Path(__file__).resolve().parents[1] / "results.jsonl"
"""The stored rows, from which the tables of the page are made."""


@dataclass(frozen=True)
class Cell:
    """One simulation: a setting, a policy, a seed; ``constant`` is multiplied by ``factor`` if it is named."""

    setting: str
    policy: str
    seed: int = 0
    full: bool = False
    constant: str = ""
    factor: float = 1.0


@dataclass(frozen=True)
class Row:
    """
    What came of a simulation.

    ``figures``: keys of ``MEASURES``; ``never_end``: jobs that never end, ``why``: the first of them; ``cpu_s``: of
    this process, solver processes not counted.
    """

    cell: Cell
    commit: str
    cpu_s: float
    figures: Mapping[str, float | None] = field(default_factory=dict)
    jobs: int = 0
    never_end: int = 0
    why: str = ""

    def line(self) -> str:
        """Return it as a line of JSON; fields that are as by default are left out."""
        flat = {**asdict(self.cell), **asdict(self)}
        del flat["cell"]
        told = {key: value for key, value in flat.items() if value != DEFAULTS.get(key)}
        return json.dumps(told, separators=(",", ":")) + "\n"


DEFAULTS = {one.name: one.default for kind in (Cell, Row) for one in fields(kind) if one.name != "seed"}


def read_rows(path: Path) -> dict[Cell, Row]:
    """
    Return the last row of every cell of a file; none where there is no file.

    Raises
    ------
    BadInput
        If a line is no row; a last line that was cut off is passed over.
    """
    rows: dict[Cell, Row] = {}
    lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else [""]
    for number, line in enumerate(lines[:-1], 1):
        try:
            row = _row(json.loads(line))
        except (TypeError, ValueError) as error:
            raise BadInput(f"{path}:{number}: no row of placeopt_papers ({error})") from None
        rows[row.cell] = row
    return rows


def _row(told: dict[str, Any]) -> Row:
    names = [one.name for one in fields(Cell)]
    cell = Cell(**{name: told.pop(name) for name in names if name in told})
    return Row(cell, **told)


def append_row(path: Path, row: Row) -> None:
    """Append a row to a file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(row.line())


class Results:
    """Rows by setting, policy and seed; of one factor on one constant, or as the constants stand."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._all = tuple(rows)
        self._rows = {
            (row.cell.setting, row.cell.policy, row.cell.seed): row for row in self._all if not row.cell.constant
        }

    def varied(self, constant: str, factor: float) -> Results:
        """Return the rows with a constant multiplied, as if it stood so."""
        made = Results(())
        made._rows = {
            (row.cell.setting, row.cell.policy, row.cell.seed): row
            for row in self._all
            if (row.cell.constant, row.cell.factor) == (constant, factor)
        }
        return made

    def first_seeds(self, number: int) -> Results:
        """Return the rows of the first seeds of every setting and policy."""
        keep = {(s, p): self.seeds(s, (p,))[:number] for s, p, _ in self._rows}
        return Results(row for (s, p, seed), row in self._rows.items() if seed in keep[s, p])

    def seeds(self, setting: str, policies: Sequence[str]) -> list[int]:
        """Return the seeds that all of the policies have."""
        return sorted(
            set.intersection(*({n for s, p, n in self._rows if (s, p) == (setting, one)} for one in policies))
        )

    def rows(self, setting: str, policy: str) -> list[Row]:
        """Return the rows in the order of seeds."""
        return [self._rows[setting, policy, seed] for seed in self.seeds(setting, (policy,))]

    def values(self, setting: str, policy: str, measure: str, beside: Sequence[str] = ()) -> list[float] | None:
        """
        Return one value a seed, in the order of seeds, of the seeds that all of ``beside`` have too.

        None if there is no such row, or a row lacks the measure.
        """
        seeds = self.seeds(setting, (policy, *beside))
        values = [self._rows[setting, policy, seed].figures.get(measure) for seed in seeds]
        known = [value for value in values if value is not None]
        return known if known and len(known) == len(values) else None
