"""The linear form of slowdowns by co-runners: a binary for each job and domain, and what jobs cost that meet there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placeopt.linear import NO_LOWER, NO_UPPER, ModelBuilder
from placeopt.problem import BoolArray, IntArray, Problem
from placeopt.problem.state import holdings
from placeopt.terms.costs.colocated_pairs import pairs_inside
from placeopt.terms.protocols import Expression
from placeopt.terms.variables import Variables

LEVELS = 4
"""GPU, switch, socket, node: 0 to 3."""
NOTHING: IntArray = np.zeros(0, dtype=np.int64)


def nested_domains(problem: Problem) -> list[IntArray]:
    """
    Shape (G,) for each level: the domain of every GPU; jobs that share one share all above it.

    A GPU without a switch stands under one of its own, and what has no socket likewise: it adds no place to meet.
    """
    out = [np.arange(problem.num_gpus)]
    for own in (problem.gpu_switch, problem.gpu_socket, problem.gpu_node):
        out.append(np.where(own >= 0, own, int(own.max(initial=0)) + 1 + out[-1]))
    return out


def least_excess(problem: Problem, excess: IntArray) -> tuple[IntArray, bool]:
    """
    Return the least of ``excess``, shape (4, P, P) with the level first, over each level and the closer ones.

    Levels at which no jobs meet as their closest one do not count. Also returned is whether it is ``excess`` itself at
    all others: then two jobs cost the largest of it over all domains that they share. Else they cost more.
    """
    domains = [len(np.unique(of_gpu)) for of_gpu in nested_domains(problem)]
    levels = [level for level in range(1, LEVELS) if domains[level] < domains[level - 1]]
    if problem.gpus_are_shared and not (problem.shares_bind and bool((problem.options.milli == 1000).all())):
        levels.insert(0, 0)
    least, out = np.minimum.accumulate(excess[levels], axis=0), np.zeros_like(excess)
    for level, of_level in zip(reversed(levels), least[::-1], strict=True):
        out[: level + 1] = of_level
    return out, bool((least == excess[levels]).all())


def steps(excess: IntArray) -> IntArray:
    """Return what sharing a domain of each level adds to sharing only one further out; same shape, level first."""
    out: IntArray = excess - np.concatenate([excess[1:], np.zeros_like(excess[:1])])
    return out


class Encounters(NamedTuple):
    """What two jobs suffer where they meet, at least; ``exact``: whether the cost says no more of two jobs."""

    profile: IntArray
    """Shape (K,): a number for jobs of each class; -1: they disturb no job."""
    excess: IntArray
    """Shape (4, P, P): by level, profile that suffers and profile beside it; it never falls towards closer levels."""
    exact: bool


def add_meetings(
    builder: ModelBuilder, v: Variables, encounters: Encounters, base: Mapping[int, int], *, by_pair: bool
) -> Expression:
    """
    Add a column for each pair of jobs, or for each job, that is at least what two of them suffer where they meet.

    - ``base``: What each running job suffers from the others.
    - ``by_pair``: Whether the excesses of a job add up; else the largest of them counts, in a column for each job.

    Jobs that disturb others, or suffer, must be units of one job.
    """
    there, units, excess = _add_presence(builder, v, encounters), len(v.unit_jobs), encounters.excess
    one, other = there.pairs
    level, p, q = there.level[one], there.profile[one], there.profile[other]
    owner = there.who[one] * there.people + there.who[other]
    if not by_pair:  # the first suffers from the second, and the second from the first
        owner, level = np.append(there.who[one], there.who[other]), np.tile(level, 2)
        p, q, one, other = np.append(p, q), np.append(q, p), np.tile(one, 2), np.tile(other, 2)
    adds = steps(excess)[level, p, q] > 0  # what is no more than further out follows from there
    owners, at = np.unique(owner[adds], return_inverse=True)
    x, y, price = there.column[one[adds]], there.column[other[adds]], excess[level, p, q][adds]
    already = {} if by_pair else {units + job: excess for job, excess in base.items()}
    least = np.array([already.pop(who, 0) for who in owners.tolist()], dtype=np.int64)
    highest = least.copy()
    np.maximum.at(highest, at, price)
    costs = builder.add_variables(least, highest)
    row, sure = np.arange(len(at)), y < 0
    parts = (row, costs[at], 1), (row, x, -price), (row[~sure], y[~sure], -price[~sure])
    builder.add_parts(np.where(sure, 0, -price), NO_UPPER, *parts, count=len(at))

    def suffered(values: IntArray) -> IntArray:
        out = least.copy()
        np.maximum.at(out, at, price * values[x] * np.where(sure, 1, values[y]))
        return out

    builder.define(costs, suffered)
    return costs, np.ones(len(costs), dtype=np.int64), sum(base.values()) if by_pair else sum(already.values())


@dataclass(frozen=True, eq=False)
class _Presence:
    """
    W times a job that may be in a domain, or is there for certain; by domain, then by job.

    A job is the number of a unit, or the number of units + that of a running job; ``people`` is above all of these.
    """

    people: int
    who: IntArray  # (W,)
    domain: IntArray  # (W,)
    level: IntArray  # (W,) of the domain
    profile: IntArray  # (W,)
    column: IntArray  # (W,) a binary, -1 for a running job

    @property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """Positions of all pairs in one domain, of which the first is a unit."""
        one, other = pairs_inside(self.domain)
        waits = self.column[one] >= 0
        return one[waits], other[waits]


def _add_presence(builder: ModelBuilder, v: Variables, encounters: Encounters) -> _Presence:
    """Add a binary for each unit and domain that matters, 1 where any grant of the unit lies in it."""
    problem, units, excess = v.problem, len(v.unit_jobs), encounters.excess
    first = np.array([jobs[0] for jobs in v.unit_jobs], dtype=np.int64)
    profile = encounters.profile[problem.job_class[np.append(first, np.arange(problem.num_jobs))]]
    disturbs: BoolArray = excess.sum(axis=(0, 1)) + excess.sum(axis=(0, 2)) > 0
    matters = (profile >= 0) & disturbs[profile]
    people, domains = len(profile), nested_domains(problem)
    span = max(int(of_gpu.max(initial=0)) for of_gpu in domains) + 1
    unit, gpu = v.start_unit[v.grant_start], v.cell_gpu[v.grant_cell]
    held = holdings(problem, ((job, p) for job, p in enumerate(v.state.placements) if p is not None))
    names, grants, certain = [NOTHING], [NOTHING], [NOTHING]
    for level in np.flatnonzero(steps(excess).any(axis=(1, 2))).tolist():
        mine = np.flatnonzero(matters[unit] & (v.cell_met[v.grant_cell] | (level > 0)))
        names.append((level * span + domains[level][gpu[mine]]) * people + unit[mine])
        grants.append(mine)
        here = matters[units + held.job]
        certain.append((level * span + domains[level][held.gpu[here]]) * people + units + held.job[here])
    known, entry = np.unique(np.concatenate(names), return_inverse=True)
    grant, running = np.concatenate(grants), np.unique(np.concatenate(certain))
    columns = builder.add_variables(0, 1, count=len(known))
    most = np.zeros(len(known), dtype=np.int64)
    np.maximum.at(most, entry, (problem.options.workers * problem.options.gpus)[v.grant_option[grant]])
    each = (np.arange(len(known)), columns, -most)
    builder.add_parts(NO_LOWER, 0, (entry, v.grant[grant], 1), each, count=len(known))
    builder.define(columns, lambda values: np.bincount(entry, values[v.grant[grant]], len(known)) > 0)
    order = np.argsort(name := np.append(known, running))
    domain, who = np.divmod(name[order], people)
    _, number = np.unique(domain, return_counts=True)
    builder.check_room(0, 3 * int((number * (number - 1) // 2).sum()))
    column = np.append(columns, np.full(len(running), -1))[order]
    return _Presence(people, who, domain, domain // span, profile[who], column)
