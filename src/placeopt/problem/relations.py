"""Relations between jobs, compiled: which classes of jobs have each and which it selects; counts by domain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from placeopt.model import Relation
from placeopt.problem.classes import effective_labels

if TYPE_CHECKING:
    from placeopt.problem.arrays import BoolArray, IntArray, Placement
    from placeopt.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class CompiledRelation:
    """One relation that some classes of jobs have; equal ones are one."""

    record: Relation
    holds: BoolArray  # (K,) classes of jobs that have it
    selected: BoolArray  # (K,) classes of jobs that it selects
    domain: IntArray  # (N,) domain of its level, -1 in none

    @cached_property
    def domain_of_node(self) -> list[int]:
        """``domain`` as plain integers, for loops over placements."""
        domains: list[int] = self.domain.tolist()
        return domains

    def among(self, domains: Collection[int]) -> BoolArray:
        """Shape (N,): nodes in one of some domains."""
        among = np.zeros(int(self.domain.max(initial=-1)) + 2, dtype=bool)  # the last is that of nodes in none
        among[list(domains)] = True
        found: BoolArray = among[self.domain]
        return found

    def inside(self, placement: Placement) -> Counter[int]:
        """Return the workers of a placement in each domain; -1: in none."""
        return Counter([self.domain_of_node[node] for node in placement.nodes])


@dataclass(frozen=True, eq=False)
class Relations:
    """All relations of a round: those that must hold, then the soft ones."""

    every: tuple[CompiledRelation, ...]

    @cached_property
    def hard(self) -> int:
        """Number of those that must hold."""
        return sum(relation.record.weight is None for relation in self.every)

    @cached_property
    def followers(self) -> tuple[frozenset[int], frozenset[int]]:
        """Classes of jobs that start only near others, which may start later, and classes that those want."""
        near = [one for one in self.every[: self.hard] if one.record.kind == "near"]
        follow = frozenset(k for one in near for k in np.flatnonzero(one.holds).tolist())
        return follow, frozenset(k for one in near for k in np.flatnonzero(one.selected).tolist())

    @cached_property
    def of_class(self) -> list[list[int]]:
        """Of each class of jobs the positions of the relations that it has or that select it."""
        concerned = np.array([relation.holds | relation.selected for relation in self.every])
        return [np.flatnonzero(column).tolist() for column in concerned.T]


def compile_relations(problem: Problem) -> Relations:
    """Match the labels of every class of jobs with every selector, once."""
    of_record: dict[Relation, list[int]] = {}
    for k, job in enumerate(problem.class_member):
        for relation in dict.fromkeys(job.relations):
            of_record.setdefault(relation, []).append(k)
    labels = effective_labels(problem.instance) if of_record else []
    domains: dict[str, IntArray] = {}
    compiled = []
    for record, classes in of_record.items():
        if record.level not in domains:
            domains[record.level] = _domains(record.level, labels)
        holds = np.zeros(problem.num_classes, dtype=bool)
        holds[classes] = True
        met = [record.selects(job.labels) for job in problem.class_member]
        compiled.append(CompiledRelation(record, holds, np.array(met, dtype=bool), domains[record.level]))
    return Relations(tuple(sorted(compiled, key=lambda relation: relation.record.weight is not None)))


def _domains(level: str, labels: list[dict[str, str]]) -> IntArray:
    """Shape (N,): a number for each value of a label, -1 without; of ``node`` each node's own."""
    if level == "node":
        return np.arange(len(labels), dtype=np.int64)
    numbers: dict[str, int] = {}
    values = (own.get(level) for own in labels)
    return np.array([-1 if v is None else numbers.setdefault(v, len(numbers)) for v in values], dtype=np.int64)


