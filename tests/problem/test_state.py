"""What is used by whom, and that undoing restores it."""

import numpy as np
from hypothesis import given

from helpers.differential import snapshot
from placeopt.build import instance, job, machine, node, option, running
from placeopt.heuristics import greedy
from placeopt.model import Domain, Instance, Policy, Queue
from placeopt.problem import Move, Placement, State, compile_problem, hose_loads
from strategies import rounds


def test_hose_load_by_hand() -> None:
    """
    Four workers of 100 MB/s on three nodes of two racks: 2 + 1 in r0, 1 in r1.

    Nodes: min(2, 2) = 2, min(1, 3) = 1, 1 workers' worth. Racks: min(3, 1) = 1, and 1. The zone above both holds all
    four, so nothing leaves it.
    """
    domains = (Domain(id="z", level="zone"), Domain(id="r0", parent="z"), Domain(id="r1", parent="z"))
    nodes = (node("n0", domain="r0"), node("n1", domain="r0"), node("n2", domain="r1"))
    problem = compile_problem(instance(nodes, [job("a", workers=4, network_bandwidth_mbps=100)], domains=domains))
    loads = hose_loads(problem, Placement(0, (0, 0, 1, 2), (0, 1, 4, 8)))
    assert loads == {0: 200, 1: 100, 2: 100, 3 + 1: 100, 3 + 2: 100}  # links of three nodes, then of the domains
    assert hose_loads(problem, Placement(0, (0, 0, 0, 0), (0, 1, 2, 3))) == {}


def test_apply_takes_and_undo_gives_back() -> None:
    """Every array, by hand, for a job of two workers of half a GPU each beside a running one."""
    needs = {"gpu_milli": 500, "gpu_memory_mib": 1000, "gpu_utilisation_percent": 30, "cpu_millicores": 2000}
    gang = job("gang", workers=2, memory_mib=64, network_bandwidth_mbps=10, queue="q", **needs)
    here = job("here", gpu_milli=400, gpu_memory_mib=6000, gpu_utilisation_percent=50, queue="q")
    fields = {"running": [running(here, [("n0", [1])])], "policy": Policy(queues=(Queue(id="q"),))}
    state = State(compile_problem(instance(2, [gang, here], machines=[machine(gpus=2)], **fields)))
    before = snapshot(state)
    assert state.gpu_free_milli.tolist() == [1000, 600, 1000, 1000]
    undo = state.apply(Move(0, Placement(0, (0, 1), (1, 2))))
    assert state.gpu_free_milli.tolist() == [1000, 100, 500, 1000]
    assert state.gpu_free_memory.tolist() == [16_384, 9384, 15_384, 16_384]
    assert state.gpu_jobs.tolist() == [0, 2, 1, 0]
    assert state.gpu_utilisation.tolist() == [0, 80, 30, 0]
    assert state.node_free[:, :2].tolist() == [[30_000, 262_080], [30_000, 262_080]]
    assert [free.tolist() for free in state.level_free] == [[1, 1]]
    assert [list(jobs) for jobs in state.node_jobs] == [[1, 0], [0]]
    assert state.link_load.tolist() == [[10, 0], [10, 0]]
    assert state.queue_used.tolist() == [[1400, 4000, 128]]
    assert state.apply(undo) == Move(0, Placement(0, (0, 1), (1, 2)))
    assert snapshot(state) == before


def test_a_running_job_counts_with_its_request() -> None:
    """It may be granted more; that is free for others at the next round (DynamoML 3.1)."""
    here = job("here", options=(option(gpu_milli=400, gpu_milli_limit=900),), queue="q")
    runs = [running(here, [("n0", [0])], milli=800)]
    state = State(compile_problem(instance(1, [here], running=runs, policy=Policy(queues=(Queue(id="q"),)))))
    assert state.gpu_free_milli.tolist() == [600, 1000, 1000, 1000]
    assert state.queue_used.tolist() == [[400, 0, 0]]


def test_load_restores_every_job_of_an_allocation() -> None:
    """However the state got where it is, the same allocation gives the same state."""
    problem = compile_problem(instance(1, [job("a"), job("b")]))
    one, other = State(problem), State(problem)
    one.load((Placement(0, (0,), (2,)), Placement(0, (0,), (1,))))
    other.load((Placement(0, (0,), (1,)), None))
    other.load(one.allocation())
    assert snapshot(other) == snapshot(one)


@given(round_=rounds())
def test_a_state_from_a_whole_allocation_is_the_one_that_grows_job_by_job(round_: Instance) -> None:
    """All arrays at once; and what is taken away again was never there."""
    problem = compile_problem(round_)
    empty = (None,) * problem.num_jobs
    allocation = greedy(problem, np.arange(problem.num_jobs)).allocation
    grown = State(problem)
    grown.load(allocation)
    assert snapshot(State(problem, allocation)) == snapshot(grown)
    grown.load(empty)
    assert snapshot(grown) == snapshot(State(problem, empty))
