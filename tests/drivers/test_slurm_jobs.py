"""Which jobs of Slurm the driver takes for its own, by one round over a list as Slurm writes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from drivers.driver_steps import driver, started, step
from drivers.fake_slurm import FakeJob, FakeSlurm
from placeopt.drivers import RoundReport
from placeopt.drivers.slurm import Note, SlurmReading, read_note


class Listed(FakeSlurm):
    """A Slurm whose one job is listed with other fields."""

    def __init__(self, num_nodes: int = 2, asked: int = 1, **fields: Any) -> None:
        super().__init__(num_nodes, [FakeJob("24", nodes=asked)])
        self.fields = fields
        self.ranges: list[str] = []
        """What ``NumNodes`` was set to."""

    def update(self, job: str, fields: Mapping[str, str]) -> None:
        super().update(job, fields)
        self.ranges += [value for name, value in fields.items() if name == "NumNodes"]

    def read(self) -> SlurmReading:
        found = super().read()
        return SlurmReading(found.nodes, {"jobs": [{**found.jobs["jobs"][0], **self.fields}]})


def one_round(slurm: FakeSlurm, own: str = "held") -> RoundReport:
    return driver(slurm, own, dry_run=True).run_round()


def test_the_word_by_which_a_job_is_given_to_placeopt() -> None:
    given = ["placeopt", "please, placeopt: tonight", 'placeopt | placeopt/1 {"kind":"start","job":"99"}']
    others = ['placeopt/1 {"kind":"start","job":"3"}', "myplaceopt", "placeopt2", "no-placeopt", ""]
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


def tasks(number: int) -> dict[str, Any]:
    """Return a job of tasks with a GPU each, on as few or as many nodes as there are."""
    request = {"tasks": number, "cpus": number, "tres_req_str": f"cpu={number},mem=1G,node=1", "max_nodes": 0}
    by_task = {"tres_per_node": "", "tres_per_task": "gres:gpu:1"}
    return request | by_task | {"memory_per_node": {"set": False}, "memory_per_cpu": 512}


@pytest.mark.parametrize(
    ("nodes", "fields", "was"),
    [
        (1, {}, ""),  # one node, whatever is listed: nothing to take back
        (1, {"max_nodes": 0}, ""),
        (1, {"max_nodes": 3}, "1-3"),
        (2, {"max_nodes": 3, "tres_req_str": "cpu=2,mem=1G"}, "2-3"),  # the least is listed in one place or the other
        (2, {"max_nodes": 3, "node_count": 1}, "2-3"),
        (1, tasks(1), ""),
        (1, tasks(2), "1-0"),  # two tasks on one node could be given two
    ],
)
def test_a_start_notes_the_range_of_nodes_that_it_narrows(nodes: int, fields: dict[str, Any], was: str) -> None:
    slurm = Listed(asked=nodes, **fields)
    assert started(driver(slurm).run_round()).keys() == {"24"}
    note = read_note(slurm.jobs["24"].admin_comment)
    assert note is not None
    assert note.was == was


@pytest.mark.parametrize(("fields", "back"), [({"max_nodes": 3}, "1-3"), (tasks(2), "1-64"), (tasks(70), "1-70")])
def test_a_start_that_is_taken_back_gives_back_the_range(fields: dict[str, Any], back: str) -> None:
    """Slurm does not take a maximum back: a node a task is none, and a job may get more tasks later."""
    slurm = Listed(num_nodes=18, **fields)
    slurm.accepts = set()
    running = driver(slurm, patience_s=15)
    while slurm.jobs["24"].held == "user":
        step(running, slurm)
    while slurm.jobs["24"].held != "user":
        step(running, slurm)
    assert slurm.ranges[-1] == back
    note = read_note(slurm.jobs["24"].admin_comment)
    assert note is not None
    assert (note.kind, note.was) == ("wait", "")


@pytest.mark.parametrize(("nodes", "fields"), [(1, tasks(2)), (2, {"max_nodes": 3})])
def test_a_released_job_holds_what_it_asked_for_and_no_more(nodes: int, fields: dict[str, Any]) -> None:
    """Its nodes are listed as required by now, which by itself means all of them."""
    slurm = Listed(num_nodes=4, asked=nodes, **fields)
    slurm.accepts = set()
    running = driver(slurm, patience_s=100)
    step(running, slurm)
    second = step(running, slurm)
    assert (second.running, second.waiting, second.gpus_used) == (1, 0, 2)


def test_tasks_that_wait_together_start_one_by_one() -> None:
    array = {"array_job_id": 24, "array_task_string": "1-2"}
    assert started(one_round(Listed(**array))).keys() == {"24_1", "24_2"}
