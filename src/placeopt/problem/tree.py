"""A tree of groups in a compiled problem: its members, which are jobs of alike workers, and what binds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from placeopt.model import Communication, Split, Spread

LeafName = str | None
"""As assignments state it: None where the option has no groups."""


@dataclass(frozen=True)
class TreeGroup:
    """What is asked of the workers of some members together."""

    name: str
    members: tuple[int, ...]
    lies: tuple[Split | Spread, ...]
    prefer: tuple[str, ...]


@dataclass(frozen=True)
class TreeForm:
    """One option of a tree."""

    anchor: int  # a member that runs wherever any other does
    leaves: tuple[tuple[LeafName, tuple[int, ...]], ...]  # each leaf, and the members that have its workers
    starts: tuple[int, ...]  # members that may start
    needs: tuple[tuple[int, int], ...]  # a member, and one that runs wherever it does
    groups: tuple[TreeGroup, ...]


@dataclass(frozen=True)
class Tree:
    """A job that is compiled as members: its name, their numbers, and its options by their ids."""

    job: str
    members: tuple[int, ...]
    runs: tuple[int, ...]  # of the members
    forms: Mapping[str, TreeForm]
    communication: Communication
    """Traffic between workers of different members; with edges, of all its workers."""


def levels_of(trees: Iterable[Tree]) -> set[str]:
    """Return the levels of domains that trees look at."""
    groups = [group for tree in trees for form in tree.forms.values() for group in form.groups]
    return {rule.level for one in groups for rule in one.lies} | {level for one in groups for level in one.prefer}
