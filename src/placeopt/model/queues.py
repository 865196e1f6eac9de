"""Queues: trees of them, what each may hold, borrow and lend, of all nodes and of those of a flavor."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from placeopt.model.base import Id, Name, Percent, PositiveCount, Record, refuse_repeats


class Quota(Record):
    """Amounts of a queue."""

    gpu_milli: Annotated[int, Field(ge=0, le=10**12)] | None = None
    """Thousandths of GPUs; null: not stated."""
    cpu_millicores: Annotated[int, Field(ge=0, le=10**12)] | None = None
    """Thousandths of CPU cores; null: not stated."""
    memory_mib: Annotated[int, Field(ge=0, le=10**12)] | None = None
    """Host memory; null: not stated."""


class Allowance(Record):
    """What the jobs of a queue and of those below it hold together: at most ``quota`` + ``borrow``."""

    quota: Quota = Quota()
    """Amounts that they may hold; what is left out is no limit."""
    borrow: Quota = Quota()
    """Amounts that they may hold above the quota; what is left out is none."""
    lend: Quota = Quota()
    """
    Amounts of the quota that others may take while these jobs do not; what is left out is all of it. The rest is kept:
    above it, a queue counts with at least quota - lend. (Kueue: lending limit.)
    """

    def most(self, name: str) -> int | None:
        """Return quota and borrow of an amount; None: no limit."""
        quota: int | None = getattr(self.quota, name)
        return None if quota is None else quota + (getattr(self.borrow, name) or 0)

    def kept(self, name: str) -> int:
        """Return how much of an amount is never lent."""
        quota, lend = getattr(self.quota, name), getattr(self.lend, name)
        return 0 if quota is None or lend is None else max(0, quota - lend)


class Flavor(Record):
    """A kind of nodes: those with all of these labels and a GPU of one of these models.; in Kueue a resource flavor."""

    id: Id
    """Unique name of the flavor."""
    node_selector: dict[Id, Name] = Field(default_factory=dict)
    """Label -> value that a node must have; domain levels and ``metadata.name`` are labels, too."""
    gpu_models: tuple[Name, ...] = ()
    """Models of which a node must have a GPU; empty: any node."""


class _OfFlavor(Record):
    flavor: Id
    """A flavor of the policy."""


class FlavorAllowance(Allowance, _OfFlavor):
    """What a queue may hold on the nodes of one flavor, beside what it may hold of all nodes."""


class _InTree(Record):
    id: Id
    """Unique name of the queue."""
    parent: Id | None = None
    """The queue above it, such as a cohort; null: none."""


class Queue(Allowance, _InTree):  # the name comes first in files: fields of the last base class do
    """
    A queue or array (SODA V-C).

    Its jobs hold at most ``quota`` + ``borrow`` of each resource, and at most
    ``dominant_share_percent`` + ``borrow_percent`` of the cluster's total of any resource. Queues form trees: what the
    jobs of the queues below it hold counts, too, so a queue above others bounds what these borrow together.
    """

    flavors: Annotated[tuple[FlavorAllowance, ...], Field(max_length=1000)] = ()
    """
    What it may hold by flavor. Where a queue names some, the workers of each group of its jobs start on nodes of one
    of them.
    """
    dominant_share_percent: Percent | None = None
    """Largest share of the cluster's total of any resource; null: no limit."""
    borrow_percent: Percent = 0
    """Percentage points above ``dominant_share_percent``."""
    weight: PositiveCount = 1
    """How much of the GPUs the queue's jobs are due, beside the other queues, in the order ``weighted_fair``."""
    usage_gpu_milli: Annotated[int, Field(ge=0, le=10**12)] = 0
    """
    Mean GPU share that its jobs have held lately, in thousandths of a GPU, with any half-life: who states it keeps it.
    In the order ``weighted_fair`` it counts beside what they hold.
    """


def check_queues(queues: Sequence[Queue], flavors: Sequence[Flavor]) -> None:
    """Raise ``ValueError`` if names repeat, or queues form no trees or name flavors that are not there."""
    refuse_repeats("queues[].id", (queue.id for queue in queues), "ids of queues are unique")
    refuse_repeats("flavors[].id", (flavor.id for flavor in flavors), "ids of flavors are unique")
    known = {flavor.id for flavor in flavors}
    parents = {queue.id: queue.parent for queue in queues}
    for i, queue in enumerate(queues):
        if queue.parent is not None and queue.parent not in parents:
            raise ValueError(f"queues[{i}].parent: no queue {queue.parent!r}; list it in 'queues', too")
        for k, of in enumerate(queue.flavors):
            if of.flavor not in known:
                raise ValueError(f"queues[{i}].flavors[{k}].flavor: no flavor {of.flavor!r}; list it in 'flavors'")
        refuse_repeats(f"queues[{i}].flavors[].flavor", (of.flavor for of in queue.flavors), "each stands once")
    settled: set[str] = set()
    for name in parents:
        path: dict[str, None] = {}
        at: str | None = name
        while at is not None and at not in settled:
            if at in path:
                raise ValueError(f"queues[].parent: {at!r} is above itself; queues form trees")
            path[at] = None
            at = parents.get(at)
        settled |= path.keys()
