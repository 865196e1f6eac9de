"""The well-known machines against facts of their data sheets."""

import pytest

from placeopt.model import Machine
from placeopt.topology import MACHINES, dgx1, dgx2, dgx_a100, dgx_h100


def test_dgx1_uses_every_lane() -> None:
    """A V100 has six NVLink lanes; in the hybrid cube mesh each goes to one of four neighbours."""
    lanes = [0] * 8
    for link in dgx1().links:
        for gpu in link.gpus:
            lanes[gpu] += link.lanes
    assert lanes == [6] * 8
    assert len(dgx1().links) == 16  # 12 edges of the cube and the diagonals of two faces (SC'17, section 1)


@pytest.mark.parametrize(
    ("machine", "gpus", "lanes", "mbps"),
    [(dgx2(), 16, 6, 150_000), (dgx_a100(), 8, 12, 300_000), (dgx_h100(), 8, 18, 450_000)],
)
def test_nvswitch_links_all_pairs(machine: Machine, gpus: int, lanes: int, mbps: int) -> None:
    """Data sheets: 300, 600 and 900 GB/s per GPU, both directions together."""
    assert len(machine.gpus) == gpus
    assert len(machine.links) == gpus * (gpus - 1) // 2
    assert {(link.lanes, link.bandwidth_mbps) for link in machine.links} == {(lanes, mbps)}


def test_every_builder_names_its_source() -> None:
    for build in MACHINES.values():
        assert build().source
        assert build() == build()
