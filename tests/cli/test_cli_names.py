"""Wrong names in options: exit code 2, and the right names in the message (issue 16, A13)."""

import gzip
import shutil
from pathlib import Path

import pytest

from cli.conftest import Cli
from placeopt import generate, read_instance, write_instance

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "instances" / "papers" / "sc17-workloads-5.json"
OPENB = ROOT / "tests" / "formats" / "data"

NAMES = [
    (["nonsense"], "no such command"),
    (["solve", "R", "--method", "nope"], "best-fit"),
    (["solve", "R", "--policy", "nope"], "known policies: placeopt"),
    (["export", "R", "--out", "O", "--format", "nope"], "mps, lp, cp-sat"),
    (["export", "R", "--out", "O", "--formulation", "nope"], "counts"),
    (["simulate", "S", "--policy", "nope"], "fcfs"),
    (["generate", "--spec", "nope", "--out", "O"], "uniform"),
    (["bench", "run", "--instances", "I", "--set", "nope", "--solvers", "auto", "--out", "O"], "hand"),
    (["bench", "run", "--instances", "I", "--set", "hand", "--solvers", "nope", "--out", "O"], "best-fit"),
    (["bench", "list", "--instances", "nope"], "no .test lists"),
    (["whatif", "nope"], "no such command"),
    (["whatif", "fit", "R", "--job", "8xnope"], "there are: generic"),
    (["whatif", "fit", "R", "--job", "nope"], "8xH100"),
    (["whatif", "fit", "R", "--job", "2x1", "--together", "nope"], "node, rack"),
    (["whatif", "fit", "R", "--job", "2x1", "--queue", "nope"], "no queue"),
    (["whatif", "slots", "R", "--model", "nope"], "there are: generic"),
    (["whatif", "fail", "R", "--all", "--level", "nope"], "node, rack"),
    (["whatif", "fail", "R", "--level", "node", "--domains", "nope"], "node-00000"),
    (["whatif", "add", "R", "--node-type", "nope"], "uniform-2gpu"),
    (["whatif", "add", "S", "--node-type", "nope", "--until", "p95_wait<=1h", "--policy", "fcfs"], "minsky"),
    (["whatif", "add", "S", "--node-type", "minsky", "--until", "nope<=1h", "--policy", "fcfs"], "p95_wait"),
    (["whatif", "add", "S", "--node-type", "minsky", "--until", "p95_wait<=1h", "--policy", "nope"], "fcfs"),
    (["whatif", "sweep", "R", "--vary", "nope=1-2"], "demand"),
    (["whatif", "sweep", "R", "--vary", "nodes:nope=1-2"], "uniform-2gpu"),
    (["whatif", "sweep", "R", "--vary", "quota:nope=1-2"], "there are: none"),
    (["whatif", "sweep", "S", "--vary", "nope=1", "--policy", "fcfs"], "arrivals"),
    (["whatif", "sweep", "S", "--vary", "nodes:nope=1", "--policy", "fcfs"], "minsky"),
    (["whatif", "sweep", "S", "--vary", "nodes:minsky=1", "--policy", "fcfs", "--measure", "nope"], "mean_wait"),
    (["whatif", "swap", "R", "--of", "nope", "--by", "uniform-2gpu"], "there are: uniform-2gpu"),
    (["whatif", "swap", "R", "--of", "uniform-2gpu", "--by", "nope"], "there are: uniform-2gpu"),
    (["whatif", "price", "R", "--of", "nope"], "node, quota"),
    (["whatif", "defrag", "R", "--level", "nope"], "node, rack"),
]


@pytest.mark.parametrize(
    ("command", "known"), NAMES, ids=lambda value: " ".join(value) if isinstance(value, list) else None
)
def test_a_wrong_name_is_usage(cli: Cli, tmp_path: Path, command: list[str], known: str) -> None:
    """Issue 16, A13: 2, one line that names the right ones and the help, and nothing written."""
    write_instance(tmp_path / "round.json", generate("uniform", jobs=4, nodes=2, gpus=2, seed=0))
    stands = {
        "R": str(tmp_path / "round.json"),
        "S": str(SCENARIO),
        "I": str(ROOT / "instances"),
        "O": str(tmp_path / "o"),
    }
    done = cli(*(stands.get(word, word) for word in command))
    assert done.code == 2, done.err
    assert known in done.err
    assert "--help'" in done.err
    assert not (tmp_path / "o").exists()


def test_a_job_that_the_file_lacks_is_input(cli: Cli, tmp_path: Path) -> None:
    """Issue 16, A13: which jobs there are is a question to the file, so 3, as for a reference inside one."""
    write_instance(tmp_path / "round.json", generate("uniform", jobs=4, nodes=2, gpus=2, seed=0))
    assert cli("solve", tmp_path / "round.json", "--method", "best-fit", "--out", tmp_path / "plan.json").code == 0
    done = cli("explain", tmp_path / "round.json", tmp_path / "plan.json", "--job", "nope")
    assert done.code == 3
    assert "no job 'nope'" in done.err


