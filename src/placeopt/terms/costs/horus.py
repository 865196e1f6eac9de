"""Cost: GPU memory and utilisation of the GPUs in use (Horus eq. 7-10)."""

from __future__ import annotations

from functools import cache

import numpy as np

from placeopt.linear import ModelBuilder
from placeopt.model.base import Record, Thousandths
from placeopt.model.policy import SlowdownCurve
from placeopt.problem import IntArray, Problem, State
from placeopt.terms.costs.slowdown_curves import frozen, most_percent, slowdown
from placeopt.terms.protocols import Cost, Expression, Form, Part
from placeopt.terms.variables import Variables


class HorusWeights(Record):
    """Weights w1, w2 of Horus eq. 7 in thousandths; equal by default, as in the paper."""

    memory_thousandths: Thousandths = 500
    """w1: weight of GPU memory."""
    utilisation_thousandths: Thousandths = 500
    """w2: weight of GPU utilisation."""


@cache
def cost_table(curve: str | SlowdownCurve, weight_thousandths: int, most_percent: int) -> IntArray:
    """Shape (most_percent + 1,): w2 x f(x) of Horus eq. 9 in thousandths for x = 0..most_percent percent."""
    return frozen([round(weight_thousandths * slowdown(curve, p / 100)) for p in range(most_percent + 1)])


class HorusCost(Cost):
    """
    Sum over GPUs in use of ``w1 x memory used / capacity + w2 x f(total utilisation)``, in thousandths.

    On a plan, so once per GPU; the paper's per-decision form, which depends on the order, belongs to Horus's greedy.
    The memory part is rounded per job, which makes it additive; a GPU of unknown memory costs none.
    """

    name = "horus"
    unit = "thousandths"
    parameters = HorusWeights

    def of(self, state: State, part: Part) -> int:
        """Memory by job, utilisation by GPU."""
        problem, gpus = state.problem, np.array(list(part.gpus), dtype=np.int64)
        memory, placed = _memory_cost(problem), state.placed(part.jobs).values()
        use = state.gpu_utilisation[gpus][state.gpu_jobs[gpus] > 0]
        return int(_use_cost(problem, int(use.max(initial=0)))[use].sum()) + sum(
            int(memory[held.option, problem.gpu_type[list(held.gpus)]].sum()) for held in placed
        )

    def worst(self, problem: Problem) -> int:
        """Return the sum over jobs of each one's own worst: its memory, and a GPU used to the full by m jobs a GPU."""
        highest = int(_use_cost(problem).max(initial=0))
        per_gpu = _memory_cost(problem).max(axis=1, initial=0) + highest
        gpus = problem.options.workers * problem.options.gpus
        return int(problem.most_of_class(per_gpu * gpus)[problem.job_class].sum())

    def form(self, problem: Problem) -> Form:
        """Exact where no two jobs meet on a GPU."""
        alone = problem.shares_bind and bool((problem.options.milli == 1000).all())
        return "exact" if alone or not problem.gpus_are_shared else "bound"

    def add_to(self, builder: ModelBuilder, variables: Variables) -> Expression:
        """
        Charge each grant its memory, and w2 x f for a GPU by itself; where jobs may meet, what it adds at least.

        That is what it adds to an idle GPU: f - f(0) = a x^2 + b x with a > 0 only grows; 1 off for rounding.
        """
        del builder
        v, use = variables, _use_cost(variables.problem)
        memory = _memory_cost(v.problem)[v.grant_option, v.problem.gpu_type[v.cell_gpu[v.grant_cell]]]
        percent = v.problem.options.utilisation[v.grant_option]
        rise = np.maximum(use - use[0] - 1, 0)
        each = memory + np.where(v.cell_met[v.grant_cell], rise[percent], use[percent])
        return v.grant, each, self.score(v.problem, v.state.allocation())


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
    memory = np.rint(_weights(problem).memory_thousandths * used / np.maximum(capacity, 1)).astype(np.int64)
    percent = np.minimum(state.gpu_utilisation[gpus] + options.utilisation[option], len(use) - 1)
    costs: IntArray = np.where(capacity > 0, memory, 0) + use[percent]
    return costs


def _memory_cost(problem: Problem) -> IntArray:
    """Shape (O, T): w1 x memory / capacity in thousandths, rounded half to even."""
    weight = _weights(problem).memory_thousandths
    need, capacity = problem.options.gpu_memory_mib[:, None], problem.type_memory_mib[None, :]
    fits = (capacity >= np.maximum(need, 1)) | (problem.held_types & (capacity > 0))
    ratio = weight * need / np.maximum(capacity, 1)
    return np.where(fits, np.rint(ratio), 0).astype(np.int64)


def _use_cost(problem: Problem, least: int = 0) -> IntArray:
    """
    Shape (percent + 1,): w2 x f by cumulative percent, as far as m jobs can go, and to ``least`` in any case.

    What runs may use a GPU beyond what the rules allow, where they or the cluster changed since.
    """
    weight = _weights(problem).utilisation_thousandths
    return cost_table(problem.policy.interference.curve, weight, max(most_percent(problem), least))


def _weights(problem: Problem) -> HorusWeights:
    return problem.policy.costs.of(HorusCost.name, HorusWeights)
