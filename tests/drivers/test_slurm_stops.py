"""Jobs that a policy stops for others on Slurm: they wait again under a hold, and run again where there is room."""

import pytest

from drivers.driver_steps import driver, started, step, steps
from drivers.fake_slurm import GPUS, FakeJob, FakeSlurm, Killed
from helpers.night import nightly
from helpers.scenarios import policy
from placeopt.drivers.slurm import read_note

GIVES_WAY, URGENT = "placeopt placeopt.preemptible", "placeopt placeopt.kind=inference"
STOPS = policy(preempts="inference")


def full() -> tuple[FakeSlurm, FakeJob]:
    """Return a node that a training job fills which may be preempted, and an inference job that is yet to come."""
    return FakeSlurm(1, [FakeJob("1", gpus=GPUS, comment=GIVES_WAY)]), FakeJob("2", gpus=2, comment=URGENT)


def test_inference_stops_training_which_runs_again_once_it_has_ended() -> None:
    """The stop is a round, the start of what it was for the next one; the job has its own list of nodes again."""
    slurm, urgent = full()
    running = driver(slurm, policy=STOPS)
    assert list(started(step(running, slurm))) == ["1"]
    slurm.jobs["2"] = urgent
    stop = step(running, slurm)
    assert [(one.do, one.job, one.result) for one in stop.actions] == [("preempt", "1", "done")]
    assert (stop.deferred, stop.fired["preempts inference: stopped"]) == (1, 1)
    back = step(running, slurm)
    assert [(one.do, one.job) for one in back.actions] == [("take-back", "1"), ("start", "2")]
    assert slurm.jobs["1"].required == []
    assert back.closed == ()  # no start failed, so no node is left alone
    step(running, slurm)
    slurm.end("2")
    again = [step(running, slurm) for _ in range(2)]
    assert [job for record in again for job in started(record)] == ["1"]
    assert slurm.starts == {"1": 2, "2": 1}
    assert read_note(slurm.jobs["1"].admin_comment).tries == 0


@pytest.mark.parametrize(
    "fields", [{"comment": "placeopt"}, {"admin_comment": ""}, {"het_job_id": 1}], ids=["no mark", "not ours", "part"]
)
def test_what_no_rule_or_mark_allows_or_others_started_stays(fields: dict[str, object]) -> None:
    slurm, urgent = full()
    steps(slurm, 1, policy=STOPS)
    for name, value in fields.items():
        setattr(slurm.jobs["1"], name, value)
    slurm.jobs["2"] = urgent
    steps(slurm, 3, policy=STOPS)
    assert slurm.jobs["1"].state == "RUNNING"
    assert slurm.starts == {"1": 1}


def test_a_hold_that_others_requeued_it_into_is_left_alone() -> None:
    """The driver stopped it once, and started it again; then an operator requeues it into a hold."""
    slurm, urgent = full()
    running = driver(slurm, policy=STOPS)
    step(running, slurm)
    slurm.jobs["2"] = urgent
    for _ in range(3):
        step(running, slurm)
    slurm.end("2")
    for _ in range(2):
        step(running, slurm)
    assert slurm.starts["1"] == 2
    slurm.requeue_hold("1")
    for _ in range(3):
        step(running, slurm)
    assert (slurm.starts["1"], slurm.jobs["1"].held) == (2, "user")


@pytest.mark.parametrize("number", nightly(range(10), 4))
@pytest.mark.parametrize("when", ["before", "after"])
def test_after_a_crash_at_any_command_both_run_and_no_rule_is_broken(number: int, when: str) -> None:
    """Two commands start the first job, two stop it, one takes its list of nodes back, four start both."""
    slurm, urgent = full()
    (slurm.answers if when == "before" else slurm.after)[number] = Killed()
    running = driver(slurm, policy=STOPS)
    for _ in range(16):
        if slurm.jobs["1"].state == "RUNNING":
            slurm.jobs["2"] = urgent
        if urgent.state == "RUNNING" and urgent.started_s < slurm.now_s - 20:
            slurm.end("2")
        try:
            running.run_round()
        except Killed:
            running = driver(slurm, policy=STOPS)
        slurm.schedule()
        slurm.now_s += 10
        assert slurm.broken_rules == []
    assert (slurm.jobs["1"].state, urgent.state) == ("RUNNING", "COMPLETED")
    assert slurm.starts["2"] == 1  # the first may start once more where a new driver does not know that it was stopped
