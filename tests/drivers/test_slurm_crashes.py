"""A driver or a controller that ends at any moment: nothing is done twice, nothing is lost."""

import contextlib
import random
import threading

import pytest

from drivers.driver_steps import EVERY_S, driver, step
from drivers.fake_slurm import FakeJob, FakeSlurm, Killed
from helpers.night import nightly
from placeopt import Engine
from placeopt.drivers import Unreachable, run_rounds
from placeopt.drivers.slurm import SlurmDriver, SlurmOptions, read_note


def crash(slurm, when, number):
    """The driver ends at a command, before or after its effect."""
    (slurm.answers if when == "before" else slurm.after)[number] = Killed()


def drive(slurm, own="held", *, schedules):
    """Six rounds of a driver, or fewer if it ends, and six of another one after it."""
    for _ in range(2):
        running = driver(slurm, own)
        with contextlib.suppress(Killed):
            for _ in range(6):
                try:
                    running.run_round()
                finally:
                    if schedules:
                        slurm.schedule()
                    slurm.now_s += 10
    assert slurm.broken_rules == []


@pytest.mark.parametrize("number", nightly(range(8), 3))
@pytest.mark.parametrize("when", ["before", "after"])
def test_after_a_crash_at_any_command_nothing_is_done_twice_and_nothing_is_lost(number, when):
    """Before the command takes effect, and after: every job runs once, where its note says."""
    slurm = FakeSlurm(3, [FakeJob(str(i), nodes=1 + i % 2) for i in range(1, 5)])
    crash(slurm, when, number)
    drive(slurm, schedules=True)
    assert slurm.starts == dict.fromkeys(slurm.jobs, 1)
    for job in slurm.jobs.values():
        assert sorted(job.on) == sorted(set(read_note(job.admin_comment).nodes))
    releases = [line for line in slurm.log if line.startswith("release")]
    assert len(releases) == len(set(releases)) == 4


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("own", ["held", "partition=gpu"])
def test_after_a_crash_at_any_command_components_start_once_and_together(number, when, own):
    """Those that have a note and those that have none yet: what was begun is taken back, and begun again."""
    held = {"held": "nobody", "comment": ""} if own != "held" else {}
    slurm = FakeSlurm(4, [FakeJob("8", het_job_id=8, **held), FakeJob("9", nodes=2, gpus=2, het_job_id=8, **held)])
    crash(slurm, when, number)
    drive(slurm, own, schedules=own == "held")
    slurm.schedule()
    assert slurm.starts == {"8": 1, "9": 1}
    for job in slurm.jobs.values():
        assert sorted(job.on) == sorted(read_note(job.admin_comment).nodes)


@pytest.mark.parametrize("number", nightly(range(12), 4, 9))
@pytest.mark.parametrize("when", ["before", "after"])
def test_after_a_crash_at_any_command_of_a_partition_every_hold_is_the_drivers_and_none_stays(number, when):
    """Two commands hold each job, two start it; the job that its user holds is left alone."""
    own = [FakeJob(str(i), held="nobody", comment="") for i in range(1, 4)]
    slurm = FakeSlurm(3, [*own, FakeJob("4", comment="")])
    crash(slurm, when, number)
    drive(slurm, "partition=gpu", schedules=False)
    slurm.schedule()
    assert {job: slurm.starts.get(job, 0) for job in slurm.jobs} == {"1": 1, "2": 1, "3": 1, "4": 0}
    assert (slurm.jobs["4"].held, slurm.jobs["4"].admin_comment) == ("user", "")
    assert {job.held for job in own} == {"nobody"}


@pytest.mark.parametrize("number", nightly(range(6), 2))
@pytest.mark.parametrize("when", ["before", "after"])
def test_after_a_crash_at_any_command_of_a_start_that_is_taken_back_the_job_starts_elsewhere(number, when):
    """Its first node takes no job: a hold, the job's own nodes, and another start."""
    slurm = FakeSlurm(2, [FakeJob("1", gpus=4)])
    crash(slurm, when, number)
    running = driver(slurm)
    for _ in range(30):
        try:
            running.run_round()
        except Killed:
            running = driver(slurm)
        if slurm.jobs["1"].held == "nobody" and len(slurm.accepts) == 2:
            slurm.accepts -= set(slurm.jobs["1"].required)
        slurm.schedule()
        slurm.now_s += 10
        assert slurm.broken_rules == []
    assert slurm.starts == {"1": 1}
    assert set(slurm.jobs["1"].on) == slurm.accepts


@pytest.mark.parametrize("seed", nightly(range(12), 0))
def test_random_clusters_with_lost_answers_requeues_and_restarts_keep_all_rules(seed):
    """Whatever happens: no rule of Slurm is broken, no job has more than its GPUs, and all jobs end."""
    rng = random.Random(seed)
    slurm = FakeSlurm(4, [FakeJob(str(i), nodes=rng.choice((1, 1, 2)), gpus=rng.randint(1, 4)) for i in range(1, 13)])
    for number in rng.sample(range(80), 12):
        lost = Unreachable("scontrol: no answer in 30 s")
        rng.choice((slurm.answers, slurm.after))[number] = rng.choice((lost, Killed()))
    running = driver(slurm, patience_s=15)
    for _ in range(250):
        try:
            running.run_round()
        except Killed:
            running = driver(slurm, patience_s=15)
        if rng.random() < 0.9:
            slurm.schedule()
        for job in slurm.jobs.values():
            if job.state == "RUNNING":
                roll = rng.random()
                if roll < 0.2:
                    slurm.end(job.id)
                elif roll < 0.22:
                    slurm.requeue(job.id)
        slurm.now_s += rng.choice((2, 10, 30))
        assert slurm.broken_rules == []
    left = {job.id: read_note(job.admin_comment) for job in slurm.jobs.values() if job.state != "COMPLETED"}
    assert all(note is not None and note.kind == "given-up" for note in left.values()), left
    assert len(left) <= 2


def test_a_controller_that_goes_within_a_round_ends_its_actions_and_all_is_known_later():
    slurm = FakeSlurm(2, [FakeJob("1"), FakeJob("2")])
    slurm.after = {2: Unreachable("scontrol update: no answer in 30 s")}
    running = driver(slurm)
    first = step(running, slurm)
    assert "no answer" in first.silent
    slurm.reachable = False
    with pytest.raises(Unreachable, match="Unable to contact"):
        running.run_round()
    slurm.reachable = True
    for _ in range(4):
        step(running, slurm)
    assert slurm.starts == {"1": 1, "2": 1}


def test_stopping_ends_between_two_actions():
    slurm = FakeSlurm(jobs=[FakeJob(str(i)) for i in range(1, 6)])
    stop = threading.Event()
    options = SlurmOptions(every_s=EVERY_S)

    def on_command(command):
        if command == "scontrol release 2":
            stop.set()

    engine = Engine(isolation="thread")
    running = SlurmDriver(slurm, engine, options, stop=stop, on_command=on_command, clock=lambda: 1000.0)
    records = []
    run_rounds(running.run_round, records.append, pytest.fail, every_s=EVERY_S, stop=stop)
    assert slurm.log[-1] == "release 2"
    assert records[0].count("start") == 2
    assert {job.held for job in slurm.jobs.values() if job.id > "2"} == {"user"}
