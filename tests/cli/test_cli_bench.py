"""``placeopt bench`` as people call it: output, exit codes, and what is wrong named in one line."""

import shutil
from pathlib import Path

import pytest

from helpers.command_line import INSTANCES, Cli
from placeopt.cli.run import run
from placeopt.view import View, as_csv


def test_run_prints_verdicts_and_goes_on(cli: Cli, tmp_path: Path) -> None:
    """One model by two solvers; the second time nothing is left to run."""
    out = tmp_path / "out"
    arguments = ("bench", "run", "--set", INSTANCES / "gap" / "gap1-0.gap", "--solvers", "highs,cpsat,fcfs")
    arguments = (*arguments, "--instances", INSTANCES, "--out", out, "--case-limit", 20)
    first = cli(*arguments)
    assert first.code == 0, first
    assert f"2 of 2 cases in {out}" in first.words
    assert "left out, since no instance is of their kind: fcfs" in first.words
    table = View.model_validate_json(cli(*arguments, "--json").out).table("Verdicts")
    assert [column.name for column in table.columns[:3]] == ["solver", "cases", "ok"]
    assert [line[:3] for line in table.rows] == [("highs", 1, 1), ("cpsat", 1, 1)]
    assert len((out / "results.jsonl").read_text().splitlines()) == 3


def test_no_answer_is_no(cli: Cli, tmp_path: Path) -> None:
    """A file that is no instance: the other case is run, and the exit code says that one has come to nothing."""
    (tmp_path / "broken.json").write_text('{"cluster": {}}')
    sets = f"{tmp_path / 'broken.json'},{INSTANCES / 'hand' / 'minsky-1.json'}"
    outcome = cli("bench", "run", "--set", sets, "--solvers", "fcfs", "--case-limit", 5, "--out", tmp_path / "out")
    assert outcome.code == 1
    assert "2 of 2 cases" in outcome.out
    assert "broken    fcfs       0  abort" in outcome.out


def test_without_a_set_the_sets_are_listed(cli: Cli) -> None:
    assert "gap" in cli("bench", "run", "--instances", INSTANCES).out
    view = View.model_validate_json(cli("bench", "run", "--instances", INSTANCES, "--json").out)
    assert next(line for line in view.table("Sets").rows if line[0] == "gap") == ("gap", 30, "linear", 30, 30)
    assert sum(line[0] == "gap" for line in view.table("Instances").rows) == 30


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bench") / "out"
    sets = f"{INSTANCES / 'gap' / 'gap1-0.gap'},{INSTANCES / 'hand' / 'minsky-1.json'}"
    options = ["--set", sets, "--solvers", "highs,fcfs", "--case-limit", "20", "--instances", str(INSTANCES)]
    assert run(["bench", "run", *options, "--out", str(out), "--quiet"]) == 0
    return out


def test_report_and_check(cli: Cli, results: Path, tmp_path: Path) -> None:
    """Both kinds side by side, as text, JSON, CSV and a page; every plan and value is read again."""
    files = ("--page", tmp_path / "r.html", "--csv", tmp_path / "r.csv")
    report = cli("bench", "report", results, "--instances", INSTANCES, *files)
    assert report.code == 0, report
    assert "Solvers, rounds" in report.out
    assert "Solvers, models" in report.out
    view = View.model_validate_json(cli("bench", "report", results, "--instances", INSTANCES, "--json").out)
    assert {line[0] for line in view.table("Verdicts").rows} == {"highs", "fcfs"}
    assert (tmp_path / "r.csv").read_text() == as_csv(view)
    page = (tmp_path / "r.html").read_text()
    assert all(name in page for name in ("Performance profile, models", "Mean gap over time, rounds"))
    check = cli("bench", "report", results, "--check", "--instances", INSTANCES)
    assert (check.code, check.out.splitlines()[0]) == (0, "ok: 2 rows checked")


def test_check_updates_what_is_known(cli: Cli, results: Path, tmp_path: Path) -> None:
    """Into a file that knew nothing: an optimum of the model, a value and a bound of the round."""
    solu = tmp_path / "new.solu"
    told = cli("bench", "report", results, "--check", "--solu", solu)
    assert "--update writes them" in told.out
    assert not solu.exists()
    assert cli("bench", "report", results, "--solu", solu, "--update").code == 0
    lines = solu.read_text().splitlines()
    assert any(line.startswith("=opt= gap1-0 261  # highs, ") for line in lines)
    assert [line.split()[0] for line in lines if "minsky-1" in line] == ["=best=", "=bound="]
    solu.write_text("\n".join(line.partition("  #")[0] for line in lines) + "\n")  # known, and nobody knows by whom
    assert cli("bench", "report", results, "--solu", solu, "--update").code == 0
    assert solu.read_text().splitlines() == lines


def test_a_path_without_its_ending_is_no_set(cli: Cli, tmp_path: Path) -> None:
    """The file that was meant is named, or what instances are called."""
    shutil.copy(INSTANCES / "gap" / "gap1-0.gap", tmp_path / "one.gap")
    options = ("--instances", INSTANCES, "--solvers", "highs", "--out", tmp_path / "o")
    done = cli("bench", "run", "--set", tmp_path / "one", *options)
    assert done.code == 3
    assert f"one: no such file; did you mean {tmp_path / 'one.gap'}?" in done.err
    done = cli("bench", "run", "--set", tmp_path / "two", *options)
    assert done.code == 3
    assert "two: no such file; instances end in .json, .mps, .gap, .dat, lists in .test" in done.err
