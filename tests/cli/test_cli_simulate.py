"""``placeopt simulate``."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.command_line import INSTANCES, Cli, cells, said, saved
from helpers.processes import eventually
from helpers.scenarios import scenario, timed
from placeopt import read_instance, read_scenario
from placeopt.build import job
from placeopt.documents import loads
from placeopt.scheduling import named_policy
from placeopt.simulation import Arrival, Scenario, simulate
from placeopt.view import View

TABLE_1 = INSTANCES / "papers" / "sc17-workloads-5.json"
HUNDRED = INSTANCES / "papers" / "sc17-workloads-100.json"


def test_a_table_with_a_line_a_policy(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    done = cli("simulate", TABLE_1, "--policy", "fcfs,best-fit")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("sc17-workloads-5: 6 jobs, 4 GPUs")
    names = ["Policies", "policy", "fcfs", "best-fit"]
    first = lines.index("Policies")
    found = [line.split()[0] for line in lines[first : first + 8] if line]
    assert found == [*names, *names[1:]]  # what is too wide stands below
    assert "decision" in lines[first + 5]
    assert "440.0 s" in lines[first + 2]
    assert max(map(len, lines)) <= 100
    assert "in time" not in done.out  # no job of these has a deadline


def test_a_job_that_is_stopped_for_long_is_delayed(cli: Cli, tmp_path: Path) -> None:
    """It loses nothing in its places, so it is not slowed."""
    jobs = [timed("long", 0, 60_000, gpus=4), timed("short", 1000, 30_000, gpus=4)]
    path = saved(tmp_path / "made.json", scenario(jobs, physics={"restart_ms": 1000}))
    row = cells(cli("simulate", path, "--policy", "srtf-preemptive", "--json").view, "Policies", "srtf-preemptive")
    assert (row["slowed"], row["delayed"], row["slowdown"]) == (0, 1, pytest.approx(1.0083, abs=1e-4))


def test_json_and_the_folder_agree(cli: Cli, tmp_path: Path) -> None:
    """Another run writes the same bytes, whatever stands there: what a killed one left, or a log of something else."""
    folder = tmp_path / "new" / "runs"
    command = ("simulate", TABLE_1, "--policy", "fcfs", "--out", folder)
    done = cli(*command, "--json")
    assert done.view.figure("last end") == 440.0
    assert done.out == (folder / "simulations.json").read_text()
    log = folder / "sc17-workloads-5.fcfs.s0.jsonl"
    before = log.read_bytes()
    assert cli(*command, "--quiet").out == ""
    assert log.read_bytes() == before
    log.write_bytes(before[:700])
    assert cli(*command, "--json").view.figure("last end") == 440.0
    assert log.read_bytes() == before
    assert cli(*command, "--rule", "rate").code == 0
    assert log.read_bytes() != before


def test_a_policy_that_cannot_play_leaves_logs_as_they_are(cli: Cli, tmp_path: Path) -> None:
    """None where there was none; what stood there otherwise."""
    log = tmp_path / "sc17-workloads-5.placeopt-preemptive.s0.jsonl"
    command = ("simulate", TABLE_1, "--policy", "placeopt-preemptive", "--out", tmp_path)
    said(cli(*command), 3, "changes running jobs")
    assert list(tmp_path.iterdir()) == []
    log.write_text('{"e":"older"}\n')
    said(cli(*command), 3, "changes running jobs")
    assert log.read_text() == '{"e":"older"}\n'


def test_a_policy_that_shares_gpus_by_utilisation_nobody_states_is_refused(cli: Cli, tmp_path: Path) -> None:
    """Before the first of several policies is simulated; and jobs that state none beside some that do are named."""
    jobs, logs = [timed("a", 0, 1000), timed("b", 0, 1000)], tmp_path / "logs"
    unstated = saved(tmp_path / "unstated.json", scenario(jobs))
    refused = cli("simulate", unstated, "--policy", "fcfs,horus", "--out", logs)
    said(refused, 3, "policy 'horus'", "utilisation", "no job", "gpu_utilisation_percent")
    assert not logs.exists()
    mixed = scenario([*jobs, timed("c", 0, 1000, gpu_utilisation_percent=50)])
    done = cli("simulate", saved(tmp_path / "mixed.json", mixed), "--policy", "horus")
    assert done.code == 0
    assert "warning: policy 'horus'" in done.err
    assert "2 jobs without any, such as a, count as using nothing" in done.err


def test_another_rule(cli: Cli) -> None:
    """By rate, places and neighbours both cost, and for as long as they are there only: another end."""
    command = ("simulate", TABLE_1, "--policy", "fcfs", "--json", "--rule")
    ends = [cli(*command, rule).view.figure("last end") for rule in ("rate", "sc17")]
    assert ends[0] != ends[1] == 440.0


def test_a_policy_from_a_file(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    text = '"name": "mine", "rounds": "each", "method": "best-fit", "order": {"rule": "srtf"}}'
    path.write_text('{"document": "scheduling", ' + text)
    assert cells(cli("simulate", TABLE_1, "--policy", path, "--json").view, "Policies", "mine")["ended"] == 6
    path.write_text("{" + text)
    said(cli("simulate", TABLE_1, "--policy", path), 3, 'write "document": "policy" or "scheduling"')


def test_a_moment_is_written_as_a_round(cli: Cli, tmp_path: Path) -> None:
    """SC'17's first six jobs, first come first served: who runs and who waits then."""
    out = tmp_path / "moment.json"
    played = ("simulate", TABLE_1, "--policy", "fcfs", "--quiet", "--round", out)
    assert cli(*played).code == 0
    busiest = read_instance(out)
    assert cli(*played, "--at", 100).code == 0
    later = read_instance(out)
    assert later.now_ms == 100_000
    assert len(busiest.jobs) - len(busiest.running) >= len(later.jobs) - len(later.running) > 0
    assert cli("audit", out, "--time-limit", 5, "--quiet").code == 0


def test_stored_scenarios_are_read() -> None:
    for path in sorted((INSTANCES / "papers").glob("*.json*")):
        assert read_scenario(path).name == path.name.split(".")[0]


@pytest.fixture(scope="module")
def whole_log(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "log"
    simulate(read_scenario(HUNDRED), named_policy("topo-aware"), log=path)
    return path.read_bytes()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)], ids=["Ctrl-C", "kill"])
def test_stopped_from_outside_and_started_anew(
    cli: Cli, tmp_path: Path, number: signal.Signals, code: int, whole_log: bytes
) -> None:
    """
    Ctrl-C shows what is there and says that it is not all; a kill shows nothing; both logs begin as the whole one does.

    While it runs, no other simulation writes into its log.
    """
    arguments = ["simulate", HUNDRED, "--policy", "topo-aware", "--out", tmp_path]
    command = [sys.executable, "-m", "placeopt.cli", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    log = tmp_path / "sc17-workloads-100.topo-aware.s0.jsonl"
    eventually(lambda: log.exists() and log.read_bytes().count(b"round") > 3, 60)
    process.send_signal(signal.SIGSTOP)
    said(cli(*arguments), 3, log.name, "another simulation writes there")
    process.send_signal(signal.SIGCONT)
    process.send_signal(number)
    printed, told = process.communicate(timeout=60)
    assert process.returncode == code
    if number == signal.SIGINT:
        assert "stopping with the results so far" in told
        assert "jobs had ended" in " ".join(printed.split())
        view = loads(View, (tmp_path / "simulations.json").read_text())
        assert cells(view, "Policies", "topo-aware").get("never end") is None
    there = log.read_bytes()
    assert len(there) < len(whole_log)
    assert whole_log.startswith(there[: there.rfind(b"\n") + 1])
    assert cli(*arguments, "--quiet").code == 0
    assert log.read_bytes() == whole_log


def test_a_factor_on_the_errors_of_estimates(cli: Cli, tmp_path: Path) -> None:
    """A job of 9 s and one of 3 s that is believed to take 6, at double the error 12: srtf then takes it last."""
    long = Arrival(job=timed("long", 0, 9000, gpus=4))
    short = Arrival(job=timed("short", 0, 3000, gpus=4), estimates=({"run_time_ms": 6000},))
    world = scenario([]).model_copy(update={"arrivals": (long, short)})
    command = ("simulate", saved(tmp_path / "told.json", world), "--policy", "srtf", "--rule", "rate", "--json")
    waits = [cli(*command, "--estimates", how).view.figure("wait") for how in ("0", "1", "stated", "2")]
    assert waits == [1.5, 1.5, 1.5, 4.5]  # the one of 3 s is first, until it is believed to take 12 s


def test_a_policy_without_estimates_warns(cli: Cli, tmp_path: Path) -> None:
    """Without estimates srtf, placeopt-queue and placeopt are FCFS: each says so, and names the way out."""
    world = scenario([]).model_copy(
        update={"arrivals": tuple(Arrival(job=job(f"j{i}"), actual_run_time_ms=1000 * i + 1000) for i in range(6))}
    )
    path = saved(tmp_path / "bare.json", world)
    told = cli("simulate", path, "--policy", "fcfs,srtf,placeopt-queue,placeopt", "--quiet", "--json")
    lines = told.err.splitlines()
    assert [line.split("'")[1] for line in lines] == ["srtf", "placeopt-queue", "placeopt"]
    assert all(line.startswith("warning: policy ") and "6 jobs state none: " in line for line in lines)
    assert all("--estimates actual" in line for line in lines)
    assert "(order srtf)" in lines[0]
    without = "jobs without an estimate that is read"
    assert [cells(told.view, "More of each policy", name)[without] for name in ("fcfs", "srtf")] == [0, 6]
    known = cli("simulate", path, "--policy", "srtf", "--estimates", "actual", "--json")
    assert (known.err, cells(known.view, "More of each policy", "srtf")[without]) == ("", 0)
    replayed = cli("whatif", "compare", path, "--vary", "policy=fcfs,srtf", "--measure", "mean_wait")
    assert "policy 'srtf' goes by run time estimates" in replayed.err
    assert "'fcfs'" not in replayed.err


def test_jobs_that_never_end_under_a_policy_are_reported_first(cli: Cli, tmp_path: Path) -> None:
    """Counted as 0, their waits would make the mean wait the best of all; below the table stands why they wait."""
    path = saved(tmp_path / "blocked.json", scenario([timed("huge", 0, 9, gpus=5), timed("a", 0, 9)]))
    told = cli("simulate", path, "--policy", "fcfs,best-fit")
    assert told.code == 0
    for words in ("best-fit 1 1", "do not compare", "Beware", "best-fit 1 job will never end"):
        assert words in told.words
    assert "finds no place on the idle cluster" in told.out


def test_the_smallest_useful_scenario_of_the_page_has_estimates(cli: Cli, tmp_path: Path) -> None:
    """A reader takes the page's scenario, and no policy warns."""
    page = (INSTANCES.parent / "docs" / "files.md").read_text()
    text = page.split("The smallest useful scenario")[1].split("```json")[1].split("```")[0]
    path = saved(tmp_path / "two-jobs.json", Scenario.model_validate_json(text))
    told = cli("simulate", path, "--policy", "fcfs,srtf,placeopt-queue,placeopt,genie,capacity")
    assert (told.code, told.err) == (0, "")
