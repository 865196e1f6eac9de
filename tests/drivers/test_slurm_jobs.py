"""Which jobs of Slurm the driver takes for its own, by one round over a list as Slurm writes it."""

from __future__ import annotations

from typing import Any

import pytest

from drivers.driver_steps import driver, started
from drivers.fake_slurm import FakeJob, FakeSlurm
from placeopt.drivers.slurm import Note, RoundRecord, SlurmReading


class Listed(FakeSlurm):
    """A Slurm whose one job is listed with other fields."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(2, [FakeJob("24")])
        self.fields = fields

    def read(self) -> SlurmReading:
        found = super().read()
        return SlurmReading(found.nodes, {"jobs": [{**found.jobs["jobs"][0], **self.fields}]})


def one_round(slurm: FakeSlurm, own: str = "held") -> RoundRecord:
    return driver(slurm, own, dry_run=True).run_round()


def test_the_word_by_which_a_job_is_given_to_placeopt() -> None:
    given = ["placeopt", "please, placeopt: tonight", "placeopt | placeopt/1 start job=99"]
    others = ["placeopt/1 start job=3", "myplaceopt", "placeopt2", "no-placeopt", ""]
    jobs = [FakeJob(str(i), comment=comment) for i, comment in enumerate([*given, *others], 1)]
    assert started(one_round(FakeSlurm(8, jobs))).keys() == {"1", "2", "3"}


@pytest.mark.parametrize(
    ("state", "reason", "description", "waiting", "running"),
    [
        ("PENDING", "JobHeldUser", "", 1, 0),
        ("PENDING", "JobHeldAdmin", "", 0, 0),
        ("PENDING", "JobHeldUser", "launch failed requeued held", 0, 0),
        ("PENDING", "Priority", "", 0, 0),
        (["PENDING", "REQUEUE_HOLD"], "JobHeldUser", "", 0, 0),
        ("RUNNING", "None", "", 0, 1),
        (["RUNNING", "COMPLETING"], "None", "", 0, 1),
        (["PENDING", "COMPLETING"], "JobHeldUser", "", 0, 1),
        (["STRANGE"], "None", "", 0, 1),
        (["COMPLETED"], "None", "", 0, 0),
    ],
)
def test_whether_a_job_that_names_placeopt_waits_or_runs(
    state: str | list[str], reason: str, description: str, waiting: int, running: int
) -> None:
    fields = {"job_state": state, "state_reason": reason, "state_description": description, "nodes": "n0"}
    record = one_round(Listed(**fields))
    assert (record.waiting, record.running) == (waiting, running)


@pytest.mark.parametrize("array", [23, {"set": True, "infinite": False, "number": 23}])
def test_a_task_does_not_take_the_note_of_its_array_for_its_own(array: object) -> None:
    """Slurm copies the admin comment when it splits a task off; only a hold concerns all tasks."""
    task = {"comment": "", "array_job_id": array, "array_task_id": 2}
    start = Note("start", "23_1", nodes=("n1",), own_hold=True).text()
    hold = Note("hold", "23", own_hold=True).text()
    assert one_round(Listed(**task, admin_comment=start), "partition=gpu").waiting == 0
    assert started(one_round(Listed(**task, admin_comment=hold), "partition=gpu")).keys() == {"23_2"}
