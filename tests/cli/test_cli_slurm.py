"""``placeopt slurm run`` with programs in the place of Slurm's that print stored lists and log what they are told."""

import json
import os
from pathlib import Path

import pytest

from helpers.command_line import Cli, said
from helpers.slurm_files import WAITS, idle_nodes
from placeopt.drivers import HEADER

NODES = idle_nodes(2)
JOB = WAITS | {"job_id": 7, "state_reason": "JobHeldUser", "comment": "placeopt", "priority": 0}
JOB |= {"node_count": 1, "max_nodes": 1, "tres_per_node": "gres:gpu:4", "time_limit": 60, "submit_time": 100}
SINFO = """#!/bin/sh
case "$*" in *version*) echo "slurm-wlm 22.05.8" ;; *) cat "$SLURM_FILES/nodes.json" ;; esac
"""
SQUEUE = """#!/bin/sh
case "$*" in *json*) cat "$SLURM_FILES/jobs.json" ;; *) echo "PENDING|JobHeldUser|0" ;; esac
"""
SCONTROL = """#!/bin/sh
echo "$@" >> "$SLURM_FILES/log"
case "$1" in "$SLURM_REFUSES") echo "Requested node configuration is not available for job 7" >&2; exit 1 ;; esac
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with lists and log; the programs are found first."""
    for name, text in {"sinfo": SINFO, "squeue": SQUEUE, "scontrol": SCONTROL}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "nodes.json").write_text(json.dumps(NODES))
    (tmp_path / "jobs.json").write_text(json.dumps({"jobs": [JOB, {**JOB, "job_id": 8}, {**JOB, "job_id": 9}]}))
    (tmp_path / "log").touch()
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_FILES", str(tmp_path))
    monkeypatch.setenv("SLURM_REFUSES", "-")
    return tmp_path


def commands(slurm: Path) -> list[str]:
    return [line for line in (slurm / "log").read_text().splitlines() if not line.startswith("show")]


def test_a_round_is_a_line_and_sends_its_commands(cli: Cli, slurm: Path) -> None:
    outcome = cli("slurm", "run", "--rounds", 1)
    assert (outcome.code, outcome.err) == (0, "")
    header, line, acted = outcome.out.splitlines()
    assert max(map(len, (header, line))) <= 100
    assert header == HEADER
    assert line.split()[1:7] == ["3", "0", "2", "2", "0", "0"]
    assert line.endswith("GPUs 0/8")
    assert acted == "in 1 round: hold_after: held room 1; method auto: placed 2"
    sent = commands(slurm)
    assert [words.split()[0] for words in sent] == ["update", "release"] * 2
    assert sent[0].startswith('update JobId=7 AdminComment=placeopt/1 {"kind":"start","job":"7",')
    assert sent[0].endswith(" ReqNodeList=n0")


def test_json_lines_hold_actions_and_outcomes(cli: Cli, slurm: Path) -> None:
    outcome = cli("slurm", "run", "--rounds", 1, "--json", "--max-actions", 1)
    record = json.loads(outcome.out)
    assert [(action["do"], action["job"], action["result"]) for action in record["actions"]] == [("start", "7", "done")]
    assert record["fired"] == {"hold_after: held room": 1, "method auto: placed": 2}
    assert record["actions"][0]["gpus_advised"] == [[0, 1, 2, 3]]
    assert (record["deferred"], record["waiting"]) == (1, 3)
    assert len(commands(slurm)) == 2


def test_a_dry_run_prints_the_commands(cli: Cli, slurm: Path) -> None:
    outcome = cli("slurm", "run", "--rounds", 1, "--dry-run")
    assert outcome.code == 0
    assert "  scontrol release 8\n" in outcome.out
    assert commands(slurm) == []


def test_a_refused_start_is_told_with_slurms_words(cli: Cli, slurm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_REFUSES", "update")
    outcome = cli("slurm", "run", "--rounds", 1)
    assert outcome.code == 0
    assert "job 7: start refused: scontrol update: Requested node configuration is not available" in outcome.out
    assert not any(line.startswith("release") for line in commands(slurm))


def test_lists_that_are_none_are_bad_input(cli: Cli, slurm: Path) -> None:
    (slurm / "jobs.json").write_text('{"sinfo": []}')
    said(cli("slurm", "run", "--rounds", 1), 3, "squeue --json", "jobs")


def test_without_slurm_the_command_that_is_missing_is_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    said(cli("slurm", "run", "--rounds", 1), 3, "sinfo: no such command")
