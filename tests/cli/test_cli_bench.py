"""``placeopt bench`` as people call it: output, exit codes, and what is wrong named in one line."""

import shutil
from pathlib import Path

import pytest

from helpers.command_line import INSTANCES, Cli
from placeopt.cli.run import run


def test_run_prints_verdicts_and_goes_on(cli: Cli, tmp_path: Path) -> None:
    """One model by two solvers; the second time nothing is left to run."""
    out = tmp_path / "out"
    arguments = ("bench", "run", "--set", INSTANCES / "gap" / "gap1-0.gap", "--solvers", "highs,cpsat,fcfs")
    arguments = (*arguments, "--instances", INSTANCES, "--out", out, "--time-limit", 20)
    first = cli(*arguments)
    assert first.code == 0, first
    assert f"2 of 2 cases in {out}" in first.words
    assert "fcfs" in first.out.splitlines()[-1]
    found = cli(*arguments, "--json").data
    assert found["verdicts"]["highs"]["ok"] == found["verdicts"]["cpsat"]["ok"] == 1
    assert len((out / "results.jsonl").read_text().splitlines()) == 3


def test_no_answer_is_no(cli: Cli, tmp_path: Path) -> None:
    """A file that is no instance: the other case is run, and the exit code says that one has come to nothing."""
    (tmp_path / "broken.json").write_text('{"cluster": {}}')
    sets = f"{tmp_path / 'broken.json'},{INSTANCES / 'hand' / 'minsky-1.json'}"
    outcome = cli("bench", "run", "--set", sets, "--solvers", "fcfs", "--time-limit", 5, "--out", tmp_path / "out")
    assert outcome.code == 1
    assert "2 of 2 cases" in outcome.out
    assert "abort  broken" in outcome.out


def test_list_names_the_sets(cli: Cli) -> None:
    assert "gap" in cli("bench", "list", "--instances", INSTANCES).out
    sets = cli("bench", "list", "--instances", INSTANCES, "--json").data
    assert len(sets["gap"]) == 30
    assert sets["hand"][0].keys() == {"name", "path", "kind", "value", "bound"}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bench") / "out"
    sets = f"{INSTANCES / 'gap' / 'gap1-0.gap'},{INSTANCES / 'hand' / 'minsky-1.json'}"
    options = ["--set", sets, "--solvers", "highs,fcfs", "--time-limit", "20", "--instances", str(INSTANCES)]
    assert run(["bench", "run", *options, "--out", str(out), "--quiet"]) == 0
    return out


def test_a_report_fits_a_narrow_terminal(cli: Cli, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns go; no name is broken, and the last figures stay."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = cli("bench", "report", results, "--instances", INSTANCES, "--no-plots").out.splitlines()
    heads = [line for line in lines if line.lstrip().startswith("solver") and "PAR10 s" in line]
    assert heads
    assert all("primal-dual s" in line and "spent s" not in line and len(line) <= 80 for line in heads)


def test_report_and_check(cli: Cli, results: Path, tmp_path: Path) -> None:
    """Both kinds side by side; every plan and value is read again."""
    report = cli("bench", "report", results, "--instances", INSTANCES, "--out", tmp_path / "r", "--no-plots")
    assert report.code == 0, report
    assert "(placement)" in report.out
    assert "(linear)" in report.out
    assert (tmp_path / "r" / "report.md").is_file()
    tables = cli("bench", "report", results, "--instances", INSTANCES, "--no-plots", "--json").data["tables"]
    assert {line["solver"] for line in tables["verdicts"]} == {"highs", "fcfs"}
    check = cli("bench", "check", results, "--instances", INSTANCES)
    assert (check.code, check.out) == (0, "ok: 2 rows checked\n")


def test_check_updates_what_is_known(cli: Cli, results: Path, tmp_path: Path) -> None:
    """Into a file that knew nothing: an optimum of the model, a value and a bound of the round."""
    solu = tmp_path / "new.solu"
    told = cli("bench", "check", results, "--solu", solu)
    assert "--update writes them" in told.out
    assert not solu.exists()
    assert cli("bench", "check", results, "--solu", solu, "--update").code == 0
    lines = solu.read_text().splitlines()
    assert any(line.startswith("=opt= gap1-0 261  # highs, ") for line in lines)
    assert [line.split()[0] for line in lines if "minsky-1" in line] == ["=best=", "=bound="]
    solu.write_text("\n".join(line.partition("  #")[0] for line in lines) + "\n")  # known, and nobody knows by whom
    assert cli("bench", "check", results, "--solu", solu, "--update").code == 0
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
