"""Every counter of a state by hand: queues, uplinks, levels, tenants, jobs of nodes; taken, given back, at once."""

from typing import Any

import pytest

from helpers.differential import snapshot
from placeopt.build import instance, job, machine, node, running
from placeopt.model import Domain, Fragmentation, Gpu, Part, Policy, Queue, Slowdown
from placeopt.problem import Move, Placement, Problem, State, compile_problem
from placeopt.problem.state import holdings

PARTS = (Part(id="s0", level="socket"), Part(id="s1", level="socket"))
LOUD = Slowdown(profile="p", beside="q", gpu_thousandths=100)


def problem_of(**fields: Any) -> Problem:
    """
    Two nodes of three GPUs: 0 in socket s0, 1 in s1, 2 in none; n0 in a rack in a zone, n1 in the zone.

    Jobs 0 and 1 are gangs of two halves (queue q, profile p), 2 a gang of two CPU workers (queue r), 3 of two GPUs
    (profile q), 4 a CPU worker without anything.
    """
    gpus = [Gpu(model="A", memory_mib=100, part=part) for part in ("s0", "s1", None)]
    half = {"gpu_milli": 500, "gpu_memory_mib": 40, "gpu_utilisation_percent": 30, "gpu_milli_limit": 900}
    gang = {"workers": 2, "cpu_millicores": 1000, "memory_mib": 10, "network_bandwidth_mbps": 5, **half}
    jobs = [
        job("g0", queue="q", profile="p", **gang),
        job("g1", queue="q", profile="p", **gang),
        job("cpu", workers=2, gpus=0, queue="r", cpu_millicores=7, memory_mib=3, network_bandwidth_mbps=11),
        job("two", gpus=2, profile="q"),
        job("bare", gpus=0),
    ]
    domains = (Domain(id="z", level="zone"), Domain(id="r0", parent="z"))
    policy = Policy(
        share_mode="overcommit",
        jobs_per_gpu_max=4,
        queues=(Queue(id="q"), Queue(id="r")),
        fragmentation=Fragmentation(level_weights={"node": 1, "socket": 1, "rack": 1}),
    )
    fields = {"slowdowns": (LOUD,), **fields}
    nodes = (node("n0", domain="r0"), node("n1", domain="z"))
    kinds = [machine(gpus=gpus, parts=PARTS, memory_bandwidth_mbps=1000)]
    return compile_problem(instance(nodes, jobs, machines=kinds, domains=domains, policy=policy, **fields))


GANG = Placement(0, (0, 1), (0, 4))
CPU = Placement(1, (1, 0), ())
TWO = Placement(2, (0,), (0, 2))
BARE = Placement(3, (1,), ())


def arrays(state: State) -> dict[str, Any]:
    return {
        "cpu": state.node_free[:, 0].tolist(),
        "memory": state.node_free[:, 1].tolist(),
        "milli": state.gpu_free_milli.tolist(),
        "gpu memory": state.gpu_free_memory.tolist(),
        "jobs": state.gpu_jobs.tolist(),
        "utilisation": state.gpu_utilisation.tolist(),
        "levels": {
            level.name: free.tolist() for level, free in zip(state.problem.levels, state.level_free, strict=True)
        },
        "node jobs": [list(jobs) for jobs in state.node_jobs],
        "machines": state.machine_load.tolist(),
        "domains": state.domain_load.tolist(),
        "queues": state.queue_used.tolist(),
        "tenants": [dict(here) for here in state.tenants],
    }


EMPTY = {
    "cpu": [32_000, 32_000],
    "memory": [262_144, 262_144],
    "milli": [1000] * 6,
    "gpu memory": [100] * 6,
    "jobs": [0] * 6,
    "utilisation": [0] * 6,
    "levels": {"node": [3, 3], "rack": [0, 3], "socket": [1, 1, 1, 1]},
    "node jobs": [[], []],
    "machines": [[0, 0], [0, 0]],
    "domains": [[0, 0], [0, 0]],
    "queues": [[0, 0, 0], [0, 0, 0]],
    "tenants": [{}, {}],
}
FULL = {
    "cpu": [30_993, 30_993],
    "memory": [262_131, 262_131],
    "milli": [-500, 1000, 0, 1000, 500, 1000],
    "gpu memory": [60, 100, 100, 100, 60, 100],
    "jobs": [2, 0, 1, 0, 1, 0],
    "utilisation": [30, 0, 0, 0, 30, 0],
    "levels": {"node": [1, 2], "rack": [0, 1], "socket": [0, 1, 1, 0]},
    "node jobs": [[0, 3], [0]],
    "machines": [[5, 11], [5, 11]],
    "domains": [[0, 0], [5, 11]],
    "queues": [[1000, 2000, 20], [0, 14, 6]],
    "tenants": [{(0, (0,)): 1, (1, (0, 2)): 1}, {(0, (4,)): 1}],
}
"""Jobs 0, 2, 3 and 4 in place: the gang, the CPU gang, the two GPUs, the bare worker. One GPU is overcommitted."""


@pytest.mark.parametrize("asked_before", [True, False])
def test_apply_and_take_back(asked_before: bool) -> None:
    """Whether tenants were asked for before or not; in the end everything is as it was."""
    problem = problem_of()
    state = State(problem)
    if asked_before:
        assert arrays(state) == EMPTY
    undo = [state.apply(Move(job_, placed)) for job_, placed in ((0, GANG), (2, CPU), (3, TWO), (4, BARE))]
    assert undo == [Move(0, None), Move(2, None), Move(3, None), Move(4, None)]
    assert arrays(state) == FULL
    assert state.allocation() == (GANG, None, CPU, TWO, BARE)
    for move in undo:
        state.apply(move)
    assert arrays(state) == EMPTY


