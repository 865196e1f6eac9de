"""``placeopt generate``, ``import`` and ``doctor``."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from helpers.command_line import EXAMPLES, INSTANCES, Cli, said
from placeopt import read_instance
from placeopt.cli.commands import doctor
from placeopt.cli.commands.doctor import EXTRAS
from placeopt.formats import loads
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


def test_generate_to_standard_output(cli: Cli) -> None:
    """The document alone on standard output; the words go to standard error."""
    done = cli("generate", "--jobs", 2, "--nodes", 1, "--gpus", 2, "--out", "-")
    assert json.loads(done.out)["name"] == "uniform-2x1x2-s0"
    assert done.err.startswith("uniform-2x1x2-s0: ")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--spec", "magic"], "'magic', expected one of uniform"),
        (["--jobs", "-1"], "--jobs"),
        (["--jobs", "many"], "--jobs"),
        (["--nodes", "0"], "--nodes"),
        (["--gpus", "65"], "--gpus"),
        (["--gpus", "4", "--spec", "cubemesh"], "8"),
        (["--seed", "-1"], "--seed"),
        (["--jobs", "1000000000"], "--jobs"),
        (["--color"], "--color"),
    ],
)
def test_generate_refuses_numbers_out_of_range(cli: Cli, tmp_path: Path, arguments: list[str], word: str) -> None:
    """Usage, and no file."""
    out = tmp_path / "i.json"
    said(cli("generate", *arguments, "--out", out), 2, word)
    assert not out.exists()


def test_generate_refuses_targets(cli: Cli, tmp_path: Path) -> None:
    """No target is usage; one that cannot be written is bad input."""
    said(cli("generate"), 2, "--out")
    said(cli("generate", "--out", tmp_path / "no" / "i.json"), 3, "no folder")


def test_import_openb(cli: Cli, tmp_path: Path) -> None:
    """Three pods on two nodes; with a limit the first of them on a share of the nodes."""
    nodes, pods, out = tmp_path / "nodes.csv", tmp_path / "pods.csv", tmp_path / "i.json"
    nodes.write_text(NODES)
    pods.write_text(PODS)
    done = cli("import", "openb", "--nodes", nodes, "--pods", pods, "--out", out)
    assert done.code == 0
    assert done.out.startswith("pods: 3 jobs waiting, 0 running; 2 nodes, 2 GPUs (2 T4)")
    assert [job.id for job in read_instance(out).jobs] == ["p1", "p2", "p3"]
    assert cli("import", "openb", "--nodes", nodes, "--pods", pods, "--limit", 2, "--out", out).code == 0
    assert read_instance(out).name == "pods-first-2"


def test_import_openb_refuses(cli: Cli, tmp_path: Path) -> None:
    """File, line, column, value and expectation; the target stays as it was."""
    nodes, pods, out = tmp_path / "nodes.csv", tmp_path / "pods.csv", tmp_path / "i.json"
    nodes.write_text(NODES)
    pods.write_text(PODS.replace("p2,1000", "p2,lots"))
    out.write_text("before")
    arguments = ("import", "openb", "--nodes", nodes, "--pods", pods, "--out", out)
    said(cli(*arguments), 3, "pods.csv:3", "cpu_milli", "'lots'", "integer")
    said(cli(*arguments, "--limit", 0), 2, "--limit", "1 or more")
    said(cli("import", "openb", "--nodes", nodes, "--pods", tmp_path / "none.csv", "--out", out), 3, "none.csv")
    said(cli("import", "openb", "--nodes", pods, "--pods", nodes, "--out", out), 3, "no column sn")
    said(cli("import", "openb", "--nodes", nodes, "--pods", pods), 2, "--out", "placeopt import openb --help")
    assert out.read_text() == "before"


def test_import_topo_machine(cli: Cli, tmp_path: Path) -> None:
    """A DGX-1 from ``nvidia-smi topo -m``, named, with the model that the dump does not tell."""
    out = tmp_path / "box.json"
    dump = INSTANCES / "topo" / "dgx1-topo-m.txt"
    done = cli("import", "topo", dump, "--id", "dgx", "--gpu-model", "V100", "--gpu-memory-mib", 16384, "--out", out)
    assert done.code == 0
    assert done.out.startswith("dgx: 8 GPUs of model V100, 2 sockets, 4 switches, 16 nvlink links")
    box = loads(Machine, out.read_bytes())
    assert (box.id, len(box.gpus), box.gpus[0].memory_mib) == ("dgx", 8, 16384)


def test_import_topo_network(cli: Cli, tmp_path: Path) -> None:
    """A network alone gives its domains; the same with a machine a whole cluster."""
    out = tmp_path / "net.json"
    done = cli("import", "topo", TOPO / "topograph_tree.conf", "--out", out)
    assert done.code == 0
    assert done.out.startswith("network of ")
    network = json.loads(out.read_text())
    assert network.keys() == {"domains", "node_domains"}
    assert set(network["node_domains"].values()) <= {domain["id"] for domain in network["domains"]}
    dump = INSTANCES / "topo" / "dgx1-topo-m.txt"
    done = cli("import", "topo", TOPO / "topograph_tree.conf", dump, "--out", out)
    assert done.code == 0
    assert "1 machine type" in done.out
    assert json.loads(out.read_text()).keys() == {"machines", "domains", "nodes"}


def test_import_topo_refuses(cli: Cli, tmp_path: Path) -> None:
    """What is no dump, what does not go together, standard input twice, a bad name."""
    text, out = tmp_path / "text.txt", tmp_path / "box.json"
    text.write_text("the quick brown fox (jumps) over\n{the} lazy dog\n")
    dump = INSTANCES / "topo" / "dgx1-topo-m.txt"
    said(cli("import", "topo", text, "--out", out), 3, "text.txt", "expected")
    said(cli("import", "topo", "--out", out), 2, "FILE")
    said(cli("import", "topo", "-", "-", "--out", out), 2, "once")
    said(cli("import", "topo", dump, "--id", "a b", "--out", out), 3, "id")
    said(cli("import", "topo", dump, "--gpu-memory-mib", -5, "--out", out), 2, "--gpu-memory-mib")
    said(cli("import", "topo", TOPO / "topograph_tree.conf", "--id", "x", "--out", out), 3, "describes no machine")
    said(cli("import", "topo", dump), 2, "--out")
    assert not out.exists()


def test_doctor(cli: Cli) -> None:
    """This installation is able to work."""
    done = cli("doctor", "--json")
    facts = json.loads(done.out)
    assert (done.code, facts["ok"], facts["problems"]) == (0, True, [])
    assert {"python", "ortools", "highspy", "cores", "memory limits", "solver highs"} <= facts["facts"].keys()
    assert "solved in" in facts["facts"]["solver cpsat"]


def test_doctor_lists_every_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of pyproject.toml that commands ask for; one that is missing is no problem, and who needs it is told."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    packages = {(name, re.split("[>=<]", package)[0]) for name in extras for package in extras[name]}
    assert {pair for pair in packages if pair[0] not in ("cli", "dev", "docs")} == set(EXTRAS)
    monkeypatch.setitem(EXTRAS, ("plot", "nobody-has-this"), "pictures")
    told = doctor._extra("plot", "nobody-has-this")
    assert told.fact == "nobody-has-this is not installed; pictures need it: placeopt[plot]"
    assert not told.problem


def test_doctor_names_the_problem(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process can be started, and a package is missing: exit code 1 and both by name."""
    monkeypatch.setattr("sys.executable", "/nonexistent/python")
    monkeypatch.setattr("placeopt.cli.commands.doctor.PACKAGES", ("placeopt", "no-such-package"))
    done = cli("doctor")
    assert done.code == 1
    assert "could not start" in " ".join(done.out.split())
    assert "no-such-package" in done.out
    assert "points are wrong" in done.out


