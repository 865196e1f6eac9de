"""``placeopt whatif`` as people call it: answers, exit codes, JSON, and what is wrong named in one line."""

import json
from pathlib import Path

import pytest

from helpers.command_line import GANGS, INSTANCES, Cli, said, saved
from placeopt import generate, read_instance, read_scenario, solve

MINSKY = INSTANCES / "hand" / "minsky-1.json"
SC17 = INSTANCES / "papers" / "sc17-workloads-5.json"


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan of a round on two racks; ``round.json`` stands beside it."""
    folder = tmp_path_factory.mktemp("whatif")
    instance = generate("uniform", jobs=8, nodes=16, gpus=4, seed=3)
    saved(folder / "round.json", instance)
    return saved(folder / "plan.json", solve(instance, time_limit_s=5))


@pytest.fixture
def file(plan: Path) -> Path:
    return plan.with_name("round.json")


def test_fit_shows_the_number_of_copies(cli: Cli, file: Path, plan: Path) -> None:
    """As text and as JSON; beside the plan fewer than without it."""
    asked = ("whatif", "fit", file, "--job", "2", "--quiet")
    text = cli(*asked)
    assert text.code == 0
    assert "copies of 2" in text.out
    assert "Largest gang" in text.out
    before, after = cli(*asked, "--json").data, cli(*asked, "--json", "--plan", plan).data
    assert before["found"] == before["most"] > after["found"]


def test_fit_shows_the_other_requirements(cli: Cli) -> None:
    """CPU, memory, domain and queue are part of the question, so they stand in the answer."""
    done = cli("whatif", "fit", GANGS, "--job", "2x4", "--cpu", 1000, "--memory", 512, "--together", "rack")
    assert "of 2x4 with 1,000 millicores and 512 MiB a worker in one rack fit" in done.out
    assert "running jobs stay; waiting jobs are ignored" in done.out


@pytest.mark.parametrize(
    "asked",
    [
        ("whatif", "fit", MINSKY, "--job", "4"),
        ("whatif", "fail", GANGS, "--level", "rack", "--all"),
        ("whatif", "add", MINSKY, "--node-type", "node-0"),
        ("whatif", "defrag", GANGS),
        ("audit", MINSKY),
    ],
    ids=lambda asked: asked[-1] if asked[0] == "audit" else asked[1],
)
def test_proofs_without_a_certificate_are_said_to_be_so(cli: Cli, asked: tuple[object, ...]) -> None:
    """As text and as JSON: plans alone have certificates."""
    assert "not certified" in cli(*asked, "--quiet").out
    assert cli(*asked, "--quiet", "--json").data["certified"] is False


def test_what_does_not_fit_is_no(cli: Cli) -> None:
    """Exit code 1: four GPUs on one node of the hand-made round, where some run already."""
    outcome = cli("whatif", "fit", MINSKY, "--job", "4", "--quiet")
    assert outcome.code == 1
    assert outcome.out.startswith("0 more copies of 4 fit")
    assert "GPU count" in outcome.out


def test_patches_are_applied(cli: Cli, tmp_path: Path) -> None:
    """To a question, and to a file of its own; on a trace twice the rate and a node more."""
    patch, out = tmp_path / "patch.json", tmp_path / "out.json"
    patch.write_text('{"steps": [{"do": "add_nodes", "like": "node-0", "count": 2}]}')
    asked = cli("whatif", "fit", MINSKY, "--patch", patch, "--job", "4", "--quiet")
    assert asked.out.startswith("2 more copies of 4 fit")
    assert cli("whatif", "apply", MINSKY, "--patch", patch, "--out", out).code == 0
    assert len(read_instance(out).cluster.nodes) == len(read_instance(MINSKY).cluster.nodes) + 2
    steps = [{"do": "scale_arrivals", "percent": 200}, {"do": "add_nodes", "machine": "minsky", "count": 1}]
    patch.write_text(json.dumps({"steps": steps}))
    assert cli("whatif", "apply", SC17, "--patch", patch, "--out", out).code == 0
    before, after = read_scenario(SC17), read_scenario(out)
    assert [one.job.arrival_ms for one in after.arrivals] == [one.job.arrival_ms // 2 for one in before.arrivals]
    assert len(after.cluster.nodes) == 1 + len(before.cluster.nodes)


def test_answers_are_kept_in_a_file(cli: Cli, file: Path, tmp_path: Path) -> None:
    """Asked twice, the rows are the same; a standard stream holds nothing."""
    rows = tmp_path / "rows.jsonl"
    asked = ("whatif", "fail", file, "--level", "rack", "--all", "--quiet", "--json", "--rows")
    first = cli(*asked, rows).data["scenarios"]
    kept = rows.read_bytes()
    assert len(kept.splitlines()) == len(first)
    assert cli(*asked, rows).data["scenarios"] == first
    assert rows.read_bytes() == kept
    said(cli(*asked, "-"), 2, "expected a file")


def test_slots_by_level(cli: Cli, file: Path) -> None:
    outcome = cli("whatif", "slots", file, "--sizes", "1,4", "--quiet")
    assert outcome.code == 0
    assert [line.split()[0] for line in outcome.out.splitlines()[3:7]] == ["socket", "node", "rack", "cluster"]


def test_fail_answers_yes_or_no(cli: Cli, file: Path, plan: Path) -> None:
    """An idle cluster survives what its plan does not."""
    common = ("whatif", "fail", file, "--level", "node", "--domains", "node-00000,node-00001", "--quiet")
    assert cli(*common).code in (0, 1)
    found = cli(*common, "--plan", plan, "--json").data
    assert found["answer"] in ("yes", "no")
    assert len(found["scenarios"]) == 2


def test_add_shows_the_number_of_nodes(cli: Cli, file: Path) -> None:
    outcome = cli("whatif", "add", file, "--node-type", "node-00000", "--json", "--quiet")
    assert outcome.code == 0
    assert outcome.data["at_least"] <= outcome.data["found"]


def test_rounds_are_compared(cli: Cli, file: Path, tmp_path: Path) -> None:
    """A sweep with its points as CSV, a swap for a type of the same make, prices."""
    csv, twin = tmp_path / "curve.csv", tmp_path / "twin.json"
    outcome = cli("whatif", "sweep", file, "--vary", "nodes:node-00000=0-1", "--csv", csv, "--time-limit", 5, "--quiet")
    assert outcome.code == 0, outcome
    assert "nodes more" in outcome.out
    assert csv.read_text().startswith("setting,value,value_bound,")
    assert len(csv.read_text().splitlines()) == 3
    machine = read_instance(file).cluster.machines[0]
    step = {"do": "add_machines", "machines": [{**machine.model_dump(), "id": "twin"}]}
    twin.write_text(json.dumps({"steps": [step]}))
    swap = cli("whatif", "swap", file, "--of", machine.id, "--quiet", "--by", "twin", "--patch", twin)
    assert "16 nodes exchanged" in swap.out
    prices = cli("whatif", "price", file, "--of", "node,rack", "--json", "--quiet").data["prices"]
    assert {one["of"] for one in prices} == {"node", "domain"}


def test_nodes_are_emptied(cli: Cli, file: Path) -> None:
    """After a plan that fills the cluster there may be nothing to do: exit code 1; before it, a front or none."""
    asked = ("whatif", "defrag", file, "--all-movable", "--quiet")
    outcome = cli(*asked, "--json")
    assert outcome.code == (0 if outcome.data["front"] else 1)
    assert outcome.data["free_before"] <= outcome.data["most"]
    assert "are impossible, proven" in cli(*asked).out


def test_traces_are_played(cli: Cli, tmp_path: Path) -> None:
    """A goal until it is met, a sweep; rows are kept; the answer can be drawn."""
    rows, csv, curve, page = (tmp_path / name for name in ("rows.jsonl", "s.csv", "curve.json", "page.html"))
    asked = ("whatif", "add", SC17, "--node-type", "minsky", "--policy", "fcfs", "--rows", rows, "--quiet")
    text = cli(*asked, "--until", "max_wait<=1m", "--jobs", "2")
    assert text.code == 0, text
    assert "simulated, not proven" in text.words
    found = cli(*asked, "--until", "max_wait<=1m", "--json").data
    assert found["kept"] >= len(found["spots"])
    assert cli(*asked, "--until", "max_completion<=1s").code == 1
    sweep = ("whatif", "sweep", SC17, "--vary", "policy=fcfs,srtf", "--quiet", "--csv", csv)
    answer = cli(*sweep, "--measure", "mean_wait", "--json")
    assert [spot["setting"] for spot in answer.data["spots"]] == ["fcfs", "srtf"]
    assert csv.read_text().startswith("setting,nodes,mean")
    curve.write_text(answer.out)
    assert cli("report", curve, "--out", page).code == 0
    assert "Replay: policy" in page.read_text()
