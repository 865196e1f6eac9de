"""Slurm's numbers, and the shapes in which jobs ask for workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from placeopt.errors import BadInput
from placeopt.formats.snapshots.entries import Entry
from placeopt.formats.snapshots.found import Notes
from placeopt.formats.snapshots.slurm_words import Tres, parse_gpus

NO_NUMBER = 0xFFFFFFFE
"""What Slurm writes for 'none' where a number must stand."""


def number(entry: Entry, key: str) -> int | None:
    """Return a number as Slurm writes it: plain, or ``{"set": ..., "infinite": ..., "number": ...}``; None if unset."""
    value = entry.raw(key)
    if isinstance(value, dict):
        inner = entry.entry(key)
        if not inner.flag("set") or inner.flag("infinite"):
            return None
        return inner.integer("number", 0, 2**53)
    if value is None:
        return None
    number = entry.integer(key, 0, 2**64)
    return None if number >= NO_NUMBER else number


@dataclass(frozen=True)
class Shape:
    """What was asked for: so many workers of so many GPUs, on nodes of their own or anywhere."""

    workers: int
    gpus: int
    models: tuple[str, ...]
    alone: bool

    def fits(self, held: Sequence[int]) -> bool:
        """Tell whether GPUs held, node by node, are this shape."""
        if not self.gpus:
            return not any(held) and len(held) == self.workers
        counts = [count // self.gpus for count in held]
        return (
            all(count % self.gpus == 0 for count in held)
            and sum(counts) == self.workers
            and (not self.alone or max(counts) == 1)
        )


def asked_shape(entry: Entry, asked: Tres, notes: Notes) -> Shape:
    """Return the shape of a request; raises `BadInput` where a field is none that Slurm writes."""
    nodes = max(1, number(entry, "node_count") or asked.nodes)
    tasks = max(1, number(entry, "tasks") or 1)
    own = (asked.model,) if asked.model else ()
    for key, workers, alone in (
        ("tres_per_node", nodes, True),
        ("tres_per_task", tasks, False),
        ("tres_per_job", None, False),
    ):
        try:
            gpus, models = parse_gpus(entry.text(key, ""))
        except ValueError as error:
            raise BadInput(f"{entry.path(key)}: {error}") from None
        if len(models) > 1:
            notes.assume("A job that asks for several models of GPUs may have any mix of them.")
        if gpus and workers is None:
            return Shape(gpus, 1, models or own, alone=False)
        if gpus and workers is not None:
            return Shape(workers, gpus, models or own, alone and workers > 1)
    if asked.gpus:
        return Shape(asked.gpus, 1, own, alone=False)
    return Shape(nodes, 0, (), nodes > 1)
