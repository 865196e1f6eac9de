"""What arrays take back from each other (SODA V-C), and inference from both (V-D)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from placeopt.model import Job, Option
from placeopt.scheduling.placement_amounts import Amounts, amounts_of, requested_amounts
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.preemption_policy import Candidate, PreemptionContext, PreemptionRule, Request
from placeopt.scheduling.preemption_rules import kind_of, stopped_by_inference
from placeopt.scheduling.rules import PREEMPTION_RULES, Rule
from placeopt.systems.soda.arrays import Arrays, JobArrayQueue


def _stays_within_part(context: PreemptionContext, job: Job, option: Option) -> bool:
    """Return whether the job's array would stay within its part, and another array exceeds its own."""
    queue = context.queue
    if not isinstance(queue, JobArrayQueue):
        return False
    claimant = queue.user(job)
    if queue.exceeds_part(claimant, requested_amounts(option, option.workers)):
        return False
    return any(queue.exceeds_part(array) for array in queue.arrays if array != claimant)


def _beyond_part(request: Request, candidates: list[Candidate]) -> Iterator[Candidate]:
    """A job that stays within the part of its array stops what other arrays hold beyond theirs (SODA V-C)."""
    queue = request.context.queue
    if not isinstance(queue, JobArrayQueue) or not _stays_within_part(request.context, request.job, request.option):
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


def _inference_then_parts(request: Request, candidates: list[Candidate]) -> Iterable[Candidate]:
    """Inference stops training and CPU jobs; where there are none, and for other jobs, as `_beyond_part` (SODA V)."""
    return list(stopped_by_inference(request, candidates)) or _beyond_part(request, candidates)


def _beyond_node_part(request: Request, candidates: list[Candidate]) -> Iterable[Candidate]:
    """
    Jobs with GPUs stop what borrows of their arrays on a node (SODA V-C), last submitted first.

    That is what CPU jobs hold beyond their part of a node's cores and, for large jobs, small ones on their nodes.
    """
    queue = request.context.queue
    if not isinstance(queue, JobArrayQueue) or queue.nodes is None or not request.option.demand.gpus:
        return ()
    held = [(candidate.job, candidate.placement) for candidate in candidates]
    borrowing = queue.nodes.borrowing(held, request.job, request.option, request.context.resources)
    return [candidates[number] for number in borrowing]


def _inference_then_node_parts(request: Request, candidates: list[Candidate]) -> Iterable[Candidate]:
    """Inference stops training and CPU jobs; other jobs with GPUs what borrows of their arrays on a node (SODA V)."""
    rule = stopped_by_inference if request.job.kind == "inference" else _beyond_node_part
    return rule(request, candidates)


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


BEYOND_PART = PreemptionRule(_beyond_part, may_claim=_stays_within_part)
BEYOND_NODE_PART = PreemptionRule(
    _beyond_node_part,
    key=kind_of,
    may_stop_for=lambda kind: kind != "cpu",
    may_claim=lambda _, __, option: option.demand.gpus > 0,
)

PREEMPTION_RULES.register("capacity", BEYOND_PART, OfArrays)
PREEMPTION_RULES.register(
    "arrays",
    replace(
        BEYOND_PART,
        victims=_inference_then_parts,
        key=kind_of,
        may_claim=lambda context, job, option: job.kind == "inference" or _stays_within_part(context, job, option),
    ),
    OfArrays,
)
PREEMPTION_RULES.register("node_capacity", BEYOND_NODE_PART, OfNodeArrays)
PREEMPTION_RULES.register(
    "node_arrays",
    replace(
        BEYOND_NODE_PART,
        victims=_inference_then_node_parts,
        may_claim=lambda _, job, option: job.kind == "inference" or option.demand.gpus > 0,
    ),
    OfNodeArrays,
)
