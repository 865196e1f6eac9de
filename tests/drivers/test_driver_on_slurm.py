"""
The driver against a real Slurm on loopback: what the fake assumes, and what Slurm really does with it.

Skipped where Slurm is not installed (Debian: slurm-wlm, munge) or this is not root.
"""

import contextlib
import json
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

from drivers.driver_steps import came_of
from helpers.scenarios import policy
from helpers.slurm_lab import SHAPES, SlurmLab, why_no_lab
from placeopt import Engine
from placeopt.drivers import Unreachable, run_rounds
from placeopt.drivers.slurm import Ownership, SlurmCommands, SlurmDriver, SlurmOptions, read_note
from placeopt.importers.slurm import expand_hosts

pytestmark = pytest.mark.skipif(why_no_lab() is not None, reason=why_no_lab() or "")
LOOKS, LOOK_S = 200, 0.1
ROUNDS, ROUND_S = 50, 0.5
"""How often a test looks, and how many rounds it allows: counted, since the clock goes on where nothing else does."""
TRIED = ("gang of 2 whole nodes", "range of 2 to 3 nodes", "one GPU a task", "GPUs of a job", "exclusive node",
         "MIG instances", "CPUs")  # fmt: skip
OWN_NODE = ("-N1", "-w", "l3", "--gres=gpu:l40s:1", "-c2", "--mem=8G")


@pytest.fixture(scope="module")
def cluster():
    with SlurmLab() as lab:
        yield lab


@pytest.fixture
def lab(cluster):
    """The cluster with nothing in it."""
    yield cluster
    cluster.run("scancel", "--user=root", check=False)
    wait_until(lambda: not cluster.run("squeue", "--noheader").strip())


def wait_until(holds):
    for _ in range(LOOKS):
        if holds():
            return
        time.sleep(LOOK_S)
    pytest.fail("it does not come to be")


def driver(lab, own="held"):
    chosen = SlurmOptions(own=Ownership.parse(own), every_s=1.0)
    return SlurmDriver(SlurmCommands(lab.env), Engine(isolation="thread"), chosen)


def rounds_until(running, holds):
    """Rounds until one of them is as wanted."""
    records = []
    for _ in range(ROUNDS):
        records.append(running.run_round())
        if holds(records[-1]):
            return records
        time.sleep(ROUND_S)
    pytest.fail("\n".join(record.json() for record in records))


def ran_as_noted(lab, job):
    """Whether a job runs where its note says."""
    listed = json.loads(lab.run("squeue", "--json"))["jobs"]
    found = next(entry for entry in listed if str(entry["job_id"]) == job)
    note = read_note(found["admin_comment"])
    return note is not None and found["job_state"] == "RUNNING" and set(note.nodes) == set(expand_hosts(found["nodes"]))


def test_jobs_of_many_shapes_start_where_the_plan_says(lab):
    jobs = [lab.submit(*options) for options in (*(SHAPES[name] for name in TRIED), OWN_NODE)]
    array = lab.submit(*SHAPES["array, two at once"])
    as_planned = []

    def all_are(record):
        as_planned.append(came_of(record, "as-planned"))
        return sum(as_planned) >= len(jobs) + 2

    records = rounds_until(driver(lab), all_are)
    assert [ran_as_noted(lab, job) for job in jobs] == [True] * len(jobs)
    tasks = lab.run("squeue", "--noheader", "--array", "--jobs", array, "--format=%T").split()
    assert sorted(tasks) == ["PENDING", "PENDING", "RUNNING", "RUNNING"]
    assert {action.result for record in records for action in record.actions} == {"done"}
    assert sum(came_of(record, "elsewhere") for record in records) == 0


