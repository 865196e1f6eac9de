"""Distances and bandwidths inside a machine, worked by hand and against networkx; data sheets of known machines."""

from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given

from helpers.machine_graphs import machine_graph
from placeopt import BadInput
from placeopt.model import Gpu, Machine, Part
from placeopt.topology import (
    MACHINES,
    bottleneck_mbps,
    dgx1,
    dgx2,
    dgx_a100,
    dgx_h100,
    gpu_distances,
    minsky,
    pcie_box,
    root_distances,
)
from strategies import wired_machines


@pytest.mark.parametrize(
    ("machine", "distances", "up", "mbps"),
    [  # from GPU 0
        # SC'17 fig. 7: across sockets 1 + 20 + 20 + 1 = 42; inside a socket the NVLink (1) beats the tree (1 + 1);
        # 40 GB/s through the socket; across, the X bus limits
        (minsky(), [0, 1, 42, 42], 21, [0, 40_000, 38_400, 38_400]),
        # neighbours of GPU 0 are 1, 2, 3, 4; 5, 6, 7 are two links away (0-1-5, 0-2-6, 0-3-7); gpu 1 + switch 10 +
        # socket 20; PCIe limits all paths through the tree
        (dgx1(), [0, 1, 1, 1, 1, 2, 2, 2], 31, [0, *[15_754] * 7]),
        # same switch 1 + 1 = 2; same socket 1 + 10 + 10 + 1 = 22; across 1 + 10 + 20 + 20 + 10 + 1 = 62; no MB/s stated
        (pcie_box(8, gpus_per_switch=2), [0, 2, 22, 22, 62, 62, 62, 62], 31, [0, *[15_754] * 3, 0, 0, 0, 0]),
    ],
    ids=lambda one: getattr(one, "id", ""),
)
def test_by_hand(machine: Machine, distances: list[int], up: int, mbps: list[int]) -> None:
    assert gpu_distances(machine)[0].tolist() == distances
    assert root_distances(machine).tolist() == [up] * len(machine.gpus)
    assert bottleneck_mbps(machine)[0].tolist() == mbps


def test_pcie_box_spreads_gpus_over_sockets() -> None:
    """Three on two: one and two."""
    assert [gpu.part for gpu in pcie_box(3).gpus] == ["socket0", "socket1", "socket1"]


@pytest.mark.parametrize("arguments", [{"num_gpus": -1}, {"num_gpus": 1025}, {"gpus_per_switch": 0}])
def test_pcie_box_refuses(arguments: dict[str, int]) -> None:
    with pytest.raises(BadInput, match="pcie_box"):
        pcie_box(**arguments)


def test_a_stated_matrix_is_taken_as_it_is() -> None:
    """The SC'17 scenarios state 1 and 20; the way out of the machine still follows the tree."""
    stated = ((0, 1, 20, 20), (1, 0, 20, 20), (20, 20, 0, 1), (20, 20, 1, 0))
    machine = minsky().model_copy(update={"gpu_distance_matrix": stated})
    assert gpu_distances(machine).tolist() == [list(row) for row in stated]
    assert root_distances(machine).tolist() == [21] * 4


def test_a_machine_without_gpus() -> None:
    machine = Machine(id="cpu", cpu_millicores=1000, memory_mib=1)
    assert gpu_distances(machine).shape == bottleneck_mbps(machine).shape == (0, 0)
    assert gpu_distances(machine.model_copy(update={"gpu_distance_matrix": ()})).shape == (0, 0)
    assert root_distances(machine).shape == (0,)


@given(machine=wired_machines())
def test_same_as_networkx(machine: Machine) -> None:
    """Two routes, one answer: arrays against Dijkstra on the graph, on random trees with random links."""
    lengths = dict(nx.all_pairs_dijkstra_path_length(machine_graph(machine), weight="weight"))
    size = len(machine.gpus)
    expected = [[lengths["gpu", a]["gpu", b] for b in range(size)] for a in range(size)]
    assert gpu_distances(machine).tolist() == expected


@given(machine=wired_machines())
def test_the_narrowest_edge_of_a_path_limits_it(machine: Machine) -> None:
    tree = machine_graph(machine.model_copy(update={"links": ()}))
    for _, _, data in tree.edges(data=True):
        data["width"] = data["bandwidth_mbps"] or 0
    widths = bottleneck_mbps(machine)
    for a in range(len(machine.gpus)):
        for b in range(a):
            path = nx.shortest_path(tree, ("gpu", a), ("gpu", b))
            assert widths[a, b] == widths[b, a] == min(tree.edges[edge]["width"] for edge in pairwise(path))


def test_a_huge_machine_is_quick() -> None:
    """The model takes 1024 GPUs and 1024 parts in one chain: no deep recursion, no cube of vertices without links."""
    parts = tuple(Part(id=f"p{p}", level="switch", parent=f"p{p - 1}" if p else None) for p in range(1024))
    gpus = tuple(Gpu(model="x", part=f"p{g}") for g in range(1024))
    machine = Machine(id="chain", cpu_millicores=0, memory_mib=0, parts=parts, gpus=gpus)
    assert gpu_distances(machine)[0, 1023] == 1 + 10 * 1023 + 1
    assert root_distances(machine)[1023] == 1 + 10 * 1024


def test_dgx1_uses_every_lane() -> None:
    """A V100 has six NVLink lanes; 12 edges of the cube and the diagonals of two faces (SC'17, section 1)."""
    links = dgx1().links
    assert [sum(link.lanes for link in links if gpu in link.gpus) for gpu in range(8)] == [6] * 8
    assert len(links) == 16


@pytest.mark.parametrize(
    ("machine", "gpus", "lanes", "mbps"),
    [(dgx2(), 16, 6, 150_000), (dgx_a100(), 8, 12, 300_000), (dgx_h100(), 8, 18, 450_000)],
)
def test_nvswitch_links_all_pairs(machine: Machine, gpus: int, lanes: int, mbps: int) -> None:
    """Data sheets: 300, 600 and 900 GB/s per GPU, both directions together."""
    assert (len(machine.gpus), len(machine.links)) == (gpus, gpus * (gpus - 1) // 2)
    assert {(link.lanes, link.bandwidth_mbps) for link in machine.links} == {(lanes, mbps)}


def test_every_builder_names_its_source() -> None:
    for build in MACHINES.values():
        assert build().source
        assert build() == build()
