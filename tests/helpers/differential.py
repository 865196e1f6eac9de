"""Many routes, one answer: a round through brute force, every formulation, every solver, both levels, the referee."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.random import Generator

from helpers.brute_force import Enumeration
from helpers.plan_records import plan_of
from helpers.relaxations import Fillings, relaxed, solved
from placeopt import Unsupported
from placeopt.check import violations
from placeopt.formulations import (
    add_assignment,
    add_counts,
    build_capacity_relaxation,
    build_gpu_patterns,
    decode,
    encode,
)
from placeopt.formulations.cost_relaxation import build_cost_relaxation, make_job_set_model, with_whole_jobs
from placeopt.formulations.fillings import GridBound
from placeopt.formulations.gpu_patterns import gpu_milli_objective
from placeopt.linear import NO_UPPER, LinearModel, ModelBuilder
from placeopt.model import Instance
from placeopt.problem import (
    Allocation,
    IntArray,
    Move,
    Placement,
    Problem,
    State,
    compile_problem,
    keeps_limits,
    open_state,
)
from placeopt.solvers import Solution, SolveOptions, dual_bound, load
from placeopt.terms import (
    Cost,
    Variables,
    Weighted,
    cost,
    cost_expression,
    relaxed_state,
    value,
    value_expression,
    weighted_costs,
)
from placeopt.terms.costs import costs_of
from placeopt.terms.rules import relaxed as states_only_a_part
from placeopt.terms.rules import without_broken
from placeopt.terms.rules.minimal_utility import falls_short

Add = Callable[[ModelBuilder, State, tuple[Cost, ...]], Variables]


class Route(NamedTuple):
    """One way from a round to its optimum: a name for reports, what makes the model, the name of its solver."""

    name: str
    formulation: Add
    solver: str


def assignment(builder: ModelBuilder, state: State, costs: tuple[Cost, ...]) -> Variables:
    """Columns for every job; whatever the costs are."""
    return add_assignment(builder, state)


ROUTES: tuple[Route, ...] = (
    Route("assignment/highs", assignment, "highs"),
    Route("assignment/cpsat", assignment, "cpsat"),
    Route("assignment/cbc", assignment, "pulp-cbc"),
    Route("counts/highs", add_counts, "highs"),
    Route("counts/cpsat", add_counts, "cpsat"),
    Route("counts/cbc", add_counts, "pulp-cbc"),
)
"""All of them, the reference apart, which is brute force. A route may refuse a round by ``Unsupported``."""
TIME_LIMIT_S = 30.0


@dataclass
class Report:
    """Everything in which two routes disagree."""

    form: Literal["exact", "bound", "off", "relaxed"] = "off"
    """
    Whether every active cost has an exact form, or some only bound; ``off`` without costs; ``relaxed`` where rows state
    only a part of a rule: then routes bound the value, and there is no cost level to compare.
    """
    mismatches: list[str] = field(default_factory=list)

    def expect(self, what: str, actual: object, expected: object) -> None:
        """Note a mismatch unless both are equal."""
        if actual != expected:
            self.mismatches.append(f"{what}: {actual}, expected {expected}")


def solve(solver: str, model: LinearModel) -> Solution:
    """Solve in this process on one thread."""
    return load(solver)(model, SolveOptions(time_limit_s=TIME_LIMIT_S))


def examine(instance: Instance, rng: Generator, routes: Sequence[Route] = ROUTES) -> Report:
    """
    Take a round through all routes: first the value, then the cost among plans of that value.

    It is so small that every allocation can be tried; ``rng`` draws a move and an allocation whose costs are compared
    with what deltas and linear forms say.
    """
    report = Report()
    problem = compile_problem(instance)
    weighted = weighted_costs(problem)
    if weighted:
        report.form = "exact" if all(w.cost.form(problem) == "exact" for w in weighted) else "bound"
    if states_only_a_part(problem):
        report.form = "relaxed"
    everything = Enumeration(problem)
    best, least, allocation = everything.best()
    report.expect("limits of the best", keeps_limits(problem, allocation), True)
    report.expect("value of the best", value(problem, allocation), best)
    report.expect("cost of the best", cost(problem, allocation, weighted), least)
    report.expect("referee on the best", [str(v) for v in violations(instance, plan_of(problem, allocation))], [])
    for add in dict.fromkeys(route.formulation for route in routes):
        _examine_formulation(report, problem, [r for r in routes if r.formulation is add], weighted, best, least)
    rows, values = everything.rows()
    _examine_fillings(report, everything, rows, int(values.max()))
    _examine_node_fillings(report, problem, int(values.max()), rng)
    _examine_capacity(report, problem, int(values.max()))
    _examine_flows(report, problem, weighted, best, least)
    chosen = rows[rng.integers(len(rows), size=3)]
    _examine_scores(report, everything, chosen)
    terms = tuple(term for term in costs_of(problem.policy) if rng.random() < 0.6) or costs_of(problem.policy)
    for add in dict.fromkeys(route.formulation for route in routes):
        _examine_pinned(report, problem, add, everything.allocation(chosen[0]), terms)
    examine_moves(report, everything, rows, rng, 1)
    return report


def _examine_formulation(
    report: Report,
    problem: Problem,
    routes: Sequence[Route],
    weighted: tuple[Weighted, ...],
    best: int,
    least: int,
) -> None:
    """Both levels through all routes of one formulation."""
    builder = ModelBuilder()
    try:
        variables = routes[0].formulation(builder, open_state(problem), tuple(w.cost for w in weighted))
    except Unsupported:
        return
    columns, coefficients, constant = value_expression(variables)
    builder.set_objective(columns, coefficients, "max", constant)
    model = builder.build()
    if states_only_a_part(problem):
        for name, solution in _solutions(routes, "value", model):
            _examine_relaxed(report, problem, variables, solution, name, best)
        return
    for name, solution in _solutions(routes, "value", model):
        report.expect(f"{name}: status", (solution.status, solution.limit, solution.bound), ("optimal", "none", best))
        report.expect(f"{name}: objective", solution.objective, best)
        _examine_solution(report, problem, variables, solution, name, best)
    if not weighted:
        return
    builder.add_row(columns, coefficients, best - constant, NO_UPPER)
    columns, coefficients, constant = cost_expression(builder, variables, weighted)
    builder.set_objective(columns, coefficients, "min", constant)
    for name, solution in _solutions(routes, "cost", builder.build()):
        report.expect(f"{name}: status", (solution.status, solution.limit), ("optimal", "none"))
        allocation = _examine_solution(report, problem, variables, solution, name, best)
        if allocation is None or solution.objective is None:
            continue
        true = cost(problem, allocation, weighted)
        if report.form == "exact":
            report.expect(f"{name}: objective", solution.objective, least)
            report.expect(f"{name}: cost of the decoded", true, least)
        else:
            report.expect(
                f"{name}: bound {solution.objective} <= {least} <= {true}", solution.objective <= least <= true, True
            )


def _solutions(routes: Sequence[Route], level: str, model: LinearModel) -> Iterator[tuple[str, Solution]]:
    """Solve one level by every route that takes it, one after the other."""
    for route in routes:
        with suppress(Unsupported):
            yield f"{route.name}/{level}", solve(route.solver, model)


def _examine_relaxed(
    report: Report, problem: Problem, variables: Variables, solution: Solution, name: str, best: int
) -> None:
    """Rows that leave a part of a rule out bound the value, and what is left after repair is lawful."""
    if solution.values is None or solution.bound is None or solution.bound < best:
        report.mismatches.append(f"{name} relaxed: {solution.status}, bound {solution.bound}, the best is {best}")
        return
    allocation = without_broken(problem, decode(variables, solution.values))
    moved = {j for j in problem.may_move if falls_short(loaded(problem, allocation), j)}
    broken = violations(problem.given, plan_of(problem, allocation))
    report.expect(f"{name} relaxed: referee", [str(v) for v in broken] if not moved else [], [])
    if not broken and value(problem, allocation) > best:
        report.mismatches.append(f"{name} relaxed: value {value(problem, allocation)} above the best, {best}")


def loaded(problem: Problem, allocation: Allocation) -> State:
    """Return the state of an allocation."""
    state = State(problem)
    state.load(allocation)
    return state


def _examine_solution(
    report: Report, problem: Problem, variables: Variables, solution: Solution, route: str, best: int
) -> Allocation | None:
    """Decode, and ask the referee."""
    if solution.values is None:
        report.mismatches.append(f"{route}: no values ({solution.status}, {solution.message})")
        return None
    allocation = decode(variables, solution.values)
    report.expect(f"{route}: limits", keeps_limits(problem, allocation), True)
    broken = violations(problem.given, plan_of(problem, allocation))
    report.expect(f"{route}: referee", [str(v) for v in broken], [])
    report.expect(f"{route}: value", value(problem, allocation), best)
    return allocation


def _examine_fillings(report: Report, everything: Enumeration, rows: IntArray, best: int) -> None:
    """The relaxation's bounds on net value and on GPU share hold for every allocation."""
    problem = everything.problem
    gpu_patterns = build_gpu_patterns(relaxed_state(open_state(problem)))
    share = np.zeros(len(rows), dtype=np.int64)
    for j, of_job in enumerate(everything.candidates):
        share += np.array([0 if p is None else gpu_milli(problem, p) for p in of_job], dtype=np.int64)[rows[:, j]]
    for what, model, reached in (
        ("value", gpu_patterns.model, best),
        ("GPU share", gpu_milli_objective(gpu_patterns), int(share.max())),
    ):
        bound = relaxed(model).bound
        if bound is None or bound < reached:
            report.mismatches.append(f"fillings: bound {bound} on {what}, but {reached} is reached")


