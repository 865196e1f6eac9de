"""A round under several settings (more nodes, more demand, other quotas), and after nodes are exchanged."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from placeopt.arguments import checked
from placeopt.deadline import Deadline
from placeopt.documents.faults import make_record
from placeopt.edits import ChangeQueue, ReplaceNodes, ScaleDemand, Step, apply, displaced, more_nodes, unread_in
from placeopt.edits.records import merged
from placeopt.errors import BadArgument
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Policy
from placeopt.whatif.answer_cache import AnswerCache
from placeopt.whatif.answers import Swap, Sweep, SweepPoint
from placeopt.whatif.round_solving import Limits, gain, outcome_of, true_of, without_costs

MOST_POINTS = 1000
FORM = re.compile(r"(?P<what>nodes|demand|quota)(?::(?P<name>[^=]+))?=(?P<settings>.+)", re.ASCII)
RANGE = re.compile(r"\s*(\d{1,9})(?:-(\d{1,9})(?::([1-9]\d{0,8}))?)?\s*", re.ASCII)


class Variation(NamedTuple):
    """The varied quantity: ``nodes`` of a type, ``demand`` in percent, or ``quota`` of a queue in GPUs."""

    what: str
    name: str
    settings: tuple[int, ...]


@checked
def parse_variation(text: str) -> Variation:
    """
    Read ``nodes:TYPE=0-10``, ``demand=80-130:10``, ``quota:QUEUE=8,16,32`` or ``quota:QUEUE@FLAVOR=8,16,32``.

    Raises
    ------
    BadInput
        If it is none of these, or has more than 1,000 settings.
    """
    match = FORM.fullmatch(text)
    if match is None or (match["what"] == "demand") == bool(match["name"]):
        raise BadArgument(f"vary: {text!r}, expected nodes:TYPE=0-10, demand=80-130:10 or quota:QUEUE=8,16,32")
    return Variation(match["what"], match["name"] or "", parse_range(text, match["settings"]))


def parse_range(text: str, words: str) -> tuple[int, ...]:
    """
    Return the numbers of ``0-10``, ``80-130:10`` or ``8,16,32``, each once, at most 1,000; messages name ``text``.
    """
    settings: dict[int, None] = {}
    for part in words.split(","):
        numbers = RANGE.fullmatch(part)
        if numbers is None:
            raise BadArgument(f"{text!r}: {part!r} is neither a number nor a range such as 0-10 or 80-130:10")
        first, last = int(numbers[1]), int(numbers[2] or numbers[1])
        steps = range(first, last + 1, int(numbers[3] or 1))
        if not steps or len(settings) + len(steps) > MOST_POINTS:
            raise BadArgument(f"{text!r}: {part!r} has {len(steps):,} settings, expected 1 to {MOST_POINTS:,} in all")
        settings.update(dict.fromkeys(steps))
    return tuple(settings)


@checked
def sweep(
    instance: Instance,
    variation: Variation,
    *,
    limits: Limits | None = None,
    jobs: int | None = 1,
    rows: Path | None = None,
    cancel: threading.Event | None = None,
    on_news: Callable[[int, int], None] | None = None,
) -> Sweep:
    """
    Solve the round under every setting.

    Parameters
    ----------
    variation
        As `parse_variation` reads it.
    limits
        Of each round; its seed also draws the demand.
    jobs, rows, cancel, on_news
        As of `placeopt.whatif.fail`, for settings in place of scenarios.

    Raises
    ------
    BadInput
        If there is no such node, machine type or queue, or ``rows`` cannot be written or is no such file.
    """
    deadline, limits = Deadline(cancel=cancel), limits or Limits()
    base = without_costs(instance)
    variants = {
        str(setting): (setting, _steps(base, variation, setting, limits.seed)) for setting in variation.settings
    }
    task = partial(_point, base=base, limits=limits)
    words = ("sweep", variation.what, variation.name)
    with AnswerCache(rows, SweepPoint, base, limits, words, jobs, deadline) as cache:
        points = cache.answers(task, variants, on_news)
    answer = Sweep(
        varied=f"{variation.what}:{variation.name}" if variation.name else variation.what,
        points=tuple(points),
        left=len(variation.settings) - len(points),
        seconds=deadline.spent_s,
    )
    unread = unread_in(instance)
    return true_of(
        answer,
        unread,
        lambda: sweep(unread.freest(instance), variation, limits=limits, jobs=jobs, cancel=cancel),
        lambda one: [(point.outcome.value, point.outcome.value_bound) for point in one.points],
    )


def gpu_quotas(policy: Policy) -> dict[str, int | None]:
    """Return the quota of GPUs, in thousandths, of each queue, and as ``QUEUE@FLAVOR`` those by flavor."""
    by_flavor = {f"{queue.id}@{of.flavor}": of.quota.gpu_milli for queue in policy.queues for of in queue.flavors}
    return {**by_flavor, **{queue.id: queue.quota.gpu_milli for queue in policy.queues}}


def set_gpu_quota(policy: Policy, name: str, gpu_milli: int) -> ChangeQueue:
    """Return the step that changes one of `gpu_quotas`."""
    changed: dict[str, Any] = {"quota": {"gpu_milli": gpu_milli}}
    if all(queue.id != name for queue in policy.queues):
        queue = next(one for one in policy.queues for of in one.flavors if name == f"{one.id}@{of.flavor}")
        flavors = [merged(of, changed, "flavors") if name == f"{queue.id}@{of.flavor}" else of for of in queue.flavors]
        fields = {"flavors": [of.model_dump(mode="json", exclude_defaults=True) for of in flavors]}
        return ChangeQueue(do="change_queue", queue=queue.id, fields=fields)
    return ChangeQueue(do="change_queue", queue=name, fields=changed)


def _steps(base: Instance, variation: Variation, setting: int, seed: int) -> list[Step]:
    """Return the steps of one setting."""
    if variation.what == "demand":
        if setting > MOST_POINTS:
            raise BadArgument(f"demand: {setting} percent, at most {MOST_POINTS}")
        return [ScaleDemand(do="scale_demand", percent=setting, seed=seed)]
    if variation.what == "quota":
        quotas = list(gpu_quotas(base.policy))
        if variation.name not in quotas:
            raise BadArgument(f"vary: no queue {variation.name!r}; there are: {', '.join(quotas[:20]) or 'none'}")
        return [set_gpu_quota(base.policy, variation.name, 1000 * setting)]
    more = more_nodes(base, variation.name, max(1, setting))
    return [more] if setting else []


def _point(
    engine: Engine,
    part: tuple[int, list[Step]],
    deadline: Deadline,
    *,
    base: Instance,
    limits: Limits,
) -> SweepPoint:
    setting, steps = part
    return SweepPoint(setting=setting, outcome=outcome_of(engine, apply(base, steps), limits, deadline))


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
    deadline, limits = Deadline(cancel=cancel), limits or Limits()
    base = without_costs(instance)
    machine_types = [machine.id for machine in instance.cluster.machines]
    for argument, name in (("of", of), ("by", by)):
        if name is not None and name not in machine_types:
            raise BadArgument(f"{argument}: no machine type {name!r}; there are: {', '.join(machine_types[:20])}")
    there = {node.id for node in instance.cluster.nodes}
    missing = next((name for name in nodes if name not in there), None)
    if missing is not None:
        raise BadArgument(f"nodes: no node {missing!r} in the cluster")
    step = make_record(ReplaceNodes, "swap", do="replace_nodes", nodes=nodes, of=of, machine=by)
    changed = apply(base, [step])
    machine = {node.id: node.machine for node in instance.cluster.nodes}
    exchanged = sum(node.machine != machine[node.id] for node in changed.cluster.nodes)
    with Engine() as engine:
        before = outcome_of(engine, base, limits, deadline)
        after = outcome_of(engine, changed, limits, deadline, len(displaced(base, changed)))
    low, high = gain(before, after)
    result = Swap(
        before=before,
        after=after,
        exchanged=exchanged,
        gain_low=low,
        gain_high=high,
        answer=_answer(low, high),
        seconds=deadline.spent_s,
    )
    unread = unread_in(instance)
    return true_of(
        result,
        unread,
        lambda: swap(unread.freest(instance), by, of=of, nodes=nodes, limits=limits, cancel=cancel),
        lambda one: (one.gain_low, one.gain_high),
    )


def _answer(low: int | None, high: int | None) -> Literal["better", "worse", "equal", "unknown"]:
    if low is not None and low > 0:
        return "better"
    if high is not None and high < 0:
        return "worse"
    return "equal" if low == high == 0 else "unknown"
