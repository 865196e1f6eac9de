"""Who meets where, and the linear form of slowdowns: a binary for each job and domain, and what jobs cost there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from placeopt.linear import NO_LOWER, NO_UPPER, ModelBuilder
from placeopt.problem import BoolArray, IntArray, Problem
from placeopt.problem.state import holdings
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


def colocated_pairs(problem: Problem, job: IntArray, gpu: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """
    Return every pair of jobs that have GPUs on one node, once: jobs a < b, and the closest level at which they meet.

    ``job``, ``gpu``: Shapes (H,): who holds which GPU. Returns shapes (n,).
    """
    size, found = problem.num_jobs, [NOTHING]
    for level, domain in enumerate(nested_domains(problem)):
        there, who = np.divmod(np.unique(domain[gpu] * size + job), size)  # each job once a domain
        a, b = pairs_inside(there)
        found.append((who[a] * size + who[b]) * LEVELS + level)
    keys = np.sort(np.concatenate(found))
    pair, level_of = np.divmod(keys[np.flatnonzero(np.diff(keys // LEVELS, prepend=-1))], LEVELS)
    return pair // size, pair % size, level_of


def pairs_inside(group: IntArray) -> tuple[IntArray, IntArray]:
    """Return all positions a < b with equal entries of ``group``, which ascends; (n,) each."""
    size = len(group)
    partners = np.searchsorted(group, group, side="right") - np.arange(size) - 1
    a = np.repeat(np.arange(size), partners)
    return a, a + 1 + np.arange(len(a)) - np.repeat(np.cumsum(partners) - partners, partners)


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
    people, who, level, profile, column, domain = _add_presence(builder, v, encounters)
    units, excess = len(v.unit_jobs), encounters.excess
    one, other = pairs_inside(domain)
    one, other = one[column[one] >= 0], other[column[one] >= 0]  # the first is a unit
    level, p, q = level[one], profile[one], profile[other]
    owner = who[one] * people + who[other]
    if not by_pair:  # the first suffers from the second, and the second from the first
        owner, level = np.append(who[one], who[other]), np.tile(level, 2)
        p, q, one, other = np.append(p, q), np.append(q, p), np.tile(one, 2), np.tile(other, 2)
    adds = steps(excess)[level, p, q] > 0  # what is no more than further out follows from there
    owners, at = np.unique(owner[adds], return_inverse=True)
    x, y, price = column[one[adds]], column[other[adds]], excess[level, p, q][adds]
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


def _add_presence(
    builder: ModelBuilder, v: Variables, encounters: Encounters
) -> tuple[int, IntArray, IntArray, IntArray, IntArray, IntArray]:
    """
    Add a binary for each unit and domain that matters, 1 where any grant of the unit lies in it.

    Returns where jobs may be or are for certain, by domain and then by job: a number above that of all jobs, and five
    arrays of shape (W,): the job (a unit, or the number of units + a running job), the level of the domain, the job's
    profile, the column (-1 for a running job), and the domain.
    """
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
    return people, who, domain // span, profile[who], column, domain
