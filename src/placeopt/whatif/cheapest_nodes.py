"""The cheapest nodes of several types, alone or mixed, with which all jobs are placed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from placeopt.arguments import checked
from placeopt.errors import BadArgument
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance
from placeopt.whatif.add_nodes import add, template_node
from placeopt.whatif.answers import Cheapest, MixtureTrial, NodesNeeded, NodeTrial
from placeopt.whatif.node_mixtures import MixtureSearch
from placeopt.whatif.round_solving import Limits

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
    began, limits = time.monotonic(), limits or Limits(60.0)
    if not node_types:
        raise BadArgument("node types: expected at least one")
    if len(set(node_types)) < len(node_types):
        raise BadArgument(f"node types: {', '.join(node_types)}: expected each once")
    choices: list[NodesNeeded] = []
    for number, kind in enumerate(node_types):
        left = limits.time_limit_s - (time.monotonic() - began)
        alone = left - MIXED * limits.time_limit_s if len(node_types) > 1 else left
        part = replace(limits, time_limit_s=max(0.5, alone / (len(node_types) - number)))
        choices.append(add(instance, kind, limits=part, cancel=cancel, on_news=on_news))
    left = limits.time_limit_s - (time.monotonic() - began)
    mixtures = MixtureSearch(
        instance,
        [template_node(instance, kind) for kind in node_types],
        choices,
        replace(limits, time_limit_s=max(0.5, left)),
        cancel,
        on_mixture,
    )
    with Engine() as engine:
        mixtures.run(engine)
    choices = [with_mixture_results(one, axis, mixtures.tried) for axis, one in enumerate(choices)]
    prices = {one.node_type: one.found * one.price_milli_per_hour for one in choices if one.found is not None}
    return Cheapest(
        choices=tuple(choices),
        best=min(prices, key=lambda kind: (prices[kind], kind), default=None),
        mixture=mixtures.found,
        price_milli_per_hour=mixtures.price,
        at_least_milli_per_hour=mixtures.at_least,
        tried=tuple(mixtures.tried),
        seconds=time.monotonic() - began,
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
