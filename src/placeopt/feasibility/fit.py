"""Does it fit? The question that conflicts and remedies ask over and over, answered exactly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from placeopt.feasibility.free_capacity import FreeCapacity
from placeopt.feasibility.requirement import Requirement
from placeopt.feasibility.worker_distribution import WorkerDistribution
from placeopt.problem import IntArray

FOREVER = float("inf")


@dataclass(frozen=True)
class Found:
    """A way to run: what is asked, with how many workers, and how many of them on which node."""

    ask: Requirement
    workers: int
    nodes: dict[int, int]

    @property
    def worth(self) -> int:
        """Value of the job run so."""
        return self.ask.worth(self.workers)


def fit(room: FreeCapacity, asks: Iterable[Requirement], deadline: float = FOREVER) -> Found | None:
    """Return a way to run one of ``asks``, the first that has one, or None if there is none; proven either way."""
    for ask in asks:
        per_node = room.workers(ask)
        for workers in sizes(ask, ceiling(room, ask, per_node)):
            layout = WorkerDistribution(room, ask, workers, per_node, deadline=deadline)
            if layout.fits:
                return Found(ask, workers, layout.nodes())
    return None


def best_fit(room: FreeCapacity, asks: Sequence[Requirement], deadline: float = FOREVER) -> Found | None:
    """Return the way to run that is worth most."""
    best: Found | None = None
    for ask in asks:
        if best is None or ask.worth(ask.most) > best.worth:
            workers = largest(room, ask, deadline) if ask.value_per_extra_worker else None
            found = fit(room, [ask if workers is None else ask.resized_from(workers)], deadline)
            if found is not None and (best is None or found.worth > best.worth):
                best = found
    return best


def largest(room: FreeCapacity, ask: Requirement, deadline: float = FOREVER) -> int | None:
    """Return the most workers, from ``ask.fewest`` to ``ask.most``, with which it fits; None if with none of them."""
    per_node = room.workers(ask)

    def fits(workers: int) -> bool:
        return WorkerDistribution(room, ask, workers, per_node, deadline=deadline).fits

    most = ceiling(room, ask, per_node)
    if not _falls(ask):
        return next((k for k in reversed(list(sizes(ask, most))) if fits(k)), None)
    low = next(iter(sizes(ask, most)), None)
    if low is None or not fits(low):
        return None
    high = most + 1  # low fits, high does not
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


def sizes(ask: Requirement, most: int) -> Iterable[int]:
    """Return numbers of workers to try, ascending, up to ``most``: if it fits with any, then with one of these."""
    fewest = max([ask.fewest, *(split.domains for split in ask.splits)])
    most = min(ask.most, most)
    if _falls(ask):
        return (fewest,) if fewest <= most else ()
    stated = [split.domains for split in ask.splits if split.workers is not None]
    return (k for k in range(fewest, most + 1) if all(k % domains == 0 for domains in stated))


def _falls(ask: Requirement) -> bool:
    """
    Whether a worker can always be taken away, as long as there are more than domains to be used.

    Uplinks carry no more after it, and one of several workers of a domain leaves the number of domains as it was. With
    splits of two levels no worker may be free to go, nor with stated sizes.
    """
    return len({split.level for split in ask.splits}) <= 1 and all(split.workers is None for split in ask.splits)


def ceiling(room: FreeCapacity, ask: Requirement, per_node: IntArray) -> int:
    """More workers than that cannot run, wherever they lie."""
    if not ask.useful:
        return 0
    return min(room.queue_takes(ask), int(per_node.max() if ask.single_node else per_node.sum()))
