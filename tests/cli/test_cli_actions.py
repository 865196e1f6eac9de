"""``placeopt actions``: a plan as a list of actions, as commands of Slurm, as objects of Kubernetes."""

from pathlib import Path

from helpers.command_line import EXAMPLES, Cli, saved
from placeopt import solve
from placeopt.importers import read_slurm


def test_the_command(cli: Cli, tmp_path: Path) -> None:
    """JSON by default; a form that is none, and a round without origins, are refused."""
    round_ = read_slurm(EXAMPLES / "slurm_nodes.json", EXAMPLES / "slurm_jobs.json", EXAMPLES / "topology.conf")
    plan = solve(round_, isolation="thread", time_limit_s=5)
    asked = ("actions", saved(tmp_path / "round.json", round_), saved(tmp_path / "plan.json", plan))
    listed = cli(*asked).data
    assert {entry["do"] for entry in listed} == {"start"}
    assert {entry["job"] for entry in listed} == {entry["origin"]["id"] for entry in listed}
    done = cli(*asked, "--as", "scontrol", "--out", tmp_path / "do.sh")
    assert (done.code, (tmp_path / "do.sh").read_text().count("release")) == (0, len(listed))
    assert cli(*asked, "--as", "yaml").code == 2
    assert cli(*asked, "--as", "bindings").code == 3
