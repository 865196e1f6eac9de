"""Failures of nodes, racks, switches or GPUs: which jobs lose their placement, and whether all find another."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from placeopt.arguments import checked
from placeopt.deadline import Deadline
from placeopt.edits import Fail, displaced, unread_in
from placeopt.edits.levels import INSIDE, lost_hardware
from placeopt.errors import BadArgument, BadInput
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Job
from placeopt.whatif.answer_cache import AnswerCache
from placeopt.whatif.answers import Failure, Failures
from placeopt.whatif.from_running import only_running
from placeopt.whatif.round_solving import LEAST_S, ROUND_SHARE, Limits, attempt, placing_only

TOGETHER = 8
"""Number of scenarios that share a solver process."""
MOST_SCENARIOS = 100_000
NAMED = 100


@checked
def fail(
    instance: Instance,
    level: str,
    *,
    k: int = 1,
    domains: Sequence[str] | None = None,
    changes: bool = False,
    limits: Limits | None = None,
    jobs: int | None = 1,
    rows: Path | None = None,
    cancel: threading.Event | None = None,
    on_news: Callable[[int, int], None] | None = None,
) -> Failures:
    """
    Fail domains of a level, and place the jobs that ran there again; waiting jobs are ignored.

    Where not all can be placed, those of the least value are lost.

    Parameters
    ----------
    instance
        The cluster and its running jobs.
    level
        ``node``, or a level of the cluster's network: all nodes under a domain fail together. ``gpu``, ``switch``,
        ``numa`` or ``socket``: the GPUs under such a part of a machine fail together, by ``node/part``; the rest of the
        node goes on.
    k
        Number of domains that fail at once: 1 for N+1, 2 for N+2.
    domains
        Those that may fail; None: all of the level that have nodes.
    changes
        Whether jobs that still run may be moved, shrunk and preempted as the policy allows; otherwise they stay.
    limits
        ``time_limit_s`` applies to all scenarios together; those that are not reached are counted (``left``).
    jobs
        Scenarios side by side, in processes; None: as ``joblib.parallel_config`` says.
    rows
        File to which the answer of every scenario is appended, and from which those of an earlier call are read.
    cancel
        Set it from another thread to stop with the scenarios that are done.
    on_news
        Called with the number of finished scenarios and of all.

    Returns
    -------
    Failures
        ``answer`` yes: in every scenario a checked plan places all jobs. no: in one of them it is proven that a job
        loses its placement, whatever was not read (``placeopt.edits.Unread``). With ``domains`` the answer is
        about those alone.

    Raises
    ------
    BadInput
        If there is no such level or domain, there are more than 100,000 scenarios, or ``rows`` cannot be written or is
        no such file.
    """
    limits = limits or Limits(60.0)
    deadline = Deadline(limits.time_limit_s, cancel)
    under = lost_hardware(instance, level)
    if not under and level in INSIDE:
        raise BadArgument(f"level: no {level} with GPUs in any machine type of the cluster")
    chosen = list(dict.fromkeys(under if domains is None else domains))
    for name in chosen:
        if name not in under:
            there = ", ".join(list(under)[:20])
            raise BadArgument(f"domains: no {level} {name!r} with nodes or GPUs in the cluster; there are: {there}")
    if not 1 <= k <= len(chosen):
        raise BadArgument(f"k: {k}, expected 1 to {len(chosen)}, the number of domains that may fail")
    if math.comb(len(chosen), k) > MOST_SCENARIOS:
        raise BadArgument(
            f"k: {k} of {len(chosen)} are {math.comb(len(chosen), k):,} scenarios, at most {MOST_SCENARIOS:,}"
        )
    scenarios = list(itertools.combinations(chosen, k))
    base = only_running(instance)
    task = partial(_failure, base=base, level=level, changes=changes, limits=limits)
    with AnswerCache(rows, Failure, base, limits, ("fail", level, changes), jobs, deadline) as cache:
        together = TOGETHER if rows is None else 1  # an answer is appended as soon as it is found
        failures = cache.answers(
            task, {" ".join(scenario): scenario for scenario in scenarios}, on_news, together=together
        )
    return _summary(
        failures,
        len(scenarios) - len(failures),
        level=level,
        k=k,
        asked=tuple(chosen) if len(chosen) < len(under) else None,
        domains=len(under),
        changes=changes,
        seconds=deadline.spent_s,
    )


def _failure(
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


def _summary(failures: list[Failure], left: int, **fields: object) -> Failures:
    """Return the answer that follows from the scenarios; ``left`` were not solved."""
    worst = max(failures, key=lambda failure: (failure.lost, failure.lost_gpu_milli, failure.displaced), default=None)
    survives = [failure.survives for failure in failures]
    answer = "no" if False in survives else "yes" if not left and all(survives) else "unknown"
    scenarios = {"scenarios": tuple(failures), "left": left, "worst": worst}
    open_ = (failure.unread for failure in failures if failure.survives is None) if answer == "unknown" else ()
    unread = tuple(dict.fromkeys(name for names in open_ for name in names))
    of = {"of": "reading" if unread else "cluster", "unread": unread}
    return Failures.model_validate({"answer": answer, **scenarios, **of, **fields})
