"""A round before and after nodes are exchanged for nodes of another type."""

from __future__ import annotations

import threading
import time
from typing import Literal

from pydantic import ValidationError

from placeopt.arguments import checked
from placeopt.errors import BadArgument
from placeopt.formats.faults import validation_fault
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance
from placeopt.whatif.answers import RoundOutcome, Swap
from placeopt.whatif.instance_edit import Patched
from placeopt.whatif.patch import apply_step
from placeopt.whatif.round_solving import Limits, outcome_of, without_costs
from placeopt.whatif.steps import ReplaceNodes


@checked
def swap(
    instance: Instance,
    by: str,
    *,
    of: str | None = None,
    nodes: tuple[str, ...] = (),
    limits: Limits | None = None,
    cancel: threading.Event | None = None,
) -> Swap:
    """
    Exchange nodes and compare the rounds; jobs that ran on them wait, and may be placed again.

    Parameters
    ----------
    instance
        The round.
    by
        The machine type that the nodes get.
    of, nodes
        All nodes of this machine type, nodes by id, or both.
    limits
        Of each of the two rounds.

    Returns
    -------
    Swap
        ``gain_low`` and ``gain_high`` enclose the gain in value of the best plan after over the best plan before.

    Raises
    ------
    BadInput
        If there are no such nodes or no such type.
    """
    began, limits = time.monotonic(), limits or Limits()
    base = without_costs(instance)
    machine_types = [machine.id for machine in instance.cluster.machines]
    for argument, name in (("of", of), ("by", by)):
        if name is not None and name not in machine_types:
            raise BadArgument(f"{argument}: no machine type {name!r}; there are: {', '.join(machine_types[:20])}")
    try:
        step = ReplaceNodes(do="replace_nodes", nodes=nodes, of=of, machine=by)
    except ValidationError as error:
        raise validation_fault(ReplaceNodes, error, "swap") from None
    changed = apply_step(Patched(base), step)
    machine = {node.id: node.machine for node in instance.cluster.nodes}
    exchanged = sum(node.machine != machine[node.id] for node in changed.instance.cluster.nodes)
    with Engine() as engine:
        before = outcome_of(engine, base, limits, cancel)
        after = outcome_of(engine, changed.instance, limits, cancel, len(changed.displaced))
    low, high = gain(before, after)
    return Swap(
        before=before,
        after=after,
        exchanged=exchanged,
        gain_low=low,
        gain_high=high,
        answer=_answer(low, high),
        seconds=time.monotonic() - began,
    )


def gain(before: RoundOutcome, after: RoundOutcome) -> tuple[int | None, int | None]:
    """Return the least and the greatest possible gain of the best plan after over the best plan before."""
    low = None if before.value_bound is None else after.value - before.value_bound
    high = None if after.value_bound is None else after.value_bound - before.value
    return low, high


def _answer(low: int | None, high: int | None) -> Literal["better", "worse", "equal", "unknown"]:
    if low is not None and low > 0:
        return "better"
    if high is not None and high < 0:
        return "worse"
    return "equal" if low == high == 0 else "unknown"
