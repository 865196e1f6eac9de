"""What came of the starts: where jobs really run, which did not start, and which nodes refuse."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from placeopt.drivers.backoff import Backoff
from placeopt.drivers.round_report import Outcome
from placeopt.drivers.slurm.job_view import JobView, Standing
from placeopt.drivers.slurm.note import Note
from placeopt.importers.slurm.lists import slurm_number

LIMITS = re.compile(
    r"QOS|Assoc|Account|Partition|Dependency|BeginTime|JobArrayTaskLimit|Licenses|Reservation|Max\w*PerLimit|JobHeld"
)
"""Reasons to wait that say nothing about nodes."""
NEVER = re.compile(r"BadConstraints|ReqNodeNotAvail|NodeDown|Nodes_required|DeadLine|Invalid", re.IGNORECASE)
"""Reasons to wait for which a released job is taken back at once; so are all of `LIMITS`."""
AT_ONCE_S = 10
"""A job that failed within as many seconds of its start may have failed because of its node."""
BACKFILL_S = 60
"""Two intervals of Slurm's backfill scheduler (``bf_interval``), which alone starts heterogeneous jobs."""
FAILED = frozenset({"FAILED", "NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED"})


class OutcomeWatch:
    """
    Compares readings with the notes of starts.

    ``patience_s``: How long a released job may take to run. ``first_s``, ``longest_s``: Pause of a node that refuses. A
    start counts once: of jobs that run already when the watch begins it says nothing.
    """

    def __init__(self, patience_s: float, first_s: float, longest_s: float) -> None:
        self._patience_s = patience_s
        self._open: dict[str, Note] = {}
        self._failed_at_once: Counter[str] = Counter()
        self.nodes: Backoff[str] = Backoff(first_s, longest_s)

    def expect(self, note: Note) -> None:
        """Wait for the outcome of a start."""
        self._open[note.job] = note

    def observe(self, views: Mapping[str, JobView], now_s: float) -> list[Outcome]:
        """Return what became of the starts since the last reading; nodes that refuse are paused."""
        for job, view in views.items():
            if view.standing in (Standing.STARTING, Standing.HALF_DONE) and view.note and view.note.kind == "start":
                self._open.setdefault(job, view.note)
        found = [self._outcome(note, views.get(job), now_s) for job, note in list(self._open.items())]
        outcomes = [outcome for outcome in found if outcome is not None]
        for outcome in outcomes:
            del self._open[outcome.job]
            self._judge_nodes(outcome, now_s)
        return outcomes

    def _outcome(self, note: Note, view: JobView | None, now_s: float) -> Outcome | None:
        if view is None:
            return Outcome(note.job, "gone", note.nodes)
        same = view.note is not None and (view.note.kind, view.note.round) == ("start", note.round)
        got = tuple(sorted(view.nodes))
        if view.standing is Standing.HOLDS:
            if not got:
                return None
            return Outcome(note.job, "as-planned" if view.nodes == set(note.nodes) else "elsewhere", note.nodes, got)
        if view.standing is Standing.ENDED:
            if not got:
                return Outcome(note.job, "gone", note.nodes, why=min(view.states))
            if view.states & FAILED and _ran_s(view) <= AT_ONCE_S:
                return Outcome(note.job, "failed", note.nodes, got, min(view.states & FAILED))
            return Outcome(note.job, "as-planned" if view.nodes == set(note.nodes) else "elsewhere", note.nodes, got)
        if view.restarts > note.restarts:
            return Outcome(note.job, "requeued", note.nodes, why=view.reason_in_words)
        if view.standing is Standing.HALF_DONE:
            return Outcome(note.job, "not-released", note.nodes, why=view.reason)
        if view.standing is not Standing.STARTING or not same:
            return Outcome(note.job, "gone", note.nodes, why=view.reason_in_words)  # changed from outside
        patience_s = max(self._patience_s, BACKFILL_S) if view.is_component else self._patience_s
        if NEVER.search(view.reason) or LIMITS.search(view.reason) or now_s - note.at_s > patience_s:
            return Outcome(note.job, "not-started", note.nodes, why=view.reason)
        return None

    def _judge_nodes(self, outcome: Outcome, now_s: float) -> None:
        nodes = set(outcome.planned)
        if outcome.kind in ("requeued", "not-started") and not LIMITS.search(outcome.why):
            for node in nodes:
                self.nodes.fail(node, now_s)
        elif outcome.kind == "failed":  # a script that fails says nothing; two in a row may
            for node in outcome.got:
                self._failed_at_once[node] += 1
                if self._failed_at_once[node] > 1:
                    self.nodes.fail(node, now_s)
        elif outcome.kind == "as-planned":
            for node in nodes:
                self.nodes.succeed(node)
                self._failed_at_once.pop(node, None)


def _ran_s(view: JobView) -> int:
    """Return how long a job has run."""
    started, ended = slurm_number(view.entry, "start_time") or 0, slurm_number(view.entry, "end_time") or 0
    return max(0, ended - started)
