"""Rooms of classes of nodes are the sums of their nodes' rooms, however options and alike nodes are taken together."""

import pytest
from hypothesis import given

from placeopt import Instance
from placeopt.problem import BundleRooms, ClassRooms, State, compile_problem
from strategies import rounds


@pytest.mark.parametrize("cells", [1, 1 << 16])
@given(round_=rounds())
def test_rooms_of_classes_are_sums(round_: Instance, cells: int) -> None:
    problem = compile_problem(round_)
    state = State(problem)
    rooms, each = ClassRooms(state, cells), BundleRooms(state)
    for option in range(len(problem.options)):
        sums: dict[int, int] = {}
        for node, room in zip(*each.per_node(option), strict=True):
            number = int(problem.node_class[node])
            sums[number] = sums.get(number, 0) + int(room)
        assert rooms.of(option) == sums
