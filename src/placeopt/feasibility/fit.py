"""Does it fit? The question behind conflicts and remedies, decided exactly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from placeopt.deadline import FOREVER, Deadline
from placeopt.feasibility.free_capacity import FreeCapacity
from placeopt.feasibility.requirement import Requirement
from placeopt.problem import IntArray


@dataclass(frozen=True)
class Fit:
    """A way to run: the requirement, the number of workers, and how many of them on which node."""

    requirement: Requirement
    workers: int
    nodes: dict[int, int]

    @property
    def worth(self) -> int:
        """Value of the job run so."""
        return self.requirement.worth(self.workers)


def fit(free_capacity: FreeCapacity, requirements: Iterable[Requirement], deadline: Deadline = FOREVER) -> Fit | None:
    """Return a way to run the first of ``requirements`` that has one, or None if there is none; proven either way."""
    for requirement in requirements:
        per_node = free_capacity.workers(requirement)
        for workers in sizes(requirement, ceiling(free_capacity, requirement, per_node)):
            distribution = free_capacity.distribution(requirement, workers, per_node, deadline=deadline)
            if distribution.fits:
                return Fit(requirement, workers, distribution.nodes())
    return None


def best_fit(
    free_capacity: FreeCapacity, requirements: Sequence[Requirement], deadline: Deadline = FOREVER
) -> Fit | None:
    """Return the way to run that is worth most."""
    best: Fit | None = None
    for requirement in requirements:
        if best is None or requirement.worth(requirement.most) > best.worth:
            workers = largest(free_capacity, requirement, deadline) if requirement.value_per_worker else None
            way = fit(free_capacity, [requirement if workers is None else requirement.resized_from(workers)], deadline)
            if way is not None and (best is None or way.worth > best.worth):
                best = way
    return best


def largest(free_capacity: FreeCapacity, requirement: Requirement, deadline: Deadline = FOREVER) -> int | None:
    """Return the most workers of ``fewest`` to ``most`` with which the requirement fits; None without any."""
    per_node = free_capacity.workers(requirement)

    def fits(workers: int) -> bool:
        return free_capacity.distribution(requirement, workers, per_node, deadline=deadline).fits

    most = ceiling(free_capacity, requirement, per_node)
    if not _can_shrink(requirement):
        return next((k for k in reversed(list(sizes(requirement, most))) if fits(k)), None)
    low = next(iter(sizes(requirement, most)), None)
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


def sizes(requirement: Requirement, most: int) -> Iterable[int]:
    """Return numbers of workers to try, ascending, up to ``most``: if it fits with any, then with one of these."""
    fewest = max([requirement.fewest, *(split.domains for split in requirement.splits)])
    most = min(requirement.most, most)
    if _can_shrink(requirement):
        return (fewest,) if fewest <= most else ()
    stated = [split.domains for split in requirement.splits if split.workers is not None]
    stated += [one.segment or 1 for one in requirement.spread if one.remainder == "refuse"]
    return (k for k in range(fewest, most + 1) if all(k % parts == 0 for parts in stated))


def _can_shrink(requirement: Requirement) -> bool:
    """Whether a worker can always be taken away, as long as there are more than domains to be used."""
    # Uplinks carry no more after it, and one of several workers of a domain leaves the number of domains as it was.
    # With splits of two levels no worker may be free to go, nor with stated sizes, segments and a skew.
    levels = {split.level for split in requirement.splits}
    return len(levels) <= 1 and not requirement.spread and all(split.workers is None for split in requirement.splits)


def ceiling(free_capacity: FreeCapacity, requirement: Requirement, per_node: IntArray) -> int:
    """Upper bound on the number of workers that can run, wherever they are."""
    if not requirement.useful:
        return 0
    return min(
        free_capacity.queue_takes(requirement),
        free_capacity.takes(requirement, None),
        int(per_node.max() if requirement.on_one_node else per_node.sum()),
    )
