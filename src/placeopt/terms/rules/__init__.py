"""Rules: what is allowed, one file each, stated once and used by every formulation and heuristic."""

from __future__ import annotations

from collections.abc import Callable

from placeopt.problem import Allocation, Move, Placement, Problem, State
from placeopt.terms.protocols import Rule
from placeopt.terms.rules.capacity import GpuCapacity, NodeCapacity, PlaceAmounts, Uplink
from placeopt.terms.rules.changes import RunningChanges
from placeopt.terms.rules.gpu_slots import GpuSlots
from placeopt.terms.rules.minimal_utility import MinimalUtility, applies, falls_short
from placeopt.terms.rules.queue_share import QueueShare
from placeopt.terms.rules.relations import RelationsHold
from placeopt.terms.rules.spread import Gang, Spread, Where
from placeopt.terms.rules.trees import Trees

RULES: tuple[Rule, ...] = (
    Gang(),
    Where(),
    GpuCapacity(),
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


Fits = Callable[[State, int, Placement], bool]


def _beyond(*kinds: type) -> Fits:
    """Return what tells whether all rules but those of some kinds allow to put a job to a placement."""
    rules = tuple(rule for rule in RULES if not isinstance(rule, kinds))

    def allows(state: State, job: int, placement: Placement) -> bool:
        for rule in rules:  # noqa: SIM110  # asked for every placement: a generator takes as long as the rules
            if not rule.fits(state, job, placement):
                return False
        return True

    return allows


fits = _beyond()
"""Return whether every rule allows to put a job, which is not placed in the state, to a placement."""

_ROOM = (Gang, Where, GpuCapacity, NodeCapacity)
fits_beyond_room = _beyond(*_ROOM)
"""The same of a placement for which masks and free capacity of nodes and GPUs were asked before."""

fits_as_member = _beyond(*_ROOM, Trees)
"""As ``fits_beyond_room``, but for the rules of the job's tree: others of it are placed later."""

fits_beyond_gpus = _beyond(Gang, GpuCapacity)
"""The same of a placement on nodes that were given, whose GPUs were chosen by their room."""


_NOT_EVERYWHERE: tuple[Rule, ...] = (Spread(), Trees(), RelationsHold(), GpuSlots())


def without_broken(problem: Problem, allocation: Allocation) -> Allocation:
    """
    Return ``allocation`` without what starts in it against rules that not every stage supports, or supports in full.

    One after the other, the least valuable first. A running job that would move stays where it is; one that moves below
    its minimal utility is left to the audit.
    """
    if problem.is_plain and not applies(problem):
        return allocation
    state, running, broken = State(problem, allocation), problem.running, True
    starts = [(job, held) for job, held in enumerate(allocation) if held is not None and held != running.get(job)]
    starts.sort(key=lambda start: int(problem.options.value[start[1].option]))
    while broken:
        broken = False
        for job, held in starts:
            if state.placements[job] is held and _breaks(state, job, held):
                state.apply(Move(job, running.get(job)))
                broken = True
    return state.allocation()


def _breaks(state: State, job: int, held: Placement) -> bool:
    """Return whether a placed job breaks one of these rules where it is, beside all others."""
    if job not in state.problem.running and falls_short(state, job):
        return True
    state.apply(Move(job, None))
    kept = all(rule.fits(state, job, held) for rule in _NOT_EVERYWHERE)
    state.place(job, held)
    return not kept


def relaxed(problem: Problem) -> tuple[str, ...]:
    """Return what the rows leave out of the rules."""
    return ("minimal utility beside co-runners",) if applies(problem) else ()
