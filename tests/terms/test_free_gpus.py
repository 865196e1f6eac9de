"""What is reported of the GPUs that a plan leaves free, by hand."""

from placeopt import solve
from placeopt.build import instance, job, machine, node
from placeopt.model import Domain, Gpu, Part
from placeopt.problem import Move, Placement, State, compile_problem
from placeopt.solving.finish import slots_left

PARTS = (Part(id="s0", level="socket"), Part(id="s1", level="socket"))
GPUS = [Gpu(model="A", part=part) for part in ("s0", "s0", "s1", "s1")]


def two_minskys(**last: bool) -> State:
    """Two nodes of two sockets of two GPUs in a rack; a half GPU is held on GPU 0."""
    nodes = (node("n0", domain="r0"), node("n1", domain="r0", **last))
    round_ = instance(
        nodes, [job("half", gpu_milli=500)], machines=[machine(gpus=GPUS, parts=PARTS)], domains=[Domain(id="r0")]
    )
    state = State(compile_problem(round_))
    state.apply(Move(0, Placement(0, (0,), (0,))))
    return state


def test_slots_by_level() -> None:
    """Free: 1, 2, 2, 2 by socket; 3 and 4 by node; 7 in the rack."""
    found = slots_left(two_minskys())
    assert [found[f"slots_socket_{n}"] for n in (1, 2, 4, 8)] == [7, 3, 0, 0]
    assert [found[f"slots_node_{n}"] for n in (1, 2, 4, 8)] == [7, 1 + 2, 1, 0]
    assert [found[f"slots_rack_{n}"] for n in (1, 2, 4, 8)] == [7, 3, 1, 0]
    assert [found[f"slots_cluster_{n}"] for n in (1, 2, 4, 8)] == [7, 3, 1, 0]
    assert "slots_switch_1" not in found


def test_drained_nodes_have_no_slots() -> None:
    """Three GPUs are left on the other node."""
    assert slots_left(two_minskys(drained=True))["slots_cluster_1"] == 3


def test_a_plan_states_them() -> None:
    """One GPU of four is held."""
    plan = solve(instance(1, [job("a")]), time_limit_s=5)
    assert (plan.facts["slots_node_1"], plan.facts["slots_node_2"], plan.facts["slots_node_4"]) == (3, 1, 0)