def test_components_of_a_heterogeneous_job_start_together_where_the_plan_says(lab):
    """Beside a job of each node type that runs: none of them gets a node list, which scontrol refuses for the first."""
    others = [lab.submit("-w", name, "-N1", "--gres=gpu:1", "-c1", "--mem=1G", held=False) for name in ("g3", "l2")]
    wait_until(lambda: all(lab.job(job)["JobState"] == "RUNNING" for job in others))
    part = ("--hold", "--comment=placeopt", "-c2", "--mem=8G")
    job = lab.submit("-N1", "--gres=gpu:a100:1", *part, "--wrap=sleep 600", ":", *part, "-N2", "--gres=gpu:l40s:4")
    records = rounds_until(driver(lab), lambda record: came_of(record, "as-planned") >= 2)
    assert {action.result for record in records for action in record.actions} == {"done"}
    assert [ran_as_noted(lab, component) for component in (job, str(int(job) + 1))] == [True, True]


def test_jobs_of_others_and_holds_of_operators_stay_as_they_are(lab):
    mine = lab.submit("-N1", "--gres=gpu:1")
    plain = lab.submit("-N1", "--gres=gpu:1", "--hold", "--comment=other", held=False)
    held = lab.submit("-N1", "--gres=gpu:1")
    lab.run("scontrol", "release", held)
    lab.run("scontrol", "hold", held)  # by root: only operators may release it
    dependent = lab.submit("-N1", f"--dependency=afterok:{plain}")
    running = driver(lab)
    rounds_until(running, lambda record: came_of(record, "as-planned") == 1)
    assert running.run_round().left_out == {"waiting for Dependency": 1}
    assert ran_as_noted(lab, mine)
    reasons = [lab.job(job)["Reason"] for job in (plain, held, dependent)]
    assert reasons == ["JobHeldUser", "JobHeldAdmin", "JobHeldUser"]
    assert "AdminComment" not in lab.job(plain)


def test_the_state_is_read_again_because_an_update_resizes_what_runs(lab):
    """What the rule is for: Slurm takes the list of nodes of a running job for a new size, whatever comes with it."""
    job = lab.submit("-N2", "--gres=gpu:a100:1", "-w", "g1,g2", held=False)
    slurm = SlurmCommands(lab.env)
    wait_until(lambda: (now := slurm.job_now(job)) is not None and now.state == "RUNNING")
    with pytest.raises(Exception, match="no longer pending"):
        slurm.scontrol("update", job, {"StartTime": "now", "ReqNodeList": "g1"})
    assert lab.job(job)["NodeList"] == "g1"


def test_a_partition_is_the_drivers_and_holds_of_users_are_not(lab):
    blocker = lab.submit("-p", "cpu", "-N2", "-n64", "--mem-per-cpu=1M", held=False)
    wait_until(lambda: lab.job(blocker)["JobState"] == "RUNNING")
    jobs = [lab.submit("-p", "cpu", "-N1", "-n20", "--mem-per-cpu=1M", held=False) for _ in range(2)]
    users = lab.submit("-p", "cpu", "-N1", "--hold", "--comment=placeopt", held=False)
    array = lab.submit("-p", "cpu", "-N1", "--array=0-2", held=False)
    running = driver(lab, "partition=cpu")
    running.run_round()
    assert [lab.job(job)["Reason"] for job in jobs] == ["JobHeldUser"] * 2
    lab.run("scancel", blocker)
    rounds_until(running, lambda _: all(lab.job(job)["JobState"] == "RUNNING" for job in jobs))
    lab.run("scancel", *jobs)
    rounds_until(running, lambda _: lab.run("squeue", "-h", "-r", "-j", array, "-o%T").split() == ["RUNNING"] * 3)
    assert lab.job(users)["Reason"] == "JobHeldUser"
    assert "AdminComment" not in lab.job(users)


