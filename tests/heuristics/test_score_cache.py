"""Greedy's memory: nodes that look alike really are."""

from placeopt.build import instance, job, machine
from placeopt.heuristics.score_cache import NodeViews
from placeopt.model import Gpu
from placeopt.problem import Move, Placement, State, compile_problem


def test_nodes_differ_by_the_model_with_a_share_left() -> None:
    """A V100 is held on one node, an A100 on the other: what is left adds up alike, but is not alike."""
    mixed = machine(gpus=[Gpu(model="V100", memory_mib=16_384), Gpu(model="A100", memory_mib=16_384)])
    problem = compile_problem(instance(2, [job("a"), job("b")], machines=[mixed]))
    state = State(problem)
    views = NodeViews(state)
    assert views.state_of(0) == views.state_of(1)
    for name, node, gpu in ((0, 0, 0), (1, 1, 3)):
        state.apply(Move(name, Placement(problem.options_of(name)[0], (node,), (gpu,))))
        views.forget(node)
    assert views.state_of(0) != views.state_of(1)
