"""A scheduling policy: the parts that decide who runs where over time, and the paper they follow."""

import hashlib
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from placeopt.model.base import FormatVersion, Id, Milliseconds, Name, Record
from placeopt.model.instance import FORMAT_VERSION
from placeopt.model.policy import Policy

JobOrder = Literal["fcfs", "priority", "srtf"]
"""Orders of rounds that place job by job; whole rounds go by ``method`` and ``policy.order``."""


class Source(Record):
    """The paper that a policy is from."""

    paper: Name
    section: Name
    departures: tuple[str, ...] = ()
    """Every point in which the policy differs from the paper."""


class Scheduling(Record):
    """
    A queue policy, a placement method and the policy of a round, put together.

    ``rounds`` ``whole`` places all waiting jobs together by ``method`` (``Engine.place()``). ``each`` goes through the
    queue in ``order`` and places one job after the other by a method of greedy (``Engine.place([job])``): its cost does
    not grow with the queue.
    """

    format_version: FormatVersion = FORMAT_VERSION
    name: Id
    about: Annotated[str, Field(max_length=1000)] = ""
    source: Source | None = None
    """None: placeopt's own."""
    rounds: Literal["whole", "each"] = "whole"
    method: Id = "auto"
    order: JobOrder | None = None
    """With ``each``, ``fcfs`` if left out."""
    strict: bool = False
    """With ``each``: nobody overtakes the first job that does not fit. Of whole rounds the method says it."""
    interval_ms: Annotated[Milliseconds, Field(ge=1)] | None = None
    """Rounds are held at multiples of it, if there was an arrival or an end since; None: at every one of them."""
    policy: Policy = Policy()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.rounds == "whole" and (self.order is not None or self.strict):
            raise ValueError("order, strict: go with rounds 'each'; whole rounds go by method and policy.order")
        return self

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what decides: name, words and source aside, so two that differ only in those are one."""
        parts = self.model_copy(update={"name": "x", "about": "", "source": None})
        parts = parts.model_copy(update={"policy": parts.policy.model_copy(update={"name": "x"})})
        return hashlib.sha256(parts.model_dump_json(exclude_defaults=True).encode()).hexdigest()