def test_begun_at_once() -> None:
    """From a whole allocation, and from what runs."""
    assert arrays(State(problem_of(), (GANG, None, CPU, TWO, BARE))) == FULL
    held = problem_of()
    runs = [
        running(held.instance.jobs[j], where)
        for j, where in (
            (0, [("n0", [0]), ("n1", [1])]),
            (2, [("n1", []), ("n0", [])]),
            (3, [("n0", [0, 2])]),
            (4, [("n1", [])]),
        )
    ]
    assert arrays(State(problem_of(running=runs))) == FULL
    assert arrays(State(problem_of(running=runs), (None,) * 5)) == EMPTY


def test_two_alike_on_the_same_gpus() -> None:
    """Tenants count them; one that leaves takes one away; the GPU is busy until both are gone."""
    problem = problem_of()
    state = State(problem)
    assert state.tenants == [{}, {}]
    state.apply(Move(0, GANG))
    back = state.apply(Move(1, GANG))
    assert state.tenants == [{(0, (0,)): 2}, {(0, (4,)): 2}]
    assert state.gpu_jobs.tolist() == [2, 0, 0, 0, 2, 0]
    assert [free.tolist() for free in state.level_free] == [[2, 2], [0, 2], [0, 1, 1, 0]]
    assert (state.machine_load.tolist(), state.queue_used[0].tolist()) == ([[10, 0], [10, 0]], [2000, 4000, 40])
    state.apply(back)
    assert state.tenants == [{(0, (0,)): 1}, {(0, (4,)): 1}]
    assert [free.tolist() for free in state.level_free] == [[2, 2], [0, 2], [0, 1, 1, 0]]
    state.apply(Move(0, None))
    assert arrays(state) == EMPTY


def test_a_move_gives_back_what_was_held() -> None:
    """From two nodes onto one: nothing crosses any more, and only the one has the job."""
    problem = problem_of()
    state = State(problem, (GANG, None, None, None, None))
    here = Placement(0, (1, 1), (3, 5))
    assert state.apply(Move(0, here)) == Move(0, GANG)
    assert state.node_jobs == [{}, {0: None}]
    assert (state.machine_load.tolist(), state.domain_load.tolist()) == ([[0, 0]] * 2, [[0, 0]] * 2)
    assert state.gpu_jobs.tolist() == [0, 0, 0, 1, 0, 1]
    assert state.node_free[:, 0].tolist() == [32_000, 30_000]
    assert state.apply(Move(0, None)) == Move(0, here)
    assert arrays(state) == EMPTY


def test_holdings() -> None:
    """In the order of the jobs given; shares are the requests."""
    problem = problem_of()
    found = holdings(problem, [(1, GANG), (3, TWO), (4, BARE), (2, CPU)])
    assert (found.job.tolist(), found.gpu.tolist()) == ([1, 1, 3, 3], [0, 4, 0, 2])
    assert (found.milli.tolist(), found.option.tolist()) == ([500, 500, 1000, 1000], [0, 0, 2, 2])
    assert (found.worker_node.tolist(), found.worker_option.tolist()) == ([0, 1, 0, 1, 1, 0], [0, 0, 2, 3, 1, 1])
    empty = holdings(problem, [])
    assert [column.tolist() for column in vars(empty).values()] == [[]] * 6


def test_take_is_for_a_job_alike() -> None:
    """Without noting who it is: placements and jobs of nodes stay as they are."""
    problem = problem_of()
    state = State(problem)
    assert state.tenants == [{}, {}]
    state.take(1, GANG)
    assert state.placements == [None] * 5
    assert state.node_jobs == [{}, {}]
    assert state.gpu_free_milli.tolist() == [500, 1000, 1000, 1000, 500, 1000]
    assert state.queue_used.tolist() == [[1000, 2000, 20], [0, 0, 0]]
    state.take(1, GANG, -1)
    assert arrays(state) == EMPTY


def test_tenants_without_interference() -> None:
    """Nothing to follow: the list is empty, and stays so."""
    problem = problem_of(slowdowns=())
    state = State(problem, (GANG, None, None, None, None))
    assert state.tenants == []
    state.apply(Move(3, TWO))
    assert state.tenants == []


def test_tenants_hold_gpus_of_their_node_only() -> None:
    """The last GPU of the first node and the first of the second."""
    state = State(problem_of())
    assert state.tenants == [{}, {}]
    state.apply(Move(0, Placement(0, (0, 1), (2, 3))))
    assert state.tenants == [{(0, (2,)): 1}, {(0, (3,)): 1}]


def test_tenants_may_be_replaced() -> None:
    problem = problem_of()
    state = State(problem)
    state.tenants = [{(0, (0,)): 1}, {}]
    state.apply(Move(3, TWO))
    assert state.tenants == [{(0, (0,)): 1, (1, (0, 2)): 1}, {}]


def test_load_changes_what_differs() -> None:
    """Jobs that stay are not touched, in an equal placement neither; the order on a node shows it."""
    problem = problem_of()
    state = State(problem, (GANG, None, None, TWO, None))
    equal = Placement(0, (0, 1), (0, 4))
    state.load((equal, None, CPU, Placement(2, (0,), (1, 2)), None))
    assert state.placements[0] is GANG
    assert [list(jobs) for jobs in state.node_jobs] == [[0, 3], [0]]
    assert state.placements == [GANG, None, CPU, Placement(2, (0,), (1, 2)), None]
    state.load((None, GANG, None, None, None))
    assert [list(jobs) for jobs in state.node_jobs] == [[1], [1]]
    assert snapshot(state) == snapshot(State(problem, (None, GANG, None, None, None)))
