"""Cost: slowdown by co-runners (SC'17 eq. 4 turned into a slowdown; Horus's utilisation curve)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from placeopt.linear import NO_LOWER, NO_UPPER, ModelBuilder
from placeopt.problem import Allocation, BoolArray, IntArray, Placement, Problem, State
from placeopt.problem.state import holdings
from placeopt.terms.costs.slowdown_curves import excess_table, most_jobs, most_percent
from placeopt.terms.protocols import Cost, Expression, Form, Part
from placeopt.terms.variables import Variables

LEVELS = 4
"""GPU, switch, socket, node: 0 to 3."""
NOTHING: IntArray = np.zeros(0, dtype=np.int64)


class Interference(Cost):
    """
    Sum over jobs, running ones included, of s_j - 1 in thousandths.

    ``pairwise``: s_j - 1 is the sum of e(j, k) over co-runners k, each counted once, at the closest domain (GPU,
    switch, socket, machine) that any of their GPUs share. ``worst``: the largest of them. ``curve``: 0 alone,
    otherwise the largest excess over its GPUs, by the GPU's cumulative utilisation.

    The paper's own eq. 4 is a mean of speeds (higher is better) inside a minimisation, and harmless jobs dilute it.
    """

    name = "interference"
    unit = "thousandths"
    never_lowered_by_starts = True

    def of(self, state: State, part: Part) -> int:
        """Sum over jobs; where pairs count, a part is what its job suffers and causes, else all jobs on its nodes."""
        if part.is_all:
            return int(excesses(state.problem, tuple(state.placements)).sum())
        if state.problem.policy.interference.model == "pairwise":
            placed = state.placed(part.jobs).items()
            return sum(felt + caused for job, held in placed for _, felt, caused in meets(state, job, held))
        there = {job for node in part.nodes for job in state.node_jobs[node]}
        return sum(max(excess_beside(state, job).values(), default=0) for job in there)

    def worst(self, problem: Problem) -> int:
        """Return the sum over jobs of each one's own worst: beside all others, or at the end of the curve."""
        if problem.policy.interference.model == "curve":
            return problem.num_jobs * int(_curve(problem).max(initial=0)) if problem.gpus_are_shared else 0
        profile = problem.class_profile[problem.job_class]
        count = np.bincount(profile[profile >= 0], minlength=problem.slowdown.shape[1])
        highest = problem.slowdown.max(axis=0, initial=0)  # (P, P)
        if problem.policy.interference.model == "worst":
            return int((count * highest.max(axis=1, initial=0)).sum())
        return int((count[:, None] * highest * count[None, :]).sum() - (count * highest.diagonal()).sum())

    def gpu_classes(self, problem: Problem) -> IntArray | None:
        """GPUs alike: those that share switch and socket, where that matters."""
        if not _steps(_encounters(problem).excess)[1:3].any():
            return None  # only who shares a GPU or a node counts
        return np.unique(np.stack([problem.gpu_switch, problem.gpu_socket]), axis=1, return_inverse=True)[1]

    def forbids_folding(self, problem: Problem, option: int) -> bool:
        """Return whether a job in the option slows others or is slowed."""
        if not problem.options.gpus[option] or problem.policy.interference.model == "curve":
            return bool(problem.options.gpus[option]) and self.worst(problem) > 0
        p = int(problem.class_profile[problem.options.job_class[option]])
        return p >= 0 and bool(problem.slowdown[:, p].any() or problem.slowdown[:, :, p].any())

    def form(self, problem: Problem) -> Form:
        """Exact where what two jobs suffer where they meet says all."""
        return "exact" if self.worst(problem) == 0 or _encounters(problem).exact else "bound"

    def add_to(self, builder: ModelBuilder, variables: Variables) -> Expression:
        """
        Add a column for each pair of jobs that may meet, or for each job: what they suffer where they meet, at least.

        What running jobs do to each other is known, and no co-runner speeds a job up. Where excesses do not add up the
        column of a job is at least the largest of them.
        """
        problem = variables.problem
        known = excesses(problem, variables.state.allocation())
        if self.worst(problem) == 0:
            return NOTHING, NOTHING, int(known.sum())
        encounters = _encounters(problem)
        level, domain, job, column, runs = _add_presence(builder, variables, encounters)
        one, other = _pairs_inside(domain)
        some = ~(runs[one] & runs[other])
        one, other, by_pair = one[some], other[some], problem.policy.interference.model == "pairwise"
        if not by_pair:  # the first suffers from the second, and the second from the first
            one, other = np.append(one, other), np.append(other, one)
        at = (level[one], *(encounters.profile[problem.job_class[job[side]]] for side in (one, other)))
        adds = _steps(encounters.excess)[at] > 0  # what is no more than further out follows from there
        one, other, price = one[adds], other[adds], encounters.excess[at][adds]
        owners, of = np.unique(job[one] * problem.num_jobs + (job[other] if by_pair else 0), return_inverse=True)
        least = np.zeros(len(owners), dtype=np.int64) if by_pair else known[owners // problem.num_jobs]

        def suffered(both: IntArray | int) -> IntArray:
            out = least.copy()
            np.maximum.at(out, of, price * both)
            return out

        costs, row, x, y = builder.add_variables(least, suffered(1)), np.arange(len(of)), column[one], column[other]
        parts = (row, costs[of], 1), (row, x, -price), (row, y, -price)
        builder.add_parts(-price, NO_UPPER, *parts, count=len(of))
        builder.define(costs, lambda values: suffered(values[x] * values[y]))
        return costs, np.ones(len(costs), dtype=np.int64), int(known.sum() - least.sum())


class _Encounters(NamedTuple):
    """What two jobs suffer where they meet, at least; ``exact``: whether the cost says no more of two jobs."""

    profile: IntArray
    """Shape (K,): a number for jobs of each class; -1: they disturb no job."""
    excess: IntArray
    """Shape (4, P, P): by level, profile that suffers and profile beside it; it never falls towards closer levels."""
    exact: bool


def _encounters(problem: Problem) -> _Encounters:
    """Return what two jobs suffer at least: the first of them, or both where pairs count."""
    if problem.policy.interference.model != "curve":
        both = problem.policy.interference.model == "pairwise"
        excess, exact = _least_excess(problem, problem.slowdown + both * problem.slowdown.transpose(0, 2, 1))
        return _Encounters(problem.class_profile, excess, exact)
    # a GPU is at least as full as two jobs on it make it, each in the option that uses it least
    options, some = problem.options, problem.options.gpus > 0
    least, most = np.full(problem.num_classes, 100), np.zeros(problem.num_classes, dtype=np.int64)
    np.minimum.at(least, options.job_class[some], options.utilisation[some])
    np.maximum.at(most, options.job_class[some], options.utilisation[some])
    percent, profile = np.unique(least, return_inverse=True)
    excess = np.zeros((LEVELS, len(percent), len(percent)), dtype=np.int64)
    excess[0] = _curve(problem, 2 * int(percent.max(initial=0)))[percent[:, None] + percent[None, :]]
    return _Encounters(profile, excess, most_jobs(problem) <= 2 and bool((least >= most).all()))


def excesses(problem: Problem, allocation: Allocation) -> IntArray:
    """Shape (J,): s_j - 1 in thousandths; 0 for jobs without GPUs."""
    out = np.zeros(problem.num_jobs, dtype=np.int64)
    held = holdings(problem, [(job, p) for job, p in enumerate(allocation) if p is not None])
    if problem.policy.interference.model == "curve":
        count = np.bincount(held.gpu, minlength=problem.num_gpus)
        shared = count[held.gpu] > 1
        total = np.zeros(problem.num_gpus, dtype=np.int64)
        np.add.at(total, held.gpu, problem.options.utilisation[held.option])
        table = _curve(problem, int(total.max(initial=0)))
        np.maximum.at(out, held.job[shared], table[total[held.gpu[shared]]])
        return out
    if not problem.slowdown.any():
        return out
    profile = problem.class_profile[problem.job_class]
    felt = profile[held.job] >= 0
    gather = np.maximum if problem.policy.interference.model == "worst" else np.add
    a, b, level = _colocated_pairs(problem, held.job[felt], held.gpu[felt])
    gather.at(out, a, problem.slowdown[level, profile[a], profile[b]])
    gather.at(out, b, problem.slowdown[level, profile[b], profile[a]])
    return out


def _curve(problem: Problem, least: int = 0) -> IntArray:
    """By cumulative percent, as far as the rules allow, and to ``least`` in any case: what runs may be beyond."""
    return excess_table(problem.policy.interference.curve, max(most_percent(problem), least))


def together(problem: Problem, excesses: Iterable[int]) -> int:
    """Excess by several neighbours at once: their sum, or the worst of them."""
    return sum(excesses) if problem.policy.interference.model == "pairwise" else max(excesses, default=0)


def excess_beside(state: State, job: int) -> dict[int, int]:
    """
    Return the excess, in thousandths, that each co-runner of a job causes it by itself; 0 where none.

    Co-runners are the other jobs with a GPU on its nodes. Under ``curve`` those that share a GPU cause what its
    utilisation does, each of them the same.
    """
    problem, placement = state.problem, state.placements[job]
    if placement is None or not placement.gpus:
        return {}
    others = dict.fromkeys((k for node in placement.nodes for k in state.node_jobs[node] if k != job), 0)
    if problem.policy.interference.model == "curve":
        full = {gpu: int(state.gpu_utilisation[gpu]) for gpu in placement.gpus if state.gpu_jobs[gpu] > 1}
        table = _curve(problem, max(full.values(), default=0))
        excess = {gpu: int(table[percent]) for gpu, percent in full.items()}
        for other in others if excess else ():
            held = state.placements[other]
            others[other] = max((excess.get(gpu, 0) for gpu in (held.gpus if held is not None else ())), default=0)
        return others
    return others | {other: felt for other, felt, _ in meets(state, job, placement)}


def meeting_level(problem: Problem, gpus: Iterable[int]) -> Callable[[Sequence[int]], int]:
    """Return what tells at which level other GPUs of the same node meet ``gpus``: the closest part that they share."""
    switch, socket, *_ = problem.neighbours
    mine = frozenset(gpus)
    switches, sockets = ({of_gpu[gpu] for gpu in mine} - {-1} for of_gpu in (switch, socket))

    def level(held: Sequence[int]) -> int:
        if not mine.isdisjoint(held):
            return 0
        if switches and any(switch[gpu] in switches for gpu in held):
            return 1
        return 2 if any(socket[gpu] in sockets for gpu in held) else 3

    return level


def meets(state: State, job: int, placement: Placement) -> Iterator[tuple[int, int, int]]:
    """
    Yield whom a job would meet at a placement: (other, excess by it, excess that it gets by the job), in thousandths.

    By the slowdowns of their profiles; under ``curve`` these do not count.
    """
    *_, profile, slowdown = state.problem.neighbours
    if not placement.gpus or profile[job] < 0:
        return
    level_of = meeting_level(state.problem, placement.gpus)
    for other in dict.fromkeys(k for node in dict.fromkeys(placement.nodes) for k in state.node_jobs[node]):
        held = state.placements[other]
        if other == job or profile[other] < 0 or held is None:
            continue
        level = level_of(held.gpus)
        yield other, slowdown[profile[job]][profile[other]][level], slowdown[profile[other]][profile[job]][level]


def _add_presence(
    builder: ModelBuilder, v: Variables, encounters: _Encounters
) -> tuple[IntArray, IntArray, IntArray, IntArray, BoolArray]:
    """
    Add a binary for each job and domain that matters, 1 where the job has a GPU in it: for certain where it runs.

    Returns arrays of shape (W,), ordered by the domain: its level, the domain, the job, the column, whether it is sure
    to be 1. A job that disturbs others, or suffers, is a unit of its own.
    """
    problem, excess, size = v.problem, encounters.excess, v.problem.num_jobs
    first = np.array([jobs[0] for jobs in v.unit_jobs], dtype=np.int64)[v.start_unit[v.grant_start]]
    free = v.cell_gpu[v.grant_cell]
    held = holdings(problem, ((job, p) for job, p in enumerate(v.state.placements) if p is not None))
    beside = np.isin(problem.gpu_node[held.gpu], problem.gpu_node[free])
    job, gpu = np.append(first, held.job[beside]), np.append(free, held.gpu[beside])
    profile = encounters.profile[problem.job_class[job]]
    matters = (profile >= 0) & (excess.sum(axis=(0, 1)) + excess.sum(axis=(0, 2)) > 0)[profile]
    meets = np.append(v.cell_met[v.grant_cell], np.ones(len(job) - len(first), dtype=bool))
    domains, keys, holders = nested_domains(problem), [NOTHING], [NOTHING]
    span = max(int(of_gpu.max(initial=0)) for of_gpu in domains) + 1
    for level in np.flatnonzero(_steps(excess).any(axis=(1, 2))).tolist():
        mine = np.flatnonzero(matters & (meets | (level > 0)))
        keys.append((level * span + domains[level][gpu[mine]]) * size + job[mine])
        holders.append(mine)
    key, entry = np.unique(np.concatenate(keys), return_inverse=True)
    holder = np.concatenate(holders)
    sure = np.bincount(entry[holder >= len(first)], minlength=len(key)) > 0
    entry, grant = entry[holder < len(first)], holder[holder < len(first)]
    columns, most = builder.add_variables(sure, 1), np.zeros(len(key), dtype=np.int64)
    np.maximum.at(most, entry, (problem.options.workers * problem.options.gpus)[v.grant_option[grant]])
    builder.add_parts(NO_LOWER, 0, (entry, v.grant[grant], 1), (np.arange(len(key)), columns, -most), count=len(key))
    builder.define(columns, lambda values: sure | (np.bincount(entry, values[v.grant[grant]], len(key)) > 0))
    domain, who = np.divmod(key, size)
    number = np.unique(domain, return_counts=True)[1]
    builder.check_room(0, 3 * int((number * (number - 1) // 2).sum()))
    return domain // span, domain, who, columns, sure


def nested_domains(problem: Problem) -> list[IntArray]:
    """
    Shape (G,) for each level: the domain of every GPU; jobs that share one share all above it.

    A GPU without a switch stands under one of its own, and what has no socket likewise: it adds no place to meet.
    """
    out = [np.arange(problem.num_gpus)]
    for own in (problem.gpu_switch, problem.gpu_socket, problem.gpu_node):
        out.append(np.where(own >= 0, own, int(own.max(initial=0)) + 1 + out[-1]))
    return out


def _colocated_pairs(problem: Problem, job: IntArray, gpu: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """
    Return every pair of jobs that have GPUs on one node, once: jobs a < b, and the closest level at which they meet.

    ``job``, ``gpu``: Shapes (H,): who holds which GPU. Returns shapes (n,).
    """
    size, found = problem.num_jobs, [NOTHING]
    for level, domain in enumerate(nested_domains(problem)):
        there, who = np.divmod(np.unique(domain[gpu] * size + job), size)  # each job once a domain
        a, b = _pairs_inside(there)
        found.append((who[a] * size + who[b]) * LEVELS + level)
    keys = np.sort(np.concatenate(found))
    pair, level_of = np.divmod(keys[np.flatnonzero(np.diff(keys // LEVELS, prepend=-1))], LEVELS)
    return pair // size, pair % size, level_of


def _pairs_inside(group: IntArray) -> tuple[IntArray, IntArray]:
    """Return all positions a < b with equal entries of ``group``, which ascends; (n,) each."""
    size = len(group)
    partners = np.searchsorted(group, group, side="right") - np.arange(size) - 1
    a = np.repeat(np.arange(size), partners)
    return a, a + 1 + np.arange(len(a)) - np.repeat(np.cumsum(partners) - partners, partners)


def _least_excess(problem: Problem, excess: IntArray) -> tuple[IntArray, bool]:
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


def _steps(excess: IntArray) -> IntArray:
    """Return what sharing a domain of each level adds to sharing only one further out; same shape, level first."""
    out: IntArray = excess - np.concatenate([excess[1:], np.zeros_like(excess[:1])])
    return out
