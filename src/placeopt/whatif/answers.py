"""Answers to what-if questions: the records that Python gets and ``--json`` prints."""

from __future__ import annotations

from typing import Literal

from placeopt.edits import Of
from placeopt.model.base import Id, LongName, Name, Record, Uncertified

NAMED_IN_WORDS = 5
"""Number of failing domains named in a sentence; the others are counted."""


class Answer(Uncertified):
    """An answer about a cluster, or about what was read of it."""

    of: Of = "cluster"
    """Whether what is proven is true of the cluster, whatever was not read, or only of what was read."""
    unread: tuple[LongName, ...] = ()
    """Of a reading: jobs and nodes that were not read and could change the answer."""


class Binding(Record):
    """A constraint that excludes one more copy, and what it requires."""

    name: Name
    asks: str


class LargestGang(Record):
    """The proven maximum of workers of ``gpus_each`` GPUs that one domain of a level holds beside running jobs."""

    level: Id
    workers: int
    gpus_each: int
    gpu_milli_each: int = 0
    """Thousandths of GPUs that one worker holds: 500 of half a GPU; 0 in answers of versions that did not state it."""

    @property
    def gpu_milli(self) -> int:
        """Thousandths of GPUs that all its workers hold."""
        return self.workers * (self.gpu_milli_each or 1000 * self.gpus_each)


class Fit(Answer):
    """How many copies of a job fit: ``found`` are placed, ``most`` is the proven maximum."""

    found: int
    most: int
    gpu_milli_each: int
    gangs: tuple[LargestGang, ...]
    binds: tuple[Binding, ...] | None
    tolerated: tuple[str, ...] = ()
    """Taints of nodes that count as open, since the job tolerates them or is assumed to; as ``kubectl`` writes them."""
    seconds: float

    @property
    def proven(self) -> bool:
        """Whether both bounds meet."""
        return self.found == self.most


class SlotCount(Record):
    """Disjoint slots of ``size`` free GPUs in domains of a level; ``largest`` is the most free GPUs of any domain."""

    level: Id
    size: int
    slots: int
    largest: int


class Slots(Answer):
    """Slots by level and size, of idle GPUs on nodes that take new jobs."""

    free_gpus: int
    gpus: int
    model: Name | None
    counts: tuple[SlotCount, ...]


class Failure(Record):
    """
    Domains that fail together: the displaced jobs, and how many of them are not placed again.

    ``lost``: not placed in the plan found; ``lost_at_least``: the proven minimum, wherever jobs with conditions that
    were not read may run.
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
    """Number of failed GPUs, including those on surviving nodes."""
    unread: tuple[LongName, ...] = ()
    """What was not read and could change this."""

    @property
    def survives(self) -> bool | None:
        """Whether all displaced jobs are placed again; None if neither shown nor refuted."""
        return True if self.lost == 0 else False if self.lost_at_least > 0 else None


class Failures(Answer):
    """
    Scenarios of ``k`` failing domains, and the answer that follows from them.

    The answer is about the domains in ``asked``; None: about all domains of the level.
    """

    level: Id
    k: int
    answer: Literal["yes", "no", "unknown"]
    """yes: all jobs are placed again in every scenario."""
    asked: tuple[Id, ...] | None = None
    """The domains of the question, fewer than the level has; None: all of them."""
    domains: int = 0
    """Number of domains of the level that could fail."""
    changes: bool = False
    """Whether jobs that still run may be moved, shrunk and preempted; otherwise they stay."""
    scenarios: tuple[Failure, ...]
    left: int
    """Scenarios that were not solved because of an interruption."""
    worst: Failure | None
    seconds: float

    @property
    def condition(self) -> str:
        """The failure in words: ``whichever rack fails``, ``if rack-3 fails``, ``if any 2 of 5 racks fail``."""
        if self.asked is None:
            return f"whichever {self.level} fails" if self.k == 1 else f"whichever {self.k} of level {self.level} fail"
        names = ", ".join(self.asked[:NAMED_IN_WORDS])
        names += f" and {len(self.asked) - NAMED_IN_WORDS:,} more" if len(self.asked) > NAMED_IN_WORDS else ""
        if len(self.asked) == self.k:
            return f"if {names} {'fails' if self.k == 1 else 'fail together'}"
        return f"if any {'one' if self.k == 1 else self.k} of {names} {'fails' if self.k == 1 else 'fail'}"


class NodeTrial(Record):
    """A number of nodes that was tried: whether all jobs fit (proven, or None), and the jobs that wait."""

    nodes: int
    fits: bool | None
    waiting: int
    """Jobs that wait in the plan found."""
    gpu_milli_waiting: int


class NodesNeeded(Answer):
    """
    The fewest nodes of a type with which all jobs are placed: ``at_least`` is proven, ``found`` suffices.

    ``found`` is None where no number that was tried suffices. ``impossible``: no number suffices, proven; then both are
    None, and ``never`` names the waiting jobs that do not fit even without the others, if any.
    """

    node_type: Id
    at_least: int | None
    found: int | None
    price_milli_per_hour: int
    """Of one such node."""
    gpus: int = 0
    """Of one such node: GPU hours an hour."""
    impossible: bool = False
    never: tuple[Id, ...] = ()
    """The first hundred of them."""
    tried: tuple[NodeTrial, ...]
    seconds: float

    @property
    def proven(self) -> bool:
        """Whether both bounds meet."""
        return self.found is not None and self.found == self.at_least


class RoundOutcome(Record):
    """Figures of a round; no plan of it exceeds ``value_bound``, which is None where nothing is proven."""

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
    """Running jobs that the scenario displaced; they may be placed again."""


class Swap(Answer):
    """A round before and after nodes are exchanged; the gain is proven to lie in ``gain_low`` to ``gain_high``."""

    before: RoundOutcome
    after: RoundOutcome
    exchanged: int
    """Nodes."""
    gain_low: int | None
    gain_high: int | None
    answer: Literal["better", "worse", "equal", "unknown"]
    """Compares the values of the best plans before and after; unknown where the bounds do not decide."""
    seconds: float


class SweepPoint(Record):
    """One setting of a sweep, and the figures of the round."""

    setting: int
    outcome: RoundOutcome


class Sweep(Answer):
    """A round under several settings."""

    varied: Name
    points: tuple[SweepPoint, ...]
    left: int
    """Settings that were not solved because of an interruption."""
    seconds: float


class Price(Record):
    """
    The value of one addition to the round.

    ``low`` to ``high``: by solving the round again; the gain of the best plan lies between. An end is None where a
    bound is missing. ``by_duals``: by the duals of the relaxation, None where they do not apply. Jobs are not
    divisible, so the two may differ.
    """

    of: Literal["node", "domain", "quota"]
    name: Name
    low: int | None
    high: int | None
    by_duals: int | None
    price_milli_per_hour: int | None = None
    gpus: int | None = None
    """Of the nodes added: GPU hours an hour; None where none are."""

    @property
    def agreement(self) -> Literal["equal", "inside", "outside"] | None:
        """
        Comparison of the duals with the interval; None if there are none, or an end of it is missing.

        ``equal``: the interval is one number, equal to the duals. ``inside``: the interval is wider and contains them,
        which decides nothing. ``outside``: the duals differ from every value in the interval.
        """
        if self.by_duals is None or self.low is None or self.high is None:
            return None
        if not self.low <= self.by_duals <= self.high:
            return "outside"
        return "equal" if self.low == self.high else "inside"


class Prices(Answer):
    """The present round, and prices of additions to it."""

    value: int
    value_bound: int | None
    prices: tuple[Price, ...]
    left: int
    seconds: float


class CostComparison(Record):
    """A raw cost of a plan and of the best plan found; ``weight`` is the cost level's increase per unit."""

    name: Name
    unit: Name
    weight: int
    raw: int
    best_raw: int


