"""A round under several settings: more nodes, more demand, other quotas."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from placeopt.arguments import checked
from placeopt.errors import BadArgument, BadInput
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance
from placeopt.model.policy import Quota
from placeopt.parallel import run_parallel
from placeopt.whatif.answer_cache import AnswerCache
from placeopt.whatif.answers import Sweep, SweepPoint
from placeopt.whatif.domain_levels import free_prefix
from placeopt.whatif.instance_edit import Patched
from placeopt.whatif.patch import apply_step
from placeopt.whatif.round_solving import Limits, outcome_of, without_costs
from placeopt.whatif.steps import AddNodes, ScaleDemand, SetQuota

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
    Read ``nodes:TYPE=0-10``, ``demand=80-130:10`` or ``quota:QUEUE=8,16,32``.

    Raises
    ------
    BadInput
        If it is none of these, or has more than 1,000 settings.
    """
    found = FORM.fullmatch(text)
    if found is None or (found["what"] == "demand") == bool(found["name"]):
        raise BadArgument(f"vary: {text!r}, expected nodes:TYPE=0-10, demand=80-130:10 or quota:QUEUE=8,16,32")
    return Variation(found["what"], found["name"] or "", parse_range(text, found["settings"]))


def parse_range(text: str, words: str) -> tuple[int, ...]:
    """
    Return the numbers of ``0-10``, ``80-130:10`` or ``8,16,32``, each once; messages name ``text``.

    Raises
    ------
    BadInput
        If it is none of these, or they are more than 1,000.
    """
    settings: dict[int, None] = {}
    for part in words.split(","):
        numbers = RANGE.fullmatch(part)
        if numbers is None:
            raise BadArgument(f"{text!r}: {part!r} is no number and no range such as 0-10 or 80-130:10")
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
    jobs
        Rounds side by side, in processes; None: as ``joblib.parallel_config`` says.
    rows
        File to which every point is appended, and from which those of an earlier call are read.

    Raises
    ------
    BadInput
        If there is no such node, machine type or queue, or ``rows`` cannot be written or is no such file.
    """
    began, limits = time.monotonic(), limits or Limits()
    base = without_costs(instance)
    _refuse_unknown(instance, variation)
    for setting in variation.settings[:1]:
        varied(base, variation, setting, limits.seed)  # refuses a wrong setting before any round is solved
    cancelled = (lambda: False) if cancel is None else cancel.is_set
    stop = None if jobs != 1 else cancel
    task = partial(_point, base=base, variation=variation, limits=limits, cancel=stop)
    words = ("sweep", variation.what, variation.name)
    with AnswerCache(rows, SweepPoint, base, limits, words, cancelled) as cache:
        to_do = [setting for setting in variation.settings if str(setting) not in cache.found]
        for point in run_parallel(task, to_do, jobs, cancelled=cancelled):
            cache.add(str(point.setting), point)
            if on_news is not None:
                on_news(len(cache.found), len(variation.settings))
    points = [cache.found[str(setting)] for setting in variation.settings if str(setting) in cache.found]
    return Sweep(
        varied=f"{variation.what}:{variation.name}" if variation.name else variation.what,
        points=tuple(points),
        left=len(variation.settings) - len(points),
        seconds=time.monotonic() - began,
    )


def _refuse_unknown(instance: Instance, variation: Variation) -> None:
    """Refuse an unknown machine type, node or queue."""
    there = {
        "nodes": [
            *(machine.id for machine in instance.cluster.machines),
            *(node.id for node in instance.cluster.nodes),
        ],
        "quota": [queue.id for queue in instance.policy.queues],
    }.get(variation.what)
    if there is not None and variation.name not in there:
        known = ", ".join(there[:20]) or "none"
        kind = "machine type" if variation.what == "nodes" else "queue"
        raise BadArgument(f"vary: no {kind} {variation.name!r}; there are: {known}")


def varied(base: Instance, variation: Variation, setting: int, seed: int) -> Instance:
    """Return the round under one setting."""
    if variation.what == "demand":
        return apply_step(Patched(base), ScaleDemand(do="scale_demand", percent=_percent(setting), seed=seed)).instance
    if variation.what == "quota":
        quota = Quota(gpu_milli=1000 * setting)
        return apply_step(Patched(base), SetQuota(do="set_quota", queue=variation.name, quota=quota)).instance
    is_node = any(node.id == variation.name for node in base.cluster.nodes)
    step = AddNodes(
        do="add_nodes",
        count=max(1, setting),
        like=variation.name if is_node else None,
        machine=None if is_node else variation.name,
        prefix=free_prefix(node.id for node in base.cluster.nodes),
    )
    added = apply_step(Patched(base), step).instance
    return added if setting else base


def _point(
    setting: int, *, base: Instance, variation: Variation, limits: Limits, cancel: threading.Event | None
) -> SweepPoint:
    with Engine() as engine:
        outcome = outcome_of(engine, varied(base, variation, setting, limits.seed), limits, cancel)
    return SweepPoint(setting=setting, outcome=outcome)


def _percent(setting: int) -> int:
    if setting > MOST_POINTS:
        raise BadInput(f"demand: {setting} percent, at most {MOST_POINTS}")
    return setting
