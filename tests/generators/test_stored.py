"""The stored instances: listed, readable, small, and the same as the script makes them today."""

import subprocess
import sys
from pathlib import Path

import pytest

from placeopt import read_instance
from placeopt.formats import read_bytes

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "instances"
LISTS = ("tiny", "openb", "generated", "hard", "real")


def listed(name: str) -> list[str]:
    return (STORED / f"{name}.test").read_text().split()


@pytest.mark.parametrize("path", sorted({path for name in LISTS for path in listed(name)}))
def test_every_listed_instance_reads(path: str) -> None:
    """Named as its file, with a source, and not above 200 kB."""
    file = STORED / path
    instance = read_instance(file)
    assert instance.name == file.name.removesuffix(".gz").removesuffix(".json")
    assert instance.note
    assert file.stat().st_size < 200_000


def test_lists_name_all_stored_instances() -> None:
    folders = ("hand", "openb", "generated", "hard", "real")  # others hold machines, not rounds
    stored = {f"{folder}/{file.name}" for folder in folders for file in (STORED / folder).glob("*.json*")}
    stored.remove("openb/openb-gpu-nodes.json.gz")  # nodes alone, and no jobs to place
    assert {path for name in LISTS for path in listed(name)} == stored


def test_openb_whole() -> None:
    """Known figures of the trace: 8,152 pods, 1,523 nodes of 27 shapes, 6,212 GPUs, of which 6,086.8 are asked for."""
    instance = read_instance(STORED / "openb" / "openb-default.json.gz")
    gpus = {machine.id: len(machine.gpus) for machine in instance.cluster.machines}
    assert (len(instance.jobs), len(instance.cluster.nodes), len(gpus)) == (8152, 1523, 27)
    assert sum(gpus[node.machine] for node in instance.cluster.nodes) == 6212
    assert sum(job.options[0].value for job in instance.jobs if job.kind != "cpu") == 6_086_800
    assert sum(job.kind == "cpu" for job in instance.jobs) == 1088


def test_script_makes_the_same_files(tmp_path: Path) -> None:
    """Of those made without the trace. Contents are compared, as another zlib may compress otherwise."""
    subprocess.run(
        [sys.executable, ROOT / "bench" / "instances" / "make_instances.py", "--out", tmp_path],
        check=True,
        capture_output=True,
    )
    made = [file.relative_to(tmp_path) for file in tmp_path.rglob("*.json*")]
    assert len(made) == 22 + 28
    for file in made:
        assert read_bytes(tmp_path / file) == read_bytes(STORED / file), file
    for name in ("tiny", "generated", "hard", "large", "all"):
        assert (tmp_path / f"{name}.test").read_text() == (STORED / f"{name}.test").read_text()
