"""Cost: GPU memory and utilisation of the GPUs in use (Horus eq. 7-10)."""

from __future__ import annotations

import numpy as np

from placeopt.linear import ModelBuilder
from placeopt.problem import Allocation, IntArray, Move, Problem, State
from placeopt.terms.costs.curves import cost_table
from placeopt.terms.costs.defaults import CostDefaults
from placeopt.terms.protocols import Expression, Form
from placeopt.terms.variables import Variables


class HorusCost(CostDefaults):
    """
    Sum over GPUs in use of ``w1 x memory used / capacity + w2 x f(total utilisation)``, in thousandths.

    On a plan, so once per GPU; the paper's per-decision form, which depends on the order, belongs to Horus's greedy.
    The memory part is rounded per job, which makes it additive; a GPU of unknown memory costs none.
    """

    name = "horus"
    unit = "thousandths"

    def score(self, problem: Problem, allocation: Allocation) -> int:
        """Memory by job, utilisation by GPU."""
        memory = _memory_cost(problem)
        total = 0
        use = np.zeros(problem.num_gpus, dtype=np.int64)
        held = np.zeros(problem.num_gpus, dtype=bool)
        for placement in allocation:
            if placement is not None and placement.gpus:
                gpus = list(placement.gpus)
                total += int(memory[placement.option, problem.gpu_type[gpus]].sum())
                use[gpus] += problem.options.utilisation[placement.option]
                held[gpus] = True
        return total + int(_use_cost(problem, int(use.max(initial=0)))[use[held]].sum())

    def delta(self, state: State, move: Move) -> int:
        """Only the job's GPUs before and after change."""
        problem = state.problem
        memory = _memory_cost(problem)
        total = 0
        use: dict[int, int] = {}
        jobs: dict[int, int] = {}
        for placement, sign in ((state.placements[move.job], -1), (move.placement, 1)):
            if placement is not None:
                for gpu in placement.gpus:
                    total += sign * int(memory[placement.option, problem.gpu_type[gpu]])
                    use[gpu] = use.get(gpu, 0) + sign * int(problem.options.utilisation[placement.option])
                    jobs[gpu] = jobs.get(gpu, 0) + sign
        full = [int(state.gpu_utilisation[gpu]) + max(change, 0) for gpu, change in use.items()]
        cost = _use_cost(problem, max(full, default=0))
        for gpu, change in use.items():
            before, count = int(state.gpu_utilisation[gpu]), int(state.gpu_jobs[gpu])
            total -= int(cost[before]) if count else 0
            total += int(cost[before + change]) if count + jobs[gpu] else 0
        return total

    def worst(self, problem: Problem) -> int:
        """Return the sum over jobs of each one's own worst: its memory, and a GPU used to the full by m jobs a GPU."""
        highest = int(_use_cost(problem).max(initial=0))
        per_gpu = _memory_cost(problem).max(axis=1, initial=0) + highest
        gpus = problem.options.workers * problem.options.gpus
        return _sum_over_jobs(problem, per_gpu * gpus)

    def form(self, problem: Problem) -> Form:
        """Exact, unless the utilisations that GPUs can have are too many to be told apart."""
        return "exact" if few_levels(problem) else "bound"

    def add_to(self, builder: ModelBuilder, variables: Variables) -> Expression:
        """
        The memory part per grant, and w2 x f per grant where a GPU has one job only.

        Where jobs may meet, f steps from level to level of the GPU's cumulative utilisation, plus f(0) if it is busy.
        """
        v, use = variables, _use_cost(variables.problem)
        gpu_type = np.array([v.problem.gpu_type[gpus[0]] for gpus in v.cell_gpus], dtype=np.int64)
        memory = _memory_cost(v.problem)[v.grant_option, gpu_type[v.grant_cell]]
        alone = ~v.cell_met[v.grant_cell]
        columns, coefficients = [v.grant], [memory + alone * use[v.problem.options.utilisation[v.grant_option]]]
        fixed = self.score(v.problem, v.state.allocation())
        met = np.intersect1d(np.flatnonzero(v.cell_met), v.grant_cell)
        if not few_levels(v.problem):
            return _bounded(v, use, memory, fixed)
        for cell in met.tolist():
            levels, digits = v.utilisation(builder, cell)
            columns.append(digits)
            coefficients.append(use[levels[1:]] - use[levels[:-1]])
        if use[0]:
            first = np.flatnonzero(v.cell_shared)
            columns.append(v.busy(builder)[first])
            coefficients.append(np.full(len(first), use[0]))
        return np.concatenate(columns), np.concatenate(coefficients), fixed

    def omitted_by_cost_relaxation(self, problem: Problem) -> str | None:
        """Return that nothing of it is charged."""
        del problem
        return "the Horus cost"


