"""What is reported of the GPUs that a plan leaves free, by hand."""

from helpers.machines import sockets
from placeopt import solve
from placeopt.build import instance, job, node, running
from placeopt.model import Domain, Instance


def slots(round_: Instance) -> dict[str, float]:
    return {name: count for name, count in solve(round_, time_limit_s=5).facts.items() if name.startswith("slots")}


def two_minskys(**last: bool) -> Instance:
    """Two nodes of two sockets of two GPUs in a rack; a half GPU is held on GPU 0."""
    nodes = (node("n0", domain="r0"), node("n1", domain="r0", **last))
    half = job("half", gpu_milli=500)
    kinds = [sockets(2, 2)]
    return instance(nodes, [half], machines=kinds, domains=[Domain(id="r0")], running=[running(half, [("n0", [0])])])


def test_slots_by_level() -> None:
    """Free: 1, 2, 2, 2 by socket; 3 and 4 by node; 7 in the rack. Drained nodes have none: 3 are left."""
    found = slots(two_minskys())
    assert [found[f"slots_socket_{n}"] for n in (1, 2, 4, 8)] == [7, 3, 0, 0]
    assert [found[f"slots_node_{n}"] for n in (1, 2, 4, 8)] == [7, 1 + 2, 1, 0]
    assert [found[f"slots_rack_{n}"] for n in (1, 2, 4, 8)] == [7, 3, 1, 0]
    assert [found[f"slots_cluster_{n}"] for n in (1, 2, 4, 8)] == [7, 3, 1, 0]
    assert "slots_switch_1" not in found
    assert slots(two_minskys(drained=True))["slots_cluster_1"] == 3
