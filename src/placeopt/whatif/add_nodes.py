"""The number of nodes of a type with which all jobs are placed: proven from below, found from above."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from placeopt.arguments import checked
from placeopt.deadline import Deadline
from placeopt.edits import unread_in
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance
from placeopt.whatif.answers import NodesNeeded, NodeTrial
from placeopt.whatif.node_search import Counts, NodeSearch
from placeopt.whatif.round_solving import LEAST_S, Limits, Trial, true_of

NAMED = 100


@checked
def add(
    instance: Instance,
    node_type: str,
    *,
    limits: Limits | None = None,
    cancel: threading.Event | None = None,
    on_news: Callable[[NodeTrial], None] | None = None,
) -> NodesNeeded:
    """
    Find the fewest nodes of a type with which all jobs of the round are placed; running jobs stay where they are.

    Parameters
    ----------
    instance
        The round.
    node_type
        A machine type of the cluster: added nodes have the domain, labels and taints that all nodes of the type share.
        Or the id of a node to copy.
    limits
        ``time_limit_s`` applies to the whole search.
    cancel
        Set it from another thread to stop with the interval known by then.
    on_news
        Called after every number that was tried.

    Returns
    -------
    NodesNeeded
        The interval and every number that was tried.

    Raises
    ------
    BadInput
        If there is no such machine type or node.

    Notes
    -----
    More nodes never place less, so a number that is proven insufficient refutes all smaller ones, and a plan for one
    number holds for all larger ones. The first numbers follow from the missing GPUs, the next ones from halving.
    """
    limits = limits or Limits(60.0)
    clock = Deadline(limits.time_limit_s, cancel)
    milli = {job.id: job.gpu_milli for job in instance.jobs}
    tried: list[NodeTrial] = []

    def note(counts: Counts, trial: Trial) -> None:
        waiting = [unplaced.job for unplaced in trial.plan.unplaced]
        short = sum(milli[name] for name in waiting)
        row = NodeTrial(nodes=counts[0], fits=trial.fits, waiting=len(waiting), gpu_milli_waiting=short)
        tried.append(row)
        if on_news is not None:
            on_news(row)

    with Engine() as engine:
        search = NodeSearch(engine, instance, [node_type], limits, cancel, note, prices=[1])
        never = search.never()
        if not never:
            search.run()
    cluster, [node] = search.instance.cluster, search.nodes
    refuted = max((counts[0] for counts in search.refuted), default=-1)
    none = bool(never) or refuted >= search.most
    answer = NodesNeeded(
        node_type=node_type,
        at_least=None if none else refuted + 1,
        found=None if none or search.found is None else search.found[0],
        price_milli_per_hour=cluster.price_of(node),
        gpus=len(cluster.machine_of(node).gpus),
        impossible=none,
        never=never[:NAMED],
        tried=tuple(sorted(tried, key=lambda trial: trial.nodes)),
        seconds=clock.spent_s,
    )

    def again() -> NodesNeeded:
        left = replace(limits, time_limit_s=max(LEAST_S, clock.left_s))
        return add(unread.freest(instance), node_type, limits=left, cancel=cancel)

    unread = unread_in(instance, moved=())
    return true_of(answer, unread, again, lambda one: (one.at_least, one.found, one.impossible, one.never))
