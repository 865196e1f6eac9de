"""A scheduling policy: the parts that decide who runs where over time, and the paper they follow."""

import hashlib
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from placeopt.model.base import FormatVersion, Id, Milliseconds, Name, Record, Thousandths
from placeopt.model.instance import FORMAT_VERSION
from placeopt.model.policy import Policy
from placeopt.scheduling.rule_names import RuleNames

JobOrder = Literal[
    "fcfs",
    "priority",
    "srtf",
    "srsf",
    "urgency",
    "min_min",
    "arrival_ect",
    "swaf",
    "drf",
    "clusters",
    "las",
    "inference_first",
    "capacity",
]
"""
Orders of rounds that place job by job; whole rounds go by ``method`` and ``policy.order``.

``srtf``: shortest predicted run time; ``srsf``: least predicted GPU time; ``urgency``: services, then the
highest urgency by ``goals`` over GPU time, or over run time where no job is stopped; ``min_min``: earliest expected
completion time; ``arrival_ect``: the mean of arrival and expected completion time; ``swaf``: shortest waiting
allowance, expected completion time less the latency of the option that ``choice`` settles on, else of the first;
``drf``: the user with the least dominant share; ``clusters``: weighted fair queuing over clusters of alike jobs;
``las``: least attained service, by levels; ``inference_first``: inference before all others, each in order of arrival;
``capacity``: the array that holds least of its part.
"""

Preempts = Literal[
    "never",
    "inference",
    "priority",
    "las",
    "srtf",
    "srsf",
    "priced",
    "host",
    "capacity",
    "arrays",
    "node_capacity",
    "node_arrays",
]
"""
What lets a waiting job that finds no room stop running ones, and which of them first.

``inference``: inference stops training and CPU jobs, last submitted first (SODA V-D); ``priority``: those of lower
priority, the lowest first, then last submitted; ``las``: those of a higher level of attained service, the most first;
``srtf``: those with more predicted run time left, the most first; ``srsf``: the same with GPU time, where that pays for
a restart; ``priced``: inference as by ``inference``, other jobs as by ``srsf``; ``host``: inference as by
``inference``, other jobs with GPUs stop jobs without, of most cores first, three at most while CPU jobs wait;
``capacity``: an array within its part stops what others hold beyond theirs (SODA V-C), last submitted first (the order
of V-D); ``arrays``: both ``inference`` and ``capacity`` (SODA V); ``node_capacity``: jobs with GPUs stop what borrows
of their arrays on a node, CPU jobs beyond their part of its cores and, for large jobs, small ones on the nodes of large
ones; ``node_arrays``: ``inference`` and ``node_capacity``.
"""

Mechanism = Literal["rounds", "preempts", "elastic", "share_mode"]
"""What a policy that adapts takes from the setting; ``rounds`` with method, look-ahead and the worth of jobs."""

OptionChoice = Literal["any", "urgency", "rate", "cer"]
Elastic = Literal["asked", "pods", "load"]

ORDER_NAMES = RuleNames("order", JobOrder)
PREEMPTION_NAMES = RuleNames("preempts", Preempts)
CHOICE_NAMES = RuleNames("choice", OptionChoice)
ELASTIC_NAMES = RuleNames("elastic", Elastic)


class Source(Record):
    """The paper that a policy is from."""

    paper: Name
    """Citation of the paper."""
    section: Name
    """Section that defines the policy."""
    departures: tuple[str, ...] = ()
    """Every point in which the policy differs from the paper."""


