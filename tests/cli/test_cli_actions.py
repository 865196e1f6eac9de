"""``placeopt actions``: a plan as a list of actions, as commands of Slurm, as objects of Kubernetes."""

import json
from pathlib import Path

from helpers.command_line import EXAMPLES, Cli
from placeopt import solve, write_instance, write_plan
from placeopt.formats import read_slurm


def test_the_command(cli: Cli, tmp_path: Path) -> None:
    """JSON by default; a form that is none, and a round without origins, are refused."""
    round_ = read_slurm(EXAMPLES / "slurm_nodes.json", EXAMPLES / "slurm_jobs.json", EXAMPLES / "topology.conf")
    write_instance(tmp_path / "round.json", round_)
    write_plan(tmp_path / "plan.json", solve(round_, isolation="thread", time_limit_s=5))
    listed = json.loads(cli("actions", tmp_path / "round.json", tmp_path / "plan.json").out)
    assert {entry["do"] for entry in listed} == {"start"}
    assert {entry["job"] for entry in listed} == {entry["origin"]["id"] for entry in listed}
    done = cli(
        "actions", tmp_path / "round.json", tmp_path / "plan.json", "--as", "scontrol", "--out", tmp_path / "do.sh"
    )
    assert (done.code, (tmp_path / "do.sh").read_text().count("release")) == (0, len(listed))
    assert cli("actions", tmp_path / "round.json", tmp_path / "plan.json", "--as", "yaml").code == 2
    assert cli("actions", tmp_path / "round.json", tmp_path / "plan.json", "--as", "bindings").code == 3