class SingleMove(Record):
    """
    A change of one job while all others stay: ``place`` a waiting one, or ``move`` one to a better placement.

    ``nodes``: workers by node. ``gain_cost`` is None where it was not computed.
    """

    job: Id
    kind: Literal["place", "move"]
    nodes: dict[Id, int]
    gain_value: int
    gain_cost: int | None


class Review(Uncertified):
    """The review of a placement; unless ``valid``, it holds only the first hundred of ``count`` ``violations``."""

    valid: bool
    violations: tuple[str, ...] = ()
    count: int = 0
    value: int | None = None
    best_value: int | None = None
    value_bound: int | None = None
    cost: int | None = None
    best_cost: int | None = None
    """Of the best plan found, which may cost more where its value is higher."""
    cost_bound: int | None = None
    terms: tuple[CostComparison, ...] = ()
    moves: tuple[SingleMove, ...] = ()
    jobs_tried: int = 0
    all_tried: bool = True
    """Whether every waiting job, and every placed one that costs anything, was tried."""
    seconds: float = 0.0

    @property
    def value_gap(self) -> float | None:
        """Relative distance of the plan from the bound on value; None without a bound."""
        if self.value is None or self.value_bound is None:
            return None
        return abs(self.value_bound - self.value) / max(1, abs(self.value))


class Relocation(Record):
    """A move of a running job, from nodes to nodes."""

    job: Id
    from_nodes: tuple[Id, ...]
    to_nodes: tuple[Id, ...]
    gpu_milli: int


class EmptiedDomains(Record):
    """
    Moves that empty domains: ``freed`` domains are empty afterwards, including those that were empty before.

    ``moves`` are in an order that keeps every rule after each move; ``ordered`` is false where no such order was found.
    ``at_least``: the proven minimum of moves for so many domains.
    """

    freed: int
    domains: tuple[Id, ...]
    """Those emptied by the moves, in order."""
    moves: tuple[Relocation, ...]
    at_least: int
    ordered: bool


class Defrag(Answer):
    """
    Numbers of empty domains against moves of running jobs.

    ``most``: the proven maximum of empty domains. ``stuck``: domains that hold a job that must not move.
    """

    level: Id
    domains: int
    free_before: int
    front: tuple[EmptiedDomains, ...]
    most: int
    stuck: int
    moves_most: int | None = None
    """The limit of moves; None: no limit."""
    exempt: int = 0
    """Number of jobs that must not move."""
    all_movable: bool = False
    """Whether jobs that are not marked as movable may move too."""
    seconds: float


class MixtureTrial(Record):
    """A mixture that was tried: nodes of each type, and whether all jobs fit (proven, or None)."""

    nodes: tuple[int, ...]
    fits: bool | None
    waiting: int


class Cheapest(Uncertified):
    """
    The cheapest nodes, of one type or mixed, with which all jobs are placed.

    ``best`` is the cheapest type alone, None where no type was found to suffice. ``mixture`` holds the number of nodes
    of each of the ``choices`` in the cheapest mixture found, for ``price_milli_per_hour``; no mixture suffices for less
    than ``at_least_milli_per_hour``, proven; None: no bound was computed.
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
        """Whether both bounds meet."""
        return self.mixture is not None and self.price_milli_per_hour == self.at_least_milli_per_hour
