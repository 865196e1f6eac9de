"""The shortest path that the hardware offers an option, by hand: what utilities are measured against."""

from typing import Any

from placeopt.build import instance, job, machine, node, option
from placeopt.model import Communication, Domain, Gpu, Part
from placeopt.problem import compile_problem

PARTS = (Part(id="s0", level="socket"), Part(id="s1", level="socket"))


def paths(*shapes: Any, nodes: Any = 3, **fields: Any) -> list[int]:
    """Return the best path of each option of a job."""
    a = job("a", options=shapes, communication=Communication(weight=1))
    return compile_problem(instance(nodes, [a], **fields)).best_path.tolist()


def test_on_one_node() -> None:
    """Flat machines of four, each pair 2 apart, 202 across: 0, 2, 6 and 12 for one to four GPUs, in any form."""
    shapes = [option(f"g{n}", gpus=n) for n in (1, 2, 3, 4)]
    shapes += [option(f"w{n}", workers=n) for n in (1, 2, 3, 4)]
    shapes += [option("s", workers=2, gpus=2, single_node=True), option("cpu", workers=3, gpus=0)]
    assert paths(*shapes) == [0, 2, 6, 12, 0, 2, 6, 12, 12, 0]


def test_dealt_out_to_nodes() -> None:
    """
    Five single GPUs: 12 + 4 x 202 (4 + 1) beats 6 + 2 + 6 x 202 (3 + 2). At most two a node: 2 + 2 + 8 x 202.

    Three workers of two: 12 + 2 + 8 x 202. Workers of three or four: alone, 6 + 6 + 9 x 202, 3 x 12 + 48 x 202.
    """
    shapes = [
        option("five", workers=5),
        option("two-each", workers=5, workers_per_node_max=2),
        option("one-each", workers=3, workers_per_node_max=1),
        option("pairs", workers=3, gpus=2),
        option("threes", workers=2, gpus=3),
        option("fours", workers=3, gpus=4),
    ]
    expected = [12 + 4 * 202, 4 + 8 * 202, 3 * 202, 14 + 8 * 202, 12 + 9 * 202, 36 + 48 * 202]
    assert paths(*shapes) == paths(*shapes, nodes=9) == expected


def test_where_there_is_one_node_all_is_on_it_or_nowhere() -> None:
    """More than a node has is nowhere: 0. All on one node, and one on each: the first counts, as for the referee."""
    shapes = [option("two", workers=2), option("five", workers=5), option("alone", workers=2, workers_per_node_max=1)]
    assert paths(*shapes, nodes=1) == [2, 0, 0]
    assert paths(option("big", gpus=5), option("bigs", workers=2, gpus=5), nodes=2) == [0, 0]
    assert paths(option("s", workers=5, single_node=True), option("t", workers=4, single_node=True)) == [0, 12]
    assert paths(option("both", workers=2, single_node=True, workers_per_node_max=1)) == [2]


def test_each_type_of_gpu_by_itself() -> None:
    """Model A in socket s0, B on each socket: 2 and 42 apart; the memory that is asked for leaves out A."""
    kinds = (("A", 1, "s0"), ("A", 1, "s0"), ("B", 2, "s0"), ("B", 2, "s1"))
    gpus = [Gpu(model=model, memory_mib=mib, part=part) for model, mib, part in kinds]
    shapes = [
        option("any", gpus=2),
        option("A", gpus=2, gpu_models=("A",)),
        option("B", gpus=2, gpu_models=("B",)),
        option("large", gpus=2, gpu_memory_mib=2),
        option("three-A", workers=3, gpu_models=("A",)),
        option("none", gpus=2, gpu_models=("C",)),
    ]
    across = 21 + 21 + 200
    assert paths(*shapes, machines=[machine(gpus=gpus, parts=PARTS)]) == [2, 2, 42, 42, 2 + 2 * across, 0]


def test_the_best_type_of_machine() -> None:
    """Pairs 42 apart in one, 2 in the other, which has only two GPUs; three GPUs need the first: 2 x 42 + 2."""
    far = machine("far", gpus=[Gpu(model="A", part=part) for part in ("s0", "s0", "s1")], parts=PARTS)
    split = machine("split", gpus=[Gpu(model="A", part=part) for part in ("s0", "s1")], parts=PARTS)
    nodes = [node("n0", "split"), node("n1", "flat"), node("n2", "far")]
    shapes = [option("2", gpus=2), option("3", gpus=3), option("2w", workers=2)]
    kinds = [far, split, machine("flat", gpus=2)]
    assert paths(*shapes, nodes=nodes, machines=kinds) == [2, 86, 2]
    assert paths(option("2", gpus=2), nodes=nodes[:1], machines=kinds) == [42]


def test_across_is_the_nearest_two_nodes() -> None:
    """202 in a rack, 602 across racks; a pair of GPUs may be 0 or 1 apart."""
    racks = (Domain(id="r0"), Domain(id="r1"))
    one_each = option("1", workers=2, workers_per_node_max=1)
    for second, far in (("r0", 202), ("r1", 602)):
        assert paths(one_each, nodes=[node("a", domain="r0"), node("b", domain=second)], domains=racks) == [far]
    for far in (0, 1):
        kind = machine(gpus=2, gpu_distance_matrix=((0, far), (far, 0)))
        assert paths(option("2", gpus=2), option("2w", workers=2), machines=[kind]) == [far, far]