def _examine_node_fillings(report: Report, problem: Problem, best: int, rng: Generator) -> None:
    """Any prices of bundles prove a bound on net value: by searches, whole or cut short, and by tables over a grid."""
    if problem.changeable:
        return
    made = Fillings(problem)
    held, nothing = value(problem, State(problem).allocation()), 0 * made.units.count
    engines: dict[str, Callable[[IntArray], IntArray]] = {
        "fillings": lambda price: made.pricing().price(price, nothing).most,
        "fillings, cut short": lambda price: made.pricing(3).price(price, nothing).most,
    }
    free_of_charge = [made.units.takes_nothing]
    with suppress(Unsupported):  # shares that do not nest
        grid = GridBound(made.groups, made.units, lambda: None)
        engines["grid"] = grid.most
        free_of_charge.append(grid.free_of_charge)
    dearest = int(made.starts.value.max(initial=1)) * made.master.scale
    for most in (1, dearest // 2 + 1, dearest + 1):
        kinds = len(made.groups)
        price = rng.integers(0, most, kinds) // np.maximum(1, 1 + rng.integers(0, 4, kinds))
        for some in free_of_charge:
            price[some] = 0
        for name, pay in engines.items():
            bound = held + made.bound(price, pay(price))
            if bound < best:
                report.mismatches.append(f"{name}: bound {bound} below the best value {best}")


def _examine_capacity(report: Report, problem: Problem, best: int) -> None:
    """Counting room bounds the net value."""
    if problem.changeable or not problem.shares_bind:
        return
    state = State(problem)
    bound = solved(build_capacity_relaxation(relaxed_state(state)).model()).bound
    held = value(problem, state.allocation())
    if bound is None or held + bound < best:
        report.mismatches.append(f"capacity relaxation: bound {held} + {bound} below the best value {best}")


def _examine_flows(report: Report, problem: Problem, weighted: tuple[Weighted, ...], best: int, least: int) -> None:
    """Flows, and whole jobs at their prices, bound the cost among plans of the best value."""
    if problem.changeable or not weighted:
        return
    state = relaxed_state(open_state(problem))
    flows, held = build_cost_relaxation(state, weighted, best), value(problem, state.allocation())
    model, bounds = flows.model, []
    for first in (True, False):
        solution = relaxed(model)
        if first:
            bounds.append(solution.bound)
        if solution.duals is not None:
            whole = with_whole_jobs(flows, solution.duals)
            bounds.append(dual_bound(whole.model, whole.multipliers))
            if problem.shares_bind and flows.value_rows:
                job_set = make_job_set_model(flows, whole, build_capacity_relaxation(state), best - held)
                cheapest = solved(job_set.model).bound
                if cheapest is not None:
                    flows, whole = job_set.bound_with(flows, cheapest)
                    bounds.append(dual_bound(whole.model, whole.multipliers))
            model = whole.raised_costs
    report.mismatches += [
        f"flows: bound {b} above the least cost {least}" for b in bounds if b is not None and b > least
    ]


def gpu_milli(problem: Problem, placement: Placement) -> int:
    """GPU share that a placement holds, in thousandths of a GPU."""
    return int(problem.options.total_milli[placement.option])


def _examine_scores(report: Report, everything: Enumeration, rows: IntArray) -> None:
    """Scores as the enumeration states them a second time, and never above the worst case."""
    problem = everything.problem
    raw = everything.raw_costs(rows)
    for i, row in enumerate(rows):
        allocation = everything.allocation(row)
        for term in costs_of(problem.policy):
            score = term.score(problem, allocation)
            report.expect(f"{term.name}: score of {row}", score, int(raw[term.name][i]))
            if score > term.worst(problem):
                report.mismatches.append(f"{term.name}: score {score} of {row} above worst {term.worst(problem)}")


def _examine_pinned(
    report: Report, problem: Problem, add: Add, allocation: Allocation, terms: tuple[Cost, ...]
) -> None:
    """With the columns fixed to an allocation, each cost's linear form is its score, or at most that."""
    builder, name = ModelBuilder(), add.__name__.removeprefix("add_")
    try:
        variables = add(builder, open_state(problem), terms)
    except Unsupported:
        return
    expressions = [term.add_to(builder, variables) for term in terms]
    pin(builder, variables, allocation)
    builder.set_objective(
        np.concatenate([columns for columns, _, _ in expressions]),
        np.concatenate([coefficients for _, coefficients, _ in expressions]),
        "min",
    )
    solution = solve("highs", builder.build())
    if solution.status != "optimal" or solution.values is None:
        report.mismatches.append(f"{name} pinned: {solution.status} {solution.message}")
        return
    for term, (columns, coefficients, constant) in zip(terms, expressions, strict=True):
        form = constant + int((coefficients * solution.values[columns]).sum())
        score = term.score(problem, allocation)
        if term.form(problem) == "exact":
            report.expect(f"{name}/{term.name} pinned", form, score)
        elif form > score:
            report.mismatches.append(f"{name}/{term.name} pinned: bound {form} above score {score}")


def pin(builder: ModelBuilder, variables: Variables, allocation: Allocation) -> None:
    """Fix starts, bundles and grants to what ``allocation`` says."""
    columns = np.concatenate([variables.start, variables.bundle, variables.grant])
    values = encode(variables, allocation, builder)[columns]
    builder.add_rows(np.arange(len(columns)), columns, np.ones(len(columns), dtype=np.int64), values, values)


def examine_moves(report: Report, everything: Enumeration, rows: IntArray, rng: Generator, moves: int) -> None:
    """A random move from one feasible allocation to the next, differing in one job: delta, apply, undo."""
    problem = everything.problem
    movable = [job for job, of_job in enumerate(everything.candidates) if len(of_job) > 1]
    if not movable:
        return
    for _ in range(moves):
        row = rows[rng.integers(len(rows))]
        job = int(rng.choice(movable))
        others = np.delete(rows, job, axis=1)
        near = rows[(others == np.delete(row, job)).all(axis=1)]
        state = State(problem)
        state.load(everything.allocation(row))
        examine_move(report, state, Move(job, everything.candidates[job][int(near[rng.integers(len(near)), job])]))


def examine_move(report: Report, state: State, move: Move) -> None:
    """Compare every cost's delta with a recomputation, and the state after undo with the state before."""
    problem, before = state.problem, snapshot(state)
    terms = costs_of(problem.policy)
    deltas = [term.delta(state, move) for term in terms]
    report.expect("state after delta", snapshot(state) == before, True)
    scores = [term.score(problem, state.allocation()) for term in terms]
    undo = state.apply(move)
    report.expect("state loaded afresh", snapshot(_fresh(state)) == snapshot(state), True)
    after = [term.score(problem, state.allocation()) for term in terms]
    for term, delta, old, new in zip(terms, deltas, scores, after, strict=True):
        report.expect(f"{term.name}: delta of {move}", delta, new - old)
    report.expect("undone by", state.apply(undo), move)
    report.expect("state after undo", snapshot(state) == before, True)


def _fresh(state: State) -> State:
    fresh = State(state.problem)
    fresh.load(state.allocation())
    return fresh


def snapshot(state: State) -> dict[str, object]:
    """Return the whole content of a state, comparable with ``==``."""
    content: dict[str, object] = {"tenants": [dict(here) for here in state.tenants]}
    for name, thing in vars(state).items():
        if isinstance(thing, np.ndarray):
            content[name] = thing.tolist()
        elif name == "level_free":
            content[name] = [free.tolist() for free in thing]
        elif name not in ("problem", "_tenants"):
            content[name] = [dict(entry) if isinstance(entry, dict) else entry for entry in thing]
    return content
