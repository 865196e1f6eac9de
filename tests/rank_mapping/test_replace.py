"""Placements whose ranks are permuted: cheaper by the term's own account, and still within every rule."""

import time

import numpy as np
import pytest

from placeopt.build import instance, job, node, option
from placeopt.model import Communication, Domain, Edge, Job
from placeopt.problem import Placement, Problem, State, compile_problem
from placeopt.rank_mapping import improve_ranks
from placeopt.terms.costs import Communication as CommunicationCost
from placeopt.terms.rules import fits
from placeopt.topology import dgx1, minsky

COST = CommunicationCost()


def ring_of(k: int) -> Communication:
    """Edges r, r + 1 of weight 2, and 1 inside a worker."""
    return Communication(weight=1, edges=tuple(Edge(ranks=(r, (r + 1) % k), weight=2) for r in range(k)))


def problem_of(the_job: Job, nodes: int = 2) -> Problem:
    """One job and Minskys in two racks."""
    return compile_problem(
        instance(
            [node(f"n{i}", "minsky", domain=f"r{i % 2}") for i in range(nodes)],
            [the_job],
            machines=[minsky()],
            domains=[Domain(id="r0"), Domain(id="r1")],
        )
    )


def test_ring_of_four_on_one_minsky() -> None:
    """As 0 2 1 3 all four edges cross the sockets: 4 x 2 x 42; in order two do not: 2 x 2 x 1 + 2 x 2 x 42."""
    problem = problem_of(job("a", workers=4, communication=ring_of(4)))
    before = Placement(0, (0,) * 4, (0, 2, 1, 3))
    after = improve_ranks(problem, 0, before, float("inf"))
    assert COST.score(problem, (before,)) == 336
    assert COST.score(problem, (after,)) == 172
    assert improve_ranks(problem, 0, after, float("inf")) is after


@pytest.mark.parametrize("size", [1, 2])
def test_permuted_placements_keep_every_rule(size: int) -> None:
    """Same GPUs, same workers per node, each worker's GPUs on its node; the cost is never higher than before."""
    workers = 12 // size
    rng = np.random.default_rng(size)
    problem = problem_of(job("a", workers=workers, gpus=size, communication=ring_of(workers)), 4)
    for _ in range(10):
        pairs = rng.permutation(16 // size)[:workers]
        gpus = tuple(int(p) * size + i for p in pairs for i in range(size))
        before = Placement(0, tuple(g // 4 for g in gpus[::size]), gpus)
        after = improve_ranks(problem, 0, before, float("inf"))
        assert fits(State(problem), 0, after)
        assert sorted(after.gpus) == sorted(before.gpus)
        assert sorted(after.nodes) == sorted(before.nodes)
        assert COST.score(problem, (after,)) <= COST.score(problem, (before,))


def test_jobs_without_edges_and_elastic_ones() -> None:
    """All pairs alike: nothing to gain. Edges of ranks that do not run do not count."""
    problem = problem_of(job("a", workers=4, communication=Communication(weight=3)))
    held = Placement(0, (0,) * 4, (0, 2, 1, 3))
    assert improve_ranks(problem, 0, held, float("inf")) is held
    elastic = problem_of(job("a", options=(option(workers=4, workers_min=2),), communication=ring_of(4)))
    two = Placement(0, (0, 0), (0, 2))  # row 0: two workers, one edge
    assert improve_ranks(elastic, 0, two, float("inf")) is two


def test_beyond_the_limits_the_placement_stays() -> None:
    """Edges and ways as heavy as a file may state pass 2^47 with some dozen workers; a round must not end there."""
    workers = 48
    edges = tuple(Edge(ranks=(r, s), weight=1_000_000) for r in range(workers) for s in range(r) if (r + s) % 3)
    domains = [Domain(id=f"r{i}", uplink_weight=1_000_000) for i in range(2)]
    nodes = [node(f"n{i}", "minsky", domain=f"r{i % 2}") for i in range(workers // 4)]
    the_job = job("a", workers=workers, communication=Communication(edges=edges))
    problem = compile_problem(instance(nodes, [the_job], machines=[minsky()], domains=domains))
    held = Placement(0, tuple(r // 4 for r in range(workers)), tuple(range(workers)))
    assert improve_ranks(problem, 0, held, float("inf")) is held


def test_no_placement_is_dearer_when_time_is_up() -> None:
    """The engine asks with whatever time is left."""
    many = compile_problem(
        instance([node(f"n{i}", "dgx-1") for i in range(8)], [job("a", workers=64, communication=ring_of(64))],
                 machines=[dgx1()])
    )  # fmt: skip
    gpus = np.random.default_rng(0).permutation(64)
    before = Placement(0, tuple((gpus // 8).tolist()), tuple(gpus.tolist()))
    for deadline in (time.monotonic(), time.monotonic() + 0.3):
        after = improve_ranks(many, 0, before, deadline)
        assert COST.score(many, (after,)) <= COST.score(many, (before,))
