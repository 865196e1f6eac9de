"""``placeopt whatif`` as people call it: answers, exit codes, JSON, and what is wrong named in one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.command_line import GANGS, INSTANCES, Cli, said, saved
from placeopt import generate, read_instance, read_scenario, solve
from placeopt.build import instance, job

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


def figures(view: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a view by name."""
    return {figure["name"]: figure["value"] for figure in view["figures"]}


def rows(view: dict[str, Any], name: str) -> list[list[Any]]:
    """Return the rows of a table of a view."""
    return next(table["rows"] for table in view["tables"] if table["name"] == name)


def test_fit_shows_the_number_of_copies(cli: Cli, file: Path, plan: Path) -> None:
    """As text and as JSON; beside the plan fewer than without it."""
    asked = ("whatif", "fit", file, "--job", "2", "--quiet")
    text = cli(*asked)
    assert text.code == 0
    assert "copies of 2" in text.out
    assert "Largest gang" in text.out
    before, after = cli(*asked, "--json").data, cli(*asked, "--json", "--plan", plan).data
    assert figures(before)["copies"] == figures(before)["at most"] > figures(after)["copies"]


def test_fit_shows_the_other_requirements(cli: Cli) -> None:
    """CPU, memory, domain and queue are part of the question, so they stand in the answer."""
    done = cli("whatif", "fit", GANGS, "--job", "2x4", "--cpu", 1000, "--memory", 512, "--together", "rack")
    assert "of 2x4 with 1,000 millicores and 512 MiB a worker in one rack fit" in done.out
    assert "running jobs stay; waiting jobs are ignored" in done.out


