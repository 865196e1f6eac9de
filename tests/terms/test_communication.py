"""Path length between a job's GPUs: SC'17 eq. 3 by hand, and the shapes that its linear form needs."""

import numpy as np
import pytest
from hypothesis import given

from helpers.machines import SC17_MATRIX, sockets
from helpers.relaxations import least_cost
from placeopt.build import instance, job, machine, node, option
from placeopt.model import Communication, Demand, Domain, Edge, Gpu, Group, Job, Link, Machine, Option
from placeopt.problem import Move, Placement, Problem, State, compile_problem
from placeopt.terms.costs import Communication as CommunicationCost
from strategies import Choice, choices

TERM = CommunicationCost()


def one_job(machine: Machine, weight: int = 1, edges: tuple[Edge, ...] = (), **fields: int) -> Problem:
    """A job on two nodes of a machine type that hang on the network."""
    traffic = Communication(weight=weight, edges=edges)
    return compile_problem(instance(2, [job("a", communication=traffic, **fields)], machines=[machine]))


@pytest.mark.parametrize(
    ("gpus", "distance"), [((0,), 0), ((0, 1), 1), ((1, 2), 20), ((0, 1, 2), 41), ((0, 1, 2, 3), 82)]
)
def test_the_distances_of_the_sc17_scenarios(gpus: tuple[int, ...], distance: int) -> None:
    """1 inside a socket, 20 across: 1 + 20 + 20 = 41 for three GPUs (m(3) of the artifact), 2 x 1 + 4 x 20 for all."""
    problem = one_job(machine(gpus=4, gpu_distance_matrix=SC17_MATRIX), gpus=len(gpus))
    assert TERM.score(problem, (Placement(0, (0,), gpus),)) == distance


def test_the_graph_of_figure_7_gives_42_across_sockets() -> None:
    """1 up to the socket, 20 up to the machine, and down again: 1 + 20 + 20 + 1. Weight 4 is the tiny batch."""
    problem = one_job(sockets(2, 2), weight=4, gpus=2)
    assert TERM.score(problem, (Placement(0, (0,), (0, 1)),)) == 4 * 2
    assert TERM.score(problem, (Placement(0, (0,), (1, 2)),)) == 4 * 42


def test_pairs_between_nodes_go_up_and_down_the_tree() -> None:
    """
    Racks of weight 200 above machines of weight 100 above GPUs of weight 1.

    Same rack: 1 + 100 + 100 + 1 = 202. Other rack: 1 + 100 + 200 + 200 + 100 + 1 = 602. In a node: 2.
    """
    nodes = (node("n0", domain="r0"), node("n1", domain="r0"), node("n2", domain="r1"))
    gang, domains = job("a", workers=4, communication=Communication(weight=1)), (Domain(id="r0"), Domain(id="r1"))
    problem = compile_problem(instance(nodes, [gang], machines=[machine(gpus=2)], domains=domains))
    assert TERM.score(problem, (Placement(0, (0, 0, 1, 2), (0, 1, 2, 4)),)) == 2 + 2 * 202 + 3 * 602
    assert TERM.worst(problem) == 6 * 602


def test_edges_weigh_pairs_of_workers_and_the_weight_holds_inside_one() -> None:
    """Workers 0-1 talk with weight 5, 0-2 not at all; each worker's two GPUs with weight 3."""
    problem = one_job(machine(gpus=4), weight=3, edges=(Edge(ranks=(1, 0), weight=5),), workers=3, gpus=2)
    placement = Placement(0, (0, 0, 1), (0, 1, 2, 3, 4, 5))
    assert TERM.score(problem, (placement,)) == 3 * (2 + 2 + 2) + 5 * 4 * 2
    assert TERM.worst(problem) == (3 * 3 + 5 * 4) * 202


def ring(count: int) -> Machine:
    """GPUs in a ring of links: no levels."""
    return machine(gpus=count, links=tuple(Link(gpus=(g, (g + 1) % count)) for g in range(count)))


def test_gpus_are_alike_where_they_swap_without_changing_a_distance() -> None:
    """Formulations fold alike GPUs: those of a socket on levelled machines, none on rings and cube meshes."""
    levelled = one_job(sockets(2, 2), gpus=2)
    assert TERM.gpu_classes(levelled).tolist() == [0, 0, 2, 2] * 2
    assert TERM.gpu_classes(one_job(ring(4), gpus=2)).tolist() == [0, 1, 2, 3] * 2
    assert TERM.gpu_classes(one_job(ring(4), gpus=1)) is None
    assert TERM.gpu_classes(one_job(ring(4), weight=0, gpus=2)) is None


