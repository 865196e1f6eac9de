"""What people see of a judgement, on a terminal, from the command line, and from files of other programs."""

import json
import zipfile
from pathlib import Path

from helpers.command_line import Cli
from placeopt import build
from placeopt.documents import loads, write_document
from placeopt.judge import judge
from placeopt.model import Changes, Instance, Policy
from placeopt.view import View
from placeopt.whatif import plan_of

ROOT = Path(__file__).parents[2]


def round_with_a_move() -> Instance:
    """Return two nodes with a job on each, and one that needs a whole node."""
    small = [build.job(f"small{i}") for i in range(2)]
    running = [build.running(job, [(f"n{i}", [0])], movable=True) for i, job in enumerate(small)]
    jobs = [*small, build.job("whole", gpus=4)]
    return build.instance(nodes=2, jobs=jobs, running=running, policy=Policy(changes=Changes(moves_max=1)))


def test_a_view_says_what_is_better_and_what_it_takes() -> None:
    """The verdict, the figures by name, and one row for each band, kind of job and change."""
    view = judge(round_with_a_move()).view()
    assert (view.verdict, view.proof) == ("bad", "every statement is proven, of the cluster")
    assert view.title == "a plan is there that is better by 1 job of priority 0 with the changes that are allowed"
    assert view.figure("jobs that the best plan starts more, fixed") == 0
    assert view.figure("GPUs that it uses more, with changes") == 4000
    assert view.figure("waiting jobs: fits after changes") == 1
    (row,) = view.table("Waiting jobs").rows
    assert row[:5] == ("whole", 1, "fits after changes", 1, "yes")
    assert "after: move small" in str(row[5])
    assert [row[2:] for row in view.table("Regret").rows] == [
        (1, 0, 0, 0),
        (None, 0, 0, 0),
        (3, 2, 3, 3),
        (None, 2000, 6000, 6000),
    ]


def test_a_plan_that_nothing_beats_is_good() -> None:
    """Proven, or open where the time was over."""
    round_ = build.instance(nodes=1, jobs=[build.job("a", gpus=8)])
    assert judge(round_).view().verdict == "good"
    cut = judge(round_, time_limit_s=1e-6).view()
    assert cut.verdict == "open"
    assert cut.notes


def test_rules_broken_are_a_table() -> None:
    """One row each."""
    jobs = [build.job("a"), build.job("b")]
    round_ = build.instance(nodes=1, jobs=jobs)
    view = judge(round_, plan_of(round_, [build.placement(job, [("n0", [0])]) for job in jobs])).view()
    assert view.verdict == "bad"
    assert {row[0] for row in view.table("Rules broken").rows} == {"gpu_share"}


def test_the_command_judges_rounds_and_plans(cli: Cli, tmp_path: Path) -> None:
    """A round with and without a plan; one whose plan breaks rules ends with 1."""
    round_, plan = tmp_path / "round.json", tmp_path / "plan.json"
    write_document(round_, round_with_a_move())
    done = cli("judge", str(round_), "--quiet")
    assert done.code == 0
    assert "better by 1 job of priority 0 with the changes that are allowed" in " ".join(done.out.split())
    placed = {"document": "placements", "placements": [{"job": "whole", "option": "default", "assignments": []}]}
    plan.write_text(json.dumps(placed), encoding="utf-8")
    assert cli("judge", str(round_), "--plan", str(plan), "--quiet").code == 3
    whole = build.placement(round_with_a_move().jobs[2], [("n0", [0, 1, 2, 3])])
    placed = {"document": "placements", "placements": [whole.model_dump(mode="json")]}
    plan.write_text(json.dumps(placed), encoding="utf-8")
    done = cli("judge", str(round_), "--plan", str(plan), "--json", "--quiet")
    assert done.code == 1
    broken = loads(View, done.out)
    assert (broken.verdict, len(broken.table("Rules broken").rows) > 0) == ("bad", True)


def test_the_command_reads_what_other_programs_write(cli: Cli, tmp_path: Path) -> None:
    """Lists of Kubernetes, the same in a snapshot of KAI, and Slurm's nodes and jobs."""
    file = ROOT / "examples" / "kubernetes.json"
    listed = loads(View, cli("judge", str(file), "--json", "--quiet").out)
    items = json.loads(file.read_text(encoding="utf-8"))["items"]
    raw = {"nodes": [one for one in items if one["kind"] == "Node"], "pods": [o for o in items if o["kind"] == "Pod"]}
    with zipfile.ZipFile(tmp_path / "snapshot.zip", "w") as packed:
        packed.writestr("snapshot.json", json.dumps({"config": {"actions": "allocate"}, "rawObjects": raw}))
    of_kai = loads(View, cli("judge", str(tmp_path / "snapshot.zip"), "--json", "--quiet").out)
    rows = [row for row in listed.table("Regret").rows if row[0] == "fixed"]
    assert rows == [row for row in of_kai.table("Regret").rows if row[0] == "fixed"] != []
    assert [row[2] for row in listed.table("Waiting jobs").rows].count("fits as it is") == 2
    slurm = ROOT / "tests" / "data" / "reports" / "slurm"
    done = cli(
        *("judge", str(slurm / "preempt.nodes.json"), "--slurm-jobs", str(slurm / "preempt.jobs.json")),
        *("--json", "--quiet"),
    )
    assert [row[2] for row in loads(View, done.out).table("Waiting jobs").rows] == ["fits after no changes"]


def test_the_command_says_what_it_expects(cli: Cli, tmp_path: Path) -> None:
    """Wrong files and options, without a traceback."""
    empty = tmp_path / "empty.json"
    empty.write_text("{}", encoding="utf-8")
    assert (done := cli("judge", str(empty), "--quiet")).code == 3
    assert "no 'items'" in done.err
    assert cli("judge", str(tmp_path / "none.json"), "--quiet").code == 3
    assert cli("judge", str(empty), str(empty), "--slurm-jobs", str(empty), "--quiet").code == 2
    assert cli("judge", str(empty), "--time-limit", "0").code == 2
