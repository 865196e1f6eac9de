"""What a step over a round is, and the changes of records that several steps make."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection
from typing import Annotated

from pydantic import Field

from placeopt.edits.gpus import without_gone_gpus
from placeopt.edits.records import changed, refuse_unknown
from placeopt.model import Instance, Node, Record
from placeopt.model.base import Id

MOST_NAMED = 5
Ids = Annotated[tuple[Id, ...], Field(min_length=1)]


class Step(Record):
    """A step over a round."""

    do: str
    """Kind of step."""

    @abstractmethod
    def edited(self, before: Instance) -> Instance:
        """Return the round after the step, unchecked; raises `BadInput` where that is impossible."""

    @property
    def words(self) -> str:
        """What the step does, for people: its kind, and the first ids that it states."""
        stated = [value for name, value in self if name != "do"]
        lists = (value if isinstance(value, tuple) else (value,) for value in stated)
        ids = [getattr(one, "id", None) or getattr(one, "job", one) for values in lists for one in values]
        named = [repr(one) for one in ids if isinstance(one, str)]
        more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
        return f"{self.do.replace('_', ' ')} {', '.join(named[:MOST_NAMED])}{more}".rstrip()


def with_cluster(before: Instance, **fields: object) -> Instance:
    """Return the round with fields of the cluster changed."""
    return changed(before, cluster=changed(before.cluster, **fields))


def with_nodes(before: Instance, nodes: tuple[Node, ...]) -> Instance:
    """Return the round with other nodes, and without the failed GPUs that are no longer there."""
    return without_gone_gpus(with_cluster(before, nodes=nodes))


def on_nodes(before: Instance, nodes: Collection[str] | None, edit: Callable[[Node], Node]) -> Instance:
    """Return the round with some nodes changed; None: all."""
    there = before.cluster.nodes
    refuse_unknown("nodes", "node", nodes or (), {node.id for node in there})
    chosen = None if nodes is None else set(nodes)
    return with_nodes(before, tuple(edit(node) if chosen is None or node.id in chosen else node for node in there))


def jobs_on(before: Instance, nodes: Collection[str]) -> set[str]:
    """Return the jobs that run on some nodes."""
    return {held.job for held in before.running if any(part.node in nodes for part in held.assignments)}


def without_running(before: Instance, jobs: Collection[str]) -> Instance:
    """Return the round in which some jobs do not run."""
    return changed(before, running=tuple(held for held in before.running if held.job not in jobs))
