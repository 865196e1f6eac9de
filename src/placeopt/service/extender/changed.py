"""What the calls of an extender changed: what a journal keeps, so that a restart finds the same."""

from __future__ import annotations

from dataclasses import dataclass, field

from placeopt.edits import Step
from placeopt.service.messages import OutcomeKind
from placeopt.service.steps import Commit


@dataclass
class Changed:
    """
    Changes of the cluster, and of reservations.

    ``steps``: What was carried out, in order; a commit is the last one of a call. ``jobs``: Jobs whose reservation may
    have changed. ``outcomes``: Revision after a start -> what came of it, in a word and in a sentence.
    """

    steps: list[Step | Commit] = field(default_factory=list)
    jobs: set[str] = field(default_factory=set)
    outcomes: dict[int, tuple[OutcomeKind, str]] = field(default_factory=dict)

    def record_outcome(self, revision: int | None, outcome: OutcomeKind, words: str) -> None:
        """Keep what came of a start; None: others started the job."""
        if revision is not None:
            self.outcomes[revision] = outcome, words
