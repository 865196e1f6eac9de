"""What an importer could not take over as it is: with it, an answer about a round is one about what was read."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Literal

from pydantic import Field

from placeopt.model.base import MAX_JOBS, LongName, Record

NAMES_SHOWN = 3


class ReadingNote(Record):
    """One reason for which jobs or nodes were not taken over as they are, or an assumption about all."""

    kind: Literal["left out", "kept as running", "drained", "assumed"]
    """
    ``left out``: waiting jobs that are not in the round. ``kept as running``: running jobs that hold all that they may
    hold; no round moves or shrinks them. ``drained``: nodes that take no new work. ``assumed``: what the files do not
    state.
    """
    reason: LongName
    """Why, or what was assumed."""
    names: Annotated[tuple[LongName, ...], Field(max_length=MAX_JOBS)] = ()
    """The jobs or nodes, all of them, as their system calls them."""

    def __str__(self) -> str:
        if self.kind == "assumed":
            return self.reason
        some = ", ".join(name[:60] for name in islice(self.names, NAMES_SHOWN))
        more = ", ..." if len(self.names) > NAMES_SHOWN else ""
        return f"{self.kind.capitalize()}, {self.reason[:200]}: {len(self.names)} ({some}{more})."
