"""Rules: what is allowed, one file each, stated once and used by every formulation and heuristic."""

from __future__ import annotations

from placeopt.linear import ModelBuilder
from placeopt.problem import Allocation, Placement, Problem, State
from placeopt.terms.protocols import Rule
from placeopt.terms.rules.capacity import GpuMemoryCapacity, GpuShare, JobsPerGpu, NodeCapacity
from placeopt.terms.rules.changes import RunningChanges
from placeopt.terms.rules.gpu_slots import GpuSlots, without_broken_slots
from placeopt.terms.rules.minimal_utility import MinimalUtility
from placeopt.terms.rules.places import PlaceAmounts
from placeopt.terms.rules.queue_share import QueueShare
from placeopt.terms.rules.relations import RelationsHold, without_broken_relations
from placeopt.terms.rules.spread import Gang, Spread
from placeopt.terms.rules.trees import Trees, without_broken_trees
from placeopt.terms.rules.uplink import Uplink
from placeopt.terms.rules.where import Where
from placeopt.terms.variables import Variables

RULES: tuple[Rule, ...] = (
    Gang(),
    Where(),
    GpuShare(),
    JobsPerGpu(),
    GpuMemoryCapacity(),
    GpuSlots(),
    NodeCapacity(),
    Spread(),
    Trees(),
    RelationsHold(),
    QueueShare(),
    PlaceAmounts(),
    Uplink(),
    RunningChanges(),
    MinimalUtility(),
)
"""In the order in which a placement is tried against them: cheap ones first."""


def fits(state: State, job: int, placement: Placement) -> bool:
    """Return whether every rule allows to put ``job``, which is not placed in ``state``, to ``placement``."""
    return all(rule.fits(state, job, placement) for rule in RULES)


ROOM = (Gang, Where, GpuShare, JobsPerGpu, GpuMemoryCapacity, NodeCapacity)
"""Rules that hold wherever masks and free capacity of nodes and GPUs were asked before a placement was written down."""
_BEYOND_ROOM = tuple(rule for rule in RULES if not isinstance(rule, ROOM))


def fits_beyond_room(state: State, job: int, placement: Placement) -> bool:
    """Return the same as ``fits`` of a placement that was chosen by the room of nodes and GPUs."""
    return all(rule.fits(state, job, placement) for rule in _BEYOND_ROOM)


def fits_as_member(state: State, job: int, placement: Placement) -> bool:
    """Return the same as ``fits_beyond_room``, but for the rules of the job's tree: others of it are placed later."""
    return all(rule.fits(state, job, placement) for rule in _BEYOND_ROOM if not isinstance(rule, Trees))


def without_broken(problem: Problem, allocation: Allocation) -> Allocation:
    """Return ``allocation`` without what starts in it against rules that not every stage supports."""
    kept = allocation
    while not problem.is_plain:
        kept, allocation = without_broken_slots(problem, kept), kept
        kept = without_broken_relations(problem, without_broken_trees(problem, kept))
        if kept == allocation:
            break
    return kept


GPUS = (Gang, GpuShare, JobsPerGpu, GpuMemoryCapacity)
"""Rules that hold wherever the GPUs of a whole job were chosen among those with room for it."""
_BEYOND_GPUS = tuple(rule for rule in RULES if not isinstance(rule, GPUS))


def fits_beyond_gpus(state: State, job: int, placement: Placement) -> bool:
    """Return the same as ``fits`` of a placement on nodes that were given, whose GPUs were chosen by their room."""
    return all(rule.fits(state, job, placement) for rule in _BEYOND_GPUS)


def add_rules(builder: ModelBuilder, variables: Variables) -> None:
    """Add the rows of every rule."""
    for rule in RULES:
        rule.add_to(builder, variables)


def relaxed(problem: Problem) -> tuple[str, ...]:
    """Return what the rows leave out of the rules."""
    partly = MinimalUtility().form(problem) == "bound"
    return ("minimal utility looks at paths only, not at co-runners",) if partly else ()
