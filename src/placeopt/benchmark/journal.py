"""The journal of a benchmark: JSON lines of runs and cases, append-only, written by one run at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from placeopt.arguments import MAX_SEED
from placeopt.benchmark.solu import Known, Number
from placeopt.documents.files import make_folder
from placeopt.documents.json_lines import JsonLinesFile, read_json_lines
from placeopt.errors import BadInput
from placeopt.model.base import Name, Record
from placeopt.solving.params import SolveParams

Verdict = Literal["ok", "solved", "better", "timeout", "fail", "abort", "unsupported"]
Status = Literal[
    "optimal", "feasible", "no_solution", "infeasible", "error", "killed", "crashed", "unsupported", "unbounded"
]
Kind = Literal["placement", "linear", "quadratic"]
TrajectoryPoint = tuple[float, Number | None, Number | None, int | None, int | None]
"""Seconds since the solve began; objective and bound of the first level, then of the cost level. None: unknown."""


MAP = "map"
"""The search of ``placeopt map``, as a solver of quadratic assignment problems."""
NAME = "results.jsonl"
SOLUTIONS = "solutions"
EXPECTED = "a run or a row"


class Case(Record):
    """One solver on one instance with one seed."""

    instance: Name
    path: str
    kind: Kind
    sha256: str
    """SHA-256 of the instance's content."""
    solver: Name
    """A method of ``placeopt.solve`` for a round, a solver's name for a model, or ``map`` for quadratic assignment."""
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)]
    time_limit_s: Annotated[float, Field(gt=0)]
    threads: Annotated[int, Field(ge=1)]
    permuted: bool = False
    """Whether the seed also shuffles jobs and nodes, or rows and columns."""
    memory_limit_mib: Annotated[int, Field(ge=1)] | None = None

    @property
    def params(self) -> SolveParams:
        """Options of the solve, of a case of kind ``placement``."""
        return SolveParams(
            method=self.solver,
            time_limit_s=self.time_limit_s,
            threads=self.threads,
            seed=self.seed,
            memory_limit_mib=self.memory_limit_mib,
        )

    @property
    def key(self) -> str:
        """Key of the case: unique in a journal, and the stem of its solution's file name."""
        parts = [self.instance, self.solver, f"s{self.seed}", f"t{self.time_limit_s:g}", f"n{self.threads}"]
        parts += ["permuted"] * self.permuted
        parts += [] if self.memory_limit_mib is None else [f"m{self.memory_limit_mib}"]
        return "~".join([*parts, self.sha256[:12]]).replace("/", "_")


class CaseAnswer(Record):
    """Result of a case as its process reports it; objectives are recomputed, solutions checked by the referee."""

    status: Status
    limit: str = "none"
    sense: Literal["max", "min"] = "max"
    objective: Number | None = None
    bound: Number | None = None
    cost: int | None = None
    cost_bound: int | None = None
    """The second level of a round; None where there is none."""
    refused: tuple[str, ...] = ()
    """Faults found by the referee and the audit."""
    message: str = ""
    wall_s: float | None = None
    """Wall time of the solve alone, without starting the process and reading the instance."""
    cpu_s: float | None = None
    """CPU time of the solve, of the process and its children."""
    read_s: float | None = None
    peak_mib: int | None = None
    """Largest resident set of any of its processes."""


class KnownAtRun(Record):
    """Best value and proven bound of the instance that were known when the case was run; None: unknown."""

    value: Number | None = None
    bound: Number | None = None
    infeasible: bool = False
    """Whether the instance was known to have no solution."""


class Row(Record):
    """A case that was run."""

    run: int
    """Number of the run that the row belongs to, from 1."""
    case: Case
    answer: CaseAnswer
    verdict: Verdict
    known: KnownAtRun | None = None
    """Known values that the verdict refers to; None in journals of versions that did not write them."""
    solution: str | None = None
    """File of the plan or the values, relative to the folder; None if there is none."""
    trajectory: tuple[TrajectoryPoint, ...] = ()
    began: str
    load_before: float
    load_after: float
    """Load average of the operating system over one minute."""


class RunRecord(Record):
    """One start of the benchmark: machine, versions and command."""

    number: int
    began: str
    command: str
    machine: dict[str, str]
    versions: dict[str, str]
    jobs: int
    """Cases side by side."""
    solu: str | None = None
    """Absolute path of the file of known values; None if there was none."""


class JournalLine(Record):
    """A line of the journal: a run or a row."""

    run: RunRecord | None = None
    row: Row | None = None


class Journal(JsonLinesFile[JournalLine]):
    """
    The journal of a folder, opened for appending; a context manager that holds a lock on the file.

    Opening removes a last line that a kill has cut off; complete lines are never lost.
    """

    def __init__(self, folder: Path) -> None:
        make_folder(make_folder(folder) / SOLUTIONS)
        super().__init__(folder / NAME, JournalLine, EXPECTED)
        self.runs, self.rows = _sorted(self.found)

    def add(self, record: RunRecord | Row) -> None:
        """Append one line and flush it to the disk."""
        if isinstance(record, RunRecord):
            self.append(JournalLine(run=record))
            self.runs.append(record)
        else:
            self.append(JournalLine(row=record))
            self.rows[record.case.key] = record


def read_journal(folder: Path) -> tuple[list[RunRecord], dict[str, Row]]:
    """Return the runs of a folder and its rows by the key of their case; the last row of a case counts."""
    path = folder / NAME
    if not path.is_file():
        raise BadInput(f"{path}: no such file; expected a folder that 'bench run --out' wrote")
    return _sorted(read_json_lines(path, JournalLine, EXPECTED))


def known_at_run(
    rows: Iterable[Row], older: Mapping[str, Known] | None = None, known: Mapping[str, Known] | None = None
) -> dict[str, Known]:
    """
    Return by the key of each case the values known of its instance.

    ``known``: values by instance; None: those that each row's run knew. ``older``: values by instance for rows of
    journals that do not state them, used if ``known`` is None.
    """
    if known is not None:
        return {row.case.key: known.get(row.case.instance, Known()) for row in rows}
    older = older or {}
    return {
        row.case.key: older.get(row.case.instance, Known())
        if row.known is None
        else Known(row.known.value, row.known.bound, infeasible=row.known.infeasible)
        for row in rows
    }


def _sorted(lines: Sequence[JournalLine]) -> tuple[list[RunRecord], dict[str, Row]]:
    runs = [line.run for line in lines if line.run is not None]
    return runs, {line.row.case.key: line.row for line in lines if line.row is not None}
