"""The cheapest nodes of several types, alone or mixed, with which all jobs are placed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from placeopt.arguments import checked
from placeopt.deadline import Deadline
from placeopt.errors import BadArgument, BadInput
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance
from placeopt.whatif.add_nodes import add
from placeopt.whatif.answers import Cheapest, MixtureTrial, NodesNeeded, NodeTrial
from placeopt.whatif.node_search import Counts, NodeSearch
from placeopt.whatif.round_solving import Limits, Trial

MIXED = 0.5
"""Part of the time that is reserved for mixtures."""


@checked
def cheapest(
    instance: Instance,
    node_types: Sequence[str],
    *,
    limits: Limits | None = None,
    cancel: threading.Event | None = None,
    on_news: Callable[[NodeTrial], None] | None = None,
    on_mixture: Callable[[MixtureTrial], None] | None = None,
) -> Cheapest:
    """
    Find the fewest nodes of each type as `placeopt.whatif.add` does, then the cheapest mixture.

    Parameters
    ----------
    node_types
        Machine types, or ids of nodes to copy.
    limits
        ``time_limit_s`` applies to all searches together: half of it in equal parts to the types, the rest to mixtures.

    Raises
    ------
    BadInput
        If no type is given, one is unknown or given twice, or a price is 0.
    """
    limits = limits or Limits(60.0)
    clock = Deadline(limits.time_limit_s, cancel)
    if not node_types:
        raise BadArgument("node types: expected at least one")
    if len(set(node_types)) < len(node_types):
        raise BadArgument(f"node types: {', '.join(node_types)}: expected each once")
    choices: list[NodesNeeded] = []
    for number, kind in enumerate(node_types):
        alone = clock.left_s - MIXED * limits.time_limit_s if len(node_types) > 1 else clock.left_s
        part = replace(limits, time_limit_s=max(0.5, alone / (len(node_types) - number)))
        choices.append(add(instance, kind, limits=part, cancel=cancel, on_news=on_news))
    tried: list[MixtureTrial] = []

    def note(counts: Counts, trial: Trial) -> None:
        tried.append(MixtureTrial(nodes=counts, fits=trial.fits, waiting=len(trial.plan.unplaced)))
        if on_mixture is not None:
            on_mixture(tried[-1])

    with Engine() as engine:
        rest = replace(limits, time_limit_s=max(0.5, clock.left_s))
        search = NodeSearch(engine, instance, node_types, rest, cancel, note)
        for node in search.nodes:
            if not instance.cluster.price_of(node):
                raise BadInput(
                    f"node type {node.machine!r}: price_milli_per_hour is 0; the cheapest mixture needs prices"
                )
        for axis, choice in enumerate(choices):
            refuted = search.most if choice.at_least is None else choice.at_least - 1
            search.know(tuple(refuted * (i == axis) for i in range(len(choices))), fits=False)
        single = [
            (one.found * one.price_milli_per_hour, axis, one.found)
            for axis, one in enumerate(choices)
            if one.found is not None
        ]
        if single:
            _, best, count = min(single)
            search.know(tuple(count * (i == best) for i in range(len(choices))), fits=True)
        search.run()
    choices = [with_mixture_results(choice, axis, tried) for axis, choice in enumerate(choices)]
    prices = {
        choice.node_type: choice.found * choice.price_milli_per_hour for choice in choices if choice.found is not None
    }
    return Cheapest(
        choices=tuple(choices),
        best=min(prices, key=lambda kind: (prices[kind], kind), default=None),
        mixture=search.found,
        price_milli_per_hour=search.price,
        at_least_milli_per_hour=search.at_least,
        tried=tuple(tried),
        seconds=clock.spent_s,
    )


def with_mixture_results(alone: NodesNeeded, axis: int, tried: Sequence[MixtureTrial]) -> NodesNeeded:
    """
    Return the result for a type alone, sharpened by mixtures; ``axis`` is the index of the type in them.

    A mixture that is proven insufficient refutes its number of every type; a sufficient one of this type alone counts.
    """
    if alone.impossible or alone.at_least is None:
        return alone
    refuted = max((row.nodes[axis] for row in tried if row.fits is False), default=-1)
    sufficient = [row.nodes[axis] for row in tried if row.fits and row.nodes[axis] == sum(row.nodes)]
    found = min(sufficient if alone.found is None else [*sufficient, alone.found], default=None)
    return alone.model_copy(update={"at_least": max(alone.at_least, refuted + 1), "found": found})
