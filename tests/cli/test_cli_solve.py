"""``placeopt solve``: the summary, the files it writes, its exit codes, and what it refuses."""

import gzip
import json
from pathlib import Path
from unittest.mock import Mock

import pytest

import verify
from helpers.command_line import DGX1, GANGS, MINSKY, Cli, said, saved
from placeopt import read_instance, read_plan
from placeopt.build import instance, job, machine, running
from placeopt.check import violations
from placeopt.model import Changes, Policy


def test_summary_shows_the_known_answer(cli: Cli) -> None:
    """The optimum of the hand-made round is 4000; every part of the summary is there."""
    done = cli("solve", MINSKY)
    assert done.code == 0
    assert done.err == ""
    for word in ("optimal", "GPU-milli", "communication", "outvoted", "total time", "5,000 demanded"):
        assert word in done.out
    assert "Stages" not in done.out
    objective = done.out.partition("Objective")[2].splitlines()
    assert ["value", "4,000", "4,000", "0", "%", "proven"] in [line.split() for line in objective]


def test_stages_are_told_where_asked_for(cli: Cli) -> None:
    for flag in ("-v", "--verbose"):
        said = cli("solve", MINSKY, flag, "--deterministic").out
        for word in ("Stages", "greedy", "bound", "A deterministic plan states no times"):
            assert word in said


def test_summary_of_a_round_in_which_one_job_takes_the_place_of_others(cli: Cli, tmp_path: Path) -> None:
    """Two jobs ran before and one of them is preempted; what waits is worth as much as a job that is placed."""
    old = [job(name, gpus=2, value=1) for name in "ab"]
    runs = [running(one, [("n0", [2 * k, 2 * k + 1])], preemptible=True) for k, one in enumerate(old)]
    policy = Policy(changes=Changes(preemptions_max=1))
    new = [job(name, gpus=2, value=5) for name in "cd"]
    out = cli("solve", saved(tmp_path / "i.json", instance(1, [*old, *new], running=runs, policy=policy))).out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    for line in ("jobs placed 2", "of them ran before 1", "jobs waiting 2", "preempted 1"):
        assert line in lines
    assert "others are worth as much or more in its place" in out


def test_gap_of_the_gpu_share_is_a_part_of_its_bound(cli: Cli, tmp_path: Path) -> None:
    """The most valuable plan holds a thousandth of the GPUs that the other job would take."""
    jobs = [job("dear", gpus=1, gpu_milli=1, gpu_memory_mib=0, cpu_millicores=10_000, value=9)]
    jobs += [job("large", gpus=4, cpu_millicores=10_000, value=1)]
    done = cli("solve", saved(tmp_path / "i.json", instance(1, jobs, policy=Policy(share_mode="fraction"))))
    line = next(line for line in done.out.splitlines() if "GPU-milli" in line)
    assert line.split()[1] == "1"
    assert 0 < float(line.split()[3]) <= 100


