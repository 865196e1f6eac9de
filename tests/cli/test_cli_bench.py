"""``placeopt bench`` as people call it: output, exit codes, and what is wrong named in one line."""

import json
from pathlib import Path

import pytest

from helpers.command_line import INSTANCES, Cli, said
from placeopt.cli.commands.bench import parse_seeds
from placeopt.cli.output import UsageError
from placeopt.cli.run import run


def test_run_prints_verdicts_and_goes_on(cli: Cli, tmp_path: Path) -> None:
    """One model by two solvers; the second time nothing is left to run."""
    out = tmp_path / "out"
    arguments = ("bench", "run", "--set", INSTANCES / "gap" / "gap1-0.gap", "--solvers", "highs,cpsat,fcfs")
    arguments = (*arguments, "--instances", INSTANCES, "--out", out, "--time-limit", 20)
    first = cli(*arguments)
    assert first.code == 0, first
    assert f"2 of 2 cases in {out}" in " ".join(first.out.split())
    assert "fcfs" in first.out.splitlines()[-1]
    again = cli(*arguments, "--json")
    found = json.loads(again.out)
    assert found["verdicts"]["highs"]["ok"] == found["verdicts"]["cpsat"]["ok"] == 1
    assert len((out / "results.jsonl").read_text().splitlines()) == 3


def test_a_wrong_answer_is_no(cli: Cli, tmp_path: Path) -> None:
    """A known value that cannot be, so the verdict is fail and the exit code 1."""
    (tmp_path / "x.solu").write_text("=opt= gap1-0 260\n")
    outcome = cli(
        *("bench", "run", "--set", INSTANCES / "gap" / "gap1-0.gap", "--solvers", "highs", "--time-limit", 20),
        *("--solu", tmp_path / "x.solu", "--out", tmp_path / "out"),
    )
    assert outcome.code == 1
    assert "contradicts what is known" in outcome.out
    out = ("--solvers", "highs", "--out", tmp_path / "none")
    told = cli("bench", "run", "--set", INSTANCES / "gap.test", *out, "--solu", tmp_path / "typo.solu")
    said(told, 3, "typo.solu: no such file")
    assert not (tmp_path / "none").exists()


def test_no_answer_is_no(cli: Cli, tmp_path: Path) -> None:
    """A file that is no instance: the other case is run, and the exit code says that one has come to nothing."""
    (tmp_path / "broken.json").write_text('{"cluster": {}}')
    sets = f"{tmp_path / 'broken.json'},{INSTANCES / 'hand' / 'minsky-1.json'}"
    outcome = cli("bench", "run", "--set", sets, "--solvers", "fcfs", "--time-limit", 5, "--out", tmp_path / "out")
    assert outcome.code == 1
    assert "2 of 2 cases" in outcome.out
    assert "abort  broken" in outcome.out


def test_list_names_the_sets(cli: Cli) -> None:
    """As text and as JSON."""
    assert "gap" in cli("bench", "list", "--instances", INSTANCES).out
    sets = json.loads(cli("bench", "list", "--instances", INSTANCES, "--json").out)
    assert len(sets["gap"]) == 30
    assert sets["hand"][0].keys() == {"name", "path", "kind", "value", "bound"}


@pytest.mark.parametrize(
    ("changed", "code", "words"),
    [
        ({"--set": "nothing"}, 2, ("no set 'nothing'", "tiny")),
        ({"--set": "gap,,tiny"}, 2, ("--set",)),
        ({"--solvers": "gauss"}, 2, ("'gauss' is not known", "highs")),
        ({"--solvers": "fcfs"}, 3, ("none of fcfs takes",)),
        ({"--seeds": "4-0"}, 2, ("--seeds", "4-0")),
        ({"--seeds": "a"}, 2, ("--seeds",)),
        ({"--time-limit": "0"}, 2, ("--time-limit",)),
        ({"--jobs": "0"}, 2, ("--jobs",)),
        ({"--threads": "0"}, 2, ("--threads",)),
        ({"--out": "/dev/null/x"}, 3, ("/dev/null/x",)),
    ],
)
def test_what_is_wrong_is_named(cli: Cli, changed: dict[str, str], code: int, words: tuple[str, ...]) -> None:
    """Before anything is run."""
    options = {"--set": "gap", "--solvers": "highs", "--out": "/dev/null/x", "--instances": str(INSTANCES), **changed}
    said(cli("bench", "run", *(word for pair in options.items() for word in pair)), code, *words)


def test_seeds_are_numbers_and_ranges() -> None:
    """Each once, in the order given."""
    assert parse_seeds("0-2,7,1") == (0, 1, 2, 7)
    for text in ("", "-1", "1-", "1--2", "99999999999", "0-99999", "2147483648", "1,,2", "٣"):
        with pytest.raises(UsageError):
            parse_seeds(text)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a round and a model."""
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
    tables = json.loads(cli("bench", "report", results, "--instances", INSTANCES, "--no-plots", "--json").out)["tables"]
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


def test_check_of_a_contradicted_row_fails(cli: Cli, results: Path, tmp_path: Path) -> None:
    """A known value that the row contradicts: exit code 1."""
    (tmp_path / "x.solu").write_text("=opt= gap1-0 260\n")
    outcome = cli("bench", "check", results, "--solu", tmp_path / "x.solu")
    assert outcome.code == 1
    assert "contradicted" in outcome.out
    found = json.loads(cli("bench", "check", results, "--solu", tmp_path / "x.solu", "--json").out)
    assert (found["ok"], len(found["wrong"])) == (False, 1)


def test_a_folder_without_results_is_named(cli: Cli, tmp_path: Path) -> None:
    """Both commands."""
    for command in ("report", "check"):
        said(cli("bench", command, tmp_path), 3, "results.jsonl", "no such file")
    said(cli("bench", "report", tmp_path, "--shift", "0"), 2, "--shift")
