"""What every heuristic promises of any round: lawful, repeatable, and decided as if all nodes were looked at anew."""

import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.plain_greedy import plain_chooser
from helpers.plan_records import plan_of
from placeopt import Instance, Policy, generate, violations
from placeopt.build import instance, job, machine, node
from placeopt.generators import SPECS
from placeopt.heuristics import SCORES, greedy, make_room, order_jobs, window
from placeopt.problem import Allocation, IntArray, Problem, compile_problem
from placeopt.solving import METHODS
from placeopt.terms import value
from strategies import rounds

UNDRAWN = [name for name, spec in SCORES.items() if not spec.needs_seed]
OF_METHODS = {method.greedy.score for method in METHODS.values()}
HEURISTICS: dict[str, Callable[[Problem, IntArray], Allocation]] = {
    **{
        name: lambda p, o, name=name: greedy(p, o, name, seed=7).allocation for name in SCORES if name not in OF_METHODS
    },
    "room": lambda p, o: make_room(p, greedy(p, o).allocation, o),
    "by class": lambda p, o: greedy(p, o, deadline=time.monotonic(), fill=True, grace_s=60.0).allocation,
}


@given(rounds())
def test_lawful_and_repeatable(round_: Instance) -> None:
    """Of what no method names (`properties/test_every_method.py`); what makes room never makes the plan worse."""
    problem = compile_problem(round_)
    order = order_jobs(problem, "fcfs")
    found = {name: run(problem, order) for name, run in HEURISTICS.items()}
    for name, allocation in found.items():
        assert violations(round_, plan_of(problem, allocation)) == [], name
        assert HEURISTICS[name](problem, order) == allocation, name
    assert value(problem, found["room"]) >= value(problem, greedy(problem, order).allocation)
    alone = window(problem, order, "fgd", width=1)  # nobody to compete with
    assert alone.allocation == greedy(problem, order, "fgd").allocation


def assert_plain(problem: Problem, score: str, order: str = "value_density") -> None:
    """Greedy places every job as it does where nothing is remembered and every node is scored anew."""
    jobs = order_jobs(problem, order)
    assert greedy(problem, jobs, score) == greedy(problem, jobs, chooser=plain_chooser(score))


@given(rounds(changes=False), st.sampled_from(UNDRAWN))
def test_nothing_remembered_changes_a_decision(round_: Instance, score: str) -> None:
    assert_plain(compile_problem(round_), score, "fcfs")


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize(("jobs", "nodes"), [(40, 3), (150, 80)])
def test_nor_on_few_nodes_or_many(spec: str, jobs: int, nodes: int) -> None:
    assert_plain(compile_problem(generate(spec, jobs=jobs, nodes=nodes, gpus=8, seed=1)), "stranding")


@pytest.mark.parametrize("seed", range(4))
def test_shares_that_no_float_holds_exactly(seed: int) -> None:
    """Nodes of none, three, eight and nine GPUs: shares of a GPU are added up in one order, to the last bit."""
    rng = np.random.default_rng([11, seed])
    sizes = {"none": 0, "three": 3, "eight": 8, "nine": 9}
    nodes = [node(f"n{i:02}", str(rng.choice(list(sizes)))) for i in range(15)]
    jobs = []
    for i in range(120):
        gpus = int(rng.choice([0, 1, 1, 1, 1, 2, 3]))
        share = int(rng.choice([70, 130, 330, 410, 590, 1000])) if gpus == 1 else 1000
        needs = {"cpu_millicores": int(rng.integers(0, 12)) * 300, "memory_mib": int(rng.integers(0, 40)) * 700}
        jobs.append(job(f"j{i:03}", gpus=gpus, gpu_milli=share, workers=int(rng.choice([1, 1, 2])), **needs))
    machines = [machine(name, gpus=gpus) for name, gpus in sizes.items()]
    assert_plain(
        compile_problem(instance(nodes, jobs, machines=machines, policy=Policy(share_mode="fraction"))), "stranding"
    )
