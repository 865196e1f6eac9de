"""Gangs onto nodes in stated parts: by class where there are such nodes, else where there is room."""

import numpy as np

from placeopt.build import instance, job, machine, node
from placeopt.heuristics.search import Guide, PartPlacer
from placeopt.model import Communication, Domain, Policy, Weights
from placeopt.problem import State, compile_problem
from placeopt.terms.objective import weighted_costs


def placer_of(workers: int, racks: int, per_rack: int) -> tuple[PartPlacer, int, int]:
    """Return a placer over racks of nodes of four GPUs, all of class 0 but the last rack's, and a gang's option."""
    domains = tuple(Domain(id=f"r{i}") for i in range(racks))
    nodes = tuple(node(f"n{i}", domain=f"r{i // per_rack}") for i in range(racks * per_rack))
    gang = job("gang", workers=workers, gpus=4, value=9, communication=Communication(weight=1))
    policy = Policy(weights=Weights(communication=1000, interference=0, fragmentation=0))
    problem = compile_problem(instance(nodes, [gang], machines=[machine(gpus=4)], domains=domains, policy=policy))
    number = problem.num_nodes
    none = np.zeros(number, dtype=np.int64)
    guide = Guide(np.zeros(len(problem.options)), none, none, none)
    domain = np.arange(number) // per_rack
    placer = PartPlacer(State(problem), weighted_costs(problem), guide, domain, (domain == racks - 1).astype(np.int64))
    return placer, 0, int(problem.options_of(0)[0])


def test_parts_lie_as_they_are_stated() -> None:
    """Three bundles, two in the rack of the other class and one elsewhere, though one rack would take all."""
    placer, gang, option = placer_of(workers=3, racks=3, per_rack=3)
    placement = placer.put(gang, option, [[(0, 1)], [(1, 1), (1, 1)]])
    assert placement is not None
    racks = sorted(n // 3 for n in placement.nodes)
    assert racks[1:] == [2, 2]
    assert racks[0] in (0, 1)
    assert placer.state.placements[gang] == placement


def test_a_part_without_nodes_of_its_class_lies_elsewhere() -> None:
    """Three nodes of class 1 are asked for together; there are two, so a rack of the other class takes the part."""
    placer, gang, option = placer_of(workers=3, racks=2, per_rack=3)
    placer._place = np.array([0, 0, 0, 1, 1, 0])
    placement = placer.put(gang, option, [[(1, 1), (1, 1), (1, 1)]])
    assert placement is not None
    assert len({n // 3 for n in placement.nodes}) == 1


def test_a_gang_whose_parts_find_no_room_lies_where_it_costs_least() -> None:
    """A part of four bundles fits no rack of three nodes; without any room there is no placement."""
    placer, gang, option = placer_of(workers=4, racks=2, per_rack=3)
    placement = placer.put(gang, option, [[(0, 1)] * 4])
    assert placement is not None
    assert sorted(np.bincount([n // 3 for n in placement.nodes]).tolist()) in ([1, 3], [2, 2])
    full, gang, option = placer_of(workers=4, racks=1, per_rack=3)
    assert full.put(gang, option, [[(0, 1)] * 4]) is None
