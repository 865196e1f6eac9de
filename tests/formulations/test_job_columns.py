"""Columns of whole jobs: their prices prove nothing false, and the program of a plan's own columns has that plan."""

from dataclasses import dataclass

import numpy as np
from hypothesis import assume, given

from helpers.brute_force import Enumeration
from helpers.relaxations import relaxed, solved
from placeopt import Instance, generate
from placeopt.formulations import build_capacity_relaxation
from placeopt.formulations.cost_relaxation import (
    CostRelaxation,
    JobLayout,
    JobMaster,
    Part,
    build_cost_relaxation,
    with_whole_jobs,
)
from placeopt.linear import NO_LOWER
from placeopt.problem import Problem, State, compile_problem
from placeopt.solvers import dual_bound
from placeopt.terms import value, weighted_costs
from strategies import rounds


@dataclass
class Generated:
    """What column generation came to."""

    relaxation: CostRelaxation
    master: JobMaster
    flows: int  # bound of the relaxation itself
    bounds: list[int]
    programs: list[float]


def generated(problem: Problem, least: int, steps: int = 8, *, meetings: bool = True) -> Generated:
    """Price whole jobs, and generate columns from what the relaxation's own duals give."""
    relaxation = build_cost_relaxation(State(problem), weighted_costs(problem), least, meetings=meetings)
    solution = relaxed(relaxation.model)
    duals = np.zeros(relaxation.model.num_rows) if solution.duals is None else solution.duals
    whole = with_whole_jobs(relaxation, duals)
    master = JobMaster(relaxation, list(whole.layouts))
    out = Generated(relaxation, master, solution.bound, [dual_bound(whole.model, whole.multipliers)], [])
    for _ in range(steps):
        fresh = [master.add(q, found)[1] for q, found in whole.layouts.items()]
        model = master.model(short_price=10**9)  # a few columns may not be enough for the value
        solution = relaxed(model)
        if solution.duals is None or solution.relaxed_values is None:
            break
        out.programs.append(float(model.objective @ solution.relaxed_values) + model.offset)
        whole = with_whole_jobs(relaxation, solution.duals)
        out.bounds.append(dual_bound(whole.model, whole.multipliers))
        if not any(fresh):
            break
    return out


@given(rounds(changes=False))
def test_no_plan_costs_less(round_: Instance) -> None:
    """Of all plans of small rounds that are worth so much or more."""
    problem = compile_problem(round_)
    assume(weighted_costs(problem))
    everything = Enumeration(problem)
    rows, values = everything.rows()
    costs = everything.costs(rows)
    for least in {int(values.max()), int(np.median(values))}:
        assert max(generated(problem, least).bounds) <= int(costs[values >= least].min()), least


def test_columns_prove_more_than_flows_and_meet_their_program() -> None:
    """On a round of gangs: the program falls, the bound rises, and flows prove less."""
    problem = compile_problem(generate("gangs", jobs=200, nodes=64, gpus=4, seed=3))
    chosen = solved(build_capacity_relaxation(State(problem)).model())
    made = generated(problem, chosen.objective + value(problem, State(problem).allocation()), 40, meetings=False)
    assert max(made.bounds) > made.flows
    assert made.programs[-1] < made.programs[0]
    assert 0.99 * made.programs[-1] <= max(made.bounds) <= made.programs[-1] + 1


def test_a_column_stands_where_its_bundles_do() -> None:
    """In every row with the sum of its bundles' coefficients; the same job again is no new column."""
    problem = compile_problem(generate("gangs", jobs=60, nodes=32, gpus=4, seed=1))
    relaxation = build_cost_relaxation(State(problem), weighted_costs(problem), 0)
    q = next(q for q, of in enumerate(relaxation.bundle_columns) if of.bundle_group.bundles == 2 and len(of.place) > 1)
    own = relaxation.bundle_columns[q]
    lies = JobLayout((Part(0, ((int(own.place[0]), 1),)), Part(1, ((int(own.place[1]), 1),))), 7)
    master = JobMaster(relaxation, [q])
    assert master.add(q, lies) == (0, True)
    assert master.add(q, lies) == (0, False)
    dense = np.zeros((relaxation.model.num_rows, relaxation.model.num_variables), dtype=np.int64)
    dense[relaxation.model.row_of_nonzero, relaxation.model.columns] = relaxation.model.coefficients
    expected = dense[:, own.columns[0]] + dense[:, own.columns[1]]
    column = np.zeros(relaxation.model.num_rows, dtype=np.int64)
    column[master.columns[0].rows] = master.columns[0].coefficients
    assert column.tolist() == expected.tolist()
    model = master.model()
    assert int(model.objective[-1]) == 7
    assert int(model.coefficients[model.columns == model.num_variables - 1].sum()) == int(expected.sum())
    fixed = master.model(np.zeros(len(relaxation.option), dtype=np.int64), np.array([1]), 5)
    assert (int(fixed.lower[-1]), int(fixed.upper[0])) == (1, 0)
    assert all(fixed.row_lower[row] == NO_LOWER for row in relaxation.value_rows)
