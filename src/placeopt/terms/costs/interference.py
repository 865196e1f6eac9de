"""Cost: slowdown by co-runners (SC'17 eq. 4 turned into a slowdown; Horus's utilisation curve)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from placeopt.linear import ModelBuilder
from placeopt.problem import Allocation, IntArray, Move, Placement, Problem, State
from placeopt.problem.state import holdings
from placeopt.terms.costs import interference_rows as rows
from placeopt.terms.costs.colocated_pairs import colocated_pairs
from placeopt.terms.costs.horus import excess_table, few_levels, most_percent
from placeopt.terms.costs.presence import count_shared_domains, steps
from placeopt.terms.protocols import Cost, Expression, Form
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
    default_weight = 300
    never_lowered_by_starts = True
    omitted_by_cost_relaxation = "what jobs that start do to others and to each other"
    unsupported_by_columns = None  # columns charge pairs of profiles, and refuse other models where they tabulate them

    def score(self, problem: Problem, allocation: Allocation) -> int:
        """Sum over all jobs that hold a GPU."""
        return int(excesses(problem, allocation).sum())

    def delta(self, state: State, move: Move) -> int:
        """
        Take what the moved job and its neighbours do to each other: what it adds there less what it added here.

        Under ``curve``, where all on a GPU have a part in it, they are recomputed, before and after.
        """
        if state.problem.policy.interference.model != "curve":
            before, after = state.placements[move.job], move.placement
            return _with_others(state, move.job, after) - _with_others(state, move.job, before)
        nodes: set[int] = set()
        for placement in (state.placements[move.job], move.placement):
            if placement is not None and placement.gpus:
                nodes.update(placement.nodes)
        touched = {job for node in nodes for job in state.node_jobs[node]} | {move.job}
        felt = sum(_excess(state, job) for job in touched)
        undo = state.apply(move)
        felt_then = sum(_excess(state, job) for job in touched)
        state.apply(undo)
        return felt_then - felt

    def worst(self, problem: Problem) -> int:
        """Return the sum over jobs of each one's own worst: beside all others, or at the end of the curve."""
        if problem.policy.interference.model == "curve":
            return problem.num_jobs * int(_curve(problem).max(initial=0)) if problem.gpus_are_shared else 0
        count = _by_profile(problem)
        highest = problem.slowdown.max(axis=0, initial=0)  # (P, P)
        if problem.policy.interference.model == "worst":
            return int((count * highest.max(axis=1, initial=0)).sum())
        return int((count[:, None] * highest * count[None, :]).sum() - (count * highest.diagonal()).sum())

    def gpu_classes(self, problem: Problem) -> IntArray | None:
        """GPUs alike: those that share switch and socket, where that matters and the exact form is used."""
        if problem.policy.interference.model == "curve" or self.form(problem) == "bound":
            return None
        if not steps(problem.slowdown)[1:3].any():
            return None  # only who shares a GPU or a node counts
        return np.unique(np.stack([problem.gpu_switch, problem.gpu_socket]), axis=1, return_inverse=True)[1]

    def forbids_folding(self, problem: Problem, option: int) -> bool:
        """Return whether a job in the option slows others or is slowed, and the exact form is used."""
        if not problem.options.gpus[option] or self.worst(problem) == 0 or self.form(problem) == "bound":
            return False
        if problem.policy.interference.model == "curve":
            return True
        p = int(problem.class_profile[problem.options.job_class[option]])
        return p >= 0 and bool(problem.slowdown[:, p].any() or problem.slowdown[:, :, p].any())

    def form(self, problem: Problem) -> Form:
        """
        Exact in rounds of moderate size.

        Elsewhere only the trivial bound: what the running jobs do to each other, since no co-runner speeds a job up.
        """
        if self.worst(problem) == 0:
            return "exact"
        if problem.policy.interference.model == "curve":
            if not few_levels(problem):
                return "bound"
            waiting = problem.num_jobs - len(problem.running) + len(problem.changeable)
            return "exact" if waiting * problem.num_gpus <= MAX_CURVE_PAIRS else "bound"
        return "exact" if _shared_domains(problem) <= MAX_SHARED_DOMAINS else "bound"

    def add_to(self, builder: ModelBuilder, variables: Variables) -> Expression:
        """Add which jobs meet and how full GPUs become; the trivial bound is a constant."""
        problem, state = variables.problem, variables.state
        base = slowdowns(state)
        nothing = np.zeros(0, dtype=np.int64)
        if self.form(problem) == "bound" or self.worst(problem) == 0:
            return nothing, nothing, sum(base.values())
        if problem.policy.interference.model == "curve":
            return rows.curve(builder, variables, _curve(problem), base)
        if problem.policy.interference.model == "worst":
            columns, coefficients, _ = rows.worst(builder, variables, problem.slowdown, base)
            return columns, coefficients, 0
        columns, coefficients, _ = rows.pairwise(builder, variables, problem.slowdown)
        return columns, coefficients, sum(base.values())


MAX_SHARED_DOMAINS = 200_000
"""
Pairs of jobs x domains in which they can meet, up to which the exact form is used: so many rows take 0.6 s to build.
"""

