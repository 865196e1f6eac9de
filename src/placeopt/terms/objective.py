"""The two levels of the objective: net value, then the weighted sum of the costs, all in integers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from placeopt.errors import Unsupported
from placeopt.linear import ModelBuilder
from placeopt.problem import Allocation, IntArray, Move, Placement, Problem, State
from placeopt.problem.changes import price_of
from placeopt.terms.costs import costs_of
from placeopt.terms.costs.communication import Communication, close_path
from placeopt.terms.costs.resource import ResourceCost
from placeopt.terms.linearized_costs import CostPrices
from placeopt.terms.protocols import Cost, Expression, Part
from placeopt.terms.variables import Variables

MAX_COST = 2**53


@dataclass(frozen=True)
class Weighted:
    """A cost of the policy with its integer weight W and the worst case it is measured against."""

    cost: Cost
    weight: int
    worst: int


def weight_of(weighted: Iterable[Weighted], kind: type) -> int:
    """Return the weight W of the cost of class ``kind``; 0 if it does not count."""
    return next((w.weight for w in weighted if isinstance(w.cost, kind)), 0)


def cost_alone(problem: Problem, weighted: tuple[Weighted, ...]) -> IntArray:
    """Shape (O,): what an option itself costs, and its path with the job's GPUs close together: nothing in the way."""
    cost = weight_of(weighted, ResourceCost) * problem.options.cost_milli
    path_price = weight_of(weighted, Communication)
    return cost + path_price * close_path(problem) if path_price else cost


def last_name_first(weighted: Iterable[Weighted]) -> list[Weighted]:
    """Return the costs in descending order of their names: the order in which plans state what bounds leave out."""
    return sorted(weighted, key=lambda w: w.cost.name, reverse=True)


def value(problem: Problem, allocation: Allocation) -> int:
    """Net value: what the options that run after the round are worth, less the prices of changes to running jobs."""
    worth = sum(int(problem.options.value[p.option]) for p in allocation if p is not None)
    return worth - sum(price_of(problem, job, allocation[job]) for job in problem.changeable)


def value_expression(variables: Variables) -> Expression:
    """Net value as an expression of the starts; its constant has those running jobs preempted that have starts."""
    v = variables
    return v.start, v.start_value, value(v.problem, v.state.allocation())


def start_value(problem: Problem, job: int, placement: Placement) -> int:
    """Net value of a running job that may be changed, at ``placement``, over its being preempted."""
    worth = int(problem.options.value[placement.option])
    return worth - price_of(problem, job, placement) + price_of(problem, job, None)


def trivial_value_bound(problem: Problem) -> int:
    """
    Value of all jobs that fit alone on an idle cluster, each in its best option.

    Running ones as they run, or moved if that may gain more; never shrunk or preempted, which by itself gains nothing.
    """
    options = problem.options
    best = problem.most_of_class(options.value * options.node_class_ok.any(axis=1))
    waiting = np.ones(problem.num_jobs, dtype=bool)
    waiting[list(problem.running)] = False
    running, price = 0, problem.policy.changes.move_price
    for job, placement in problem.running.items():
        moved = int(best[problem.job_class[job]]) - price if job in problem.may_move else 0
        running += max(int(options.value[placement.option]), moved)
    return int(best[problem.job_class[waiting]].sum()) + running


def most_milli(problem: Problem) -> IntArray:
    """Shape (K,): the largest GPU share, in thousandths of a GPU, that a job of each class requests in any option."""
    return problem.most_of_class(problem.options.total_milli)


def trivial_gpu_milli_bound(problem: Problem) -> int:
    """GPU share that no plan exceeds: what is asked for, and, where shares bind, what there is."""
    asked = int(most_milli(problem)[problem.job_class].sum())
    return min(asked, 1000 * problem.num_gpus) if problem.shares_bind else asked


def weighted_costs(problem: Problem) -> tuple[Weighted, ...]:
    """
    Return the costs that count under the policy, with W = round(a x L / worst).

    SC'17 eq. 1 divides each term by its worst case. L is the smallest power of ten that gives every term's W at least
    four digits, as long as the sum of W x worst stays below 2^53. (The largest such L, as first planned, makes
    coefficients of 1e12, at which the float tolerances of a MILP solver, 1e-9 relative, can prove no integer optimum.)

    Raises ``Unsupported`` if a cost can reach 2^53, beyond which sums are not exact.
    """
    active = []
    for cost in costs_of(problem.policy):
        a = problem.policy.weights[cost.name]
        worst = cost.worst(problem) if a else 0
        if worst >= MAX_COST:
            raise Unsupported(
                f"cost {cost.name!r} can reach {worst} {cost.unit}, more than 2**53; use smaller weights in the "
                "instance, or set its weight in policy.weights to 0"
            )
        if worst:
            active.append((cost, a, worst))
    scale = 1
    while active and any(a * scale < 1000 * 1000 * worst for _, a, worst in active):
        if sum(a for _, a, _ in active) * scale * 10 // 1000 >= MAX_COST // 2:
            break
        scale *= 10
    # half up, in integers; never 0, or a term would vanish
    return tuple(
        Weighted(cost, max(1, (2 * a * scale + 1000 * worst) // (2000 * worst)), worst) for cost, a, worst in active
    )


def raw_costs(problem: Problem, allocation: Allocation, weighted: Iterable[Weighted]) -> tuple[int, ...]:
    """Return the score of every cost, unweighted."""
    state = State(problem, allocation)
    part = Part(state)
    return tuple(w.cost.of(state, part) for w in weighted)


def cost(problem: Problem, allocation: Allocation, weighted: tuple[Weighted, ...]) -> int:
    """Cost level: the sum of W x raw integer term."""
    state = State(problem, allocation)
    return part_cost(state, Part(state), weighted)


def cost_delta(state: State, move: Move, weighted: tuple[Weighted, ...]) -> int:
    """Exactly ``cost(after) - cost(before)``."""
    part = Part(state, move)
    before = part_cost(state, part, weighted)
    undo = state.apply(move)
    after = part_cost(state, part, weighted)
    state.apply(undo)
    return after - before


def fixed_cost(state: State, weighted: Iterable[Weighted]) -> int:
    """Return the cost of what ``state`` holds, of terms that starts never lower."""
    counts = tuple(w for w in weighted if w.cost.never_lowered_by_starts)
    return cost(state.problem, state.allocation(), counts)


def part_cost(state: State, part: Part, weighted: Iterable[Weighted]) -> int:
    """Cost level of a part."""
    return sum(w.weight * w.cost.of(state, part) for w in weighted)


def cost_expression(builder: ModelBuilder, variables: Variables, weighted: tuple[Weighted, ...]) -> Expression:
    """Cost level, or a lower bound where a term's form is one, as an expression."""
    prices, constant = CostPrices(builder), 0
    for w in weighted:
        columns, coefficients, fixed = w.cost.add_to(builder, variables)
        prices.add(columns, coefficients * w.weight)
        constant += w.weight * fixed
    return (*prices.hand_over(), constant)
