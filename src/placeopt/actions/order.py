"""
The actions of a plan, in an order in which room is free before it is used.

Every resource is a pool. What is idle before the first action is in it from the beginning; what an action frees comes
with the number of that action. An action takes what it needs out of the pools, once, so the pace of the others does not
matter: when the actions that it names in ``after`` are done, its room is free. Jobs that change places in a ring have
no such order: one of them is stopped first, and starts again at the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from placeopt.actions.action import Action, ActionKind, ActionPart
from placeopt.arguments import checked
from placeopt.check import violations
from placeopt.check.amounts import Amounts, Limits
from placeopt.check.directory import Directory
from placeopt.errors import BadInput
from placeopt.model import Instance, Placement, Plan
from placeopt.model.job import Job, Origin


@checked
def plan_actions(instance: Instance, plan: Plan) -> tuple[Action, ...]:
    """
    Return what to do so that the cluster of ``instance`` becomes as ``plan`` says.

    Parameters
    ----------
    instance
        The round that the plan is for.
    plan
        A whole plan, or one for some jobs.

    Returns
    -------
    tuple of Action
        First what stops jobs and workers, then moves, then starts, in the order of the plan. Done one after the other,
        or any of them as soon as all in its ``after`` are done, no GPU, node, uplink or queue ever holds more than it
        may. Jobs that stay as they are have no action.

    Raises
    ------
    BadInput
        If the plan breaks a rule of the instance, or is for another.
    """
    broken = violations(instance, plan)
    if broken:
        raise BadInput(f"plan: {broken[0]}")
    directory = Directory(instance)
    limits = Limits(directory, plan.policy.values)
    placed = {placement.job: placement for placement in plan.placements}
    moved = {entry.job: placed[entry.job] for entry in plan.moved}
    shrunk = {entry.job: placed[entry.job] for entry in plan.shrunk}
    starting = [
        placement
        for placement in plan.placements
        if placement.job not in moved.keys() | shrunk.keys()
        and _starts(directory.running.get(placement.job), placement)
    ]
    sequence = _Sequence(instance.revision, directory, limits, [*moved.values(), *starting])
    for entry in plan.preempted:
        sequence.add("preempt", entry.job, None)
    for job, placement in shrunk.items():
        sequence.add("shrink", job, placement)
    waiting = deque(moved)
    postponed = 0
    restarts = []
    while waiting:
        job = waiting.popleft()
        if sequence.fits(job, moved[job]):
            sequence.add("move", job, moved[job])
            postponed = 0
        elif postponed < len(waiting):
            waiting.append(job)
            postponed += 1
        else:  # those that are left wait for each other
            sequence.add("preempt", job, None)
            restarts.append(moved[job])
            postponed = 0
    for placement in [*restarts, *starting]:
        sequence.add("start", placement.job, placement)
    return tuple(sequence.actions)


def start_action(job: Job, placement: Placement, revision: int) -> Action:
    """Return the action that starts a waiting job where room is idle: it comes after no other."""
    return _action("start", job, revision, None, placement)


def _action(
    do: ActionKind,
    job: Job,
    revision: int,
    before: Placement | None,
    now: Placement | None,
    after: Iterable[int] = (),
) -> Action:
    """
    Return the action that brings a job from one placement to another: the workers after it, and those that it stops.

    Of a shrink each keeps the origin that it had; of a start of what a running gang lacks the others are not named.
    """
    then, kept = _workers(before), _workers(now)
    if do == "start":
        kept, then = [worker for worker in kept if worker not in then], []
    ranks = [worker[0] for worker in kept]
    if do == "shrink" and before is not None and now is not None:
        ranks = kept_ranks(before, now)
        then = [worker for worker in then if worker[0] not in ranks]
    return Action(
        do=do,
        job=job.id,
        revision=revision,
        origin=job.origin and Origin(name=job.origin.name, id=job.origin.id),
        parts=_named(job, kept, ranks),
        leaves=_named(job, then, [worker[0] for worker in then]),
        after=tuple(sorted(after)),
    )


@dataclass
class _Pool:
    """What is free of a resource: amounts, each with the actions that must be done before it is."""

    free: deque[tuple[int, frozenset[int]]] = field(default_factory=deque)
    owed: int = 0
    """By how much running jobs exceed the limit: what is freed first is no room."""
    paid_by: frozenset[int] = frozenset()

    def put(self, amount: int, action: int) -> None:
        """Add what an action frees."""
        if self.owed:
            paid = min(self.owed, amount)
            self.owed -= paid
            self.paid_by |= {action}
            amount -= paid
        if amount:
            self.free.append((amount, self.paid_by | {action}))

    def take(self, amount: int) -> set[int]:
        """Take an amount that is there, and return the actions that free it."""
        after: set[int] = set()
        while amount:
            there, freed_by = self.free.popleft()
            after |= freed_by
            if there > amount:
                self.free.appendleft((there - amount, freed_by))
            amount -= min(there, amount)
        return after

    @property
    def total(self) -> int:
        return sum(amount for amount, _ in self.free)


class _Sequence:
    """Actions one by one, and what is free after them."""

    def __init__(self, revision: int, directory: Directory, limits: Limits, coming: Iterable[Placement]) -> None:
        self.actions: list[Action] = []
        self._revision, self._directory, self._limits = revision, directory, limits
        self._now: dict[str, Placement | None] = dict(directory.running)
        self._needs = {placement.job: self._taken(placement) for placement in coming}
        wanted = {resource for needs in self._needs.values() for resource in needs}
        most = {resource: limits.limit(resource) for resource in wanted}
        free = {resource: limit for resource, limit in most.items() if limit is not None}
        for running in directory.running.values():
            for resource, amount in self._taken(running).items():
                if resource in free:
                    free[resource] -= amount
        self._pools = {
            resource: _Pool(deque([(amount, frozenset[int]())] if amount > 0 else []), max(0, -amount))
            for resource, amount in free.items()
        }

    def fits(self, job: str, placement: Placement) -> bool:
        """Return whether all that the job needs beyond what it has is free after the actions so far."""
        more, _ = self._difference(job, placement)
        return all(amount <= self._pools[resource].total for resource, amount in more.items())

    def add(self, do: ActionKind, job: str, placement: Placement | None) -> None:
        """Add the action that brings a job to ``placement``, None: stops it."""
        more, less = self._difference(job, placement)
        after: set[int] = set()
        for resource, amount in more.items():
            after |= self._pools[resource].take(amount)
        number = len(self.actions)
        for resource, amount in less.items():
            self._pools[resource].put(amount, number)
        before = self._now.get(job)
        if before is None and job in self._directory.running:  # it was stopped to break a ring
            after |= {n for n, action in enumerate(self.actions) if action.job == job}
        self._now[job] = placement
        self.actions.append(_action(do, self._directory.jobs[job], self._revision, before, placement, after))

    def _difference(self, job: str, placement: Placement | None) -> tuple[Amounts, Amounts]:
        """Return what a job takes more and what it takes less than now, of the resources that actions need."""
        before = self._now.get(job)
        now = {} if before is None else self._taken(before)
        then = {} if placement is None else self._taken(placement)
        change = {r: then.get(r, 0) - now.get(r, 0) for r in now.keys() | then.keys() if r in self._pools}
        more = {resource: amount for resource, amount in change.items() if amount > 0}
        return more, {resource: -amount for resource, amount in change.items() if amount < 0}

    def _taken(self, placement: Placement) -> Amounts:
        job = self._directory.jobs[placement.job]
        return self._limits.of_placement(job, job.option(placement.option), placement)


def _starts(before: Placement | None, now: Placement) -> bool:
    """Return whether workers of a job start that do not run: all, or those that a gang that runs in part lacks."""
    return len(_workers(now)) > len(_workers(before))


def kept_ranks(before: Placement, now: Placement) -> list[int]:
    """Return, of a job that shrank, the former rank of each worker that it keeps, in the order of their ranks now."""
    ranks: list[int] = []
    rest = deque(_workers(now))
    for worker in _workers(before):  # what is kept is a subsequence of what was, see the referee's `compare`
        if rest and rest[0][1:] == worker[1:]:
            rest.popleft()
            ranks.append(worker[0])
    return ranks


Worker = tuple[int, str, tuple[int, ...]]
"""Rank, node and GPUs."""


def _workers(placement: Placement | None) -> list[Worker]:
    if placement is None:
        return []
    return sorted(
        (worker.rank, assignment.node, worker.gpus)
        for assignment in placement.assignments
        for worker in assignment.workers
    )


def _named(job: Job, workers: Sequence[Worker], ranks: Sequence[int]) -> tuple[ActionPart, ...]:
    """Return the workers with their origins; ``ranks``: by which the job names them."""
    names = () if job.origin is None else job.origin.workers
    return tuple(
        ActionPart(rank=rank, node=node, gpus=gpus, origin=names[known_as] if known_as < len(names) else None)
        for (rank, node, gpus), known_as in zip(workers, ranks, strict=True)
    )
