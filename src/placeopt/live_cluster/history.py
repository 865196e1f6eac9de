"""The revisions of a live cluster: what each changed, and what that means for a plan of an earlier one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from placeopt.errors import BadInput, StaleSnapshot

MOST_CHANGES_LISTED = 4
"""Changes that the message of ``StaleSnapshot`` describes; it has the ids of all."""

MOST_CHANGES_KEPT = 1 << 13
"""Changes that are kept to say what made a plan stale; of older ones only the number is known."""


@dataclass
class Change:
    """What one revision changed; ``jobs`` has those that started and stopped, too. Dictionaries, for their order."""

    revision: int
    text: str = ""
    jobs: dict[str, None] = field(default_factory=dict)
    nodes: dict[str, None] = field(default_factory=dict)
    started: dict[str, None] = field(default_factory=dict)
    stopped: dict[str, None] = field(default_factory=dict)


class History:
    """The number of the present revision, and the last changes."""

    def __init__(self, revision: int) -> None:
        self.revision = self._first = revision
        self._changes: deque[Change] = deque(maxlen=MOST_CHANGES_KEPT)
        self._open: Change | None = None

    @property
    def is_open(self) -> bool:
        """Whether something is noted of a revision that has not ended."""
        return self._open is not None

    @contextmanager
    def one_revision(self, words: str = "") -> Iterator[None]:
        """
        Make one revision of all that is noted inside, if anything is; of nothing if an exception ends the block.

        ``words``: What it is described by, in place of what is noted.
        """
        try:
            yield
            if self._open is not None:
                self._open.text = words or self._open.text
                self._changes.append(self._open)
                self.revision += 1
        finally:
            self._open = None

    def note(
        self,
        text: str,
        jobs: Iterable[str] = (),
        nodes: Iterable[str] = (),
        started: Iterable[str] = (),
        stopped: Iterable[str] = (),
    ) -> None:
        """Note a change inside `one_revision`; ``jobs`` changed in another way than to start or stop."""
        change = self._open = self._open or Change(self.revision + 1)
        begun, ended = tuple(started), tuple(stopped)
        change.text += f" and {text}" if change.text else text
        change.jobs |= dict.fromkeys((*begun, *jobs, *ended))
        change.nodes |= dict.fromkeys(nodes)
        change.stopped |= dict.fromkeys(job for job in ended if job not in change.started)
        change.started = dict.fromkeys((*(job for job in change.started if job not in ended), *begun))

    def _since(self, revision: int) -> list[Change]:
        return [change for change in self._changes if change.revision > revision]

    def stopped_since(self, revision: int) -> tuple[str, ...]:
        """Return the jobs that were stopped after a revision, as far as the changes are kept."""
        return tuple(dict.fromkeys(job for change in self._since(revision) for job in change.stopped))

    def ran_at(self, planned: int) -> dict[str, bool]:
        """Return whether each job that was started, was stopped or ended since a revision of this cluster ran then."""
        self.refuse_foreign(planned)
        if self._changes and self._changes[0].revision > planned + 1:
            why = f"more than {MOST_CHANGES_KEPT} changes, so it is not known what ran then"
            raise StaleSnapshot(planned, self.revision, (), (), why)
        ran: dict[str, bool] = {}
        for change in self._since(planned):  # what happened to a job first tells
            for job in change.stopped:
                ran.setdefault(job, True)
            for job in change.started:
                ran.setdefault(job, False)
        return ran

    def refuse_foreign(self, planned: int) -> None:
        """Raise ``BadInput`` if this cluster has never been at revision ``planned``."""
        if not self._first <= planned <= self.revision:
            raise BadInput(
                f"plan: instance.revision: {planned}; this cluster was loaded at {self._first} and is at "
                f"{self.revision}, so the plan is of another"
            )

    def refuse_stale(self, planned: int) -> None:
        """
        Raise ``StaleSnapshot``, which names what changed since, unless ``planned`` is the present revision.

        Raises ``BadInput`` if there has been no such revision.
        """
        self.refuse_foreign(planned)
        if planned == self.revision:
            return
        since = self._since(planned)
        texts = [change.text for change in since[-MOST_CHANGES_LISTED:]]
        earlier = self.revision - planned - len(texts)
        if earlier:
            texts.insert(0, f"{earlier} earlier changes")
        jobs = tuple(dict.fromkeys(job for change in since for job in change.jobs))
        nodes = tuple(dict.fromkeys(node for change in since for node in change.nodes))
        raise StaleSnapshot(planned, self.revision, jobs, nodes, ", ".join(texts))
