"""Greedy for trees: the members of a tree one after the other, in the domains that their groups are confined to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from placeopt.errors import OutOfTime
from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.greedy_pass import place
from placeopt.model import Split
from placeopt.problem import BoolArray, Move, Placement
from placeopt.problem.tree import Tree, TreeForm
from placeopt.terms.rules import fits_as_member
from placeopt.terms.rules.trees import tree_keeps

Confined = tuple[tuple[int, ...], str]
"""Members that share one domain, and its level."""


class TreePlacer:
    """Places trees in the state of candidates; finds no place where one is found by search alone."""

    def __init__(self, candidates: Candidates, over: Callable[[], bool]) -> None:
        self._candidates, self._over = candidates, over
        self._state, self._problem = candidates.state, candidates.problem
        self._tried: set[str] = set()

    def place_once(self, tree: Tree) -> None:
        """Place a tree unless that was tried before: room only shrinks."""
        if tree.job not in self._tried:
            self._tried.add(tree.job)
            self.place(tree)

    def place(self, tree: Tree) -> bool:
        """
        Place a tree, with all workers where they fit, else with those that it needs; False leaves it as it was.

        Raises ``OutOfTime`` if time is over.
        """
        options = self._problem.options
        best = dict.fromkeys(tree.forms, 0)
        for member in tree.members:
            for option in self._problem.options_of(member):
                best[options.name[option]] = max(best[options.name[option]], int(options.value[option]))
        for name in sorted(tree.forms, key=lambda name: -best[name]):
            form = tree.forms[name]
            needed = _needed(form)
            for members, fewest in ((list(form.starts), False), (needed, True)):
                if any(self._place(tree, name, members, wishes, fewest=fewest) for wishes in _wishes(form)):
                    return True
        return False

    def _place(self, tree: Tree, name: str, members: list[int], wishes: list[Confined], *, fewest: bool) -> bool:
        """Place members in the option of that name, where the wishes, and all that must be, confine them."""
        form = tree.forms[name]
        confined = [*wishes]
        confined += [
            (group.members, rule.level)
            for group in form.groups
            for rule in group.lies
            if isinstance(rule, Split) and rule.domains == 1
        ]
        confined.sort(key=lambda one: -len(one[0]))
        everywhere = np.ones(self._problem.num_nodes, dtype=bool)
        return self._confine(tree, name, confined, dict.fromkeys(members, everywhere), fewest=fewest)

    def _confine(
        self, tree: Tree, name: str, confined: list[Confined], allowed: dict[int, BoolArray], *, fewest: bool
    ) -> bool:
        if self._over():
            raise OutOfTime("no time left to place a tree")
        if not confined:
            return self._lay(tree, name, allowed, fewest=fewest)
        (members, level), rest = confined[0], confined[1:]
        domain = self._problem.split_domain[level]
        mine = [member for member in members if member in allowed]
        fixed = {int(domain[node]) for m in members if m in tree.runs for node in self._problem.running[m].nodes}
        if not mine or len(fixed) > 1:
            return not mine and self._confine(tree, name, rest, allowed, fewest=fewest)
        for chosen in fixed or self._domains(domain, mine, name, allowed):
            inside = domain == chosen
            here = {member: mask & inside if member in mine else mask for member, mask in allowed.items()}
            if self._confine(tree, name, rest, here, fewest=fewest):
                return True
        return False

    def _domains(
        self, domain: np.ndarray, members: list[int], name: str, allowed: dict[int, BoolArray]
    ) -> Iterator[int]:
        """Yield the domains with room for each of the members alone, those with the least first."""
        room = np.zeros(int(domain.max(initial=-1)) + 1, dtype=np.int64)
        enough = np.ones(len(room), dtype=bool)
        for member in members:
            rows = self._options(member, name)
            option = rows[-1]  # the fewest workers; where its queue has flavors, a row for each
            per_node = np.zeros(self._problem.num_nodes, dtype=np.int64)
            for row in rows:
                if self._problem.options.workers[row] == self._problem.options.workers[option]:
                    fits = allowed[member] & np.isfinite(self._candidates.scores(row))
                    per_node = np.maximum(per_node, np.where(fits, self._candidates.free_rooms(row), 0))
            inside = np.bincount(domain[domain >= 0], per_node[domain >= 0], len(room)).astype(np.int64)
            enough &= inside >= self._problem.options.bundles[option]
            room += inside
        possible = np.flatnonzero(enough)
        yield from possible[np.argsort(room[possible], kind="stable")].tolist()

    def _options(self, member: int, name: str) -> list[int]:
        """Return the options of a member by that name, most workers first."""
        options = self._problem.options
        mine = [option for option in self._problem.options_of(member) if options.name[option] == name]
        return sorted(mine, key=lambda option: -int(options.workers[option]))

    def _lay(self, tree: Tree, name: str, allowed: dict[int, BoolArray], *, fewest: bool) -> bool:
        """Place the members, the hardest first, each on the nodes allowed to it; all or none."""
        options, undo = self._problem.options, list[Move]()
        hardest = sorted(allowed, key=lambda m: -int(options.bundle_gpus[self._options(m, name)[0]]))
        for member in hardest:
            rows = self._options(member, name)
            placement = self._member(member, rows[::-1] if fewest else rows, allowed[member])
            if placement is not None:
                undo.append(self._candidates.apply(Move(member, placement)))
        placed = self._state.placed(tree.members)
        if undo and all(m in placed for m in _needed(tree.forms[name])) and tree_keeps(self._problem, tree, placed):
            return True
        for move in reversed(undo):
            self._candidates.apply(move)
        return False

    def _member(self, member: int, options: list[int], allowed: BoolArray) -> Placement | None:
        before = self._candidates.restricted_to
        self._candidates.restricted_to = allowed if before is None else allowed & before
        try:
            return place(self._candidates, member, options, fits_as_member)
        finally:
            self._candidates.restricted_to = before


def _needed(form: TreeForm) -> list[int]:
    """Return the members that run wherever any of the tree starts."""
    needs, needed = set(form.needs), list[int]()
    for job in form.starts:
        if not any(a == job and (b, a) not in needs for a, b in needs):
            needed.append(job)
    return needed


def _wishes(form: TreeForm) -> Iterator[list[Confined]]:
    """Yield where groups would rather be confined, level by level, and last nothing."""
    preferring = [group for group in form.groups if group.prefer]
    for rank in range(max((len(group.prefer) for group in preferring), default=0)):
        yield [(group.members, group.prefer[min(rank, len(group.prefer) - 1)]) for group in preferring]
    yield []
