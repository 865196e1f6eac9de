"""``placeopt audit`` as people call it: plans, bare placements, exit codes."""

import json
from pathlib import Path
from typing import Any

from helpers.command_line import EXAMPLES, INSTANCES, Cli
from helpers.kubernetes_objects import node, pod, read
from placeopt.documents import dumps

SNAPSHOTS = Path(__file__).resolve().parents[1] / "data" / "snapshots"
MINSKY = INSTANCES / "hand" / "minsky-1.json"


def levels(view: dict[str, Any]) -> dict[str, list[Any]]:
    """Return this plan, the best found, the bound and the gap, by level."""
    rows = next(table["rows"] for table in view["tables"] if table["name"] == "Levels")
    return {row[0]: row[1:4] for row in rows}


def test_a_plan_is_measured(cli: Cli, minsky_plan: Path) -> None:
    outcome = cli("audit", MINSKY, minsky_plan, "--time-limit", 5, "--quiet")
    assert outcome.code == 0, outcome
    assert outcome.out.startswith("keeps every rule")
    assert "none helps" in outcome.out
    found = cli("audit", MINSKY, minsky_plan, "--time-limit", 5, "--json", "--quiet").data
    value = levels(found)["value"]
    assert value[0] == value[2]


def test_placements_alone_are_measured(cli: Cli, minsky_plan: Path, tmp_path: Path) -> None:
    """None at all: what waits can be placed."""
    (tmp_path / "none.json").write_text('{"document": "placements", "placements": []}')
    outcome = cli("audit", MINSKY, tmp_path / "none.json", "--time-limit", 5, "--moves", 1, "--quiet")
    assert outcome.code == 0
    assert "place" in outcome.out.splitlines()[-3]
    placements = json.loads(minsky_plan.read_text())["placements"]
    (tmp_path / "twice.json").write_text(
        json.dumps({"document": "placements", "placements": [*placements, placements[0]]})
    )
    broken = cli("audit", MINSKY, tmp_path / "twice.json", "--quiet")
    assert broken.code == 1
    assert broken.out.startswith("breaks rules")


def test_what_runs_is_the_plan_where_there_is_none(cli: Cli, tmp_path: Path) -> None:
    """From Slurm's files to the audit: ten GPUs run, the best plan runs fifteen and a CPU job."""
    now = tmp_path / "now.json"
    nodes, jobs = EXAMPLES / "slurm_nodes.json", EXAMPLES / "slurm_jobs.json"
    rule = tmp_path / "rule.json"
    rule.write_text('{"percent_per_doubling": 0}')  # every GPU is worth 1000
    given = ("import", "slurm", "--nodes", nodes, "--jobs", jobs, "--out", now)
    assert cli(*given, "--priority-rule", rule, "--preemption", SNAPSHOTS / "slurm-22.05" / "slurm.conf").code == 0
    found = cli("audit", now, "--time-limit", 5, "--json", "--quiet").data
    assert (found["title"], levels(found)["value"][::2]) == ("keeps every rule", [10_000, 15_001])
    moves = next(table["rows"] for table in found["tables"] if table["name"] == "Moves that help most")
    assert {row[0] for row in moves} >= {"507_0", "507_1", "509"}


def test_kubernetes_from_list_to_audit(cli: Cli, tmp_path: Path) -> None:
    """The gang of two whole nodes waits, for the pods that run are spread; from scratch all but one would run."""
    now = tmp_path / "now.json"
    told = cli("import", "kubernetes", EXAMPLES / "kubernetes.json", "--out", now)
    assert told.code == 0
    assert "Not eligible, behind a scheduling gate: 1" in told.err
    found = cli("audit", now, "--time-limit", 5, "--json", "--quiet").data
    assert (found["title"], levels(found)["value"][::2]) == ("keeps every rule", [39_253, 58_253])


def test_pods_on_what_is_gone_stay_in_both(cli: Cli, tmp_path: Path) -> None:
    """A node that is not listed, and a GPU too many on one that is: no internal fault."""
    now = tmp_path / "now.json"
    round_ = read(node("n", "7"), pod("p", "gone"), pod("big", "n", asks={"nvidia.com/gpu": "8"}), pod("q"))
    now.write_bytes(dumps(round_))
    audit = cli("audit", now, "--time-limit", 5, "--json", "--quiet")
    assert audit.code == 0
    found = json.loads(audit.out)
    assert (found["title"], levels(found)["value"][::2]) == ("keeps every rule", [9_000, 9_000])