@pytest.mark.parametrize(
    "asked",
    [
        ("whatif", "fit", MINSKY, "--job", "4"),
        ("whatif", "fail", GANGS, "--level", "rack"),
        ("whatif", "add", MINSKY, "--node-type", "node-0"),
        ("whatif", "compare", MINSKY, "--vary", "more=node"),
        ("whatif", "defrag", GANGS),
        ("audit", MINSKY),
    ],
    ids=lambda asked: asked[-1] if asked[0] == "audit" else asked[1],
)
def test_proofs_without_a_certificate_are_said_to_be_so(cli: Cli, asked: tuple[object, ...]) -> None:
    """As text and as JSON: plans alone have certificates."""
    assert "not certified" in cli(*asked, "--quiet").words
    assert "not certified" in cli(*asked, "--quiet", "--json").data["proof"]


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
    assert cli("whatif", "edit", MINSKY, "--patch", patch, "--out", out).code == 0
    assert len(read_instance(out).cluster.nodes) == len(read_instance(MINSKY).cluster.nodes) + 2
    steps = [{"do": "scale_arrivals", "percent": 200}, {"do": "add_nodes", "machine": "minsky", "count": 1}]
    patch.write_text(json.dumps({"steps": steps}))
    assert cli("whatif", "edit", SC17, "--patch", patch, "--out", out).code == 0
    before, after = read_scenario(SC17), read_scenario(out)
    assert [one.job.arrival_ms for one in after.arrivals] == [one.job.arrival_ms // 2 for one in before.arrivals]
    assert len(after.cluster.nodes) == 1 + len(before.cluster.nodes)


def test_answers_are_kept_in_a_file(cli: Cli, file: Path, tmp_path: Path) -> None:
    """Asked twice, the rows are the same; a standard stream holds nothing."""
    path = tmp_path / "rows.jsonl"
    asked = ("whatif", "fail", file, "--level", "rack", "--quiet", "--json", "--rows")
    first = rows(cli(*asked, path).data, "Worst first")
    kept = path.read_bytes()
    assert len(kept.splitlines()) == len(first)
    assert rows(cli(*asked, path).data, "Worst first") == first
    assert path.read_bytes() == kept
    said(cli(*asked, "-"), 2, "expected a file")


def test_slots_by_level(cli: Cli, file: Path) -> None:
    outcome = cli("whatif", "fit", file, "--json", "--quiet")
    assert outcome.code == 0
    assert [row[0] for row in rows(outcome.data, "Slots")] == ["socket", "node", "rack", "cluster"]
    said(cli("whatif", "fit", file, "--cpu", 1000), 2, "--job")


def test_fail_answers_yes_or_no(cli: Cli, file: Path, plan: Path) -> None:
    """An idle cluster survives what its plan does not."""
    common = ("whatif", "fail", file, "--level", "node", "--domains", "node-00000,node-00001", "--quiet")
    assert cli(*common).code in (0, 1)
    found = cli(*common, "--plan", plan, "--json").data
    assert figures(found)["answer"] in ("yes", "no")
    assert len(rows(found, "Worst first")) == 2


def test_add_shows_the_number_of_nodes(cli: Cli, file: Path) -> None:
    outcome = cli("whatif", "add", file, "--node-type", "node-00000", "--json", "--quiet")
    assert outcome.code == 0
    ((name, least, found, _, _),) = rows(outcome.data, "Each type alone")
    assert name == "node-00000"
    assert least <= found == figures(outcome.data)["nodes of node-00000"]


def test_rounds_are_compared(cli: Cli, file: Path, tmp_path: Path) -> None:
    """Numbers of nodes with their rows as CSV, a type of the same make, one more of each, patches."""
    csv, twin = tmp_path / "curve.csv", tmp_path / "twin.json"
    outcome = cli("whatif", "compare", file, "--vary", "nodes:node-00000=0-1", "--csv", csv, "--quiet")
    assert outcome.code == 0, outcome
    assert "nodes:node-00000" in outcome.out
    assert csv.read_text().startswith("Variants\nnodes:node-00000,value,bound,")
    assert len(csv.read_text().splitlines()) == 8
    machine = read_instance(file).cluster.machines[0]
    step = {"do": "add_machines", "machines": [{**machine.model_dump(), "id": "twin"}]}
    twin.write_text(json.dumps({"steps": [step]}))
    asked = ("whatif", "compare", file, "--quiet", "--json", "--vary")
    exchanged = cli(*asked, f"machine:{machine.id}=twin", "--patch", twin)
    assert [row[0] for row in rows(exchanged.data, "Variants")] == ["twin"]
    more = rows(cli(*asked, "more=node,rack").data, "Variants")
    assert [row[0].split()[0] for row in more] == ["node", "rack"]
    patched = rows(cli(*asked, f"patch={twin}").data, "Variants")
    assert [(row[0], row[-1]) for row in patched] == [(str(twin), "equal")]


def test_a_queue_is_played(cli: Cli, tmp_path: Path) -> None:
    """Two jobs of four GPUs on one node: one starts now, one after ten seconds; without a run time nothing is known."""
    for run_time_ms, code, ends in ((10_000, 0, 20_000), (None, 0, None)):
        jobs = [job(name, gpus=4, run_time_ms=run_time_ms) for name in "ab"]
        file = saved(tmp_path / "queue.json", instance(1, jobs))
        outcome = cli("whatif", "clear", file, "--quiet", "--json")
        assert (outcome.code, figures(outcome.data)["clear in"]) == (code, ends)


def test_nodes_are_emptied(cli: Cli, file: Path) -> None:
    """After a plan that fills the cluster there may be nothing to do: exit code 1; before it, a front or none."""
    asked = ("whatif", "defrag", file, "--all-movable", "--quiet")
    outcome = cli(*asked, "--json")
    assert outcome.code == (0 if rows(outcome.data, "Front") else 1)
    assert figures(outcome.data)["empty before"] <= figures(outcome.data)["at most"]
    assert "are impossible" in cli(*asked).out


def test_traces_are_played(cli: Cli, tmp_path: Path) -> None:
    """A goal until it is met, variants; rows are kept."""
    path, csv = tmp_path / "rows.jsonl", tmp_path / "s.csv"
    asked = ("whatif", "add", SC17, "--node-type", "minsky", "--policy", "fcfs", "--rows", path, "--quiet")
    text = cli(*asked, "--until", "max_wait<=1m", "--jobs", "2")
    assert text.code == 0, text
    assert "simulated, not proven" in text.words
    found = cli(*asked, "--until", "max_wait<=1m", "--json").data
    assert figures(found)["kept"] >= len(rows(found, "Settings"))
    assert cli(*asked, "--until", "max_completion<=1s").code == 1
    compare = ("whatif", "compare", SC17, "--vary", "policy=fcfs,srtf", "--quiet", "--csv", csv)
    answer = cli(*compare, "--measure", "mean_wait", "--json")
    assert [row[0] for row in rows(answer.data, "Settings")] == ["fcfs", "srtf"]
    assert csv.read_text().startswith("policy,nodes,price an hour")
    stopped = cli(*compare, "--time-limit", 1e-6, "--json").data
    assert (figures(stopped)["not examined"], rows(stopped, "Settings")) == (2, [])
