"""What a round decides: which jobs start, and what becomes of those that run; and what a scheduler can read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from placeopt.model import Job, Placement

Line = dict[str, Any]


@dataclass(frozen=True)
class Decision:
    """
    What differs after a round.

    ``start``: waiting jobs that start; one that is also in ``stop`` restarts elsewhere at once. ``stop``: running jobs
    that are stopped. ``move``: running jobs that restart in another placement. ``resize``: running jobs that go on
    where they are, with fewer or more workers.
    """

    start: tuple[Placement, ...] = ()
    stop: tuple[str, ...] = ()
    move: tuple[Placement, ...] = ()
    resize: tuple[Placement, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.start or self.stop or self.move or self.resize)

    @property
    def changes(self) -> bool:
        """Whether any running job does not stay as it was."""
        return bool(self.stop or self.move or self.resize)

    def with_placements(self, change: Callable[[Placement], Placement]) -> Decision:
        """Return the decision with every placement changed."""
        start, move, resize = (tuple(map(change, placed)) for placed in (self.start, self.move, self.resize))
        return replace(self, start=start, move=move, resize=resize)

    def line(self) -> Line:
        """Return the part of a log's line that states the decision; changes appear only if there are any."""
        line: Line = {"start": _lines_of(self.start)}
        if self.stop:
            line["stop"] = list(self.stop)
        if self.move:
            line["move"] = _lines_of(self.move)
        if self.resize:
            line["resize"] = _lines_of(self.resize)
        return line


@dataclass(frozen=True)
class RoundView:
    """
    What a scheduler can read at the moment of a round.

    ``expected_ends``: when running jobs end if predictions are true; empty unless the scheduler reads it. ``slowdown``
    returns how much longer than alone and well placed a running job takes now, in thousandths, as a monitor shows; 0
    where none does. ``if_stopped`` returns a running job as it would wait if it were stopped now: with the run time
    that is left.
    """

    now_ms: int
    expected_ends: Mapping[str, int]
    slowdown: Callable[[str], int]
    if_stopped: Callable[[str], Job]


def _lines_of(placements: tuple[Placement, ...]) -> list[Line]:
    return [placement.model_dump(mode="json", exclude_defaults=True) for placement in placements]