def test_of_a_traffic_graph_only_a_bound_enters() -> None:
    """
    Two nodes of two GPUs; ranks in a path 0-2-1-3 with traffic 5, 1, 5. With pairs {0, 2} and {1, 3} on a node each it
    costs 5 x 2 twice, and the edge between goes 1 + 100 + 100 + 1; as if all were as close as any, 11 x 2.
    """
    edges = tuple(Edge(ranks=ranks, weight=weight) for ranks, weight in (((0, 2), 5), ((2, 1), 1), ((1, 3), 5)))
    problem = one_job(machine(gpus=2), edges=edges, workers=4)
    assert TERM.score(problem, (Placement(0, (0, 1, 0, 1), (0, 2, 1, 3)),)) == 10 + 10 + 202
    assert TERM.form(problem) == "bound"
    assert least_cost(problem, TERM)[0] == 11 * 2
    assert TERM.gpu_classes(problem) is None


def test_edges_do_not_bind_a_job_of_one_worker() -> None:
    """Beside an option of two workers there is one of one, whose two GPUs weigh alike: in a socket, 2 apart."""
    options = (option("two", workers=2), option("one", gpus=2))
    traffic = Communication(weight=3, edges=(Edge(ranks=(0, 1), weight=9),))
    jobs = [job("a", options=options, communication=traffic)]
    problem = compile_problem(instance(1, jobs, machines=[sockets(2, 2)]))
    assert [TERM.forbids_folding(problem, o) for o in range(2)] == [False, True]
    assert least_cost(problem, TERM)[0] == 3 * 2


def test_gpus_at_unlike_distances_from_the_network_leave_as_from_the_closest() -> None:
    """
    GPU 0 stands in a socket (1 + 20 up), GPU 1 at the machine (1 up). Two workers on two nodes cost 1 + 100 + 100 + 1
    on GPU 1 of both, and 20 more for each on GPU 0. On one machine there is no way out, so what is charged is exact.
    """
    lopsided = sockets(1, gpus=[Gpu(model="A", part="s0"), Gpu(model="A")])
    problem = one_job(lopsided, workers=2, workers_per_node_max=1)
    assert TERM.form(problem) == "bound"
    assert least_cost(problem, TERM)[0] == 202
    assert TERM.score(problem, (Placement(0, (0, 1), (0, 3)),)) == 222
    assert TERM.form(one_job(lopsided, gpus=2)) == "exact"


def test_the_worst_case_is_the_costliest_option_over_the_longest_path() -> None:
    """SC'17 eq. 1 divides by it; k (k - 1) / 2 pairs in the largest option."""
    problem = one_job(machine(gpus=4), weight=2, workers=4)
    assert TERM.worst(problem) == 2 * 6 * 202
    assert np.array_equal(problem.topology.max_distance, 202)


@given(choice=choices)
def test_groups_of_alike_workers_cost_as_one_gang_does(choice: Choice) -> None:
    """Ranks run over the leaves: with a weight for all pairs, or edges between ranks of different leaves."""
    sizes = [choice.number(1, 2) for _ in range(choice.number(1, 3))]
    workers, each = sum(sizes), choice.number(1, 2)
    pairs = [(a, b) for a in range(workers) for b in range(a) if choice.chance(0.4)]
    edges = tuple(Edge(ranks=pair, weight=choice.number(1, 3)) for pair in pairs)
    traffic = Communication(weight=choice.number(0, 3), edges=edges)
    demand = Demand(gpus=each)
    leaves = tuple(Group(id=f"g{i}", workers=size, demand=demand) for i, size in enumerate(sizes))
    flat = Job(id="a", options=(Option(workers=workers, demand=demand),), communication=traffic)
    tree = Job(id="a", options=(Option(groups=leaves),), communication=traffic)
    nodes = [choice.number(0, 2) for _ in range(workers)]
    left = {at: list(range(12)) for at in range(3)}
    gpus = [[left[at].pop(choice.number(0, len(left[at]) - 1)) for _ in range(each)] for at in nodes]
    costs = []
    for made in (flat, tree):
        problem = compile_problem(instance(3, [made], machines=[machine(gpus=12)], racks=2))
        members = [(0, list(range(workers)))]
        if made is tree:
            ends = np.cumsum([0, *sizes]).tolist()
            members = [(i, list(range(ends[i], ends[i + 1]))) for i in range(len(sizes))]
        allocation = tuple(
            Placement(
                int(problem.class_option_start[problem.job_class[member]]),
                tuple(nodes[rank] for rank in ranks),
                tuple(12 * nodes[rank] + gpu for rank in ranks for gpu in gpus[rank]),
            )
            for member, ranks in members
        )
        state = State(problem)
        deltas = 0
        for member, placement in enumerate(allocation):
            deltas += TERM.delta(state, Move(member, placement))
            state.apply(Move(member, placement))
        costs.append(TERM.score(problem, allocation))
        assert deltas == costs[-1] <= TERM.worst(problem)
    assert costs[0] == costs[1]
