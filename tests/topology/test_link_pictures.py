"""Which links a job got: pairs worked by hand, and pictures that say the same without colour."""

from pathlib import Path

import pytest

from placeopt import BadInput
from placeopt.build import machine
from placeopt.importers.topo import read_machine
from placeopt.model import Gpu, Part
from placeopt.report.text import JOB_COLORS, WIDTH, job_links, machine_picture
from placeopt.topology import MACHINES, dgx1, minsky, pcie_box

DATA = Path(__file__).parents[1] / "data" / "topo"


def test_job_links_on_a_dgx1() -> None:
    """0-3 has two lanes (50 GB/s). 3-4 has none: over the tree 15,754 MB/s, but the shortest path 3-0-4 costs 2."""
    near = [(0, 3, "nvlink", 2, 50_000, 1), (0, 4, "nvlink", 2, 50_000, 1)]
    assert [tuple(pair) for pair in job_links(dgx1(), [4, 0, 3])] == [*near, (3, 4, "SYS", 0, 15_754, 2)]
    assert job_links(dgx1(), [5]) == []


def test_kinds_without_links() -> None:
    """Same switch, same socket, across; a socket that states no bandwidth makes the way's unknown."""
    pairs = [tuple(pair) for pair in job_links(pcie_box(8, gpus_per_switch=2), [0, 1, 2, 4])]
    assert pairs[:3] == [(0, 1, "PIX", 0, 15_754, 2), (0, 2, "NODE", 0, 15_754, 22), (0, 4, "SYS", 0, None, 62)]


def test_kinds_of_two_layers_of_switches_and_of_no_parts() -> None:
    parts = [Part(id=name, level="switch", parent=above) for name, above in (("u", None), ("v", "u"), ("w", "u"))]
    layers = machine("m", [Gpu(model="x", part=part) for part in "vvw"], parts=tuple(parts))
    assert [pair.kind for pair in job_links(layers, [0, 1, 2])] == ["PIX", "PXB", "PXB"]
    assert [pair.kind for pair in job_links(machine("m", 2), [0, 1])] == ["HOST"]


@pytest.mark.parametrize("gpus", [[4], [-1], [1, 1]])
def test_wrong_gpus_are_refused(gpus: list[int]) -> None:
    with pytest.raises(BadInput, match="expected different indices from 0 to 3"):
        job_links(minsky(), gpus)
    if len(set(gpus)) == len(gpus):
        with pytest.raises(BadInput, match="machine 'minsky'"):
            machine_picture(minsky(), dict.fromkeys(gpus, "job"))


def test_picture_of_a_minsky() -> None:
    """Job A is spread over the sockets, which the picture shows by [SYS] and its distance of 42."""
    expected = """\
minsky: 4 GPUs, 1 free
  socket0  0 A  1 B
  socket1  2 A  3 .

     0 A  1 B  2 A  3 .
0 A  X    NV2 [SYS] SYS
1 B  NV2  X    SYS  SYS
2 A [SYS] SYS  X    NV2
3 .  SYS  SYS  NV2  X
NV# NVLink, # lanes; SYS across sockets

A = spread: GPUs 0,2: 1 x SYS; distance 42
B = other: GPU 1"""
    plain = machine_picture(minsky(), {0: "spread", 2: "spread", 1: "other"}).plain
    assert [line.rstrip() for line in plain.split("\n")] == expected.split("\n")


@pytest.mark.parametrize("name", list(MACHINES))
def test_pictures_keep_to_the_width(name: str) -> None:
    kind = MACHINES[name]()
    held = {gpu: f"a-job-with-a-rather-long-name-{gpu // 3:060d}" for gpu in range(len(kind.gpus) - 1)}
    assert all(len(line) <= WIDTH for line in machine_picture(kind, held).plain.split("\n"))


def test_large_machines_and_those_of_files() -> None:
    """Without a matrix above 32 GPUs; deep trees and machines without parts or GPUs are drawn too."""
    large = machine_picture(pcie_box(200), dict.fromkeys(range(60), "big")).plain
    assert "no matrix" in large
    assert all(len(line) <= WIDTH for line in large.split("\n"))
    assert "A = big: GPUs 0,1,2" in large
    for path in sorted(DATA.glob("*.xml")):
        kind = read_machine(path)
        assert machine_picture(kind, {}).plain.startswith(kind.id)


def test_colours_by_job() -> None:
    """Jobs differ in colour. Styles are compared, not codes: rich keeps the codes of a style's first console."""
    picture = machine_picture(minsky(), {0: "a", 1: "a", 2: "b"})
    styles = {picture.plain[span.start : span.end]: str(span.style) for span in picture.spans}
    assert styles["0 A"] == styles["1 A"] == JOB_COLORS[0]
    assert styles["2 B"] == JOB_COLORS[1]
