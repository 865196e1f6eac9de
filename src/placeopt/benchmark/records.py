"""What a benchmark writes down: a record of every run, a row of every case."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from placeopt.arguments import MAX_SEED
from placeopt.model.base import Name, Record

Verdict = Literal["ok", "solved", "better", "timeout", "fail", "abort", "unsupported"]
Status = Literal["optimal", "feasible", "no_solution", "infeasible", "error", "killed", "crashed", "unsupported"]
Phase = Literal["reading", "solving", "judging"]
"""Of a case: only the second is the method's, and only it has a limit of its own."""
TrajectoryPoint = tuple[float, int | None, int | None, int | None, int | None]
"""Seconds since the solve began; objective and bound of the first level; the same of the cost level. None: unknown."""


class Case(Record):
    """One solver on one instance with one seed: what is to be run."""

    instance: Name
    path: str
    kind: Literal["placement", "linear"]
    sha256: str
    """Of the instance's content."""
    solver: Name
    """A method of placeopt for a round, a solver of the gateway for an integer model."""
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)]
    time_limit_s: Annotated[float, Field(gt=0)]
    threads: Annotated[int, Field(ge=1)]
    permuted: bool = False
    """Whether the seed also shuffles jobs and nodes, or rows and columns."""
    memory_limit_mib: Annotated[int, Field(ge=1)] | None = None

    @property
    def key(self) -> str:
        """What tells cases apart: names files, and says what has been run already."""
        parts = [self.instance, self.solver, f"s{self.seed}", f"t{self.time_limit_s:g}", f"n{self.threads}"]
        parts += ["permuted"] * self.permuted
        parts += [] if self.memory_limit_mib is None else [f"m{self.memory_limit_mib}"]
        return "~".join([*parts, self.sha256[:12]]).replace("/", "_")


class CaseAnswer(Record):
    """What a solve gave, as its process tells it; objectives are recomputed, solutions refereed."""

    status: Status
    limit: str = "none"
    sense: Literal["max", "min"] = "max"
    objective: int | None = None
    bound: int | None = None
    cost: int | None = None
    cost_bound: int | None = None
    """The second level of a round; None where there is none."""
    refused: tuple[str, ...] = ()
    """What the referee and the audit found wrong; empty if nothing."""
    message: str = ""
    wall_s: float | None = None
    """Of the solve alone: starting the process and reading the instance stand apart."""
    cpu_s: float | None = None
    """The same, of the process and all that it started."""
    read_s: float | None = None
    peak_mib: int | None = None
    """Largest resident set of any of its processes."""


class KnownAtRun(Record):
    """Best value and proven bound that were known of the instance when the case was run; None: unknown."""

    value: int | None = None
    bound: int | None = None


class Row(Record):
    """A case that was run."""

    run: int
    """Number of the run, from 1, that it belongs to."""
    case: Case
    answer: CaseAnswer
    verdict: Verdict
    known: KnownAtRun | None = None
    """What the verdict went by; None in journals of versions that did not write it."""
    solution: str | None = None
    """File of the plan or the values, relative to the folder; None if there is none."""
    trajectory: tuple[TrajectoryPoint, ...] = ()
    began: str
    load_before: float
    load_after: float
    """Processes that want to run, a minute's mean, by the operating system."""


class RunRecord(Record):
    """One start of the benchmark: on what, with what, by which command."""

    number: int
    began: str
    command: str
    machine: dict[str, str]
    versions: dict[str, str]
    jobs: int
    """Cases side by side."""
    solu: str | None = None
    """Absolute path of the file of known values that the verdicts went by; None if there was none."""


class JournalLine(Record):
    """A line of the journal: one of the two."""

    run: RunRecord | None = None
    row: Row | None = None
