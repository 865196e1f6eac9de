"""``placeopt bench papers`` as people call it."""

from pathlib import Path

import pytest

from helpers.command_line import INSTANCES, Cli, said

PAIRS = ("bench", "papers", "--only", "sc17-alexnet-1-spread,sc17-alexnet-64-spread", "--instances", INSTANCES)


def test_page_and_tables_are_written_and_runs_kept(cli: Cli, tmp_path: Path) -> None:
    """The page is printed too; the second time nothing is left to run."""
    first = cli(*PAIRS, "--out", tmp_path / "out", "--no-plots")
    assert first.code == 0, first
    assert "AlexNet batch 64: spread / pack" in first.out
    assert "Not run." in first.out
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"results.jsonl", "papers.md", "figures.csv", "sensitivity.csv", "orderings.csv", "own.csv"}
    lines = (tmp_path / "out" / "results.jsonl").read_text().splitlines()
    assert len(lines) == 3
    changed = [line.replace('"scheduling":"', '"scheduling":"x') for line in lines]
    (tmp_path / "stale").mkdir()
    (tmp_path / "stale" / "results.jsonl").write_text("\n".join([*changed, ""]))
    stale = cli(*PAIRS, "--out", tmp_path / "stale", "--no-run", "--no-plots")
    assert "1.25" not in stale.out  # runs of another policy are no runs of this one
    assert cli(*PAIRS, "--out", tmp_path / "out", "--no-plots", "--quiet").out == ""
    assert (tmp_path / "out" / "results.jsonl").read_text().splitlines() == lines


def test_pictures_are_drawn(cli: Cli, tmp_path: Path) -> None:
    """Bars with the paper's beside ours; bars by GPU where a setting asks for them; with the points of each."""
    pytest.importorskip("matplotlib")
    made = cli(*PAIRS, "--out", tmp_path / "out", "--plots", "--quiet")
    assert made.code == 0, made
    points = (tmp_path / "out" / "pictures" / "sc17-3-2-figure-4-x.csv").read_text().splitlines()
    assert points[:2] == ["what,unit,paper,here", "AlexNet batch 1: spread / pack,x,1.27,1.2490052191657184"]
    assert b"<svg" in (tmp_path / "out" / "pictures" / "sc17-3-2-figure-4-x.svg").read_bytes()
    assert (tmp_path / "out" / "pictures" / "sc17-3-2-figure-4-x.png").read_bytes().startswith(b"\x89PNG")


def test_reports_without_running_and_names(cli: Cli, tmp_path: Path) -> None:
    """A folder without results is named; so are papers and settings."""
    missing = cli(*PAIRS, "--out", tmp_path, "--no-run")
    assert (missing.code, "results.jsonl" in missing.err) == (3, True)
    assert "horus-trace" in cli("bench", "papers", "--only", "list").out
    said(cli("bench", "papers", "--only", "horus"), 2, "--out: missing")
    unknown = cli("bench", "papers", "--only", "nothing", "--out", tmp_path)
    assert (unknown.code, "neither a paper" in unknown.err) == (2, True)
    assert cli(*PAIRS, "--out", tmp_path, "--jobs", "0").code == 2


def test_only_what_figures_use_is_run(cli: Cli, tmp_path: Path) -> None:
    """With ``--figures``: no policies that only stand beside the papers', and no section of them."""
    made = cli("bench", "papers", "--only", "sc17-artifact-5", "--figures", "--instances", INSTANCES, "--out", tmp_path)
    assert made.code == 0, made
    assert "workloads-5, topo-aware-p: end" in made.out
    assert "placeopt's own policies" not in made.out
    policies = {
        row.split('"policy":"')[1].split('"')[0] for row in (tmp_path / "results.jsonl").read_text().splitlines()[1:]
    }
    assert policies == {"sc17-fcfs", "sc17-bf", "sc17-topo-aware", "sc17-topo-aware-p"}


def test_scenarios_of_settings_are_written(cli: Cli, tmp_path: Path) -> None:
    """The same seed, the same file; and one that is read again."""
    out = tmp_path / "small.json"
    made = cli("generate", "--scenario", "horus-w-small", "--seed", "3", "--out", out)
    assert made.code == 0
    assert "horus-w-small-s3: 100 jobs on 3 nodes" in made.out
    assert cli("simulate", out, "--policy", "fcfs", "--quiet").code == 0
    unknown = cli("generate", "--scenario", "nothing", "--out", out)
    assert (unknown.code, "horus-w-small" in unknown.err) == (2, True)


def test_stored_scenarios_that_are_not_there(cli: Cli, tmp_path: Path) -> None:
    """As in a folder that is no clone: the way out is an option."""
    command = ("bench", "papers", "--only", "sc17-artifact-5", "--out", tmp_path / "out", "--instances", tmp_path)
    said(cli(*command, "--quiet"), 3, "sc17-workloads-5.json", "--instances")
