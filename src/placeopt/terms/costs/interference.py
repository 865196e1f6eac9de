"""Cost: slowdown by co-runners (SC'17 eq. 4 turned into a slowdown; Horus's utilisation curve)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from placeopt.linear import ModelBuilder
from placeopt.problem import Allocation, IntArray, Placement, Problem, State
from placeopt.problem.state import holdings
from placeopt.terms.costs.horus import excess_table, most_jobs, most_percent
from placeopt.terms.costs.meetings import LEVELS, Encounters, add_meetings, colocated_pairs, least_excess, steps
from placeopt.terms.protocols import Cost, Expression, Form, Part
from placeopt.terms.variables import Variables


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
        if not steps(_encounters(problem).excess)[1:3].any():
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
        """Add which jobs meet; what running jobs do to each other is known, and no co-runner speeds a job up."""
        problem, state = variables.problem, variables.state
        excess = excesses(problem, state.allocation())
        base = {job: int(excess[job]) for job, held in enumerate(state.placements) if held is not None and held.gpus}
        if self.worst(problem) == 0:
            nothing = np.zeros(0, dtype=np.int64)
            return nothing, nothing, sum(base.values())
        by_pair = problem.policy.interference.model == "pairwise"
        return add_meetings(builder, variables, _encounters(problem), base, by_pair=by_pair)


def _encounters(problem: Problem) -> Encounters:
    """Return what two jobs suffer at least: the first of them, or both where pairs count."""
    if problem.policy.interference.model != "curve":
        both = problem.policy.interference.model == "pairwise"
        excess, exact = least_excess(problem, problem.slowdown + both * problem.slowdown.transpose(0, 2, 1))
        return Encounters(problem.class_profile, excess, exact)
    # a GPU is at least as full as two jobs on it make it, each in the option that uses it least
    options, some = problem.options, problem.options.gpus > 0
    least, most = np.full(problem.num_classes, 100), np.zeros(problem.num_classes, dtype=np.int64)
    np.minimum.at(least, options.job_class[some], options.utilisation[some])
    np.maximum.at(most, options.job_class[some], options.utilisation[some])
    percent, profile = np.unique(least, return_inverse=True)
    excess = np.zeros((LEVELS, len(percent), len(percent)), dtype=np.int64)
    excess[0] = _curve(problem, 2 * int(percent.max(initial=0)))[percent[:, None] + percent[None, :]]
    return Encounters(profile, excess, most_jobs(problem) <= 2 and bool((least >= most).all()))


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
    a, b, level = colocated_pairs(problem, held.job[felt], held.gpu[felt])
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


def meets(state: State, job: int, placement: Placement) -> Iterator[tuple[int, int, int]]:
    """
    Yield whom a job would meet at a placement: (other, excess by it, excess that it gets by the job), in thousandths.

    By the slowdowns of their profiles; under ``curve`` these do not count.
    """
    switch, socket, profile, slowdown = state.problem.neighbours
    if not placement.gpus or profile[job] < 0:
        return
    gpus = frozenset(placement.gpus)
    switches, sockets = ({of_gpu[gpu] for gpu in gpus} - {-1} for of_gpu in (switch, socket))
    for other in dict.fromkeys(k for node in dict.fromkeys(placement.nodes) for k in state.node_jobs[node]):
        held = state.placements[other]
        if other == job or profile[other] < 0 or held is None:
            continue
        level = 3
        if not gpus.isdisjoint(held.gpus):
            level = 0
        elif switches and any(switch[gpu] in switches for gpu in held.gpus):
            level = 1
        elif any(socket[gpu] in sockets for gpu in held.gpus):
            level = 2
        yield other, slowdown[level][profile[job]][profile[other]], slowdown[level][profile[other]][profile[job]]
