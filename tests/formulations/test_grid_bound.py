"""The bound of fillings by tables over a grid against all fillings, and units that are merged."""

import numpy as np
import pytest

from helpers.night import seeds
from helpers.relaxations import Fillings
from made_rounds import generate
from placeopt import Instance, Unsupported
from placeopt.build import instance, job, machine, running
from placeopt.formulations.fillings import GridBound, Units, merged
from placeopt.problem import compile_problem


def never() -> None:
    """No time ends the tables."""


def small_round(seed: int) -> Instance:
    """Jobs of shares that nest and of up to two GPUs, some without any, on three nodes with something on two."""
    rng = np.random.default_rng(seed)
    jobs = [
        job(
            f"j{i}",
            gpus=int(gpus),
            gpu_milli=int(rng.choice([250, 500, 1000])) if gpus == 1 else 1000,
            cpu_millicores=int(rng.integers(1, 6)),
            memory_mib=int(rng.integers(0, 6)),
        )
        for i, gpus in enumerate(rng.choice([0, 1, 1, 1, 2], 5))
    ]
    here = [job(f"r{i}", gpu_milli=int(rng.choice([250, 500, 1000]))) for i in range(2)]
    machines = [machine(gpus=2, cpu_millicores=int(rng.integers(4, 12)), memory_mib=int(rng.integers(4, 12)))]
    runs = [running(one, [(f"n{i}", [i])]) for i, one in enumerate(here)]
    return instance(3, [*jobs, *here], machines=machines, running=runs)


@pytest.mark.parametrize("seed", seeds(20))
def test_a_fine_grid_exceeds_no_filling_of_jobs_without_limit(seed: int) -> None:
    """
    At least what the best filling pays, which knows how many jobs there are and which GPUs hold a bundle.

    With so many jobs of each kind that no number binds, and bundles of one GPU, both are equal.
    """
    for given in (small_round(seed), generate("varied", jobs=400, nodes=2, gpus=2, seed=seed)):
        made = Fillings(compile_problem(given))
        grid = GridBound(made.groups, made.units, never)
        pays = np.random.default_rng(seed).integers(1, 100, len(made.groups))
        pays[grid.free_of_charge] = 0
        pays[made.units.takes_nothing] = 0
        best = made.best(pays)
        assert (grid.most(pays) >= best).all()
        few = np.where((made.groups.gpus == 1) & (made.groups.milli == made.groups.milli.max()), pays, 0)
        few[np.argsort(few)[:-1]] = 0  # the dearest of whole single GPUs alone
        wanted = np.zeros(len(made.groups), dtype=np.int64)
        np.add.at(wanted, made.starts.bundle_group, made.starts.bundles * made.starts.most)
        if few.any() and wanted[few > 0][0] >= 2:
            assert (grid.most(few) == made.best(few)).all()


@pytest.mark.parametrize("seed", range(8))
def test_tiers_bound_every_unit_on_a_coarse_grid(seed: int) -> None:
    """One empty node sets the cells of its tier, nine have little left: no unit pays less than its best filling."""
    rng = np.random.default_rng(seed)
    jobs = [
        job(f"j{i}", gpu_milli=500, cpu_millicores=int(rng.integers(300, 900)), memory_mib=int(rng.integers(300, 900)))
        for i in range(6)
    ]
    here, runs = [], []
    for n in range(1, 10):
        left = rng.integers(900, 2500, 2)
        here.append(job(f"r{n}", cpu_millicores=64_000 - int(left[0]), memory_mib=64_000 - int(left[1])))
        runs.append(running(here[-1], [(f"n{n}", [0])]))
    machines = [machine(gpus=4, cpu_millicores=64_000, memory_mib=64_000)]
    made = Fillings(compile_problem(instance(10, [*jobs, *here], machines=machines, running=runs)))
    pays = rng.integers(1, 100, len(made.groups))
    best = made.best(pays)
    sums = [int(GridBound(made.groups, made.units, never, cells).most(pays).sum()) for cells in (40, 400, 40_000)]
    assert (GridBound(made.groups, made.units, never, 40).most(pays) >= best).all()
    assert sums[0] > sums[2] >= best.sum()


def test_shares_that_do_not_nest_are_refused() -> None:
    """Their fillings are no tables of levels."""
    made = Fillings(compile_problem(instance(1, [job("a", gpu_milli=470), job("b", gpu_milli=320)])))
    with pytest.raises(Unsupported, match="does not divide"):
        GridBound(made.groups, made.units, never)


@pytest.mark.parametrize(("price", "bound"), [(4, 9), (0, 12), (100, 200)])
def test_prices_prove_a_bound_by_hand(price: int, bound: int) -> None:
    """
    One node of two GPUs; three jobs of one GPU, worth 5, 4 and 3. At a price of 4: 1 over for the first, and 2 x 4.

    That is 9, which is the optimum. At 0 all three are counted, 12; at 100 the two GPUs, 200.
    """
    jobs = [job(f"{value}", value=value) for value in (5, 4, 3)]
    made = Fillings(compile_problem(instance(1, jobs, machines=[machine(gpus=2)])))
    prices = np.array([price * made.master.scale])
    most = GridBound(made.groups, made.units, never).most(prices)
    assert made.bound(prices, most) == bound


def crowded(seed: int) -> Fillings:
    """Twelve nodes on which jobs of all sizes run, and forty that wait."""
    rng = np.random.default_rng(seed)
    waiting = [job(f"w{i}", cpu_millicores=int(rng.integers(1, 9)) * 100) for i in range(40)]
    here = [job(f"r{n}", cpu_millicores=int(rng.integers(1, 9)) * 100, memory_mib=64) for n in range(12)]
    runs = [running(one, [(f"n{n}", [0])]) for n, one in enumerate(here)]
    machines = [machine(gpus=4, cpu_millicores=1500)]
    return Fillings(compile_problem(instance(12, [*waiting, *here], machines=machines, running=runs)))


@pytest.mark.parametrize("seed", range(4))
def test_merged_units_have_what_each_of_their_nodes_has(seed: int) -> None:
    """Every node stays in one unit of its mask, with no more room than it has."""
    made = crowded(seed)
    some: Units = merged(made.units, 3)
    assert len(some) <= max(3, len(np.unique(made.units.allowed, axis=0))) < len(made.units)
    assert merged(made.units, len(made.units)) is made.units
    of_node = {node: u for u, nodes in enumerate(made.units.nodes) for node in nodes.tolist()}
    assert sorted(node for nodes in some.nodes for node in nodes.tolist()) == sorted(of_node)
    for s, nodes in enumerate(some.nodes):
        for u in {of_node[node] for node in nodes.tolist()}:
            assert (some.allowed[s] == made.units.allowed[u]).all()
            assert (some.free[s] <= made.units.free[u]).all()
            assert (some.left[s] <= made.units.left[u]).all()
