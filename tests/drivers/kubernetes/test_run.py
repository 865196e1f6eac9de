"""The command: lines, JSON, the end by a signal, a server that is not there, wrong options."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from drivers.conftest import until
from helpers.kubernetes_cluster import gang, pod
from placeopt.cli.run import run
from placeopt.drivers import HEADER, DoneAction, RoundReport

PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


@pytest.fixture
def run_driver(world):
    """Start the command on a cluster of one node."""
    world.add_nodes("n0")
    command = [sys.executable, "-m", "placeopt.cli", "kubernetes", "run", "--every", "1s", "--kubeconfig", world.config]
    return lambda *options, **how: subprocess.Popen([*command, *options], **how)


def test_until_a_signal_and_then_the_lease_is_free(world, run_driver):
    world.submit(pod("a"))
    with world.cluster, run_driver("--json", **PIPES) as driver:
        until(lambda: "a" in world.running())
        driver.send_signal(signal.SIGTERM)
        out, err = driver.communicate(timeout=120)
    assert driver.returncode == 143, err
    reports = [json.loads(line) for line in out.splitlines()]
    assert [report["started"] for report in reports if report["started"]] == [1]
    assert world.api.get("leases", "placeopt", "placeopt")["spec"]["holderIdentity"] == ""


def test_a_process_that_is_killed_while_it_lifts_a_gang_is_followed_by_another(world, run_driver):
    """SIGKILL at the second of three lifts. The Lease of the dead process has to run out; no gate is lifted twice."""
    api, lifts = world.api, []
    world.submit(*gang("g", 3))

    def before(method, path, body):
        if method == "PATCH" and "spec" in body:
            lifts.append(path.rpartition("/")[2])
            if len(lifts) == 2:
                first.kill()
                raise ConnectionResetError

    api.before = before
    with world.cluster:
        with run_driver(stdout=subprocess.DEVNULL) as first:
            first.wait()
        assert [bool(found["spec"].get("schedulingGates")) for found in api.all("pods")] == [False, True, True]
        api.change("leases", "placeopt", lambda found: found["spec"].update(leaseDurationSeconds=1), "placeopt")
        with run_driver(stdout=subprocess.DEVNULL) as second:
            until(lambda: all("placeopt.io/whole" in found["metadata"]["annotations"] for found in api.all("pods")))
            second.send_signal(signal.SIGTERM)
    assert lifts == ["g-0", "g-1", "g-1", "g-2"]
    assert [len(nodes) for nodes in world.cluster.bindings.values()] == [1, 1, 1]


def test_a_server_that_forbids_everything_is_waited_for(world, capfd):
    """As a real one does for seconds after its start, of which a driver that begins then must not end."""
    world.api.forbids = True
    threading.Timer(3.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    assert run(["kubernetes", "run", "--kubeconfig", str(world.config)]) == 130
    assert "does not let this user list Node, Pod" in capfd.readouterr().err


def test_a_dry_run_says_what_it_would_do_and_writes_nothing(world, run_driver):
    world.submit(pod("a"))
    with run_driver("--dry-run", **PIPES) as driver:
        lines = [driver.stdout.readline().rstrip() for _ in range(4)]
        driver.send_signal(signal.SIGINT)
        driver.communicate(timeout=120)
    assert driver.returncode == 130
    assert lines[0] == HEADER
    assert "          would start default/a" in lines
    assert not world.api.writes


def test_a_server_that_is_not_there_is_waited_for(world, capfd):
    world.config.write_text(world.config.read_text().replace(world.api.url, "http://127.0.0.1:1"))
    threading.Timer(3.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    assert run(["kubernetes", "run", "--kubeconfig", str(world.config)]) == 130
    out, err = capfd.readouterr()
    assert out == ""
    assert "no answer: http://127.0.0.1:1: " in err
    assert "; next attempt in 1 s" in err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--every", "soon"], 2, "expected a time from 1s to 24h"),
        (["--every", "0"], 2, "expected a time"),
        (["--max-actions", "0"], 2, "expected 1 to"),
        (["--kubeconfig", "/does/not/exist"], 3, "--kubeconfig names one"),
    ],
)
def test_what_is_refused(arguments, code, words, capsys):
    assert run(["kubernetes", "run", *arguments]) == code
    assert words in capsys.readouterr().err


def test_lines_are_at_most_100_columns():
    counts = dict.fromkeys(("waiting", "running", "placed"), 12345)
    actions = [DoneAction(do, "j", result) for do, result in (("start", "done"), ("move", "done"), ("hold", "refused"))]
    report = RoundReport(0.0, "r", "p", gap=0.1234, actions=actions * 12345, seconds=123.45, **counts)
    assert len(report.line().splitlines()[0]) <= len(HEADER) <= 100
    report.actions, report.notes = [], ["x" * 200] * 30
    assert max(map(len, report.line().splitlines())) == 100
    assert report.line().splitlines()[-1].strip() == "and 21 more"
    machine = json.loads(report.json())
    assert (machine["at"], len(machine["notes"])) == ("1970-01-01T00:00:00.000Z", 30)