class DomainCounts:
    """
    Workers in the domains of one relation's level, -1: in none; domains without any have no entry.

    - ``holders``, ``selected``, ``both``: Of jobs that have the relation, that it selects, and of which both is true.
    - ``starting``: Of holders that start or move.
    - ``anchors``: Of selected jobs that stay, or that do not have the relation: they open their domains.
    - ``ran``: Of selected jobs that run when the round begins, and stay or move.
    """

    __slots__ = ("_holds", "_selected", "anchors", "both", "holders", "ran", "relation", "selected", "starting")

    def __init__(self, relation: CompiledRelation) -> None:
        self.relation = relation
        self._holds: list[bool] = relation.holds.tolist()
        self._selected: list[bool] = relation.selected.tolist()
        self.holders: dict[int, int] = {}
        self.selected: dict[int, int] = {}
        self.both: dict[int, int] = {}
        self.starting: dict[int, int] = {}
        self.anchors: dict[int, int] = {}
        self.ran: dict[int, int] = {}

    @property
    def weight(self) -> int:
        """What a broken one costs a worker; 0 of one that must hold."""
        return self.relation.record.weight or 0

    def add(self, k: int, placement: Placement, *, ran: bool, stays: bool, sign: int = 1) -> None:
        """Count the workers of a job of class ``k``, which ``ran`` and maybe ``stays``; ``sign`` -1 takes them off."""
        inside, holds, selected = self.relation.inside(placement), self._holds[k], self._selected[k]
        for counts, concerned in (
            (self.holders, holds),
            (self.selected, selected),
            (self.both, holds and selected),
            (self.starting, holds and not stays),
            (self.anchors, selected and (stays or not holds)),
            (self.ran, selected and ran),
        ):
            for domain, count in inside.items() if concerned else ():
                left = counts.get(domain, 0) + sign * count
                if left:
                    counts[domain] = left
                else:
                    del counts[domain]

    def forbids(self, k: int, placement: Placement) -> bool:
        """Return whether the relation, which must hold, keeps off a job of class ``k`` that is not counted yet."""
        inside, holds, selected = self.relation.inside(placement), self._holds[k], self._selected[k]
        if self.relation.record.kind == "near":
            return holds and self.breaks_near(inside, opens=selected)
        inside.pop(-1, None)
        return (
            (holds and any(domain in self.selected for domain in inside))
            or (selected and any(domain in self.holders for domain in inside))
            or (holds and selected and max(inside.values(), default=0) > 1)
        )

    def open_to(self, k: int) -> BoolArray | None:
        """Shape (N,): nodes of which the relation keeps off no worker of a job of class ``k``; None: of none."""
        holds, selected = self._holds[k], self._selected[k]
        if self.relation.record.kind == "apart":
            taken = {*(self.selected if holds else ()), *(self.holders if selected else ())} - {-1}
            return ~self.relation.among(taken) if taken else None
        if not holds:
            return None
        opened = {domain for domain in self.closed() if domain >= 0}
        if not opened and selected:
            ran = {domain for domain in self.ran if domain >= 0}
            if len(ran) == 0:
                return self.relation.domain >= 0
            opened = ran if len(ran) == 1 else set()
        return self.relation.among(opened | self.anchors.keys() - {-1})

    def closed(self) -> list[int]:
        """Return the domains that holders which start would have to open; -1: they are in none."""
        return [domain for domain in self.starting if domain < 0 or domain not in self.anchors]

    def breaks_near(self, more: Mapping[int, int] | None = None, *, opens: bool = False) -> bool:
        """Return whether ``near`` is broken, ``more`` workers beside that start with it; ``opens``: it selects them."""
        more = more or {}
        closed = {*self.closed(), *(domain for domain in more if domain < 0 or domain not in self.anchors)}
        if len(closed) != 1:
            return bool(closed)
        (domain,) = closed
        opened = domain >= 0 and ((opens and domain in more) or domain in self.selected)
        return not opened or not self.may_open(domain)

    def may_open(self, domain: int) -> bool:
        """Return whether no selected job that ran is in another domain."""
        return all(other in (-1, domain) for other in self.ran)

    def broken_in(self, domain: int) -> int:
        """Return the number of workers in a domain for which the relation, if it is soft, is broken."""
        both, selected = self.both.get(domain, 0), self.selected.get(domain, 0)
        alone = self.holders.get(domain, 0) - both
        if self.relation.record.kind == "apart":
            return 0 if domain < 0 else alone * (selected > 0) + both * (selected > 1)
        return alone + both if domain < 0 else alone * (selected == 0) + both * (selected < 2)
