"""Dual recursive bi-partitioning: the paper's Minsky by hand, trees, several nodes, random rounds of every feature."""

from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

from helpers.machines import sockets
from helpers.plan_records import plan_of
from placeopt.build import instance, job, machine, node, running
from placeopt.check import violations
from placeopt.heuristics import CHOOSERS, greedy, order_jobs
from placeopt.heuristics.drb.artifact import system_utility
from placeopt.heuristics.drb.node import MachineKind, NodeNow
from placeopt.model import Communication, Domain, Edge, Instance, Job, Policy, Slowdown, Weights
from placeopt.problem import State, compile_problem
from placeopt.topology import dgx1, gpu_distances, minsky

THIRDS = Policy(weights=Weights(communication=333, interference=333, fragmentation=334))
TALKS = Communication(weight=4)
SLOW = (Slowdown(profile="a", beside="a", socket_thousandths=300, node_thousandths=0),)


def placed(round_: Instance, chooser: str = "drb") -> list[tuple[int, ...] | None]:
    """Place the jobs of a round in order of arrival; return the GPUs of each."""
    problem = compile_problem(round_)
    found = greedy(problem, order_jobs(problem, "fcfs"), chooser=CHOOSERS[chooser]).allocation
    assert violations(round_, plan_of(problem, found)) == []
    return [None if p is None else p.gpus for p in found]


def minskys(count: int, *jobs: Job, held: tuple[int, ...] = (), **fields: Any) -> Instance:
    """Minskys as the nodes; the first job runs on the GPUs ``held`` of the first one, if any."""
    runs = [running(jobs[0], [("n0", held)])] if held else []
    fields = {"machines": [minsky()], "policy": THIRDS, **fields}
    return instance([node(f"n{i}", fields["machines"][0].id) for i in range(count)], jobs, running=runs, **fields)


@pytest.mark.parametrize("chooser", list(CHOOSERS))
def test_two_gpus_of_a_job_share_a_socket_of_the_minsky(chooser: str) -> None:
    """SC'17 5.2: GPUs 0 and 1 on one socket, 2 and 3 on the other; across costs 1.3 times the run time."""
    gpus = placed(minskys(1, *(job(f"j{i}", gpus=2, communication=TALKS) for i in range(2))), chooser)
    assert sorted(tuple(sorted(g)) for g in gpus) == [(0, 1), (2, 3)]


ALIKE = (job("here", profile="a"), job("there", profile="a"))
CASES: dict[str, tuple[Instance, list[tuple[int, ...]]]] = {
    "the socket with two free GPUs, though another is fuller": (
        minskys(1, job("one"), job("two", gpus=2, communication=TALKS), held=(0,)), [(2, 3)]),
    # the paper's job 1 (5.2.2): interference from job 0 outweighs packing; without it packing wins
    "a job that suffers goes to the other socket": (minskys(1, *ALIKE, held=(0,), slowdowns=SLOW), [(2,), (3,)]),
    "one that does not fills up": (minskys(1, *ALIKE, held=(0,)), [(1,)]),
    # SC'17 eq. 5 as printed, on sockets of 2 idle GPUs and of 4 with one left: one GPU of the small socket leaves
    # (1/2 + 1/4) / 2 = 3/8 free, the last of the large one (1 + 0) / 2; over the sockets of one half alone it was 1/2
    # against 0
    "fragmentation is the mean over all sockets": (
        minskys(1, job("busy", gpus=3), job("one"), held=(2, 3, 4), machines=[sockets(2, 4)]), [(0,), (1,)]),
    # one task alone would go to the fuller machine; those to come count where there is no room for them
    "two workers go to a machine that holds both": (
        minskys(3, job("busy", gpus=3), job("two", workers=2, communication=TALKS), held=(0, 1, 2)),
        [pair for first in (4, 8) for pair in combinations(range(first, first + 4), 2)]),
}  # fmt: skip
"""A round whose first job runs, and the GPUs of which the second may get any."""


@pytest.mark.parametrize("name", CASES)
def test_where_the_second_job_goes(name: str) -> None:
    round_, expected = CASES[name]
    assert tuple(sorted(placed(round_)[1])) in expected


@pytest.mark.parametrize("workers", [8, 16])
def test_a_chain_of_workers_on_the_whole_cluster_is_cut_where_it_is_thin(workers: int) -> None:
    edges = tuple(Edge(ranks=pair, weight=4) for pair in pairwise(range(workers)))
    racks = (Domain(id="r0", level="rack"), Domain(id="r1", level="rack"))
    many = workers // 4
    chain = job("chain", workers=workers, communication=Communication(edges=edges))
    nodes = [node(f"n{i}", "minsky", domain=f"r{i * 2 // many}") for i in range(many)]
    round_ = instance(nodes, [chain], machines=[minsky()], domains=racks, policy=THIRDS)
    sides = [(g // 2, g // 4) for g in placed(round_)[0]]
    assert sum(a[1] != b[1] for a, b in pairwise(sides)) == many - 1  # nodes are left once each
    assert sum(a[0] != b[0] for a, b in pairwise(sides)) == workers // 2 - 1  # and sockets


def test_the_artifacts_rule_scores_every_set_and_takes_the_best() -> None:
    """Alone on a machine, one socket is worth 0.01 of path, across both 0.475 (README of the artifact)."""
    problem = compile_problem(minskys(1, job("two", gpus=2, communication=TALKS)))
    alone = NodeNow(State(problem), 0, 0, np.ones(4, dtype=bool), MachineKind(problem, 0), (0.4, 0.3, 0.3))
    near, far = system_utility(alone, np.array([[0, 1], [0, 2]]))
    root = 0.01 ** (1 / 3)
    assert near == pytest.approx(3 * root / (2 * root + 0.5 ** (1 / 3)))
    nearest, across = problem.topology.distances(np.array([0, 0]), np.array([1, 2]))
    share = (across - nearest) / (2 * problem.topology.max_machine_distance)
    assert far == pytest.approx(3 * root / (share ** (1 / 3) + root + 0.5 ** (1 / 3)))


def test_fiduccia_mattheyses_finds_the_quads_of_a_cube_mesh_in_any_order() -> None:
    """Half of a DGX-1, whose GPUs are numbered anew: the four that are closest of all 70 sets."""
    distances = gpu_distances(dgx1())
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(8)
        mixed = distances[np.ix_(order, order)]
        kind = machine(gpus=8, gpu_distance_matrix=tuple(map(tuple, mixed.tolist())))
        (found,) = placed(instance(1, [job("half", gpus=4, communication=TALKS)], machines=[kind]))
        paths = {part: int(mixed[np.ix_(part, part)].sum()) for part in combinations(range(8), 4)}
        assert paths[tuple(sorted(found))] == min(paths.values())
