"""Answers to what-if questions, as records: what Python gets and ``--json`` prints."""

from __future__ import annotations

from typing import Literal

from placeopt.model.base import Id, Name, Record

NAMED_IN_WORDS = 5
"""Failing domains named in a sentence; the others are counted."""


class Binding(Record):
    """A constraint that keeps one more out, and what it asks."""

    name: Name
    asks: str


class LargestGang(Record):
    """The most workers of ``gpus_each`` GPUs that one domain of a level holds beside what runs; proven."""

    level: Id
    workers: int
    gpus_each: int
    gpu_milli_each: int = 0
    """Thousandths of GPUs that one worker holds: 500 of half a GPU; 0 in answers of versions that did not state it."""

    @property
    def gpu_milli(self) -> int:
        """Thousandths of GPUs that all its workers hold."""
        return self.workers * (self.gpu_milli_each or 1000 * self.gpus_each)


class Fit(Record):
    """How many copies of a job fit: ``found`` are placed, more than ``most`` cannot be."""

    found: int
    most: int
    gpu_milli_each: int
    gangs: tuple[LargestGang, ...]
    binds: tuple[Binding, ...] | None
    seconds: float

    @property
    def proven(self) -> bool:
        """Whether the two meet."""
        return self.found == self.most


class SlotCount(Record):
    """Disjoint slots of ``size`` free GPUs in domains of a level; ``largest`` is the most free GPUs of any domain."""

    level: Id
    size: int
    slots: int
    largest: int


class Slots(Record):
    """Slots by level and size, of GPUs that no job holds any part of, on nodes that take new work."""

    free_gpus: int
    gpus: int
    model: Name | None
    counts: tuple[SlotCount, ...]


class Failure(Record):
    """
    Domains that fail together: the jobs that lose their place, and how many of them find another.

    ``lost`` stay without one in the plan found; fewer than ``lost_at_least`` cannot, proven.
    """

    domains: tuple[Id, ...]
    nodes: int
    displaced: int
    displaced_gpu_milli: int
    lost: int
    lost_at_least: int
    lost_gpu_milli: int
    lost_jobs: tuple[Id, ...] = ()
    """The first hundred of them."""
    gpus: int = 0
    """That fail, of whole nodes or inside nodes that stay."""

    @property
    def survives(self) -> bool | None:
        """Whether all displaced jobs find a place; None if neither shown nor refuted."""
        return True if self.lost == 0 else False if self.lost_at_least > 0 else None


class Failures(Record):
    """
    Every scenario of ``k`` failing domains that was asked for, and what they say together.

    The answer is about ``asked`` alone; without it, about all domains of the level.
    """

    level: Id
    k: int
    answer: Literal["yes", "no", "unknown"]
    """yes: whatever of these fails, all jobs find a place."""
    asked: tuple[Id, ...] | None = None
    """The domains that the question was about, fewer than the level has; None: all of them."""
    domains: int = 0
    """How many the level has that could fail."""
    changes: bool = False
    """Whether what still runs may be moved, shrunk and preempted; otherwise it stays."""
    scenarios: tuple[Failure, ...]
    left: int
    """Scenarios that were not looked at, for an interruption."""
    worst: Failure | None
    seconds: float

    @property
    def condition(self) -> str:
        """Say what fails, in words: ``whichever rack fails``, ``if rack-3 fails``, ``if any 2 of 5 racks fail``."""
        if self.asked is None:
            return f"whichever {self.level} fails" if self.k == 1 else f"whichever {self.k} of level {self.level} fail"
        names = ", ".join(self.asked[:NAMED_IN_WORDS])
        names += f" and {len(self.asked) - NAMED_IN_WORDS:,} more" if len(self.asked) > NAMED_IN_WORDS else ""
        if len(self.asked) == self.k:
            return f"if {names} {'fails' if self.k == 1 else 'fail together'}"
        return f"if any {'one' if self.k == 1 else self.k} of {names} {'fails' if self.k == 1 else 'fail'}"


class NodeTrial(Record):
    """A number of nodes that was tried: whether all jobs fit, proven either way, or None; and what was placed."""

    nodes: int
    fits: bool | None
    waiting: int
    """Jobs that the plan found leaves waiting."""
    gpu_milli_waiting: int


class NodesNeeded(Record):
    """
    The fewest nodes of a type with which all jobs are placed: at least ``at_least``, proven; ``found`` will do.

    ``found`` is None where no number that was tried does. ``impossible``: no number will do, proven; then both are
    None, and ``never`` names the waiting jobs that do not even fit without the others, if it is they.
    """

    node_type: Id
    at_least: int | None
    found: int | None
    price_milli_per_hour: int
    """Of one such node."""
    impossible: bool = False
    never: tuple[Id, ...] = ()
    """The first hundred of them."""
    tried: tuple[NodeTrial, ...]
    seconds: float

    @property
    def proven(self) -> bool:
        """Whether the two meet."""
        return self.found is not None and self.found == self.at_least


class RoundOutcome(Record):
    """What a round comes to; ``value_bound`` is what no plan of it exceeds, None where nothing is proven."""

    value: int
    value_bound: int | None
    jobs_placed: int
    jobs_waiting: int
    gpu_milli_placed: int
    gpu_milli_bound: int
    gpu_milli_capacity: int
    nodes: int
    price_milli_per_hour: int
    displaced: int = 0
    """Jobs that ran and were taken from their nodes by the scenario; they may be placed again."""


