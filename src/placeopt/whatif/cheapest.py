"""Which of several node types places all jobs at the least price, each type by itself?"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from placeopt.errors import BadInput
from placeopt.model import Instance
from placeopt.whatif.add import add
from placeopt.whatif.capacity import Limits
from placeopt.whatif.records import Added, Cheapest, Tried


def cheapest(
    instance: Instance,
    node_types: Sequence[str],
    *,
    limits: Limits | None = None,
    cancel: threading.Event | None = None,
    on_news: Callable[[Tried], None] | None = None,
) -> Cheapest:
    """
    Search as `placeopt.whatif.add` does for each of the types, and compare prices; no mixtures of types.

    Parameters
    ----------
    node_types
        Machine types, or nodes to be copied.
    limits
        ``time_limit_s`` is of all searches together; each gets an equal part of what is left.

    Raises
    ------
    BadInput
        If there is none, or one is not known.
    """
    began, limits = time.monotonic(), limits or Limits(60.0)
    if not node_types:
        raise BadInput("node types: expected at least one")
    choices: list[Added] = []
    for number, kind in enumerate(node_types):
        left = limits.time_limit_s - (time.monotonic() - began)
        part = replace(limits, time_limit_s=max(0.5, left / (len(node_types) - number)))
        choices.append(add(instance, kind, limits=part, cancel=cancel, on_news=on_news))
    prices = {one.node_type: one.found * one.price_milli_per_hour for one in choices if one.found is not None}
    least = [one.at_least * one.price_milli_per_hour for one in choices if one.at_least is not None]
    best = min(prices, key=lambda kind: (prices[kind], kind), default=None)
    return Cheapest(
        choices=tuple(choices),
        best=best,
        price_milli_per_hour=None if best is None else prices[best],
        at_least_milli_per_hour=min(least, default=None),
        seconds=time.monotonic() - began,
    )