@pytest.mark.parametrize("name", ["x.pdf", "x", "x.svg", "x.html.gz"])
def test_a_report_is_html(cli: Cli, tmp_path: Path, name: str) -> None:
    """Issue 16, A13: HTML under the name x.pdf helps nobody; figures as PDF come with --figures."""
    write_instance(tmp_path / "round.json", generate("uniform", jobs=4, nodes=2, gpus=2, seed=0))
    done = cli("report", tmp_path / "round.json", "--out", tmp_path / name)
    assert done.code == 2
    assert "--figures" in done.err
    assert not (tmp_path / name).exists()


def test_a_path_without_its_ending_is_no_set(cli: Cli, tmp_path: Path) -> None:
    """Issue 16, A13: the file that was meant is named, or what instances are called."""
    shutil.copy(ROOT / "instances" / "gap" / "gap1-0.gap", tmp_path / "one.gap")
    options = ("--instances", ROOT / "instances", "--solvers", "highs", "--out", tmp_path / "o")
    done = cli("bench", "run", "--set", tmp_path / "one", *options)
    assert done.code == 3
    assert f"one: no such file; did you mean {tmp_path / 'one.gap'}?" in done.err
    done = cli("bench", "run", "--set", tmp_path / "two", *options)
    assert done.code == 3
    assert "two: no such file; instances end in .json, .mps, .gap, .dat, lists in .test" in done.err


def test_openb_is_read_packed_and_with_other_columns(cli: Cli, tmp_path: Path) -> None:
    """Issue 16, A13: `.csv.gz`, columns in any order, and columns that are not needed."""
    plain, out = tmp_path / "plain.json", tmp_path / "packed.json"
    pods, nodes = (OPENB / name for name in ("openb_pods.csv", "openb_nodes.csv"))
    assert cli("import", "openb", "--nodes", nodes, "--pods", pods, "--out", plain).code == 0
    rows = [line.split(",") for line in pods.read_text().splitlines()]
    turned = "\n".join(",".join([*reversed(row), "team" if i == 0 else "x"]) for i, row in enumerate(rows)) + "\n"
    (tmp_path / "openb_pods.csv.gz").write_bytes(gzip.compress(turned.encode()))
    (tmp_path / "openb_nodes.csv.gz").write_bytes(gzip.compress(nodes.read_bytes()))
    packed = (tmp_path / "openb_nodes.csv.gz", tmp_path / "openb_pods.csv.gz")
    assert cli("import", "openb", "--nodes", packed[0], "--pods", packed[1], "--out", out).code == 0
    one, other = read_instance(plain), read_instance(out)
    assert (one.name, one.jobs, one.cluster) == (other.name, other.jobs, other.cluster)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["whatif", "price", "R", "--on", "mars"], "--on: 'mars', expected here"),
        (["whatif", "fit", "R", "--job", "1", "--cpu", "-4"], "--cpu: -4, expected at least 0"),
        (["whatif", "fit", "R", "--job", "1", "--memory", "-4"], "--memory: -4, expected at least 0"),
        (["whatif", "fail", "R", "--all", "--level", "mars"], "--level: no level 'mars'"),
        (["whatif", "fail", "R", "--all", "--level", "node", "--k", "9"], "--k: 9, expected 1 to 2"),
        (["whatif", "sweep", "R", "--vary", "mars"], "--vary: 'mars', expected nodes:TYPE=0-10"),
        (["whatif", "sweep", "S", "--vary", "mars"], "--vary: 'mars', expected one of nodes:TYPE=0-10"),
        (["whatif", "sweep", "R", "--vary", "demand=2000"], "demand: 2000 percent, at most 1000"),
        (["generate", "--out", "O", "--nodes", "200000", "--gpus", "16"], "--gpus: 200000 nodes x 16 GPUs, expected"),
        (["solve", "R", "--solver-option", "mars=1"], "HiGHS refuses option 'mars' = '1'"),
        (["solve", "R", "--method", "counts-cpsat", "--solver-option", "mars=1"], "CP-SAT refuses option 'mars' = '1'"),
    ],
    ids=" ".join,
)
def test_a_wrong_argument_of_the_library_is_an_option(
    cli: Cli, tmp_path: Path, command: list[str], message: str
) -> None:
    """Exit code 2, and the option as it is typed instead of the function's argument; a default is named too."""
    write_instance(tmp_path / "round.json", generate("uniform", jobs=4, nodes=2, gpus=2, seed=0))
    paths = {"R": str(tmp_path / "round.json"), "S": str(SCENARIO), "O": str(tmp_path / "o")}
    done = cli(*(paths.get(word, word) for word in command))
    assert done.code == 2, done.err
    assert f"error: {message}" in done.err
    assert not (tmp_path / "o").exists()


def test_a_scenario_needs_a_goal_of_its_own(cli: Cli) -> None:
    """`whatif add` without `--until` asks for all jobs of a round, and a scenario is none."""
    done = cli("whatif", "add", SCENARIO, "--node-type", "minsky")
    assert done.code == 2
    assert "--until: 'placed=all', the default, is a goal for a round" in done.err
    assert "p95_wait<=30m" in done.err


def test_a_message_keeps_the_case_of_a_name(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the parser's own messages are put into lower case."""
    monkeypatch.chdir(tmp_path)
    write_instance("Round.json", generate("uniform", jobs=4, nodes=2, gpus=2, seed=0))
    assert cli("solve", "Round.json", "--out", "Round.json").err.startswith("error: Round.json is also an input")
    assert cli("nonsense").err.startswith("error: no such command")
