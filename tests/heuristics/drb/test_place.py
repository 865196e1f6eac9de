"""Dual recursive bi-partitioning: the paper's Minsky by hand, trees, several nodes, random rounds of every feature."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from helpers.plan_records import plan_of
from placeopt.build import instance, job, machine, node, running
from placeopt.check import violations
from placeopt.heuristics import CHOOSERS, greedy, order_jobs
from placeopt.heuristics.drb.exhaustive import Exhaustive
from placeopt.model import Communication, Domain, Edge, Gpu, Instance, Part, Policy, Slowdown, Weights
from placeopt.problem import Placement, Problem, State, compile_problem
from placeopt.topology import dgx1, gpu_distances, minsky

THIRDS = Policy(weights=Weights(communication=333, interference=333, fragmentation=334))


def placed(round_: Instance, chooser: str) -> tuple[Problem, list[tuple[int, ...] | None]]:
    """Place the jobs of a round in order of arrival; return the GPUs of each."""
    problem = compile_problem(round_)
    found = greedy(problem, order_jobs(problem, "fcfs"), chooser=CHOOSERS[chooser]).allocation
    assert violations(round_, plan_of(problem, found)) == []
    return problem, [None if p is None else p.gpus for p in found]


def minskys(count: int, *jobs: object, **fields: object) -> Instance:
    return instance(
        [node(f"n{i}", "minsky") for i in range(count)],
        jobs,  # type: ignore[arg-type]
        machines=[minsky()],
        policy=fields.pop("policy", THIRDS),  # type: ignore[arg-type]
        **fields,
    )


TALKS = Communication(weight=4)
SLOW = (Slowdown(profile="a", beside="a", socket_thousandths=300, node_thousandths=0),)


@pytest.mark.parametrize("chooser", list(CHOOSERS))
def test_two_gpus_of_a_job_share_a_socket_of_the_minsky(chooser: str) -> None:
    """SC'17 5.2: GPUs 0 and 1 on one socket, 2 and 3 on the other; across costs 1.3 times the run time."""
    _, gpus = placed(minskys(1, *(job(f"j{i}", gpus=2, communication=TALKS) for i in range(2))), chooser)
    assert sorted(tuple(sorted(g)) for g in gpus if g is not None) == [(0, 1), (2, 3)]


@pytest.mark.parametrize("chooser", ["drb"])
def test_the_socket_with_two_free_gpus_is_chosen_though_another_is_fuller(chooser: str) -> None:
    one = job("one", gpus=1)
    two = job("two", gpus=2, communication=TALKS)
    _, gpus = placed(minskys(1, one, two, running=[running(one, [("n0", [0])])]), chooser)
    assert sorted(gpus[1]) == [2, 3]


def test_a_job_that_suffers_goes_to_the_other_socket_one_that_does_not_fills_up() -> None:
    """The paper's job 1 (5.2.2): interference from job 0 outweighs packing; without it packing wins."""
    here, there = job("here", profile="a"), job("there", profile="a")
    beside = [running(here, [("n0", [0])])]
    loud = minskys(1, here, there, running=beside, slowdowns=SLOW)
    _, gpus = placed(loud, "drb")
    assert gpus[1] in [(2,), (3,)]
    _, gpus = placed(minskys(1, here, there, running=beside), "drb")
    assert gpus[1] == (1,)


def test_fragmentation_is_the_mean_over_all_sockets_of_the_machine() -> None:
    """
    SC'17 eq. 5 as printed, on sockets of 2 idle GPUs and of 4 with one left.

    One GPU of the small socket leaves (1/2 + 1/4) / 2 = 3/8 free, the last of the large one (1 + 0) / 2. Over the
    sockets of one half alone it was 1/2 against 0.
    """
    two = machine(
        gpus=[Gpu(model="P100", memory_mib=16_384, part="s0" if i < 2 else "s1") for i in range(6)],
        parts=(Part(id="s0", level="socket"), Part(id="s1", level="socket")),
    )
    busy, one = job("busy", gpus=3), job("one")
    _, gpus = placed(
        instance(1, [busy, one], machines=[two], policy=THIRDS, running=[running(busy, [("n0", [2, 3, 4])])]), "drb"
    )
    assert gpus[1] in [(0,), (1,)]


def test_a_job_of_two_workers_takes_the_machine_that_holds_both() -> None:
    """One task alone would go to the fuller machine; those to come count where there is no room for them."""
    busy = job("busy", gpus=3)
    two = job("two", workers=2, communication=TALKS)
    _, gpus = placed(minskys(3, busy, two, running=[running(busy, [("n0", [0, 1, 2])])]), "drb")
    assert len({g // 4 for g in gpus[1]}) == 1
    assert 3 not in gpus[1]


@pytest.mark.parametrize("workers", [8, 16])
def test_a_chain_of_workers_on_the_whole_cluster_is_cut_where_it_is_thin(workers: int) -> None:
    edges = tuple(Edge(ranks=pair, weight=4) for pair in pairwise(range(workers)))
    racks = (Domain(id="r0", level="rack"), Domain(id="r1", level="rack"))
    many = workers // 4
    chain = job("chain", workers=workers, communication=Communication(edges=edges))
    nodes = [node(f"n{i}", "minsky", domain=f"r{i * 2 // many}") for i in range(many)]
    round_ = instance(nodes, [chain], machines=[minsky()], domains=racks, policy=THIRDS)
    _, gpus = placed(round_, "drb")
    sides = [(g // 2, g // 4) for g in gpus[0]]
    assert sum(a[1] != b[1] for a, b in pairwise(sides)) == many - 1  # nodes are left once each
    assert sum(a[0] != b[0] for a, b in pairwise(sides)) == workers // 2 - 1  # and sockets


def test_the_artifacts_rule_scores_every_set_and_takes_the_best() -> None:
    """Alone on a machine, one socket is worth 0.01 of path, across both 0.475 (README of the artifact)."""
    round_ = minskys(1, job("two", gpus=2, communication=TALKS))
    problem = compile_problem(round_)
    chooser = Exhaustive(State(problem))
    near = chooser.system_utility(0, Placement(0, (0,), (0, 1)))
    far = chooser.system_utility(0, Placement(0, (0,), (0, 2)))
    root = 0.01 ** (1 / 3)
    assert near == pytest.approx(3 * root / (2 * root + 0.5 ** (1 / 3)))
    longest = problem.topology.max_machine_distance()
    nearest = problem.topology.distances(np.array([0]), np.array([1]))[0]
    share = (problem.topology.distances(np.array([0]), np.array([2]))[0] - nearest) / (2 * longest)
    assert far == pytest.approx(3 * root / (share ** (1 / 3) + root + 0.5 ** (1 / 3)))


def test_fiduccia_mattheyses_finds_the_quads_of_a_cube_mesh_in_any_order() -> None:
    """Half of a DGX-1, whose GPUs are numbered anew: the four that are closest of all 70 sets."""
    distances = gpu_distances(dgx1())
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(8)
        mixed = distances[np.ix_(order, order)]
        kind = machine(gpus=8, gpu_distance_matrix=tuple(map(tuple, mixed.tolist())))
        _, (found,) = placed(instance(1, [job("half", gpus=4, communication=TALKS)], machines=[kind]), "drb")
        paths = {part: int(mixed[np.ix_(part, part)].sum()) for part in combinations(range(8), 4)}
        assert paths[tuple(sorted(found))] == min(paths.values())