def test_import_prints_what_was_left_out_kept_drained_or_assumed(cli: Cli, tmp_path: Path) -> None:
    """Issue 16, B7: on standard error, each line as the instance's note keeps it."""
    folder, out = EXAMPLES, tmp_path / "now.json"
    files = ("--nodes", folder / "slurm_nodes.json", "--jobs", folder / "slurm_jobs.json")
    done = cli("import", "slurm", *files, "--out", out)
    note = json.loads(out.read_text())["note"]
    assert done.code == 0
    assert done.err.splitlines() == note.splitlines()[1:]
    assert "Left out, waiting for Dependency: 1 (508)." in done.err.splitlines()
    assert done.out.splitlines()[0].startswith("slurm: 4 jobs waiting, 5 running")
    done = cli("import", "kubernetes", folder / "kubernetes.json", "--out", out)
    assert done.err.splitlines() == json.loads(out.read_text())["note"].splitlines()[1:]


def test_import_slurm_refuses_and_leaves_no_file(cli: Cli, tmp_path: Path) -> None:
    """Damaged, missing, the wrong way round, or the target among the sources."""
    folder, out = EXAMPLES, tmp_path / "now.json"
    nodes, jobs = folder / "slurm_nodes.json", folder / "slurm_jobs.json"
    (tmp_path / "cut.json").write_text(jobs.read_text()[:900])
    said(cli("import", "slurm", "--nodes", nodes, "--jobs", tmp_path / "cut.json", "--out", out), 3, "cut.json")
    said(cli("import", "slurm", "--nodes", nodes, "--jobs", nodes, "--out", out), 3, "slurm_nodes.json", "'jobs'")
    said(cli("import", "slurm", "--nodes", jobs, "--jobs", jobs, "--out", out), 3, "scontrol show nodes --json")
    said(cli("import", "slurm", "--nodes", tmp_path / "no", "--jobs", jobs, "--out", out), 3, "cannot be read")
    said(cli("import", "slurm", "--nodes", "-", "--jobs", "-", "--out", out), 2, "--jobs")
    said(cli("import", "slurm", "--nodes", nodes, "--out", out), 2, "--jobs")
    assert not out.exists()
