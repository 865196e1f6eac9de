"""``placeopt whatif`` as people call it: answers, exit codes, JSON, and what is wrong named in one line."""

import json
from pathlib import Path

import pytest

from helpers.command_line import GANGS, INSTANCES, Cli, said
from placeopt import generate, read_instance, read_scenario, solve, write_instance, write_plan

MINSKY = INSTANCES / "hand" / "minsky-1.json"


@pytest.fixture(scope="module")
def round_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A round on two racks with a plan of it: ``round.json``, ``plan.json``."""
    folder = tmp_path_factory.mktemp("whatif")
    instance = generate("uniform", jobs=8, nodes=16, gpus=4, seed=3)
    write_instance(folder / "round.json", instance)
    write_plan(folder / "plan.json", solve(instance, time_limit_s=5))
    return folder


def test_fit_shows_the_number_of_copies(cli: Cli, round_: Path) -> None:
    """As text and as JSON; beside the plan fewer than without it."""
    text = cli("whatif", "fit", round_ / "round.json", "--job", "2", "--quiet")
    assert text.code == 0
    assert "copies of 2" in text.out
    assert "Largest gang" in text.out
    asked = ("whatif", "fit", round_ / "round.json", "--job", "2", "--json", "--quiet")
    before = json.loads(cli(*asked).out)
    after = json.loads(cli(*asked, "--plan", round_ / "plan.json").out)
    assert before["found"] == before["most"] > after["found"]


def test_a_patch_on_a_trace_is_written(cli: Cli, tmp_path: Path) -> None:
    """Twice the rate and a node more."""
    patch, out = tmp_path / "patch.json", tmp_path / "faster.json"
    patch.write_text(
        '{"steps": [{"do": "scale_arrivals", "percent": 200}, {"do": "add_nodes", "machine": "minsky", "count": 1}]}'
    )
    assert cli("whatif", "apply", SC17, "--patch", patch, "--out", out).code == 0
    before, after = read_scenario(SC17), read_scenario(out)
    assert [one.job.arrival_ms for one in after.arrivals] == [one.job.arrival_ms // 2 for one in before.arrivals]
    assert len(after.cluster.nodes) == 1 + len(before.cluster.nodes)


def test_answers_are_kept_in_a_file(cli: Cli, round_: Path, tmp_path: Path) -> None:
    """Asked twice, the rows are the same; a standard stream holds nothing."""
    rows = tmp_path / "rows.jsonl"
    asked = ("whatif", "fail", round_ / "round.json", "--level", "rack", "--all", "--quiet", "--json", "--rows")
    first = json.loads(cli(*asked, rows).out)
    kept = rows.read_bytes()
    assert len(kept.splitlines()) == len(first["scenarios"])
    assert json.loads(cli(*asked, rows).out)["scenarios"] == first["scenarios"]
    assert rows.read_bytes() == kept
    said(cli(*asked, "-"), 2, "expected a file")


def test_what_does_not_fit_is_no(cli: Cli) -> None:
    """Exit code 1: four GPUs on one node of the hand-made round, where some run already."""
    outcome = cli("whatif", "fit", MINSKY, "--job", "4", "--quiet")
    assert outcome.code == 1
    assert outcome.out.startswith("0 more copies of 4 fit")
    assert "GPU count" in outcome.out


def test_slots_by_level(cli: Cli, round_: Path) -> None:
    """A row a level."""
    outcome = cli("whatif", "slots", round_ / "round.json", "--sizes", "1,4", "--quiet")
    assert outcome.code == 0
    assert [line.split()[0] for line in outcome.out.splitlines()[3:7]] == ["socket", "node", "rack", "cluster"]


def test_fail_answers_yes_or_no(cli: Cli, round_: Path) -> None:
    """An idle cluster survives what its plan does not."""
    common = ("whatif", "fail", round_ / "round.json", "--level", "node", "--domains", "node-00000,node-00001")
    assert cli(*common, "--quiet").code in (0, 1)
    found = json.loads(cli(*common, "--plan", round_ / "plan.json", "--json", "--quiet").out)
    assert found["answer"] in ("yes", "no")
    assert len(found["scenarios"]) == 2


def test_add_shows_the_number_of_nodes(cli: Cli, round_: Path) -> None:
    """An interval, and the round with so many more places all."""
    outcome = cli("whatif", "add", round_ / "round.json", "--node-type", "node-00000", "--json", "--quiet")
    found = json.loads(outcome.out)
    assert outcome.code == 0
    assert found["at_least"] <= found["found"]


def test_scenarios_are_applied(cli: Cli, tmp_path: Path) -> None:
    """To a question, and to a file of its own."""
    patch = tmp_path / "patch.json"
    patch.write_text(json.dumps({"steps": [{"do": "add_nodes", "like": "node-0", "count": 2}]}))
    assert cli("whatif", "fit", MINSKY, "--patch", patch, "--job", "4", "--quiet").out.startswith(
        "2 more copies of 4 fit"
    )
    out = tmp_path / "out.json"
    assert cli("whatif", "apply", MINSKY, "--patch", patch, "--out", out).code == 0
    assert len(read_instance(out).cluster.nodes) == len(read_instance(MINSKY).cluster.nodes) + 2


def test_rounds_are_compared(cli: Cli, round_: Path, tmp_path: Path) -> None:
    """A sweep with its points as CSV, a swap for a type of the same make, prices."""
    file = round_ / "round.json"
    csv = tmp_path / "curve.csv"
    outcome = cli("whatif", "sweep", file, "--vary", "nodes:node-00000=0-1", "--csv", csv, "--time-limit", 5, "--quiet")
    assert outcome.code == 0, outcome
    assert "nodes more" in outcome.out
    assert csv.read_text().startswith("setting,value,value_bound,")
    assert len(csv.read_text().splitlines()) == 3
    machine = read_instance(file).cluster.machines[0]
    twin = tmp_path / "twin.json"
    twin.write_text(
        json.dumps({"steps": [{"do": "add_machines", "machines": [{**machine.model_dump(), "id": "twin"}]}]})
    )
    swap = ("whatif", "swap", file, "--of", machine.id, "--quiet", "--by")
    assert "16 nodes exchanged" in cli(*swap, "twin", "--patch", twin).out
    prices = json.loads(cli("whatif", "price", file, "--of", "node,rack", "--json", "--quiet").out)["prices"]
    assert {one["of"] for one in prices} == {"node", "domain"}


def test_nodes_are_emptied(cli: Cli, round_: Path) -> None:
    """After a plan that fills the cluster there may be nothing to do: exit code 1; before it, a front or none."""
    outcome = cli("whatif", "defrag", round_ / "round.json", "--all-movable", "--json", "--quiet")
    found = json.loads(outcome.out)
    assert outcome.code == (0 if found["front"] else 1)
    assert found["free_before"] <= found["most"]
    text = cli("whatif", "defrag", round_ / "round.json", "--all-movable", "--quiet")
    assert "are impossible, proven" in text.out


SC17 = INSTANCES / "papers" / "sc17-workloads-5.json"


def test_traces_are_played(cli: Cli, tmp_path: Path) -> None:
    """A goal until it is met, a sweep; rows are kept; the answer can be drawn."""
    rows = tmp_path / "rows.jsonl"
    asked = ("whatif", "add", SC17, "--node-type", "minsky", "--policy", "fcfs", "--rows", rows, "--quiet")
    text = cli(*asked, "--until", "max_wait<=1m", "--jobs", "2")
    assert text.code == 0, text
    assert "simulated, not proven" in " ".join(text.out.split())
    found = json.loads(cli(*asked, "--until", "max_wait<=1m", "--json").out)
    assert found["kept"] >= len(found["spots"])
    assert cli(*asked, "--until", "max_completion<=1s").code == 1
    sweep = ("whatif", "sweep", SC17, "--vary", "policy=fcfs,srtf", "--quiet", "--csv", tmp_path / "s.csv")
    answer = cli(*sweep, "--measure", "mean_wait", "--json")
    (tmp_path / "curve.json").write_text(answer.out)
    assert [spot["setting"] for spot in json.loads(answer.out)["spots"]] == ["fcfs", "srtf"]
    assert (tmp_path / "s.csv").read_text().startswith("setting,nodes,mean")
    drawn = cli("report", tmp_path / "curve.json", "--out", tmp_path / "page.html")
    assert drawn.code == 0, drawn
    assert "Replay: policy" in (tmp_path / "page.html").read_text()


def test_fit_shows_the_other_requirements(cli: Cli) -> None:
    """CPU, memory, domain and queue are part of the question, so they stand in the answer."""
    done = cli("whatif", "fit", GANGS, "--job", "2x4", "--cpu", 1000, "--memory", 512, "--together", "rack")
    assert "of 2x4 with 1,000 millicores and 512 MiB a worker in one rack fit" in done.out
    assert "running jobs stay; waiting jobs are ignored" in done.out
