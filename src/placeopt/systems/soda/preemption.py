"""What arrays take back from each other (SODA V-C), and inference from both (V-D)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from placeopt.model import Job, Option
from placeopt.scheduling.placement_amounts import Amounts, amounts_of, requested_amounts
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.preemption_policy import Candidate, PreemptionContext, PreemptionRule, Request
from placeopt.scheduling.preemption_rules import InferenceFirst, stopped_by_inference
from placeopt.scheduling.rules import PREEMPTION_RULES, Rule
from placeopt.systems.soda.arrays import Arrays, JobArrayQueue


class BeyondPart(PreemptionRule):
    """A job that stays within the part of its array stops what other arrays hold beyond theirs (SODA V-C)."""

    def may_claim(self, job: Job, option: Option) -> bool:
        """Return whether the job's array would stay within its part, and another array exceeds its own."""
        queue = self.context.queue
        if not isinstance(queue, JobArrayQueue):
            return False
        claimant = queue.user(job)
        if queue.exceeds_part(claimant, requested_amounts(option, option.workers)):
            return False
        return any(queue.exceeds_part(array) for array in queue.arrays if array != claimant)

    def stoppable(self, request: Request, candidates: list[Candidate]) -> Iterator[Candidate]:
        """Yield jobs of other arrays as long as those exceed their part."""
        queue = self.context.queue
        if not isinstance(queue, JobArrayQueue) or not BeyondPart.may_claim(self, request.job, request.option):
            return
        claimant = queue.user(request.job)
        stopped: dict[str | None, Amounts] = {}
        for candidate in candidates:
            array = queue.user(candidate.job)
            less = stopped.get(array, (0, 0, 0))
            if array == claimant or not queue.exceeds_part(array, less):
                continue
            held = amounts_of(candidate.placement)
            stopped[array] = (less[0] - held[0], less[1] - held[1], less[2] - held[2])
            yield candidate


class InferenceThenParts(BeyondPart):
    """Inference stops training and CPU jobs; other jobs stop what arrays hold beyond their parts (SODA V)."""

    def __init__(self, context: PreemptionContext) -> None:
        super().__init__(context)
        self._inference = InferenceFirst(context)

    def key(self, job: Job, now_ms: int) -> Hashable:
        del now_ms
        return job.kind

    def may_claim(self, job: Job, option: Option) -> bool:
        """Return whether either rule lets the job stop another."""
        return job.kind == "inference" or super().may_claim(job, option)

    def stoppable(self, request: Request, candidates: list[Candidate]) -> Iterator[Candidate]:
        """Yield the jobs of the first rule that names any."""
        inference = self._inference.stoppable(request, candidates)
        yield from inference or super().stoppable(request, candidates)


class BeyondNodePart(PreemptionRule):
    """
    Jobs with GPUs stop what borrows of their arrays on a node (SODA V-C), last submitted first.

    That is what CPU jobs hold beyond their part of a node's cores and, for large jobs, small ones on their nodes.
    """

    def key(self, job: Job, now_ms: int) -> Hashable:
        del now_ms
        return job.kind

    def may_stop_for(self, key: Hashable) -> bool:
        return key != "cpu"

    def may_claim(self, job: Job, option: Option) -> bool:
        """Return whether the job has GPUs."""
        del job
        return option.demand.gpus > 0

    def stoppable(self, request: Request, candidates: list[Candidate]) -> Iterable[Candidate]:
        """Return CPU jobs beyond their part, then small jobs where they are not at home."""
        queue = self.context.queue
        if not isinstance(queue, JobArrayQueue) or queue.nodes is None or not request.option.demand.gpus:
            return []
        held = [(candidate.job, candidate.placement) for candidate in candidates]
        borrowing = queue.nodes.borrowing(held, request.job, request.option, self.context.resources)
        return [candidates[number] for number in borrowing]


class InferenceThenNodeParts(BeyondNodePart):
    """Inference stops training and CPU jobs; other jobs with GPUs what borrows of their arrays on a node (SODA V)."""

    def may_claim(self, job: Job, option: Option) -> bool:
        """Return whether either rule lets the job stop another."""
        return job.kind == "inference" or super().may_claim(job, option)

    def stoppable(self, request: Request, candidates: list[Candidate]) -> Iterable[Candidate]:
        if request.job.kind == "inference":
            return stopped_by_inference(candidates)
        return super().stoppable(request, candidates)


class OfArrays(Rule):
    """Jobs stop what arrays hold beyond their parts."""

    def check(self, scheduling: Scheduling) -> None:
        if scheduling.divides is None:
            raise ValueError(f"preempts: {self.rule!r} goes with divides")


class OfNodeArrays(OfArrays):
    """Jobs stop what borrows of their arrays on a node."""

    def check(self, scheduling: Scheduling) -> None:
        super().check(scheduling)
        if not isinstance(scheduling.divides, Arrays) or not scheduling.divides.per_node:
            raise ValueError(f"preempts: {self.rule!r} goes with divides.per_node")


PREEMPTION_RULES.register("capacity", BeyondPart, OfArrays)
PREEMPTION_RULES.register("arrays", InferenceThenParts, OfArrays)
PREEMPTION_RULES.register("node_capacity", BeyondNodePart, OfNodeArrays)
PREEMPTION_RULES.register("node_arrays", InferenceThenNodeParts, OfNodeArrays)
