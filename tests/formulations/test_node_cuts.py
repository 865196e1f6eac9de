"""Rows of single nodes: by hand, and against all starts to fill a node."""

from itertools import combinations_with_replacement

import numpy as np
import pytest

from helpers import builders
from placeopt.formulations import node_rows
from placeopt.formulations.gpu_patterns import build_gpu_patterns
from placeopt.formulations.node_rows import dual_feasible, with_cuts
from placeopt.model import Policy
from placeopt.problem import State, compile_problem
from placeopt.solvers import highs
from placeopt.solvers.result import SolveOptions


@pytest.mark.parametrize("seed", range(20))
def test_what_fits_never_weighs_more_than_a_full_node(seed: int) -> None:
    """All multisets of up to five needs that fit into the room, under every function."""
    rng = np.random.default_rng(seed)
    room = int(rng.integers(5, 60))
    need = rng.integers(1, room + 1, 5)
    weights, full = dual_feasible(need, room)
    for count in range(1, 6):
        for chosen in combinations_with_replacement(range(5), count):
            if need[list(chosen)].sum() <= room:
                assert (weights[:, chosen].sum(axis=1) <= full).all()


def test_two_nodes_do_not_share_what_each_has_too_little_of() -> None:
    """Two nodes of 16 cores, two jobs of 11 cores and two of 5.5: a fraction of a 5.5 fits only in aggregate."""
    needs = [(11_000, 11), (11_000, 11), (5_500, 5), (5_500, 5)]
    jobs = [
        builders.job(f"j{i}", gpus=0, cpu_millicores=cpus, memory_mib=0, value=value)
        for i, (cpus, value) in enumerate(needs)
    ]
    machine = builders.machine(gpus=1, cpu_millicores=16_000)
    problem = compile_problem(builders.instance(2, jobs, machines=[machine], policy=Policy(share_mode="fraction")))
    state, options = State(problem), SolveOptions(time_limit_s=10, relax=True)
    gpu_patterns = build_gpu_patterns(state)
    loose = highs.solve(gpu_patterns.model, options)
    assert loose.bound == 31  # 10,000 of the 11,000 that the small ones ask for are left in both nodes together
    assert loose.relaxed_values is not None
    tighter = with_cuts(gpu_patterns, state, loose.relaxed_values)
    assert tighter is not None
    assert highs.solve(tighter.model, options).bound == 22  # no 5.5 fits beside an 11


def test_many_sizes_make_few_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand demands of as many sizes would make a matrix of a gigabyte; what is left of it still holds."""
    need = np.arange(1, 61, dtype=np.int64)
    assert len(dual_feasible(need, 100)[0]) > 60
    monkeypatch.setattr(node_rows, "MOST_CELLS", 600)
    weights, most = dual_feasible(need, 100)
    assert len(weights) <= 10 + 8 + 10
    together = np.array([40, 35, 25]) - 1  # fill a node
    assert (weights[:, together].sum(axis=1) <= most).all()
