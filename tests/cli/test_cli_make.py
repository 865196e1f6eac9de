"""``placeopt generate``, ``import`` and ``doctor``."""

import gzip
import json
import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from helpers.command_line import EXAMPLES, INSTANCES, Cli
from placeopt import read_instance
from placeopt.documents import loads
from placeopt.generators import SPECS, generate
from placeopt.model import Machine

ROOT = Path(__file__).resolve().parents[2]
TOPO = ROOT / "tests" / "data" / "topo"
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,8000,4096,2,T4\nn2,8000,4096,0,\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np1,1000,512,1,500\np2,1000,512,0,0\np3,1000,512,2,1000\n"


@pytest.mark.parametrize("spec", SPECS)
def test_generate_writes_what_the_library_makes(cli: Cli, tmp_path: Path, spec: str) -> None:
    """The same arguments give the same round; what it is is told."""
    out = tmp_path / "round.json.gz"
    done = cli("generate", "--spec", spec, "--jobs", 5, "--nodes", 3, "--gpus", 8, "--seed", 4, "--out", out)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{spec}-5x3x8-s4: 5 jobs waiting")
    assert read_instance(out) == generate(spec, jobs=5, nodes=3, gpus=8, seed=4)


def test_the_help_names_every_spec_and_no_other(cli: Cli) -> None:
    """Between what else stands about ``--spec``."""
    about = cli("generate", "--help").out.partition("--spec")[2].partition("--jobs")[0]
    words = set(re.findall(r"[a-z]+", about.partition("[default")[0]))
    assert words == {*SPECS, "and", "hard", "ones"}


def test_generate_to_standard_output(cli: Cli) -> None:
    """The document alone on standard output; the words go to standard error."""
    done = cli("generate", "--jobs", 2, "--nodes", 1, "--gpus", 2, "--out", "-")
    assert json.loads(done.out)["name"] == "uniform-2x1x2-s0"
    assert done.err.startswith("uniform-2x1x2-s0: ")


def test_import_openb(cli: Cli, tmp_path: Path) -> None:
    """
    Three pods on two nodes; with a limit the first of them on a share of the nodes.

    `.csv.gz`, columns in any order, and columns that are not needed give the same round.
    """
    nodes, pods, out = tmp_path / "nodes.csv", tmp_path / "pods.csv", tmp_path / "i.json"
    nodes.write_text(NODES)
    pods.write_text(PODS)
    done = cli("import", "openb", "--nodes", nodes, "--pods", pods, "--out", out)
    assert done.code == 0
    assert done.out.startswith("pods: 3 jobs waiting, 0 running; 2 nodes, 2 GPUs (2 T4)")
    made = read_instance(out)
    assert [job.id for job in made.jobs] == ["p1", "p2", "p3"]
    assert cli("import", "openb", "--nodes", nodes, "--pods", pods, "--limit", 2, "--out", out).code == 0
    assert read_instance(out).name == "pods-first-2"
    rows = [line.split(",") for line in PODS.splitlines()]
    turned = "\n".join(",".join([*reversed(row), "team" if i == 0 else "x"]) for i, row in enumerate(rows)) + "\n"
    packed = tmp_path / "nodes.csv.gz", tmp_path / "pods.csv.gz"
    for path, text in zip(packed, (NODES, turned), strict=True):
        path.write_bytes(gzip.compress(text.encode()))
    assert cli("import", "openb", "--nodes", packed[0], "--pods", packed[1], "--out", out).code == 0
    again = read_instance(out)
    assert (again.name, again.jobs, again.cluster) == (made.name, made.jobs, made.cluster)


def test_import_topo(cli: Cli, tmp_path: Path) -> None:
    """
    A DGX-1 from ``nvidia-smi topo -m``, named, with the model that the dump does not tell.

    A network alone gives its domains; the same with a machine a whole cluster.
    """
    out, dump, tree = tmp_path / "made.json", INSTANCES / "topo" / "dgx1-topo-m.txt", TOPO / "topograph_tree.conf"
    named = ("--id", "dgx", "--gpu-model", "V100", "--gpu-memory-mib", 16384)
    done = cli("import", "topo", dump, *named, "--out", out)
    assert done.code == 0
    assert done.out.startswith("dgx: 8 GPUs of model V100, 2 sockets, 4 switches, 16 nvlink links")
    box = loads(Machine, out.read_bytes())
    assert (box.id, len(box.gpus), box.gpus[0].memory_mib) == ("dgx", 8, 16384)
    done = cli("import", "topo", tree, "--out", out)
    assert done.code == 0
    assert done.out.startswith("network of ")
    network = json.loads(out.read_text())
    assert network.keys() == {"document", "domains", "node_domains"}
    assert set(network["node_domains"].values()) <= {domain["id"] for domain in network["domains"]}
    done = cli("import", "topo", tree, dump, "--out", out)
    assert done.code == 0
    assert "1 machine type" in done.out
    assert json.loads(out.read_text()).keys() == {"document", "machines", "domains", "nodes"}


def test_doctor(cli: Cli) -> None:
    """This installation is able to work; an extra that is missing is no problem, and what needs it is told."""
    done = cli("doctor", "--json")
    facts = done.data
    assert (done.code, facts["ok"], facts["problems"]) == (0, True, [])
    assert {"python", "ortools", "highspy", "cores", "memory limits", "solver highs"} <= facts["facts"].keys()
    assert "solved in" in facts["facts"]["solver cpsat"]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {f"extra {name}" for name in extras.keys() - {"cli", "dev", "docs"}} <= facts["facts"].keys()
    for name in ("dask", "ray"):
        if find_spec({"dask": "distributed"}.get(name, name)) is None:
            assert f"runs on {name} need placeopt[{name}]" in facts["facts"][f"extra {name}"]


@pytest.mark.usefixtures("own_processes")
def test_doctor_names_the_problem(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    No process can be started, and a package is missing: exit code 1 and both by name.

    An extra that is not installed is neither ok nor wrong.
    """
    monkeypatch.setattr("placeopt.cli.commands.doctor.EXTRAS", {("nothing", "absent-package"): "tests"})
    monkeypatch.setattr("sys.executable", "/nonexistent/python")
    monkeypatch.setattr("placeopt.cli.commands.doctor.PACKAGES", ("placeopt", "no-such-package"))
    done = cli("doctor")
    assert done.code == 1
    for words in ("could not start", "no-such-package", "points are wrong"):
        assert words in done.words
    first = {word: line.split()[0] for line in done.out.splitlines() for word in line.split()[1:]}
    assert (first["nothing"], first["placeopt"]) == ("none", "ok")


def test_import_prints_what_was_left_out_kept_drained_or_assumed(cli: Cli, tmp_path: Path) -> None:
    """On standard error, a line for each note that the instance keeps."""
    folder, out = EXAMPLES, tmp_path / "now.json"
    files = ("--nodes", folder / "slurm_nodes.json", "--jobs", folder / "slurm_jobs.json")
    done = cli("import", "slurm", *files, "--out", out)
    reading = json.loads(out.read_text())["reading"]
    assert done.code == 0
    assert all(note["reason"] in line for note, line in zip(reading, done.err.splitlines(), strict=True))
    assert "Not eligible, waiting for Dependency: 1 (508)." in done.err.splitlines()
    assert done.out.splitlines()[0].startswith("slurm: 4 jobs waiting, 5 running")
    done = cli("import", "kubernetes", folder / "kubernetes.json", "--out", out)
    reading = json.loads(out.read_text())["reading"]
    assert all(note["reason"] in line for note, line in zip(reading, done.err.splitlines(), strict=True))
