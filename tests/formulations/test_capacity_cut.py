"""The cut by prices of fillings: against every plan of small rounds, and what it adds to the bound on cost."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from helpers.brute_force import Enumeration
from helpers.relaxations import Fillings, relaxed
from made_rounds import generate
from placeopt import Engine, Instance
from placeopt.build import instance, job, machine, running
from placeopt.formulations.cost_relaxation import build_cost_relaxation
from placeopt.model import Policy, Weights
from placeopt.problem import IntArray, Problem, State, compile_problem
from placeopt.terms import weighted_costs
from strategies import rounds


def cost_bound(problem: Problem, least: int, **fields: object) -> int:
    """Return what the relaxation proves of the cost of plans worth ``least`` or more."""
    found = relaxed(build_cost_relaxation(State(problem), weighted_costs(problem), least, **fields).model).bound
    assert found is not None
    return found


def busy_of(made: Fillings) -> IntArray:
    """Shape (N,): GPUs of each node that fillings hold at most."""
    most = np.zeros(made.problem.num_nodes, dtype=np.int64)
    for nodes, held in zip(made.units.nodes, made.best(made.groups.gpus).tolist(), strict=True):
        most[nodes] = held
    return most


@given(rounds(changes=False), st.integers(0, 2**32))
def test_no_plan_is_cut_off(round_: Instance, seed: int) -> None:
    """Whatever the prices; and no plan costs less than the bound with the cut says."""
    problem, rng = compile_problem(round_), np.random.default_rng(seed)
    assume(weighted_costs(problem))
    made = Fillings(problem)
    price = rng.integers(0, 3 * made.master.scale, len(made.groups))
    price[made.units.takes_nothing] = 0
    cut, most = made.cut(price), busy_of(made) if (problem.options.value > 0).all() else None
    everything = Enumeration(problem)
    rows, values = everything.rows()
    for row in rows[:: max(1, len(rows) // 200)]:
        starts = [p for j, p in enumerate(everything.allocation(row)) if p and j not in problem.running]
        assert sum(int(cut.pays[start.option]) for start in starts) <= cut.most
    least = int(np.median(values))
    for busy in (None, most):
        assert cost_bound(problem, least, cut=cut, most_busy=busy) <= everything.costs(rows)[values >= least].min()


def test_gpus_beside_a_job_that_takes_all_cpu_stay_idle() -> None:
    """No job can make them busy: the bound counts them, on that node alone."""
    greedy_for_cpu, waiting = job("r", cpu_millicores=8000), [job(f"w{i}", cpu_millicores=1000) for i in range(6)]
    policy = Policy(weights=Weights(communication=0, interference=0, fragmentation=1000))
    fields = {"machines": [machine(gpus=4, cpu_millicores=8000)], "running": [running(greedy_for_cpu, [("n0", [0])])]}
    problem = compile_problem(instance(2, [greedy_for_cpu, *waiting], policy=policy, **fields))
    most = busy_of(Fillings(problem))
    assert most[0] == 0
    assert most[1] >= 4
    value, least, _ = Enumeration(problem).best()
    assert [cost_bound(problem, value, most_busy=busy) for busy in (None, most)] == [0, least]
    assert least > 0


def test_it_raises_the_bound_where_cpu_is_short(engine: Engine) -> None:
    """Jobs that cost less could not run in their place: fillings know, flows do not."""
    problem = compile_problem(generate("varied", jobs=150, nodes=15, gpus=4, seed=3))
    plan = engine.solve(problem.given, method="fillings", time_limit_s=60, deterministic=True)
    made, worth = Fillings(problem), plan.levels[0].objective
    cut = made.cut(made.capacity_price())
    without, with_it = cost_bound(problem, worth), cost_bound(problem, worth, cut=cut)
    assert without < with_it <= plan.levels[1].objective