MAX_CURVE_PAIRS = 40_000
"""Likewise jobs x GPUs, for ``curve``."""

_known: WeakKeyDictionary[Problem, int] = WeakKeyDictionary()


def _shared_domains(problem: Problem) -> int:
    """Count meetings once a problem, up to the limit: every cost is asked for its form many times a round."""
    if problem not in _known:
        _known[problem] = count_shared_domains(problem, MAX_SHARED_DOMAINS)
    return _known[problem]


def _by_profile(problem: Problem) -> IntArray:
    """Shape (P,): jobs of each profile, running ones included."""
    profile = problem.class_profile[problem.job_class]
    return np.bincount(profile[profile >= 0], minlength=problem.slowdown.shape[1])


def slowdowns(state: State) -> dict[int, int]:
    """Return s_j - 1 in thousandths of every job that holds a GPU."""
    excess = excesses(state.problem, state.allocation())
    return {job: int(excess[job]) for job, p in enumerate(state.placements) if p is not None and p.gpus}


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
    for a, b, level in colocated_pairs(problem, held.job[felt], held.gpu[felt]):
        gather.at(out, a, problem.slowdown[level, profile[a], profile[b]])
        gather.at(out, b, problem.slowdown[level, profile[b], profile[a]])
    return out


def _curve(problem: Problem, least: int = 0) -> IntArray:
    """By cumulative percent, as far as the rules allow, and to ``least`` in any case: what runs may be beyond."""
    return excess_table(problem.policy.interference.curve, max(most_percent(problem), least))


def _excess(state: State, job: int) -> int:
    values = excess_beside(state, job).values()
    return sum(values) if state.problem.policy.interference.model == "pairwise" else max(values, default=0)


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
    profile = int(problem.class_profile[problem.job_class[job]])
    if profile < 0 or not others:
        return others
    near = _Near(problem, placement)
    for other in others:
        beside, held = int(problem.class_profile[problem.job_class[other]]), state.placements[other]
        if beside >= 0 and held is not None:
            others[other] = int(problem.slowdown[near.closest(held), profile, beside])
    return others


def _with_others(state: State, job: int, placement: Placement | None) -> int:
    """Return what a job at ``placement`` adds to the excess of itself and its co-runners there, in thousandths."""
    if placement is None or not _lists(state.problem).disturb:
        return 0
    met = list(meets(state, job, placement))
    if state.problem.policy.interference.model == "pairwise":
        return sum(felt + caused for _, felt, caused in met)
    total = max((felt for _, felt, _ in met), default=0)
    for other, _, caused in met:
        if caused:  # it counts as far as no other neighbour is as bad
            total += max(0, caused - max((by for k, by in excess_beside(state, other).items() if k != job), default=0))
    return total


def meets(state: State, job: int, placement: Placement) -> Iterator[tuple[int, int, int]]:
    """
    Yield whom a job would meet at a placement: (other, excess by it, excess that it gets by the job), in thousandths.

    By the slowdowns of their profiles; under ``curve`` these do not count.
    """
    lists = _lists(state.problem)
    profile = lists.profile[job]
    if not placement.gpus or profile < 0:
        return
    near, placements = _Near(state.problem, placement), state.placements
    for other in dict.fromkeys(k for node in dict.fromkeys(placement.nodes) for k in state.node_jobs[node]):
        beside, held = lists.profile[other], placements[other]
        if other != job and beside >= 0 and held is not None:
            level = lists.slowdown[near.closest(held)]
            yield other, level[profile][beside], level[beside][profile]


class _Near:
    """GPUs, switches and sockets of a placement, to be compared with those of others on its nodes."""

    def __init__(self, problem: Problem, placement: Placement) -> None:
        lists = _lists(problem)
        self._switch, self._socket = lists.switch, lists.socket
        self._gpus = frozenset(placement.gpus)
        self._switches = {self._switch[gpu] for gpu in placement.gpus} - {-1}
        self._sockets = {self._socket[gpu] for gpu in placement.gpus} - {-1}

    def closest(self, other: Placement) -> int:
        """Return the closest level shared: 0 GPU, 1 switch, 2 socket, 3 node."""
        if not self._gpus.isdisjoint(other.gpus):
            return 0
        if self._switches and any(self._switch[gpu] in self._switches for gpu in other.gpus):
            return 1
        if any(self._socket[gpu] in self._sockets for gpu in other.gpus):
            return 2
        return 3


@dataclass(frozen=True)
class _Lists:
    """Arrays of a problem as plain lists: single entries are read often."""

    switch: list[int]  # of every GPU
    socket: list[int]  # of every GPU
    profile: list[int]  # of every job
    slowdown: list[list[list[int]]]  # level, profile that feels it, profile that causes it
    disturb: bool  # whether any profile slows another down


_lists_known: WeakKeyDictionary[Problem, _Lists] = WeakKeyDictionary()


def _lists(problem: Problem) -> _Lists:
    if problem not in _lists_known:
        _lists_known[problem] = _Lists(
            problem.gpu_switch.tolist(),
            problem.gpu_socket.tolist(),
            problem.class_profile[problem.job_class].tolist(),
            problem.slowdown.tolist(),
            bool(problem.slowdown.any()),
        )
    return _lists_known[problem]
