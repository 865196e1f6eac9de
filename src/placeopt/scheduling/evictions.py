"""Evictions of running jobs that make room for a waiting one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from placeopt.model import Job, Option, Placement
from placeopt.scheduling.placement_amounts import without_last_worker, workers_of
from placeopt.scheduling.preemption_policy import Candidate, PreemptionContext, PreemptionRule, Request


@dataclass(frozen=True)
class Eviction:
    """A running job, and the placement that it keeps; None: it is stopped."""

    job: str
    kept: Placement | None


class PreemptionPolicy:
    """
    The choice of evictions for waiting jobs.

    ``rule`` says which jobs may be stopped. Where GPUs are overcommitted, evictions make room on idle GPUs: what may
    share one is tried before. With ``takes_workers`` elastic jobs lose workers before any job is stopped.
    The free resources of ``context`` are changed while evictions are tried, and restored.
    """

    def __init__(self, rule: PreemptionRule, context: PreemptionContext, *, takes_workers: bool) -> None:
        self._rule, self.context, self._takes_workers = rule, context, takes_workers

    def key(self, job: Job, now_ms: int) -> Hashable:
        """Return what the choice depends on in a waiting job, beside its demand."""
        return self._rule.key(self.context, job, now_ms)

    def may_evict_for(self, key: Hashable) -> bool:
        """Return whether a job of this key might make another leave."""
        return self._takes_workers or self._rule.may_stop_for(key)

    def may_claim(self, job: Job, option: Option) -> bool:
        """Return whether a job might make another leave in an option, whatever runs where."""
        return self._takes_workers or self._rule.may_claim(self.context, job, option)

    def constant_until(self, now_ms: int) -> int | None:
        """Return until when the choice is the same while the same jobs run in the same placements; None: for good."""
        return self._rule.constant_until(self.context, now_ms)

    def choose(self, request: Request, candidates: list[Candidate]) -> list[Eviction] | None:
        """
        Return the evictions that make a job fit in one of its options; None where all that are allowed do not.

        ``candidates``: the last submitted first. Evictions are made in the order of the rule until the job fits; then
        each that is not needed is undone, the first one first. More stops than the rule allows count as not fitting.
        """
        job, option, free = request.job, request.option, self.context.resources
        known: dict[str, Candidate] = {}
        evicted: dict[str, Eviction] = {}
        fits = False
        for candidate, eviction in self._in_order(request, candidates):
            known[eviction.job] = candidate
            before = evicted[eviction.job].kept if eviction.job in evicted else candidate.placement
            free.exchange(before, eviction.kept, candidate.demand)
            evicted[eviction.job] = eviction
            fits = free.fits(job, option, option.workers, idle=True)
            if fits:
                break
        for name in list(evicted):
            candidate, kept = known[name], evicted[name].kept
            free.exchange(kept, candidate.placement, candidate.demand)  # as if it stayed
            if fits and not free.fits(job, option, option.workers, idle=True):
                free.exchange(candidate.placement, kept, candidate.demand)
            else:
                del evicted[name]
        for name, eviction in evicted.items():
            free.exchange(eviction.kept, known[name].placement, known[name].demand)
        most, stops = self._rule.most_stops(request), sum(eviction.kept is None for eviction in evicted.values())
        return list(evicted.values()) if fits and evicted and (most is None or stops <= most) else None

    def _in_order(self, request: Request, candidates: list[Candidate]) -> Iterator[tuple[Candidate, Eviction]]:
        """Yield evictions, the first to be made first; a later one of a job replaces an earlier one."""
        if self._takes_workers:
            for candidate in candidates:
                yield from ((candidate, eviction) for eviction in _fewer_workers(candidate))
        for victim in self._rule.victims(request, [candidate for candidate in candidates if candidate.may_stop]):
            yield victim, Eviction(victim.job.id, None)


def _fewer_workers(candidate: Candidate) -> Iterator[Eviction]:
    """Yield a job with one worker fewer, then two, down to its fewest."""
    if candidate.option.workers_min is None:
        return
    kept = candidate.placement
    for _ in range(workers_of(kept) - candidate.option.workers_min):
        kept = without_last_worker(kept, candidate.demand)
        yield Eviction(candidate.job.id, kept)
