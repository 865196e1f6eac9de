"""Why the jobs of a queue wait, and what each single change would let start: the answer, and how it is shown."""

from __future__ import annotations

from placeopt.edits import Answer, AnyStep
from placeopt.model.base import Id, Record
from placeopt.model.plan import UnplacedReason
from placeopt.readable import plural
from placeopt.view import Chart, Column, Figure, Table, View

SHOWN = 2
"""Jobs named for a reason."""


class WaitingReason(Record):
    """
    Waiting jobs with one reason and one conflict.

    ``gpu_milli``: GPU share that they ask for together, each in its smallest option.
    """

    reason: UnplacedReason
    constraints: tuple[str, ...] = ()
    detail: str
    jobs: int
    gpu_milli: int
    examples: tuple[Id, ...]


class Freed(Record):
    """
    What one change would let start: jobs that fit each by itself, and how many greedy starts together, at least.

    ``gpu_milli``: GPU share of those that start together, each in its smallest option.
    """

    change: str
    steps: tuple[AnyStep, ...] = ()
    """The change as a patch has it."""
    jobs_alone: int
    jobs_together: int
    gpu_milli: int


class QueueExplanation(Answer):
    """
    Why the jobs of a queue wait, most frequent reason first, and the changes that would free jobs, the best first.

    ``kinds``: distinct requests among the ``waiting`` jobs. ``proven``: whether all were answered in time.
    """

    waiting: int
    kinds: int
    reasons: tuple[WaitingReason, ...]
    changes: tuple[Freed, ...]
    proven: bool
    seconds: float

    def view(self) -> View:
        """Return how many jobs wait for each reason, and what each single change would let start."""
        reasons = [
            (one.reason, one.detail, one.jobs, one.gpu_milli, ", ".join(one.examples[:SHOWN])) for one in self.reasons
        ]
        changes = [(one.change, one.jobs_together, one.gpu_milli, one.jobs_alone) for one in self.changes]
        helps = f"{changes[0][0]} would start {plural(changes[0][1], 'job')}" if changes else "no single change helps"
        waits = f"{plural(self.waiting, 'job')} wait{'s' * (self.waiting == 1)}"
        proven = "every job was answered" if self.proven else "time ended before every job and change was answered"
        return View(
            title=f"{waits}: {helps}" if self.waiting else "no job waits",
            verdict="good" if not self.waiting else "open",
            proof=self.proof(proven),
            figures=(
                Figure(name="waiting", value=self.waiting, better="less"),
                Figure(name="distinct requests", value=self.kinds),
                Figure(name="seconds", value=self.seconds, unit="s"),
            ),
            tables=(
                Table(
                    name="Reasons",
                    columns=REASONS,
                    rows=tuple(reasons),
                    keys=2,
                    note="of each conflict: without any one of its constraints the job fits",
                ),
                Table(
                    name="What one change would start",
                    columns=CHANGES,
                    rows=tuple(changes),
                    note="together: found by greedy, at least; alone: each without the others",
                ),
            ),
            chart=Chart(kind="bars", table="What one change would start", x="change", y=("together", "alone"))
            if changes
            else None,
        )


GPUS = Column(name="GPUs", unit="gpu_milli")
REASONS = (
    Column(name="reason"),
    Column(name="detail"),
    Column(name="jobs", better="less"),
    GPUS,
    Column(name="such as"),
)
CHANGES = (Column(name="change"), Column(name="together", better="more"), GPUS, Column(name="alone", better="more"))
