"""GPUs left free in partly used domains, by hand."""

import pytest

from helpers.machines import sockets
from placeopt.build import instance, job, node
from placeopt.model import Domain, Policy
from placeopt.model import Fragmentation as Weights
from placeopt.problem import Move, Placement, Problem, State, compile_problem
from placeopt.terms.costs import Fragmentation

TERM = Fragmentation()


def two_nodes(**weights: int) -> Problem:
    """Two nodes of one rack with two sockets of two GPUs each, and three jobs of a half GPU."""
    policy = Policy(fragmentation=Weights(level_weights=weights))
    jobs = [job(f"{i}", gpu_milli=500) for i in range(3)]
    nodes = (node("n0", domain="r0"), node("n1", domain="r0"))
    return compile_problem(instance(nodes, jobs, machines=[sockets(2, 2)], domains=[Domain(id="r0")], policy=policy))


@pytest.mark.parametrize(
    ("gpus", "node", "socket", "rack"),
    [
        ((), 0, 0, 0),  # all empty
        ((0,), 3, 1, 7),  # 3 of n0, 1 of its socket, 7 of the rack
        ((0, 0), 3, 1, 7),  # a GPU with two jobs is as busy as with one
        ((0, 1), 2, 0, 6),  # a full socket wastes nothing
        ((0, 2), 2, 2, 6),
        ((0, 4), 6, 2, 6),
        ((0, 1, 4), 5, 1, 5),
    ],
)
def test_free_gpus_of_domains_neither_empty_nor_full(gpus: tuple[int, ...], node: int, socket: int, rack: int) -> None:
    """``partial``, per level and with weights 1, 10 and 100 together."""
    problem = two_nodes(node=1, socket=10, rack=100)
    placed = [Placement(0, (gpu // 4,), (gpu,)) for gpu in gpus]
    allocation = (*placed, *[None] * (3 - len(placed)))
    assert TERM.score(problem, allocation) == node + 10 * socket + 100 * rack


def test_the_worst_case_has_one_busy_gpu_in_every_domain() -> None:
    """2 x 3 on nodes, 4 x 1 in sockets, 7 in the rack."""
    assert TERM.worst(two_nodes(node=1, socket=10, rack=100)) == 6 + 40 + 700


def test_the_last_free_gpu_of_a_domain_takes_its_cost_away() -> None:
    """The delta that makes greedy fill up: from 1 free in the socket and 3 in the node to 0 and 2."""
    problem = two_nodes(node=1, socket=1)
    state = State(problem)
    assert TERM.delta(state, Move(0, Placement(0, (0,), (0,)))) == 3 + 1
    state.apply(Move(0, Placement(0, (0,), (0,))))
    assert TERM.delta(state, Move(1, Placement(0, (0,), (1,)))) == -1 - 1
    assert TERM.delta(state, Move(1, Placement(0, (0,), (0,)))) == 0
    assert TERM.delta(state, Move(0, None)) == -4


def test_gpus_are_alike_where_they_share_all_domains() -> None:
    """Formulations fold alike GPUs of a node: the sockets must stay apart where sockets count, and only there."""
    assert TERM.gpu_classes(two_nodes(node=1, rack=1)) is None
    alike = TERM.gpu_classes(two_nodes(node=1, socket=1))
    assert alike.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