def decision_costs(state: State, option: int, gpus: IntArray) -> IntArray:
    """
    Cost of one more job of ``option`` on each of ``gpus``, in thousandths (Horus eq. 7-10, the per-decision form).

    ``w1 x memory used after / capacity + w2 x f(utilisation after)``, whatever the GPU cost before. A GPU of unknown
    memory costs none for it; utilisation beyond what rules allow counts as the most that they do.
    """
    problem, options = state.problem, state.problem.options
    use = _use_cost(problem)
    capacity = problem.gpu_memory_mib[gpus]
    used = capacity - state.gpu_free_memory[gpus] + options.gpu_memory_mib[option]
    memory = np.rint(problem.policy.horus.memory_thousandths * used / np.maximum(capacity, 1)).astype(np.int64)
    percent = np.minimum(state.gpu_utilisation[gpus] + options.utilisation[option], len(use) - 1)
    costs: IntArray = np.where(capacity > 0, memory, 0) + use[percent]
    return costs


MAX_LEVELS = 20_000
"""Utilisations that all GPUs on which jobs may meet can have, up to which the exact form is used."""


def few_levels(problem: Problem) -> bool:
    """Return whether cumulative utilisations are few enough to be told apart one by one."""
    alone = not problem.gpus_are_shared or (problem.shares_bind and bool((problem.options.milli == 1000).all()))
    unit = int(np.gcd.reduce(problem.options.utilisation)) if len(problem.options) else 0
    return alone or not unit or problem.num_gpus * most_percent(problem) // unit <= MAX_LEVELS


def _bounded(v: Variables, use: IntArray, memory: IntArray, fixed: int) -> Expression:
    """What each job adds to an idle GPU, at least: f - f(0) = a x^2 + b x, a > 0, only grows; 1 off for rounding."""
    rise = np.maximum(use - use[0] - 1, 0)
    percent = v.problem.options.utilisation[v.grant_option]
    each = memory + np.where(v.cell_met[v.grant_cell], rise[percent], use[percent])
    return v.grant, each, fixed


def _memory_cost(problem: Problem) -> IntArray:
    """Shape (O, T): w1 x memory / capacity in thousandths, rounded half to even."""
    weight = problem.policy.horus.memory_thousandths
    need, capacity = problem.options.gpu_memory_mib[:, None], problem.type_memory_mib[None, :]
    fits = (capacity >= np.maximum(need, 1)) | (problem.held_types & (capacity > 0))
    ratio = weight * need / np.maximum(capacity, 1)
    return np.where(fits, np.rint(ratio), 0).astype(np.int64)


def _use_cost(problem: Problem, least: int = 0) -> IntArray:
    """
    Shape (percent + 1,): w2 x f by cumulative percent, as far as m jobs can go, and to ``least`` in any case.

    What runs may use a GPU beyond what the rules allow, where they or the cluster changed since.
    """
    policy = problem.policy
    most = max(most_percent(problem), least)
    return cost_table(policy.interference.curve, policy.horus.utilisation_thousandths, most)


def most_percent(problem: Problem) -> int:
    """Return the highest cumulative utilisation that any GPU can reach, in percent."""
    limits = [] if problem.jobs_per_gpu is None else [problem.jobs_per_gpu]
    if problem.shares_bind:
        limits.append(1000 // int(problem.options.milli.min(initial=1000)))
    return int(problem.options.utilisation.max(initial=0)) * max(min(limits), problem.max_running_per_gpu)


def _sum_over_jobs(problem: Problem, per_option: IntArray) -> int:
    worst = np.zeros(len(problem.class_communication), dtype=np.int64)
    np.maximum.at(worst, problem.options.job_class, per_option)
    return int(worst[problem.job_class].sum())
