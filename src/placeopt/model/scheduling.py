"""A scheduling policy: the parts that decide who runs where over time, and the paper they follow."""

import hashlib
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from placeopt.model.base import FormatVersion, Id, Milliseconds, Name, Record
from placeopt.model.instance import FORMAT_VERSION
from placeopt.model.policy import Policy

JobOrder = Literal["fcfs", "priority", "srtf", "min_min", "arrival_ect", "drf", "clusters"]
"""
Orders of rounds that place job by job; whole rounds go by ``method`` and ``policy.order``.

``srtf``: shortest predicted run time; ``min_min``: earliest expected completion time; ``arrival_ect``: the mean of
arrival and expected completion time; ``drf``: the user with the least dominant share; ``clusters``: weighted fair
queuing over clusters of alike jobs.
"""


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
    choice: Literal["any", "rate", "cer"] = "any"
    """
    In which of its options a job may run: any; the one of highest rate; that of highest rate over cost (GENIE eq. 11).
    """
    cores: Literal["asked", "best_fit"] = "asked"
    """
    CPU cores of jobs with GPUs: what they ask for, or the fewest at the highest speed, by SODA's search (V-B) on the
    scenario's core curve of their profile; jobs without a curve keep what they ask for.
    """
    bandwidth: Literal["reserve", "ignore", "throttle"] = "reserve"
    """
    Memory bandwidth: jobs start only where what they say they use is left (``policy.usable``); or nobody looks at it;
    or nobody does before, but where a node's jobs use more than it has, those of kind ``cpu`` are held back (SODA V-E).
    """
    clusters: Annotated[int, Field(ge=1, le=100)] | None = None
    """With the order ``clusters``: so many (Horus: k)."""
    batch: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """With the order ``clusters``: jobs that are picked before waiting times are looked at anew (Horus: beta)."""
    strict: bool = False
    """With ``each``: nobody overtakes the first job that does not fit. Of whole rounds the method says it."""
    interval_ms: Annotated[Milliseconds, Field(ge=1)] | None = None
    """Rounds are held at multiples of it, if there was an arrival or an end since; None: at every one of them."""
    policy: Policy = Policy()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.rounds == "whole" and (self.order is not None or self.strict):
            raise ValueError("order, strict: go with rounds 'each'; whole rounds go by method and policy.order")
        stated = self.clusters is not None, self.batch is not None
        if stated != (self.order == "clusters",) * 2:
            raise ValueError("clusters, batch: go with the order 'clusters', which needs both")
        if self.strict and self.order in ("drf", "clusters"):
            raise ValueError(
                f"strict: {self.order!r} weighs queues against each other; there is no first job to wait for"
            )
        return self

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what decides: name, words and source aside, so two that differ only in those are one."""
        parts = self.model_copy(update={"name": "x", "about": "", "source": None})
        parts = parts.model_copy(update={"policy": parts.policy.model_copy(update={"name": "x"})})
        return hashlib.sha256(parts.model_dump_json(exclude_defaults=True).encode()).hexdigest()
