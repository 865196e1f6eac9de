"""Bundles of all GPUs of a node leave none to others: the relaxation must not hand on the CPU beside them."""

from placeopt import build
from placeopt.formulations import build_gpu_patterns
from placeopt.problem import State, compile_problem
from placeopt.solvers import SolveOptions
from placeopt.solvers.highs import solve


def bound(pairs: int, singles: int, nodes: int = 2) -> int | None:
    """Bound the value on nodes of 2 GPUs and 10 cores: pairs of GPUs with 4 cores each, single GPUs with 8."""
    jobs = [build.job(f"pair{i}", gpus=2, cpu_millicores=4000, memory_mib=0, value=2000) for i in range(pairs)]
    jobs += [build.job(f"single{i}", cpu_millicores=8000, memory_mib=0, value=1000) for i in range(singles)]
    machine = build.machine(gpus=2, cpu_millicores=10_000)
    problem = compile_problem(build.instance(nodes, jobs, machines=[machine]))
    model = build_gpu_patterns(State(problem)).model
    return solve(model, SolveOptions(time_limit_s=10, relax=True)).bound


def test_a_pair_takes_its_node() -> None:
    """By sums alone both singles fit beside the pair, 4 + 2 x 8 <= 20; with the rows 1.25 singles do."""
    assert bound(pairs=1, singles=2) == 3250


def test_nothing_is_cut_off() -> None:
    """What fits stays: two pairs, two singles, a pair and a single."""
    assert bound(pairs=2, singles=0) == 4000
    assert bound(pairs=0, singles=2) == 2000
    assert bound(pairs=1, singles=1) == 3000
