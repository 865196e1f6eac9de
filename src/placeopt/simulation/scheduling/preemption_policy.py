"""Who gives room for whom: running jobs that may be stopped, or may do with fewer workers, for one that waits."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from placeopt.model import Demand, Job, Option, Placement
from placeopt.model.scheduling import Preempts
from placeopt.simulation.scheduling.attained_service import AttainedService
from placeopt.simulation.scheduling.free_resources import FreeResources, without_last
from placeopt.simulation.scheduling.job_arrays import JobArrayQueue, amounts_of


@dataclass(frozen=True)
class Eviction:
    """A running job, and what is left of its placement; None: it is stopped."""

    job: str
    left: Placement | None


@dataclass(frozen=True)
class Candidate:
    """A running job that may give."""

    job: Job
    placement: Placement
    option: Option
    """In which it runs."""
    may_stop: bool = True
    """Or it may give workers only."""

    @property
    def demand(self) -> Demand:
        """What one of its workers needs."""
        return self.option.demand


class PreemptionPolicy:
    """
    The rule by which running jobs give to waiting ones.

    Parameters
    ----------
    rule
        Who may be stopped for whom.
    restart_ms
        What a job that was stopped loses when it starts again.
    workers
        Whether elastic jobs give workers, before anybody is stopped.
    """

    def __init__(
        self,
        rule: Preempts,
        *,
        restart_ms: int = 0,
        workers: bool,
        room: FreeResources,
        service: AttainedService,
        turns: JobArrayQueue | None,
    ) -> None:
        self._rule, self._workers, self._restart_ms = rule, workers, restart_ms
        self._room, self._service, self._turns = room, service, turns

    def key(self, job: Job, now_ms: int) -> Hashable:
        """Return what the rule looks at in a waiting job, beside what it asks for."""
        match self._rule:
            case "inference" | "arrays":
                return job.kind
            case "priority":
                return job.priority
            case "las":
                return self._service.level(job.id, now_ms)
            case "srtf" | "srsf":
                return job.options[0].run_time_ms
            case _:
                return None

    def takes(self, key: Hashable) -> bool:
        """Tell whether a job of this key might be given room by anybody."""
        return self._workers or self._rule != "inference" or key == "inference"

    def may_claim(self, job: Job, option: Option) -> bool:
        """Tell whether the rule lets anybody give to a job in an option, whoever runs where."""
        if self._workers or (self._rule == "arrays" and job.kind == "inference"):
            return True
        return self._rule not in ("capacity", "arrays") or self._is_owed(job, option)

    def choose(
        self,
        job: Job,
        option: Option,
        candidates: Iterable[Candidate],
        now_ms: int,
        ends: Mapping[str, int],
    ) -> list[Eviction] | None:
        """
        Return the gifts that make room for a job in one of its options; None if all that may be had are too few.

        Gifts are taken in the order of the rule until there is room; then each giver that is not needed gets back what
        it gave, the first one first.
        """
        mine = list(candidates)
        known = {one.job.id: one for one in mine}
        given: dict[str, Eviction] = {}
        fits = False
        for gift in self._in_order(job, option, mine, now_ms, ends):
            giver = known[gift.job]
            before = given[gift.job].left if gift.job in given else giver.placement
            self._exchange(before, gift.left, giver.demand)
            given[gift.job] = gift
            fits = self._room.fits(job, option, option.workers)
            if fits:
                break
        for name in list(given):
            giver, left = known[name], given[name].left
            self._exchange(left, giver.placement, giver.demand)  # as if it kept everything
            if fits and not self._room.fits(job, option, option.workers):
                self._exchange(giver.placement, left, giver.demand)
            else:
                del given[name]
        for name, gift in given.items():
            self._exchange(gift.left, known[name].placement, known[name].demand)
        return list(given.values()) if fits and given else None

    def _exchange(self, before: Placement | None, after: Placement | None, demand: Demand) -> None:
        if before is not None:
            self._room.take(before, demand, -1)
        if after is not None:
            self._room.take(after, demand)

    def _in_order(
        self, job: Job, option: Option, candidates: list[Candidate], now_ms: int, ends: Mapping[str, int]
    ) -> Iterator[Eviction]:
        """Yield gifts, the first to be taken first; a later one of a job stands in the place of an earlier one."""
        last_first = sorted(candidates, key=lambda one: one.job.arrival_ms, reverse=True)
        if self._workers:
            for one in last_first:
                yield from _spare(one)
        stoppable = [one for one in last_first if one.may_stop]
        for one in self._stoppable(job, option, stoppable, now_ms, ends):
            yield Eviction(one.job.id, None)

    def _stoppable(
        self, job: Job, option: Option, candidates: list[Candidate], now_ms: int, ends: Mapping[str, int]
    ) -> Iterable[Candidate]:
        """Return those that may be stopped for a job, the first to go first; ``candidates``: last submitted first."""
        match self._rule:
            case "inference":
                return _for_inference(job, candidates)
            case "priority":
                lower = [one for one in candidates if one.job.priority < job.priority]
                return sorted(lower, key=lambda one: one.job.priority)
            case "las":
                mine = self._service.level(job.id, now_ms)
                return _most(candidates, lambda one: self._service.level(one.job.id, now_ms), mine)
            case "srtf":
                predicted = next(one.run_time_ms for one in job.options if one.id == option.id)
                if predicted is None:
                    return []
                return _most(candidates, lambda one: ends.get(one.job.id, now_ms) - now_ms, predicted)
            case "srsf":
                predicted = next(one.run_time_ms for one in job.options if one.id == option.id)
                if predicted is None:
                    return []
                asks = predicted * option.workers * option.demand.gpus * option.demand.gpu_milli
                return _most(candidates, lambda one: self._service_left(one, now_ms, ends), asks)
            case "capacity":
                return self._beyond(job, option, candidates)
            case "arrays":
                return _for_inference(job, candidates) or self._beyond(job, option, candidates)
            case "never":
                return []

    def _service_left(self, one: Candidate, now_ms: int, ends: Mapping[str, int]) -> int:
        """Return the predicted GPU time left of a running job, less what a restart would waste of it."""
        left = ends.get(one.job.id, now_ms) - now_ms - self._restart_ms
        return left * amounts_of(one.placement)[0]

    def _is_owed(self, job: Job, option: Option) -> bool:
        """Tell whether a job would be within the part of its array, and another array holds more than its own."""
        turns, demand = self._turns, option.demand
        milli = demand.gpus * demand.gpu_milli
        asks = tuple(option.workers * amount for amount in (milli, demand.cpu_millicores, demand.memory_mib))
        if turns is None or turns.beyond(turns.user(job), (asks[0], asks[1], asks[2])):
            return False
        return any(turns.beyond(array) for array in turns.arrays if array != turns.user(job))

    def _beyond(self, job: Job, option: Option, candidates: list[Candidate]) -> Iterator[Candidate]:
        """Yield jobs of arrays that hold more than their part, as long as they do, if the job's own would not."""
        turns = self._turns
        if turns is None or not self._is_owed(job, option):
            return
        taken: dict[str | None, tuple[int, int, int]] = {}
        for one in candidates:
            array = turns.user(one.job)
            less = taken.get(array, (0, 0, 0))
            if array == turns.user(job) or not turns.beyond(array, less):
                continue
            held = amounts_of(one.placement)
            taken[array] = (less[0] - held[0], less[1] - held[1], less[2] - held[2])
            yield one


def _for_inference(job: Job, candidates: list[Candidate]) -> list[Candidate]:
    """Return those that a job may stop as inference (SODA V-D)."""
    return [one for one in candidates if one.job.kind in ("training", "cpu")] if job.kind == "inference" else []


def _most(candidates: list[Candidate], of: Callable[[Candidate], int], least: int) -> list[Candidate]:
    """Return those that have more of something than ``least``, the most first."""
    found = [(of(one), one) for one in candidates]
    return [one for amount, one in sorted(found, key=lambda entry: -entry[0]) if amount > least]


def _spare(giver: Candidate) -> Iterator[Eviction]:
    """Yield a job with one worker fewer, then two, down to its fewest."""
    if giver.option.workers_min is None:
        return
    left = giver.placement
    workers = sum(len(one.workers) for one in left.assignments)
    for _ in range(workers - giver.option.workers_min):
        left = without_last(left, giver.demand)
        yield Eviction(giver.job.id, left)
