"""What a driver says of a round: one line for people at 100 columns, or one line of JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from placeopt.readable import number, percent

HEADER = "time      waiting  running   placed  started  evicted  refused     gap  seconds  note"

MOST_NOTES = 10
"""Lines under a round; the rest is counted. JSON has all."""


@dataclass
class RoundReport:
    """
    One turn of a driver.

    ``waiting``, ``running``: Jobs. ``placed``: Jobs that the plan starts. ``started``: Jobs that were started.
    ``evicted``: Workers that were stopped. ``refused``: Actions that could not be done. ``deferred``: Actions whose
    turn comes later, for room that is not free yet or for the most actions of a round. ``gap``: Relative gap of the
    plan's value, None without a round. ``fired``: Mechanism of the policy -> how often it acted. ``notes``: What else
    happened, most important first.
    """

    at_s: float
    round_id: str | None = None
    plan: str | None = None
    waiting: int = 0
    running: int = 0
    placed: int = 0
    started: int = 0
    evicted: int = 0
    refused: int = 0
    deferred: int = 0
    gap: float | None = None
    fired: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def line(self) -> str:
        """Return it on a line of at most 100 columns under `HEADER`; notes that do not fit follow, indented."""
        gap = "-" if self.gap is None else percent(self.gap)
        first = (
            f"{datetime.fromtimestamp(self.at_s).astimezone():%H:%M:%S}  {number(self.waiting):>7}  "
            f"{number(self.running):>7}  {number(self.placed):>7}  {number(self.started):>7}  "
            f"{number(self.evicted):>7}  {number(self.refused):>7}  {gap:>6}  {self.seconds:7.2f}"
        )
        notes = self.notes
        if notes and len(first) + 2 + len(notes[0]) <= 100:
            first, notes = f"{first}  {notes[0]}", notes[1:]
        shown = notes if len(notes) <= MOST_NOTES else notes[: MOST_NOTES - 1]
        if len(shown) < len(notes):
            shown = [*shown, f"and {len(notes) - len(shown)} more"]
        return "\n".join([first, *(_cut(f"          {note}") for note in shown)])

    def json(self) -> str:
        """Return it as one line of JSON."""
        at = datetime.fromtimestamp(self.at_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        fields = {key: value for key, value in asdict(self).items() if key != "at_s"}
        return json.dumps({"at": at, **fields})


def _cut(text: str, columns: int = 100) -> str:
    return text if len(text) <= columns else f"{text[: columns - 3]}..."
