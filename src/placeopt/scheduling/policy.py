"""A scheduling policy: the parts that decide who runs where over time, and the paper they follow."""

import hashlib
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from placeopt.model.base import FormatVersion, Id, Milliseconds, Name, Record, Thousandths
from placeopt.model.instance import FORMAT_VERSION
from placeopt.model.policy import Policy
from placeopt.scheduling.host_rules import Replicas
from placeopt.scheduling.predictions import Prediction
from placeopt.scheduling.rules import (
    BANDWIDTH,
    CORES,
    DIVISIONS,
    ELASTIC_RULES,
    OPTION_CHOICES,
    PREEMPTION_RULES,
    QUEUE_ORDERS,
    REPLICAS,
    WATCHES,
    Rule,
)

Mechanism = Literal["rounds", "preempts", "elastic", "share_mode"]
"""What a policy that adapts takes from the setting; ``rounds`` with method, look-ahead and the worth of jobs."""


class Source(Record):
    """The paper that a policy is from."""

    paper: Name
    """Citation of the paper."""
    section: Name
    """Section that defines the policy."""
    departures: tuple[str, ...] = ()
    """Every point in which the policy differs from the paper."""


class Scheduling(Record):
    """
    A queue policy, a placement method and the policy of a round, put together.

    ``rounds`` ``whole`` places all waiting jobs together by ``method`` (``Engine.place()``). ``each`` goes through the
    queue in ``order`` and places one job after the other by a method of greedy (``Engine.place([job])``): its cost does
    not grow with the queue.
    """

    document: Literal["scheduling"] = "scheduling"
    """What the file is."""
    format_version: FormatVersion = FORMAT_VERSION
    """Version of the file format."""
    name: Id
    """Name of the policy."""
    adapts: bool = False
    """
    Whether ``rounds``, ``preempts``, ``elastic`` and ``policy.share_mode`` are set by what the setting states
    (`placeopt.scheduling.adapt`); what the policy says of them is not read, except those in ``fixed``.
    """
    fixed: tuple[Mechanism, ...] = ()
    """With ``adapts``: what is as the policy says, whatever the setting states."""
    about: Annotated[str, Field(max_length=1000)] = ""
    """One sentence about the policy."""
    source: Source | None = None
    """None: placeopt's own."""
    rounds: Literal["whole", "each"] = "whole"
    """``whole``: all waiting jobs are placed together; ``each``: one job after the other."""
    method: Id = "auto"
    """Method of ``Engine.place``."""
    order: Annotated[Rule, QUEUE_ORDERS] | None = None
    """
    With ``each``: the order of the queue; ``fcfs`` if left out. ``priority``: the highest first; ``srtf``: shortest
    predicted run time; ``srsf``: least predicted GPU time; ``urgency``: services, then the highest urgency by its goals
    over GPU time, or over run time where no job is stopped; ``swaf``: shortest waiting allowance, expected completion
    time less the latency of the option that ``choice`` settles on, else of the first; ``drf``: the user with the least
    dominant share; ``las``: least attained service, by levels. Systems add to them.
    """
    choice: Annotated[Rule, OPTION_CHOICES] = Rule(rule="any")
    """In which of its options a job may run: ``any``; ``urgency``: any, tried by what they cost the order's goals."""
    cores: Annotated[Rule, CORES] = Rule(rule="asked")
    """CPU cores of jobs with GPUs: what they ask for, or what a rule finds on the core curve of their profile."""
    bandwidth: Annotated[Rule, BANDWIDTH] = Rule(rule="reserve")
    """
    Memory bandwidth: jobs start only where the stated amount is free (``policy.usable``); or it is ignored; or it is
    reserved for inference only, and where a node's jobs use more than it has, jobs of kind ``cpu`` are slowed.
    """
    replicas: Annotated[Replicas, REPLICAS] = Replicas(rule="follow")
    """
    Number of an endpoint's replicas: by the load that the autoscaler measures; ``ahead``: also as many as answer in
    time what the load may rise to until what is decided answers, by the rises of the last five minutes; ``peak``: by
    the peak of the load; ``first``: by its first step.
    """
    predictions: Annotated[tuple[Prediction, ...], Field(max_length=100)] = ()
    """What the policy believes of jobs by their profiles, in place of what they state (``placeopt predict policy``)."""
    worth: Literal["stated", "rate"] = "stated"
    """
    Value of a job's option to a round: the stated one; or 10^11 / its predicted run time in ms, so that a round starts
    the jobs that maximise the number of jobs that end per time. Options without a run time, and elastic ones, keep the
    stated value.
    """
    strict: bool = False
    """With ``each``: no job overtakes the first one that does not fit. For whole rounds the method decides it."""
    preempts: Annotated[Rule, PREEMPTION_RULES] = Rule(rule="never")
    """
    With ``each``: what lets a waiting job that finds no room stop running ones, and which of them first. ``inference``:
    inference stops training and CPU jobs, last submitted first; ``priority``: those of lower priority, the lowest
    first, then last submitted; ``las``: those of a higher level of attained service, the most first; ``srtf``: those
    with more predicted run time left, the most first; ``srsf``: the same with GPU time, where that pays for a restart;
    ``priced``: inference as by ``inference``, other jobs as by ``srsf``; ``host``: inference as by ``inference``, other
    jobs with GPUs stop jobs without, of most cores first, three at most while CPU jobs wait. Whole rounds stop, move
    and shrink jobs by ``policy.changes``.
    """
    restarts_max_thousandths: Thousandths | None = None
    """
    With ``preempts``: no job is stopped whose restarts would take more than this part of its predicted run time.
    None: no limit.
    """
    apart_max_thousandths: Thousandths | None = None
    """
    With ``each``: a job waits, overtaken, rather than start with its GPUs so far apart that it would take more than
    this longer than well placed, by its own or the physics' spread slowdown. None: it starts wherever there is room.
    """
    elastic: Annotated[Rule, ELASTIC_RULES] = Rule(rule="asked")
    """
    With ``each``: number of workers of jobs. ``asked``: as many as requested, all or none. ``pods``: the same, but the
    workers of every gang one by one as capacity is found, and the first ones hold their GPUs idle until all are placed
    (Kubernetes). ``load``, of elastic jobs: as many as requested, or fewer where capacity is short; more while no job
    waits, on the nodes where they are; and all workers but the chief make room for waiting jobs (DynamoML).
    """
    divides: Annotated[Rule, DIVISIONS] | None = None
    """With ``each``: how the cluster is divided between jobs, for orders and preemption that go by parts of it."""
    watch: Annotated[Rule, WATCHES] | None = None
    """With ``each``: when newcomers that slow others are queued again."""
    hold_after_ms: Milliseconds | None = None
    """
    Waiting time after which room is held for the job that has waited longest: where the fewest GPUs have to end. None:
    never, and a stream of smaller jobs may keep a larger one out for ever.
    """
    hold_after_runs: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """
    The same in mean run times, as predicted, of the jobs that have come; whichever is reached first. Where no job
    states a run time, none is.
    """
    usage_half_life_ms: Annotated[Milliseconds, Field(ge=1)] | None = None
    """With ``whole``: half-life of the usage of ``policy.queues``, which rounds state. None: it stays as stated."""
    interval_ms: Annotated[Milliseconds, Field(ge=1)] | None = None
    """Rounds are held at multiples of it, if there was an arrival or an end since; None: at every one of them."""
    policy: Policy = Policy()
    """Policy of every round."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.adapts:
            return self  # what it becomes is checked
        if self.fixed:
            raise ValueError("fixed: goes with adapts; without it all mechanisms are as stated")
        if self.rounds == "whole" and (self.order is not None or self.strict):
            raise ValueError("order, strict: go with rounds 'each'; whole rounds go by method and policy.order")
        if self.rounds == "each" and self.usage_half_life_ms is not None:
            raise ValueError("usage_half_life_ms: goes with rounds 'whole'")
        if self.strict and (self.hold_after_ms is not None or self.hold_after_runs is not None):
            raise ValueError("hold_after_ms, hold_after_runs: with strict no job overtakes the first one anyway")
        changes = self.preempts.rule != "never" or self.elastic.rule != "asked" or self.watch is not None
        if self.rounds == "whole" and (changes or self.divides is not None):
            raise ValueError("preempts, elastic, divides, watch: go with rounds 'each'; others have policy.changes")
        if self.restarts_max_thousandths is not None and self.preempts.rule == "never":
            raise ValueError("restarts_max_thousandths: goes with preempts; no job is stopped otherwise")
        for rule in self.rules:
            rule.check(self)
        return self

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Its rules, in the order of the fields that name them."""
        return tuple(rule for _, rule in self if isinstance(rule, Rule))

    @property
    def changes_jobs(self) -> bool:
        """Whether running jobs may be stopped, moved or resized."""
        changes = self.policy.changes
        each = self.preempts.rule != "never" or self.elastic.rule != "asked" or self.watch is not None
        return each or bool(changes.moves_max or changes.preemptions_max or changes.shrinks_max)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what decides: name, words and source aside, so two that differ only in those are one."""
        parts = self.model_copy(update={"name": "x", "about": "", "source": None})
        parts = parts.model_copy(update={"policy": parts.policy.model_copy(update={"name": "x"})})
        return hashlib.sha256(parts.model_dump_json(exclude_defaults=True).encode()).hexdigest()