@pytest.mark.parametrize("name", ["plan.json", "plan.json.gz"])
def test_plan_file_is_valid_and_passes_check(cli: Cli, tmp_path: Path, name: str) -> None:
    """The file is what ``check`` accepts, compressed if its name says so."""
    out = tmp_path / name
    assert cli("solve", MINSKY, "--out", out, "--quiet").out == ""
    assert (out.read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")
    assert violations(read_instance(MINSKY), read_plan(out)) == []
    assert cli("check", MINSKY, out).code == 0
    assert [path.name for path in tmp_path.iterdir()] == [name], "no temporary file stays"


def test_certificate_is_verified_by_the_checker(cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Value and conflict of a round in which a job asks for more than the cluster has."""
    round_ = saved(tmp_path / "i.json", instance(1, [job("fits", gpus=4, value=3), job("wide", workers=2, gpus=4)]))
    proven = tmp_path / "certificate.json"
    assert cli("solve", round_, "--quiet", "--certificate", proven).code == 0
    assert verify.main([str(round_), str(proven)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "verified: claim value, bound 3",
        "verified: claim cost, bound 0, value 3, weights {'fragmentation': 1000}",
        "verified: claim does not fit, job wide",
    ]
    said(cli("solve", round_, "--certificate", round_), 2, str(round_))


def test_standard_streams(cli: Cli) -> None:
    """An instance from standard input; ``--json`` and ``--out -`` print the same plan and nothing else."""
    data = MINSKY.read_bytes()
    by_json = cli("solve", "-", "--json", "--deterministic", stdin=data)
    by_out = cli("solve", "-", "--out", "-", "--deterministic", stdin=gzip.compress(data))
    assert by_json == by_out
    assert json.loads(by_json.out)["levels"][0]["objective"] == 4000


def test_deterministic_is_equal_to_the_byte(cli: Cli) -> None:
    """The promise of the flag, on a round whose cost level is solved exactly."""
    first, second = (cli("solve", DGX1, "--deterministic", "--json", "--quiet", "--seed", 7) for _ in range(2))
    assert first == second
    assert first.data["seconds"]["total"] is None


def test_log_has_timings_also_where_the_plan_has_none(cli: Cli, tmp_path: Path) -> None:
    """Deterministic plans have null timings; the log is where they went."""
    log = tmp_path / "log.jsonl"
    assert cli("solve", MINSKY, "--deterministic", "--log", log, "--quiet").code == 0
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [events[0]["event"], events[-1]["event"]] == ["start", "end"]
    assert {event["event"] for event in events} == {"start", "progress", "stage", "end"}
    stages = [event for event in events if event["event"] == "stage"]
    assert [stage["name"] for stage in stages][:3] == ["greedy", "drb", "swaf"]
    assert all(stage["seconds"] > 0 for stage in stages)
    assert [stage["ended_s"] for stage in stages] == sorted(stage["ended_s"] for stage in stages)
    assert events[-1]["seconds"]["total"] >= stages[-1]["ended_s"] - 1e-6


def test_methods_and_policies(cli: Cli, tmp_path: Path) -> None:
    """A policy of rounds goes with any method, a scheduling policy has its own; the plan carries what was used."""
    file = tmp_path / "policy.json"
    file.write_text(
        '{"document": "policy", "name": "mine", '
        '"weights": {"communication": 1000, "interference": 0, "fragmentation": 0}}'
    )
    for fields in (["--policy", file, "--method", "fcfs"], ["--policy", "horus"], ["--policy", "rounds"]):
        plan = cli("solve", MINSKY, *fields, "--json").data
        assert plan["policy"]["name"] == ("mine" if fields[1] == file else fields[1])
        assert plan["placements"]


def test_previous_plan_is_taken_if_it_is_of_the_same_round(cli: Cli, minsky_plan: Path, tmp_path: Path) -> None:
    """A hint; but one of another round is a mistake that must be told."""
    assert cli("solve", MINSKY, "--previous", minsky_plan, "--quiet").code == 0
    said(cli("solve", DGX1, "--previous", minsky_plan), 3, str(minsky_plan), "instance.name", "'minsky-1'", "'dgx1-1'")
    strange = tmp_path / "strange.json"
    strange.write_text(minsky_plan.read_text().replace('"job":"pair"', '"job":"unheard-of"'))
    said(cli("solve", MINSKY, "--previous", strange), 3, "].job", "'unheard-of'")


def test_nothing_placed_is_exit_4(cli: Cli, tmp_path: Path) -> None:
    """Jobs waited and none was placed; with no job waiting it is 0."""
    done = cli("solve", saved(tmp_path / "i.json", instance(1, [job("a", gpus=8)])))
    assert done.code == 4
    assert "conflict" in done.out
    assert cli("solve", saved(tmp_path / "i.json", instance(1, [])), "--quiet").code == 0


def test_names_are_printed_literally(cli: Cli, tmp_path: Path) -> None:
    """Brackets are markup to some libraries, and a blank without width makes two names look alike."""
    strange = instance(1, [job("[bold]a[/bold]:smile:", gpus=8)], name="[red]\u200b")
    done = cli("solve", saved(tmp_path / "i.json", strange))
    assert "[bold]a[/bold]:smile:" in done.out
    assert "[red]\\u200b" in done.out
    assert "\u200b" not in done.out


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 200])
def test_width(cli: Cli, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Readable in a narrow terminal, and never wider than 100 columns."""
    monkeypatch.setenv("COLUMNS", str(columns))
    done = cli("solve", GANGS, "--method", "stranding", "-v")
    assert max(map(len, done.out.splitlines())) <= min(columns, 100)
    assert "what it did" in done.out  # below the other columns, where it is narrow


def test_failed_stages_are_warned_of(cli: Cli) -> None:
    """CBC cannot be asked beforehand: an option that it refuses costs the stage, not the plan; it must be seen."""
    done = cli("solve", MINSKY, "--method", "counts-cbc", "--solver-option", "no_such_option=1", "--quiet")
    assert done.code == 0
    assert done.err.startswith("warning: stage counts-cost failed: ")
    assert "no_such_option" in done.err


def test_what_is_read_is_not_written_over(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "i.json"
    path.write_bytes(MINSKY.read_bytes())
    said(cli("solve", path, "--out", f"{tmp_path}/./i.json"), 2, "input", "another output")
    assert path.read_bytes() == MINSKY.read_bytes()


def test_full_disk(cli: Cli) -> None:
    """The summary stands, the error is told, and a full log does not end the solve."""
    full = cli("solve", MINSKY, "--out", "/dev/full")
    said(full, 3, "/dev/full", "No space left")
    assert "optimal" in full.out
    log = cli("solve", MINSKY, "--log", "/dev/full", "--quiet")
    assert log.code == 0
    assert log.err.startswith("warning: /dev/full")


def test_contradicting_running_jobs_are_bad_input(cli: Cli, tmp_path: Path) -> None:
    """The engine refuses what it may not change; that is the file's fault, not ours."""
    jobs = [job("a"), job("b")]
    round_ = instance(1, jobs, machines=[machine(gpus=1)], running=[running(one, [("n0", [0])]) for one in jobs])
    said(cli("solve", saved(tmp_path / "i.json", round_)), 3, "running placements")


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ZeroDivisionError(), 5, ["internal fault: Solver.solve: ZeroDivisionError", "report it", "PLACEOPT_DEBUG=1"]),
        (MemoryError(), 3, ["out of memory"]),  # a large file on a small machine is no fault of ours
    ],
)
def test_faults_are_reported_as_such(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, words: list[str]
) -> None:
    """Exit code 5, how to report it, and a traceback only on request."""
    monkeypatch.setattr("placeopt.solving.api.compile_problem", Mock(side_effect=error))
    said(cli("solve", MINSKY), code, *words)
