"""What a round decides: who starts, and what becomes of those that run; and what a scheduler may see of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from placeopt.errors import BadInput
from placeopt.model import Job, Placement

Line = dict[str, Any]


@dataclass(frozen=True)
class Decision:
    """
    What is different after a round.

    A job in ``stop`` and ``start`` is stopped and restarts elsewhere at once. ``move``: running jobs that restart in
    another placement; ``resize``: those that go on where they are with fewer or more workers.
    """

    start: tuple[Placement, ...] = ()
    stop: tuple[str, ...] = ()
    move: tuple[Placement, ...] = ()
    resize: tuple[Placement, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is different."""
        return bool(self.start or self.stop or self.move or self.resize)

    @property
    def changes(self) -> bool:
        """Whether any job that ran before does not stay as it was."""
        return bool(self.stop or self.move or self.resize)

    def with_placements(self, change: Callable[[Placement], Placement]) -> Decision:
        """Return the decision with every placement changed."""
        start, move, resize = (tuple(map(change, some)) for some in (self.start, self.move, self.resize))
        return replace(self, start=start, move=move, resize=resize)

    def line(self) -> Line:
        """Return the part of a log's line that tells it; changes stand there only if there are any."""
        line: Line = {"start": _told(self.start)}
        if self.stop:
            line["stop"] = list(self.stop)
        if self.move:
            line["move"] = _told(self.move)
        if self.resize:
            line["resize"] = _told(self.resize)
        return line


def decision_of_line(line: Line) -> Decision:
    """
    Return the decision of a log's line of a round.

    Raises
    ------
    BadInput
        If the line tells none.
    """
    try:
        stop = line.get("stop", [])
        if not isinstance(stop, list) or not all(isinstance(job, str) for job in stop):
            raise TypeError(f"stop: {stop!r}, expected ids of jobs")
        return Decision(
            start=_read(line["start"]),
            stop=tuple(stop),
            move=_read(line.get("move", [])),
            resize=_read(line.get("resize", [])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"log: round {line.get('n')}: no placements: {error}; start anew without resuming") from None


@dataclass(frozen=True)
class RoundView:
    """
    The moment of a round, as a scheduler sees it.

    Attributes
    ----------
    ends
        When running jobs are expected to end if predictions are true; empty where nobody asks for it.
    slowdown
        Of a running job, how much longer than alone and well placed it takes now, in thousandths: what a monitor sees.
    again
        A running job as it would wait if it were stopped now: with the run time that is left.
    """

    now_ms: int
    ends: Mapping[str, int]
    slowdown: Callable[[str], int]
    again: Callable[[str], Job]


def _told(placements: tuple[Placement, ...]) -> list[Line]:
    return [placement.model_dump(mode="json", exclude_defaults=True) for placement in placements]


def _read(lines: list[Line]) -> tuple[Placement, ...]:
    return tuple(Placement.model_validate_json(json.dumps(one)) for one in lines)
