"""The bound by sums over the cluster: never below the optimum, and as low as prices of one knapsack make it."""

from hypothesis import given
from hypothesis import strategies as st

from helpers.brute_force import optimum
from placeopt import Instance
from placeopt.build import instance, job, machine
from placeopt.formulations import bound_by_totals
from placeopt.problem import State, compile_problem, open_state
from placeopt.terms import trivial_value_bound
from strategies import gang_rounds, rounds


@given(st.one_of(rounds(), gang_rounds()))
def test_no_plan_is_worth_more(round_: Instance) -> None:
    """Nor does it say less than that each job fits alone."""
    problem = compile_problem(round_)
    bound = bound_by_totals(open_state(problem))
    assert optimum(problem)[0] <= bound <= trivial_value_bound(problem)


def test_a_price_of_gpus_leaves_the_worst_jobs_out() -> None:
    """Of ten jobs of two GPUs each, worth 1 to 10, sixteen GPUs take the best eight."""
    jobs = [job(f"j{i}", gpus=2, value=i + 1) for i in range(10)]
    problem = compile_problem(instance(4, jobs, machines=[machine(gpus=4)]))
    assert bound_by_totals(State(problem)) == sum(range(3, 11))


def test_cpu_and_gpus_are_priced_together() -> None:
    """Where CPU is what is scarce, GPUs alone would let all of them start."""
    jobs = [job(f"j{i}", gpus=1, cpu_millicores=4000, value=5) for i in range(8)]
    problem = compile_problem(instance(2, jobs, machines=[machine(gpus=4, cpu_millicores=8000)]))
    assert bound_by_totals(State(problem)) == 4 * 5
