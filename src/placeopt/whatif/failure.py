"""One scenario of failures: which jobs lose their place, and which of them find no other one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace

from placeopt.deadline import Deadline
from placeopt.edits import Fail, displaced, unread_in
from placeopt.errors import BadInput
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Job
from placeopt.model.base import Id, LongName, Record
from placeopt.whatif.round_solving import LEAST_S, ROUND_SHARE, Limits, attempt, placing_only

NAMED = 100


class Failure(Record):
    """
    Domains that fail together: the displaced jobs, and how many of them are not placed again.

    ``lost``: not placed in the plan found; ``lost_at_least``: the proven minimum, wherever jobs with conditions that
    were not read may run.
    """

    domains: tuple[Id, ...]
    nodes: int
    displaced: int
    displaced_gpu_milli: int
    lost: int
    lost_at_least: int
    lost_gpu_milli: int
    lost_jobs: tuple[Id, ...] = ()
    """The first hundred of them, in the order in which they are given up."""
    gpus: int = 0
    """Number of failed GPUs, including those on surviving nodes."""
    unread: tuple[LongName, ...] = ()
    """What was not read and could change this."""

    @property
    def survives(self) -> bool | None:
        """Whether all displaced jobs are placed again; None if neither shown nor refuted."""
        return True if self.lost == 0 else False if self.lost_at_least > 0 else None


def failure_of(
    engine: Engine,
    domains: tuple[str, ...],
    deadline: Deadline,
    *,
    base: Instance,
    level: str,
    changes: bool,
    limits: Limits,
) -> Failure:
    """Return the effect of domains that fail together."""
    step = Fail(do="fail", level=level, domains=domains)
    left: Instance | None = None
    try:
        left = step.edited(base)
        moved = displaced(base, left)
    except BadInput:  # no node is left
        moved = tuple(held.job for held in base.running)
        lost, least, names = moved, len(moved), tuple[str, ...]()
    else:

        def after(round_: Instance) -> Instance:
            return placing_only(step.edited(round_), _worth, changes=changes)

        lost, least = (), 0
        unread = unread_in(base, waiting=False, moved=[job.id for job in base.jobs] if changes else moved)
        names = unread.names
        if moved:
            round_ = after(unread.strictest(base))
            share = replace(limits, time_limit_s=max(LEAST_S, ROUND_SHARE * deadline.left_s))
            trial = attempt(engine, round_, share, deadline)
            lost = tuple(unplaced.job for unplaced in trial.plan.unplaced)
            may_go = round_.jobs if changes else [job for job in round_.jobs if job.id in set(moved)]
            if lost and names:
                trial = attempt(engine, after(unread.freest(base)), share, deadline)
            least = _fewest(map(_worth, may_go), trial.total - trial.most)
    milli = {job.id: job.gpu_milli for job in base.jobs}
    strict = base.policy.priorities == "strict"
    ranks = {job.id: (job.priority if strict else 0, _worth(job)) for job in base.jobs}
    lost = tuple(sorted(lost, key=ranks.__getitem__))
    nodes, gpus = _size(base)
    rest = (0, 0) if left is None else _size(left)
    return Failure(
        domains=domains,
        nodes=nodes - rest[0],
        displaced=len(moved),
        displaced_gpu_milli=sum(milli[name] for name in moved),
        lost=len(lost),
        lost_at_least=min(least, len(lost)),
        lost_gpu_milli=sum(milli[name] for name in lost),
        lost_jobs=lost[:NAMED],
        gpus=gpus - rest[1],
        unread=names,
    )


def _size(instance: Instance) -> tuple[int, int]:
    """Return the number of nodes and of their GPUs that work."""
    gpus = instance.cluster.gpus_by_node
    return len(gpus), sum(gpus.values()) - len(instance.failed_gpus)


def _worth(job: Job) -> int:
    """Return what a job is worth in its best option, at least 1: so that all are placed where they can be."""
    return max(1, *(option.value for option in job.options))


def _fewest(worths: Iterable[int], total: int) -> int:
    """Return the smallest number of ``worths`` that sum to ``total``, at least."""
    sums = itertools.accumulate(sorted(worths, reverse=True), initial=0)
    return sum(reached < total for reached in sums)
