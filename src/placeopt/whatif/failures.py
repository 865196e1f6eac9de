"""Failures of nodes, racks, switches or GPUs: which jobs lose their placement, and whether all find another."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from placeopt.arguments import checked
from placeopt.errors import BadArgument
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance
from placeopt.parallel import run_parallel
from placeopt.whatif.answer_cache import AnswerCache
from placeopt.whatif.answers import Failure, Failures
from placeopt.whatif.applied_plan import only_running
from placeopt.whatif.domain_levels import nodes_under
from placeopt.whatif.instance_edit import Patched, requested_gpu_milli, without_nodes
from placeopt.whatif.machine_levels import INSIDE, gpus_under, without_gpus
from placeopt.whatif.round_solving import Limits, attempt, placing_only

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
    Fail domains of a level, and place the jobs that ran there anew; waiting jobs are ignored.

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
        Of each scenario.
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
        loses its placement. With ``domains`` the answer is about those alone.

    Raises
    ------
    BadInput
        If there is no such level or domain, there are more than 100,000 scenarios, or ``rows`` cannot be written or is
        no such file.
    """
    began = time.monotonic()
    under = _losses(instance, level)
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
    base, limits = only_running(instance), limits or Limits()
    cancelled = (lambda: False) if cancel is None else cancel.is_set
    stop = None if jobs != 1 else cancel  # no event reaches another process
    task = partial(_batch, base=base, under=under, changes=changes, limits=limits, cancel=stop)
    with AnswerCache(rows, Failure, base, limits, ("fail", level, changes), cancelled) as cache:
        to_do = [scenario for scenario in scenarios if " ".join(scenario) not in cache.found]
        together = TOGETHER if rows is None else 1  # an answer is appended as soon as it is found
        batches = [to_do[first : first + together] for first in range(0, len(to_do), together)]
        for done in run_parallel(task, batches, jobs, cancelled=cancelled):
            for one in done:
                cache.add(" ".join(one.domains), one)
            if on_news is not None:
                on_news(len(cache.found), len(scenarios))
    found = [cache.found[name] for name in map(" ".join, scenarios) if name in cache.found]
    subset = tuple(chosen) if len(chosen) < len(under) else None
    summary = _summary(level, k, found, len(scenarios), time.monotonic() - began)
    return summary.model_copy(update={"asked": subset, "domains": len(under), "changes": changes})


@dataclass(frozen=True)
class FailedHardware:
    """The hardware that fails with a domain: whole nodes, or GPUs of nodes that stay."""

    nodes: tuple[str, ...] = ()
    gpus: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def _losses(instance: Instance, level: str) -> dict[str, FailedHardware]:
    """Return the hardware that fails with each domain of a level; raises `BadInput` where there is no such level."""
    if level not in INSIDE:
        return {name: FailedHardware(nodes) for name, nodes in nodes_under(instance, level, also=INSIDE).items()}
    found = {name: FailedHardware(gpus={node: gpus}) for name, (node, gpus) in gpus_under(instance, level).items()}
    if not found:
        raise BadArgument(f"level: no {level} with GPUs in any machine type of the cluster")
    return found


def _batch(
    scenarios: Iterable[tuple[str, ...]],
    *,
    base: Instance,
    under: Mapping[str, FailedHardware],
    changes: bool,
    limits: Limits,
    cancel: threading.Event | None,
) -> list[Failure]:
    out = []
    with Engine() as engine:
        for domains in scenarios:
            if cancel is not None and cancel.is_set():
                break
            out.append(_one(engine, base, domains, [under[name] for name in domains], changes, limits, cancel))
    return out


def _one(
    engine: Engine,
    base: Instance,
    domains: tuple[str, ...],
    losses: Sequence[FailedHardware],
    changes: bool,
    limits: Limits,
    cancel: threading.Event | None,
) -> Failure:
    gone = [node for loss in losses for node in loss.nodes]
    inside: dict[str, set[int]] = {}
    for loss in losses:
        for node, gpus in loss.gpus.items():
            inside.setdefault(node, set()).update(gpus)
    sizes = {machine.id: len(machine.gpus) for machine in base.cluster.machines}
    out = set(gone)
    whole = sum(sizes[node.machine] for node in base.cluster.nodes if node.id in out)
    if len(gone) == len(base.cluster.nodes):
        displaced = tuple(held.job for held in base.running)
        lost = displaced
        least = len(displaced)
    else:
        patched = without_nodes(Patched(base), gone) if gone else without_gpus(Patched(base), inside)
        displaced = patched.displaced
        lost, least = (), 0
        if displaced:
            trial = attempt(engine, placing_only(patched.instance, lambda _: 1, changes=changes), limits, cancel)
            lost, least = tuple(one.job for one in trial.plan.unplaced), trial.total - trial.most
    milli = {job.id: requested_gpu_milli(job) for job in base.jobs}
    return Failure(
        domains=domains,
        nodes=len(gone),
        displaced=len(displaced),
        displaced_gpu_milli=sum(milli[name] for name in displaced),
        lost=len(lost),
        lost_at_least=min(least, len(lost)),
        lost_gpu_milli=sum(milli[name] for name in lost),
        lost_jobs=lost[:NAMED],
        gpus=whole + sum(map(len, inside.values())),
    )


def _summary(level: str, k: int, found: list[Failure], total: int, seconds: float) -> Failures:
    worst = max(found, key=lambda one: (one.lost, one.lost_gpu_milli, one.displaced), default=None)
    survives = [one.survives for one in found]
    whole = len(found) == total
    answer = "no" if False in survives else "yes" if whole and all(survives) else "unknown"
    return Failures.model_validate(
        {
            "level": level,
            "k": k,
            "answer": answer,
            "scenarios": tuple(found),
            "left": total - len(found),
            "worst": worst,
            "seconds": seconds,
        }
    )
