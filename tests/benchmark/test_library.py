"""The library of instances as others use it: checksums, and models that a solver reads without placeopt."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import make_models
import make_qap
from helpers.solver_models import same
from placeopt import read_instance
from placeopt.benchmark import read_model, read_solu
from placeopt.documents import read_bytes
from placeopt.linear import LinearModel
from placeopt.rank_mapping import parse_qaplib

ROOT = Path(__file__).resolve().parents[2]
INSTANCES = ROOT / "instances"
SIX = (
    "generated/uniform-20x4x4-s1.value",
    "hard/islands-20x6x8-s0.value",
    "hard/preempt-30x8x4-s0.value",
    "hand/dgx1-tour.cost",
    "hand/dgx1-1.cost",
    "real/sc17-100-longest-queue.cost",
)
PLAIN = """
import gzip, json, pathlib, sys
import highspy
path = pathlib.Path(sys.argv[2], "model.mps")
path.write_bytes(gzip.decompress(pathlib.Path(sys.argv[1]).read_bytes()))
solver = highspy.Highs()
for name, value in {"output_flag": False, "mip_rel_gap": 0.0, "threads": 1, "time_limit": 60.0}.items():
    solver.setOptionValue(name, value)
solver.readModel(str(path))
solver.run()
assert "placeopt" not in sys.modules
print(json.dumps([solver.getModelStatus().name, solver.getInfo().objective_function_value]))
"""


@pytest.mark.parametrize("name", SIX)
def test_a_solver_without_placeopt_finds_the_known_optimum(name: str, tmp_path: Path) -> None:
    """HiGHS's own reader, in an isolated interpreter; the figure is read from the file by hand."""
    command = [sys.executable, "-I", "-c", PLAIN, INSTANCES / f"{name}.mps.gz", tmp_path]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    status, objective = json.loads(ran.stdout)
    lines = [line.partition("#")[0].split() for line in (INSTANCES / "best.solu").read_text().splitlines()]
    [known] = [float(words[2]) for words in lines if words[:2] == ["=opt=", name.partition("/")[2]]]
    assert status == "kOptimal"
    assert objective == pytest.approx(known, abs=1e-4)


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="no coreutils")
def test_coreutils_verify_the_checksums() -> None:
    """Of every file that the repository keeps there."""
    command = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    subprocess.run(command, cwd=INSTANCES, check=True, capture_output=True)
    named = {line.split("  ", 1)[1] for line in (INSTANCES / "SHA256SUMS").read_text().splitlines()}
    stored = {file.relative_to(INSTANCES).as_posix() for file in INSTANCES.rglob("*") if file.is_file()}
    assert named == {name for name in stored if not name.startswith("made/")} - {"SHA256SUMS"}


def test_models_are_listed_small_and_known() -> None:
    """All together less than 3 MB; what is known of a value level is what is known of its round."""
    listed = (INSTANCES / "models.test").read_text().split()
    stored = {path.relative_to(INSTANCES).as_posix() for path in INSTANCES.rglob("*.mps.gz")}
    assert (set(listed), len(listed)) == (stored, len(stored))
    assert sum((INSTANCES / name).stat().st_size for name in listed) < 3_000_000
    known = read_solu(INSTANCES / "best.solu")
    for path in listed:
        name = path.partition("/")[2].removesuffix(".mps.gz")
        round_, _, level = name.rpartition(".")
        assert known[name].value is not None
        if level == "value":
            assert known[name] == known[round_], name
        else:
            assert known[round_].optimal


@pytest.mark.parametrize(
    "name", ["hand/minsky-1.json", "hard/parity-16x20x8-s0.json.gz", "openb/openb-first-20.json.gz"]
)
def test_the_command_makes_the_stored_models(name: str) -> None:
    """Value, and cost where the policy weighs costs; models are compared, as other versions may write others bytes."""
    stem = name.removesuffix(".gz").removesuffix(".json")
    instance = read_instance(INSTANCES / name)
    made = make_models.level_models(instance, read_solu(INSTANCES / "best.solu")[instance.name])
    assert set(made) == ({"value"} if "parity" in name else {"value", "cost"})
    for level, model in made.items():
        stored = read_model(INSTANCES / f"{stem}.{level}.mps.gz")
        assert isinstance(stored, LinearModel)
        assert same(stored, model)


def test_the_command_makes_the_stored_quadratic_problems() -> None:
    """As text; tiny ones are enumerated, and a ring on a cube never costs less than one step an edge."""
    known = read_solu(INSTANCES / "best.solu")
    listed = [Path(path) for path in (INSTANCES / "qap.test").read_text().split()]
    for path, (name, flows, distances) in zip(listed, make_qap.problems(), strict=True):
        assert path.name == f"{name}.dat"
        assert (INSTANCES / path).read_text() == make_qap.text(flows, distances)
        one, other = parse_qaplib(read_bytes(INSTANCES / path))
        assert np.array_equal(one, flows)
        assert np.array_equal(other, distances)
        if len(flows) <= 6:
            assert known[name].value == known[name].bound == make_qap.enumerated(flows, distances)
    assert known["cube3-ring"].value == make_qap.enumerated(*parse_qaplib(read_bytes(INSTANCES / "qap/cube3-ring.dat")))


def test_taillard_generator() -> None:
    """The first numbers of x -> 16807 x mod 2^31 - 1 from 123456789, worked out by hand as 100 x / (2^31 - 1)."""
    state, modulus = 123456789, 2**31 - 1
    first = state * 16807 % modulus
    second = first * 16807 % modulus
    assert make_qap.taillard(3, state)[0].tolist() == [0, first * 100 // modulus, second * 100 // modulus]