class Swap(Record):
    """A round before and after nodes are exchanged; the gain lies from ``gain_low`` to ``gain_high``, proven."""

    before: RoundOutcome
    after: RoundOutcome
    exchanged: int
    """Nodes."""
    gain_low: int | None
    gain_high: int | None
    answer: Literal["better", "worse", "equal", "unknown"]
    """Of the best plans before and after, by value; unknown where the bounds do not tell."""
    seconds: float


class SweepPoint(Record):
    """One setting of a sweep, and what the round comes to."""

    setting: int
    outcome: RoundOutcome


class Sweep(Record):
    """A round under one setting after the other."""

    varied: Name
    points: tuple[SweepPoint, ...]
    left: int
    """Settings that were not looked at, for an interruption."""
    seconds: float


class Price(Record):
    """
    What one more of something is worth to the round.

    ``low`` to ``high``: by solving the round again, from plans and bounds; the gain of the best plan lies between. An
    end is None where a bound is missing. ``by_duals``: what the relaxation's duals say, None where they do not apply;
    jobs are not divisible, so the two may differ.
    """

    of: Literal["node", "domain", "quota"]
    name: Name
    low: int | None
    high: int | None
    by_duals: int | None
    price_milli_per_hour: int | None = None

    @property
    def agreement(self) -> Literal["equal", "inside", "outside"] | None:
        """
        Return how the duals stand to the interval; None if there are none, or an end of it is missing.

        ``equal``: the interval is one number, and the duals say it. ``inside``: the interval is wider and holds them,
        which decides nothing. ``outside``: they are wrong by more than the interval leaves open.
        """
        if self.by_duals is None or self.low is None or self.high is None:
            return None
        if not self.low <= self.by_duals <= self.high:
            return "outside"
        return "equal" if self.low == self.high else "inside"


class Prices(Record):
    """The round as it is, and prices of what could be added to it."""

    value: int
    value_bound: int | None
    prices: tuple[Price, ...]
    left: int
    seconds: float


class CostComparison(Record):
    """A cost of a plan and of the best plan found, raw; ``weight`` is what a unit of it adds to the cost level."""

    name: Name
    unit: Name
    weight: int
    raw: int
    best_raw: int


class SingleMove(Record):
    """
    A change to one job while all others stay: ``place`` one that waits, or ``move`` one to a better place.

    ``nodes``: workers by node. ``gain_cost`` is None where it was not worked out.
    """

    job: Id
    kind: Literal["place", "move"]
    nodes: dict[Id, int]
    gain_value: int
    gain_cost: int | None


class Review(Record):
    """A placement under review; without ``valid`` only ``violations``, the first hundred of ``count``, are there."""

    valid: bool
    violations: tuple[str, ...] = ()
    count: int = 0
    value: int | None = None
    best_value: int | None = None
    value_bound: int | None = None
    cost: int | None = None
    best_cost: int | None = None
    """Of the best plan found; below the plan's own only where that is worth no less."""
    cost_bound: int | None = None
    terms: tuple[CostComparison, ...] = ()
    moves: tuple[SingleMove, ...] = ()
    jobs_tried: int = 0
    all_tried: bool = True
    """Whether every waiting job, and every placed one that costs anything, was tried."""
    seconds: float = 0.0

    @property
    def value_gap(self) -> float | None:
        """How far the plan is from the bound on value, relative; None without one."""
        if self.value is None or self.value_bound is None:
            return None
        return abs(self.value_bound - self.value) / max(1, abs(self.value))


class Relocation(Record):
    """A move of a running job, with the nodes it leaves and those it goes to."""

    job: Id
    from_nodes: tuple[Id, ...]
    to_nodes: tuple[Id, ...]
    gpu_milli: int


class EmptiedDomains(Record):
    """
    A way to empty domains: ``freed`` of them are empty afterwards, those that were before included.

    ``moves`` stand in an order in which each keeps every rule at its time; ``ordered`` is false where no such order was
    found. Fewer than ``at_least`` moves do not empty so many, proven.
    """

    freed: int
    domains: tuple[Id, ...]
    """Emptied by the moves, in the order in which they are."""
    moves: tuple[Relocation, ...]
    at_least: int
    ordered: bool


class Defrag(Record):
    """
    More and more empty domains against moves of running jobs.

    ``most``: more domains cannot be empty, proven. ``stuck``: those that hold a job that must not move.
    """

    level: Id
    domains: int
    free_before: int
    front: tuple[EmptiedDomains, ...]
    most: int
    stuck: int
    moves_most: int | None = None
    """More moves were not asked for; None: no limit."""
    exempt: int = 0
    """Jobs that the question keeps where they are."""
    all_movable: bool = False
    """Whether jobs that are not marked as movable may be moved too."""
    seconds: float


class MixtureTrial(Record):
    """A mixture that was tried: nodes of each type; whether all jobs fit, proven either way, or None."""

    nodes: tuple[int, ...]
    fits: bool | None
    waiting: int


class Cheapest(Record):
    """
    Several node types, each by itself and mixed: with what all jobs are placed at the least price an hour.

    ``best`` is the cheapest type alone, None where none is found to do. ``mixture`` says how many nodes of each of the
    ``choices`` are the cheapest together that were found, for ``price_milli_per_hour``; for less than
    ``at_least_milli_per_hour`` no mixture of them does, proven; None where that was not sought.
    """

    choices: tuple[NodesNeeded, ...]
    best: Id | None
    mixture: tuple[int, ...] | None = None
    price_milli_per_hour: int | None
    at_least_milli_per_hour: int | None
    tried: tuple[MixtureTrial, ...] = ()
    seconds: float

    @property
    def proven(self) -> bool:
        """Whether the two meet."""
        return self.mixture is not None and self.price_milli_per_hour == self.at_least_milli_per_hour
