"""``placeopt report``: what goes in, what comes out, what is refused."""

from pathlib import Path

import pytest

from helpers.command_line import Cli, said, saved
from helpers.scenarios import scenario, timed
from placeopt import solve
from placeopt.build import instance, job

pytest.importorskip("matplotlib")


def test_a_round_and_its_plan(cli: Cli, tmp_path: Path) -> None:
    round_ = instance(2, [job("a"), job("b", gpus=2)])
    files = saved(tmp_path / "round.json", round_), saved(tmp_path / "plan.json", solve(round_))
    out, figures = tmp_path / "r.html", tmp_path / "figures"
    done = cli("report", *files, "--out", out, "--figures", figures)
    assert done.code == 0, done
    assert "2 nodes, 2 jobs" in out.read_text(encoding="utf-8")
    assert sorted(path.name for path in figures.iterdir()) == [
        f"plan-0.{form}" for form in ("csv", "pdf", "png", "svg")
    ]


def test_jobs_of_a_log_that_never_end_are_reported_first(cli: Cli, tmp_path: Path) -> None:
    """Curves of waits and slowdowns leave room for those that never start, and the page names them."""
    world = saved(tmp_path / "w.json", scenario([timed("huge", 0, 1000, gpus=5), timed("a", 0, 1000)]))
    runs, out, figures = tmp_path / "runs", tmp_path / "r.html", tmp_path / "figures"
    assert cli("simulate", world, "--policy", "best-fit", "--out", runs, "--quiet").code == 0
    (log,) = runs.glob("*.jsonl")
    assert cli("report", world, log, "--out", out, "--figures", figures).code == 0
    page = out.read_text(encoding="utf-8")
    assert "1 of 2 jobs ended, 1 never end (huge), 1 started" in page
    label = "best-fit (1 never end)"
    assert f"{label},0.0,0.5" in (figures / "waits.csv").read_text()
    assert f"{label},1.0,1.0" in (figures / "slowdowns.csv").read_text()


def test_two_reports_compare_as_their_results_do(cli: Cli, tmp_path: Path) -> None:
    """The pages alone, and the folders, give one table of changes; curves from before are drawn behind."""
    runs, other = tmp_path / "runs", tmp_path / "other"
    jobs = [timed(name, at, 60_000, gpus=gpus) for name, at, gpus in (("a", 0, 3), ("b", 1000, 4), ("c", 2000, 1))]
    for folder, arrivals in ((runs, jobs), (other, jobs[:2])):
        world = saved(tmp_path / "w.json", scenario(arrivals))
        done = cli("simulate", world, "--policy", "fcfs,best-fit", "--out", folder, "--quiet")
        assert done.code == 0, done
    for folder, name in ((runs, "old.html"), (other, "new.html")):
        assert cli("report", folder, "--out", tmp_path / name, "--quiet").code == 0
    for before, after in (("old.html", "new.html"), (runs, other)):
        out = tmp_path / "both.html"
        done = cli("report", tmp_path / after, "--before", tmp_path / before, "--out", out, "--quiet")
        assert done.code == 0, done
        text = out.read_text(encoding="utf-8")
        assert text.index("Before and after: Policies") < text.index('id="policies"')
        assert "▼ worse" in text  # fewer jobs ended
    assert "Grey: before." in text
    done = cli("report", other, "--before", tmp_path / "none.html", "--out", tmp_path / "x.html")
    said(done, 3, "none.html")