class Arrays(Record):
    """
    The cluster divided between arrays of jobs, each with a part of the GPUs, CPU and memory, and what it may borrow.

    Everything that is idle may be borrowed up to ``borrow_percent`` of an array's own part.
    """

    by: Literal["queue", "user", "profile", "size"]
    """
    Which jobs are one array; ``size``: CPU jobs, jobs of fewer than 4 GPUs, and larger ones (SODA V-C). A job that
    names nothing is in an array with others that do not.
    """
    parts: Literal["equal", "demand"] = "equal"
    """How large the parts are: all alike, or as the GPU time (CPU time, memory) that jobs known at first ask for."""
    borrow_percent: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Idle resources that an array may borrow, in percent of its own part."""
    per_node: bool = False
    """
    With ``size``: nodes belong to the small or the large jobs, by the parts, and of every node's cores CPU jobs have
    their part (SODA V-C); a job is placed within its own array first. False: parts of the cluster alone.
    """

    @model_validator(mode="after")
    def _by_size(self) -> Self:
        if self.per_node and self.by != "size":
            raise ValueError(f"per_node: goes with by 'size', not {self.by!r}")
        return self


Weight = Annotated[int, Field(ge=0, le=1_000_000)]


class Goals(Record):
    """
    The objective of the order ``urgency``: the weights of its goals.

    A goal is measured in jobs that end a second later, so weights of 1 count alike. What a second of delay of a job
    costs is the job's urgency, the sum over the goals.
    """

    completion: Weight = 1
    """Mean completion time: every job counts 1."""
    in_time: Weight = 1
    """Jobs that end by their expected completion time or deadline: a job counts 1 as long as it still can."""
    makespan: Weight = 1
    """
    Last end: a job that takes t times as long as all work that is left would on all GPUs, t >= 1, counts t^2 times as
    many as wait, once no more arrivals are expected.
    """
    fairness: Weight = 0
    """Mean slowdown with waiting: a job counts mean run time / its own."""


class Throttle(Record):
    """How CPU jobs are held back where memory bandwidth runs short, and how that is noticed (SODA V-E)."""

    by: Literal["bandwidth", "cores"] = "bandwidth"
    """
    ``bandwidth``: they get what other jobs leave (Intel's Memory Bandwidth Allocation); ``cores``: half of their cores,
    with which they go at half their pace and use half of their bandwidth.
    """
    noticed_by: Literal["bandwidth", "utilisation"] = "bandwidth"
    """
    ``bandwidth``: a node's use is measured; ``utilisation``: the GPUs of a job there drop from their utilisation alone
    by ``drop_percent`` or more.
    """
    drop_percent: Annotated[int, Field(ge=1, le=99)] = 10
    """A drop of utilisation that counts as contention, in percent of that alone; ours, the paper says significantly."""


class Watch(Record):
    """
    When newcomers that slow others are queued again (Horus's baseline PAB).

    A started job is checked once: if a job that shares some of its GPUs has lost this much speed since, the newcomer
    is stopped and queued again, at the end.
    """

    after_ms: Annotated[Milliseconds, Field(ge=1)] = 60_000
    """Time from the start of the job to the check."""
    slower_percent: Annotated[int, Field(ge=1, le=99)] = 50
    """Loss of speed at which the newcomer is stopped."""
    one_by_one: bool = False
    """Whether no other job starts before a newcomer has been checked."""


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
    goals: Goals = Goals()
    """The objective; read by the order ``urgency``."""
    about: Annotated[str, Field(max_length=1000)] = ""
    """One sentence about the policy."""
    source: Source | None = None
    """None: placeopt's own."""
    rounds: Literal["whole", "each"] = "whole"
    """``whole``: all waiting jobs are placed together; ``each``: one job after the other."""
    method: Id = "auto"
    """Method of ``Engine.place``."""
    order: Annotated[str, ORDER_NAMES] | None = None
    """With ``each``, ``fcfs`` if left out."""
    choice: Annotated[str, CHOICE_NAMES] = "any"
    """
    In which of its options a job may run: any; the one of highest rate; that of highest rate over cost (GENIE eq. 11);
    ``urgency``: in any, tried in the order of what they cost the goals of the order ``urgency``.
    """
    cores: Literal["asked", "best_fit"] = "asked"
    """
    CPU cores of jobs with GPUs: what they ask for, or the fewest at the highest speed, by SODA's search (V-B) on the
    core curve of their profile; jobs without a curve keep what they ask for.
    """
    bandwidth: Literal["reserve", "ignore", "throttle"] = "reserve"
    """
    Memory bandwidth: jobs start only where the stated amount is free (``policy.usable``); or it is ignored; or it is
    reserved for inference only, and where a node's jobs use more than it has, jobs of kind ``cpu`` are slowed (SODA
    V-E).
    """
    throttle: Throttle = Throttle()
    """With ``bandwidth`` ``throttle``."""
    replicas: Literal["follow", "ahead", "peak", "first"] = "follow"
    """
    Number of an endpoint's replicas: by the load that the autoscaler measures; also as many as answer in time what the
    load may rise to until what is decided answers, by the rises of the last five minutes; by the peak of the load; or
    by its first step.
    """
    replica_load_percent: Annotated[int, Field(ge=1, le=100)] = 80
    """Largest load of a replica, as a part of its rate; it determines their number, at least one (SODA V-D 1)."""
    cpu_replicas: bool = False
    """
    Whether CPU cores alone serve endpoints where they can, and one replica with GPUs would do; not where CPU jobs wait
    for these cores while GPUs are idle (SODA V-D 2).
    """
    worth: Literal["stated", "rate"] = "stated"
    """
    Value of a job's option to a round: the stated one; or 10^11 / its predicted run time in ms, so that a round starts
    the jobs that maximise the number of jobs that end per time. Options without a run time, and elastic ones, keep the
    stated value.
    """
    clusters: Annotated[int, Field(ge=1, le=100)] | None = None
    """With the order ``clusters``: number of clusters (Horus: k)."""
    batch: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """With the order ``clusters``: jobs that are picked between updates of the waiting times (Horus: beta)."""
    strict: bool = False
    """With ``each``: no job overtakes the first one that does not fit. For whole rounds the method decides it."""
    aging_ms: Annotated[Milliseconds, Field(ge=1)] | None = None
    """With the order ``priority``: waiting time that counts as much as one unit of priority. None: no aging."""
    preempts: Annotated[str, PREEMPTION_NAMES] = "never"
    """With ``each``. Whole rounds stop, move and shrink jobs by ``policy.changes``."""
    restarts_max_thousandths: Thousandths | None = None
    """
    With ``preempts``: no job is stopped whose restarts would take more than this part of its predicted run time.
    None: no limit.
    """
    levels_gpu_s: tuple[Annotated[int, Field(ge=0, le=10**12)], ...] = ()
    """With ``las``: attained service in GPU-seconds from which on a job is one level higher; ascending."""
    quantum_ms: Annotated[Milliseconds, Field(ge=1)] | None = None
    """With ``las``: a round is held at multiples of it while a job waits."""
    apart_max_thousandths: Thousandths | None = None
    """
    With ``each``: a job waits, overtaken, rather than start with its GPUs so far apart that it would take more than
    this longer than well placed, by its own or the physics' spread slowdown. None: it starts wherever there is room.
    """
    elastic: Annotated[str, ELASTIC_NAMES] = "asked"
    """
    With ``each``: number of workers of elastic jobs. ``asked``: as many as requested, all or none. ``pods``: the same,
    but one by one as capacity is found, and the first ones hold their GPUs idle until all are placed (Kubernetes).
    ``load``: as many as requested, or fewer where capacity is short; more while no job waits, on the nodes where they
    are; and all workers but the chief make room for waiting jobs (DynamoML).
    """
    dominant: Literal["largest", "gpu"] = "largest"
    """
    With the order ``drf``: what a user's dominant share is of, the resource of which the user has the largest part, or
    GPUs alone (SODA's KELP-DRF). Arrays are compared by the largest.
    """
    arrays: Arrays | None = None
    """With the order ``capacity``; or with ``drf``, which then is the order of each array's own jobs."""
    watch: Watch | None = None
    """With ``each``."""
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
        stated = self.clusters is not None, self.batch is not None
        if stated != (self.order == "clusters",) * 2:
            raise ValueError("clusters, batch: go with the order 'clusters', which needs both")
        if self.strict and self.order in ("drf", "clusters"):
            raise ValueError(
                f"strict: {self.order!r} weighs queues against each other; there is no first job to wait for"
            )
        if self.choice == "urgency" and self.order != "urgency":
            raise ValueError("choice: 'urgency' goes with the order 'urgency', whose goals it reads")
        self._check_changes()
        return self

    def _check_changes(self) -> None:
        changes = self.preempts != "never" or self.elastic != "asked" or self.watch is not None
        if self.rounds == "whole" and (changes or self.arrays is not None):
            raise ValueError("preempts, elastic, arrays, watch: go with rounds 'each'; others have policy.changes")
        if (self.order == "las" or self.preempts == "las") != bool(self.levels_gpu_s):
            raise ValueError("levels_gpu_s: goes with the order or preemption 'las', which needs it")
        if list(self.levels_gpu_s) != sorted(set(self.levels_gpu_s)):
            raise ValueError("levels_gpu_s: must ascend")
        if self.restarts_max_thousandths is not None and self.preempts == "never":
            raise ValueError("restarts_max_thousandths: goes with preempts; no job is stopped otherwise")
        if self.quantum_ms is not None and self.preempts != "las":
            raise ValueError("quantum_ms: goes with preempts 'las'; nothing else changes while no job arrives or ends")
        if self.order == "capacity" and self.arrays is None:
            raise ValueError("arrays: the order 'capacity' needs them")
        if self.arrays is not None and self.order not in ("capacity", "drf"):
            raise ValueError("arrays: go with the orders 'capacity' and 'drf'")
        by_node = self.preempts in ("node_capacity", "node_arrays")
        if (by_node or self.preempts in ("capacity", "arrays")) and self.arrays is None:
            raise ValueError(f"preempts: {self.preempts!r} goes with arrays")
        if by_node and self.arrays is not None and not self.arrays.per_node:
            raise ValueError(f"preempts: {self.preempts!r} goes with arrays.per_node")
        if self.dominant != "largest" and (self.order != "drf" or self.arrays is not None):
            raise ValueError("dominant: goes with the order 'drf' without arrays")
        if self.arrays is not None and self.policy.queues:
            raise ValueError("arrays: make the policy's queues; leave policy.queues empty")
        if self.aging_ms is not None and self.order != "priority":
            raise ValueError("aging_ms: goes with the order 'priority'")
        if self.strict and self.order == "capacity":
            raise ValueError("strict: arrays are weighed against each other; there is no first job to wait for")

    @property
    def changes_jobs(self) -> bool:
        """Whether running jobs may be stopped, moved or resized."""
        changes = self.policy.changes
        each = self.preempts != "never" or self.elastic != "asked" or self.watch is not None
        return each or bool(changes.moves_max or changes.preemptions_max or changes.shrinks_max)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what decides: name, words and source aside, so two that differ only in those are one."""
        parts = self.model_copy(update={"name": "x", "about": "", "source": None})
        parts = parts.model_copy(update={"policy": parts.policy.model_copy(update={"name": "x"})})
        return hashlib.sha256(parts.model_dump_json(exclude_defaults=True).encode()).hexdigest()
