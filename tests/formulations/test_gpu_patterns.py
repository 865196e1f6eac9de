"""The bound by GPU patterns: rows that no plan breaks, by hand and against all ways to fill nodes; and the patterns."""

import tracemalloc
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.counted_clock import counted_clock
from helpers.night import seeds
from helpers.relaxations import relaxed
from placeopt import build
from placeopt.errors import OutOfTime
from placeopt.formulations import build_gpu_patterns
from placeopt.formulations.gpu_patterns import maximal_gpu_patterns
from placeopt.model import Instance, Running
from placeopt.problem import State, compile_problem


def bound(round_: Instance) -> int | None:
    """Bound the value."""
    return relaxed(build_gpu_patterns(State(compile_problem(round_))).model).bound


def round_of(cores: list[int], nodes: int, *, gpus: int = 2, of_node: int = 16, held: int = 0) -> Instance:
    """Nodes with so many cores, ``held`` of those of the first one taken; jobs of one GPU, worth 1000 each."""
    jobs = [build.job(f"j{i}", cpu_millicores=1000 * c, memory_mib=0, value=1000) for i, c in enumerate(cores)]
    runs: list[Running] = []
    if held:
        jobs.append(build.job("held", gpus=0, cpu_millicores=1000 * held, memory_mib=0))
        runs.append(build.running(jobs[-1], [("n0", [])]))
    machine = build.machine(gpus=gpus, cpu_millicores=1000 * of_node)
    return build.instance(nodes, jobs, machines=[machine], running=runs)


def test_one_large_job_a_node() -> None:
    """Jobs of 10 and 11 cores on two nodes of 16: sums let three run and a part of the fourth, 32 cores in all."""
    assert bound(round_of([10, 10, 11, 11], 2)) == 2000
    assert bound(round_of([10, 10, 11, 11], 2, gpus=8)) == 3090  # large nodes keep to sums


def test_thirds() -> None:
    """Of jobs of 6 and 7 of 16 cores two fit on a node of four GPUs, where sums let five run on two nodes."""
    assert bound(round_of([6, 6, 6, 7, 7, 7], 2, gpus=4)) == 4000


def test_its_deadline_ends_what_comes_before_the_first_column() -> None:
    """What each of 12 kinds of jobs may do is drafted first: for 100,000 kinds on 5,000 nodes that took 8 s of 10."""
    state = State(compile_problem(round_of(list(range(1, 13)), 2)))
    with counted_clock(1.0) as clock, pytest.raises(OutOfTime, match="at 0 columns"):
        build_gpu_patterns(state, clock.start + 10)


@pytest.mark.parametrize("seed", seeds(12))
def test_what_fits_is_never_cut_off(seed: int) -> None:
    """Against all ways to put jobs of random sizes onto two nodes, cores of one of which a running job holds."""
    random = np.random.default_rng(seed)
    cores, held = random.integers(1, 13, 6).tolist(), int(random.integers(0, 8))
    problem = compile_problem(round_of(cores, 2, gpus=3, held=held))
    base = sum(int(problem.options.value[problem.running[j].option]) for j in problem.running)
    best = 0
    for nodes in product((None, 0, 1), repeat=len(cores)):
        here = [[c for c, n in zip(cores, nodes, strict=True) if n == node] for node in (0, 1)]
        if sum(here[0]) <= 16 - held and sum(here[1]) <= 16 and max(map(len, here)) <= 3:
            best = max(best, len(here[0]) + len(here[1]))
    assert bound(round_of(cores, 2, gpus=3, held=held)) >= base + 1000 * best


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_the_functions_are_dual_feasible(k: int) -> None:
    """Whatever of up to five items of 24ths fits into one node keeps the row."""

    def u(part: int) -> int:
        whole, rest = divmod((k + 1) * part, 24)
        return k * part if rest == 0 else whole * 24

    for parts in combinations_with_replacement(range(25), 5):
        if sum(parts) <= 24:
            assert sum(map(u, parts)) <= 24 * k


def pairs_and_singles(pairs: int, singles: int, nodes: int = 2) -> Instance:
    """Nodes of 2 GPUs and 10 cores: pairs of GPUs with 4 cores each, single GPUs with 8."""
    jobs = [build.job(f"pair{i}", gpus=2, cpu_millicores=4000, memory_mib=0, value=2000) for i in range(pairs)]
    jobs += [build.job(f"single{i}", cpu_millicores=8000, memory_mib=0, value=1000) for i in range(singles)]
    machine = build.machine(gpus=2, cpu_millicores=10_000)
    return build.instance(nodes, jobs, machines=[machine])


@pytest.mark.parametrize(
    ("pairs", "singles", "value"),
    [(1, 2, 3250), (2, 0, 4000), (0, 2, 2000), (1, 1, 3000)],  # the last three fit, so nothing of them is cut off
)
def test_a_pair_takes_its_node(pairs: int, singles: int, value: int) -> None:
    """By sums alone both singles fit beside the pair, 4 + 2 x 8 <= 20; with the rows 1.25 singles do."""
    assert bound(pairs_and_singles(pairs, singles)) == value


@given(
    unit=st.sampled_from((1, 10, 125)),
    parts=st.sets(st.integers(1, 9), min_size=1, max_size=4),
    share=st.integers(0, 12),
    odd=st.integers(0, 9),
    most=st.integers(0, 60),
)
def test_maximal_patterns_are_those_of_enumeration(unit: int, parts: set[int], share: int, odd: int, most: int) -> None:
    """The same multisets, those with more of the large sizes first; None exactly where they are too many."""
    sizes, room = np.array(sorted((unit * part for part in parts), reverse=True)), unit * share + odd % unit
    choices = product(*(range(room // size, -1, -1) for size in sizes.tolist()))
    left = ((slots, room - int(np.dot(slots, sizes))) for slots in choices)
    expected = [slots for slots, rest in left if 0 <= rest < sizes[-1]]
    found = maximal_gpu_patterns(room, sizes, most)
    if len(expected) > most:
        assert found is None
    else:
        assert found.dtype == np.int64
        assert [tuple(slots) for slots in found.tolist()] == expected


def test_far_too_many_patterns_are_not_made() -> None:
    """More than 10^30 multisets: counted, not listed, without overflow; 20,000 of them are 160 MB."""
    tracemalloc.start()
    try:
        assert maximal_gpu_patterns(1000, np.arange(999, 0, -1), 20_000) is None
        assert tracemalloc.get_traced_memory()[1] < 40e6
    finally:
        tracemalloc.stop()
