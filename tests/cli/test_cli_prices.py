"""Prices by machine type: at imports and at questions; answers in money and in GPU hours."""

from pathlib import Path

import pytest

from helpers.command_line import EXAMPLES, INSTANCES, Cli
from placeopt import read_instance, read_scenario

UNIFORM = INSTANCES / "generated" / "uniform-20x4x4-s0.json.gz"
JOBS = Path(__file__).resolve().parents[1] / "data" / "jobs"
TRACE = INSTANCES / "papers" / "sc17-workloads-5.json"


def test_prices_at_an_import_hold_for_all_nodes_of_the_type(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "p.json"
    command = ("import", "jobs", JOBS / "itp.csv", "--columns", "itp", "--nodes", "2x8xA100,1x4xT4", "--out", out)
    assert cli(*command, "--price", "8xA100=25.6", "--price", "4xT4=2").code == 0
    cluster = read_scenario(out).cluster
    assert [cluster.price_of(node) for node in cluster.nodes] == [25_600, 25_600, 2000]
    slurm = ("--nodes", EXAMPLES / "slurm_nodes.json", "--jobs", EXAMPLES / "slurm_jobs.json", "--out", out)
    assert cli("import", "slurm", *slurm).code == 0
    kind = read_instance(out).cluster.machines[0].id
    assert cli("import", "slurm", *slurm, "--price", f"{kind}=7.5").code == 0
    cluster = read_instance(out).cluster
    assert {cluster.price_of(node) for node in cluster.nodes if node.machine == kind} == {7500}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("add", UNIFORM, "--node-type", "uniform-4gpu"), ("price 6.4 an hour", "GPU hours an hour 8")),
        (("compare", UNIFORM, "--vary", "nodes:uniform-4gpu=0-1"), ("of a GPU hour", "12.8", "16")),
        (("compare", UNIFORM, "--vary", "machine:uniform-4gpu=new"), ("12.8", "of a GPU hour")),
        (("compare", UNIFORM, "--vary", "more=node,rack"), ("price an hour", "16", "25.6")),
    ],
)
def test_answers_in_money_and_gpu_hours(
    cli: Cli, tmp_path: Path, command: tuple[object, ...], expected: tuple[str, ...]
) -> None:
    """Four nodes of 4 GPUs at 3.2 an hour."""
    if "machine" in str(command[-1]):
        machine = read_instance(UNIFORM).cluster.machines[0].model_copy(update={"id": "new"})
        (tmp_path / "new.json").write_text(
            f'{{"steps": [{{"do": "add_machines", "machines": [{machine.model_dump_json(exclude_defaults=True)}]}}]}}'
        )
        command = (*command, "--patch", tmp_path / "new.json", "--price", "new=6.4")
        expected = (*expected, "25.6")
    done = cli("whatif", *command, "--price", "uniform-4gpu=3.2", "--time-limit", 20, "--quiet")
    assert done.code == 0, done
    for text in expected:
        assert text in done.words


def test_prices_of_a_trace(cli: Cli) -> None:
    """By simulation: money and GPUs of every number of nodes, and of what is added."""
    command = ("whatif", "add", TRACE, "--node-type", "minsky", "--until", "max_wait<=1m", "--policy", "fcfs")
    view = cli(*command, "--price", "minsky=4.5", "--json", "--quiet").data
    found = next(figure["value"] for figure in view["figures"] if figure["name"] == "nodes more")
    rows = view["tables"][0]["rows"]
    assert [row[2:4] for row in rows] == [[4.5 * row[1], 4 * row[1]] for row in rows]
    assert f"price {4.5 * found:g} an hour; {4 * found} GPU hours" in view["title"]