def test_a_node_that_dies_gives_its_job_to_another(lab):
    job = lab.submit("-N1", "--gres=gpu:t4:2", "--requeue")
    other = lab.submit("-N1", "--gres=gpu:a100:8", "--requeue")
    lab.run("scontrol", "update", "NodeName=g1", "State=DRAIN", "Reason=test")
    running = driver(lab)
    rounds_until(running, lambda _: lab.job(other)["JobState"] == "RUNNING" == lab.job(job)["JobState"])
    first = lab.job(other)["NodeList"]
    assert first != "g1"
    lab.kill_node(first)
    rounds_until(running, lambda _: lab.job(other)["Restarts"] == "1" and lab.job(other)["JobState"] == "RUNNING")
    assert lab.job(other)["NodeList"] not in ("g1", first)
    lab.run("scontrol", "update", "NodeName=g1", "State=RESUME")
    lab.start_daemon(first)
    wait_until(lambda: lab.run("sinfo", "-h", "-n", f"g1,{first}", "-o%t").split() == ["idle"])


@contextlib.contextmanager
def command(lab):
    """A driver as a process, which does not outlive the test: another one would find its jobs started."""
    line = [sys.executable, "-m", "placeopt.cli", "slurm", "run", "--every", "1s", "--json"]
    process = subprocess.Popen(line, env=lab.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_a_driver_that_is_killed_leaves_nothing_half_done(lab):
    """Killed at a moment drawn at random, three times: the next one starts what is left, each job once."""
    dice = random.Random(4)
    jobs = [lab.submit("-N1", "--gres=gpu:a100:4", "-c2", "--mem=5G") for _ in range(14)]
    for _ in range(3):
        with command(lab):
            time.sleep(dice.uniform(1.0, 1.6))
    with command(lab) as process:
        wait_until(lambda: all(lab.job(job)["JobState"] == "RUNNING" for job in jobs))
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: process.poll() is not None)
        _, told = process.communicate()
    assert process.returncode == 143, told
    assert all(ran_as_noted(lab, job) for job in jobs)
    assert {lab.job(job)["Restarts"] for job in jobs} == {"0"}


def test_a_controller_that_is_away_is_waited_for(lab):
    job = lab.submit("-N1", "--gres=gpu:1")
    lab.stop_daemon("slurmctld")
    with pytest.raises(Unreachable, match=r"squeue|sinfo"):
        SlurmCommands(lab.env, timeout_s=2).read()
    messages, rounds = [], []
    stop = threading.Event()

    def on_message(message):
        messages.append(message)
        if len(messages) == 1:
            lab.start_daemon("slurmctld")
        if len(messages) == ROUNDS:
            stop.set()

    def on_round(record):
        rounds.append(record)
        if came_of(record, "as-planned") or len(rounds) == ROUNDS:
            stop.set()

    slurm, engine = SlurmCommands(lab.env, timeout_s=3), Engine(isolation="thread")
    running = SlurmDriver(slurm, engine, SlurmOptions(every_s=1), stop=stop)
    run_rounds(running.run_round, on_round, on_message, every_s=1, stop=stop)
    assert came_of(rounds[-1], "as-planned")
    assert messages[0].startswith("no answer: ")
    assert "there is an answer again" in messages[-1]
    assert ran_as_noted(lab, job)


def test_a_job_is_stopped_for_inference_and_runs_again(lab):
    """On the node with CPUs alone: what fills it is requeued under a hold, and starts again after the other."""
    fills = ("-N1", "-w", "l3", "--exclusive", "--comment=placeopt placeopt.preemptible")
    training = lab.submit(*fills, seconds=60)
    chosen = SlurmOptions(every_s=1.0, policy=policy(preempts="inference"))
    running = SlurmDriver(SlurmCommands(lab.env), Engine(isolation="thread"), chosen)
    rounds_until(running, lambda _: ran_as_noted(lab, training))
    urgent = lab.submit(*OWN_NODE, "--comment=placeopt placeopt.kind=inference", seconds=2)
    stopped = rounds_until(running, lambda record: record.count("preempt"))[-1]
    assert stopped.fired["preempts inference: stopped"] == 1
    rounds_until(running, lambda _: ran_as_noted(lab, urgent))
    rounds_until(running, lambda _: ran_as_noted(lab, training))
