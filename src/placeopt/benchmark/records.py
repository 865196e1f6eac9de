"""Records of a benchmark's journal: one of every run, one of every case."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from placeopt.arguments import MAX_SEED
from placeopt.model.base import Name, Record

Verdict = Literal["ok", "solved", "better", "timeout", "fail", "abort", "unsupported"]
Status = Literal["optimal", "feasible", "no_solution", "infeasible", "error", "killed", "crashed", "unsupported"]
Phase = Literal["reading", "solving", "judging"]
"""Phase of a case; only ``solving`` counts as the method's time and has a limit of its own."""
TrajectoryPoint = tuple[float, int | None, int | None, int | None, int | None]
"""Seconds since the solve began; objective and bound of the first level, then of the cost level. None: unknown."""


class Case(Record):
    """One solver on one instance with one seed."""

    instance: Name
    path: str
    kind: Literal["placement", "linear"]
    sha256: str
    """SHA-256 of the instance's content."""
    solver: Name
    """A method of ``placeopt.solve`` for a round, a solver's name for an integer model."""
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)]
    time_limit_s: Annotated[float, Field(gt=0)]
    threads: Annotated[int, Field(ge=1)]
    permuted: bool = False
    """Whether the seed also shuffles jobs and nodes, or rows and columns."""
    memory_limit_mib: Annotated[int, Field(ge=1)] | None = None

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
    objective: int | None = None
    bound: int | None = None
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

    value: int | None = None
    bound: int | None = None


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
