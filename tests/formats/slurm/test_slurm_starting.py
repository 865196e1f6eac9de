"""Jobs that were released with a list of nodes and do not run yet: they count as running there."""

from pathlib import Path
from typing import Any

import pytest

from helpers.slurm_files import WAITS, idle_nodes
from placeopt.formats import read_slurm
from placeopt.model import Instance

NODES = idle_nodes(3)
GANG = {
    **WAITS,
    "job_id": 3,
    "tasks": 2,
    "node_count": 2,
    "max_nodes": 3,
    "tres_per_node": "gres:gpu:2",
    "tres_req_str": "cpu=2,mem=2G,node=2",
}


def read(starting: dict[str, tuple[str, ...]], *jobs: dict[str, Any], previous: Instance | None = None) -> Instance:
    return read_slurm(NODES, {"jobs": list(jobs)}, starting=starting, previous=previous)


def held(instance: Instance) -> dict[str, dict[str, list[int]]]:
    return {
        running.job: {part.node: sorted(int(gpu) for gpu in part.gpus) for part in running.assignments}
        for running in instance.running
    }


def test_a_gang_that_starts_holds_its_nodes_in_the_option_of_as_many_workers() -> None:
    found = read({"3": ("n2", "n0")}, GANG, {**WAITS, "job_id": 4, "tres_per_node": "gres:gpu:4"})
    assert held(found) == {"3": {"n2": [0, 1], "n0": [0, 1]}}
    job = next(job for job in found.jobs if job.id == "3")
    assert [option.workers for option in job.options] == [2]
    assert [option.workers for option in read({}, GANG).jobs[0].options] == [2, 3]


def test_its_gpus_are_those_of_before_where_no_other_job_has_them() -> None:
    before = read({"3": ("n0", "n1")}, GANG)
    moved = before.running[0].model_copy(
        update={
            "assignments": tuple(
                part.model_copy(
                    update={
                        "gpus": {"2": 1000, "3": 1000},
                        "workers": tuple(worker.model_copy(update={"gpus": (2, 3)}) for worker in part.workers),
                    }
                )
                for part in before.running[0].assignments
            )
        }
    )
    known = before.model_copy(update={"running": (moved,)})
    assert held(read({"3": ("n0", "n1")}, GANG, previous=known)) == {"3": {"n0": [2, 3], "n1": [2, 3]}}
    other = {
        "job_id": 9,
        "job_state": "RUNNING",
        "partition": "gpu",
        "nodes": "n1",
        "start_time": 100,
        "tres_alloc_str": "cpu=1,mem=1G,node=1,gres/gpu=1",
        "gres_detail": ["gpu:a100:1(IDX:3)"],
    }
    assert held(read({"3": ("n0", "n1")}, GANG, other, previous=known)) == {
        "3": {"n0": [2, 3], "n1": [0, 1]},
        "9": {"n1": [3]},
    }


def test_a_job_that_cannot_be_read_holds_all_of_its_nodes() -> None:
    odd = {**GANG, "licenses": "matlab:1"}
    found = read({"3": ("n0", "n1")}, odd)
    assert held(found) == {"3": {"n0": [0, 1, 2, 3], "n1": [0, 1, 2, 3]}}
    assert [node.id for node in found.cluster.nodes if node.drained] == ["n0", "n1"]
    assert "asks for --licenses" in found.note


def test_another_number_of_workers_than_it_asks_for_holds_all_too() -> None:
    assert held(read({"3": ("n0",)}, GANG)) == {"3": {"n0": [0, 1, 2, 3]}}


@pytest.mark.parametrize(
    ("starting", "waiting"), [({}, 2), ({"7_0": ("n0",)}, 1), ({"7_0": ("n0",), "7_1": ("n1",)}, 0)]
)
def test_tasks_that_start_count_against_the_limit_of_their_array(
    starting: dict[str, tuple[str, ...]], waiting: int
) -> None:
    own = {**WAITS, "tres_per_node": "gres:gpu:1", "array_job_id": 7}
    split = [{**own, "job_id": 20 + int(name[-1]), "array_task_id": int(name[-1])} for name in starting]
    rest = {**own, "job_id": 7, "array_task_string": f"{len(starting)}-5%2", "array_max_tasks": 2}
    found = read(starting, *split, rest)
    assert held(found).keys() == starting.keys()
    assert len(found.jobs) - len(found.running) == waiting


def test_a_job_that_runs_or_has_ended_is_read_as_it_is(tmp_path: Path) -> None:
    runs = {**GANG, "job_state": "RUNNING", "nodes": "n1,n2", "tres_alloc_str": "cpu=2,mem=2G,node=2,gres/gpu=4"}
    assert held(read({"3": ("n0", "n1")}, runs)) == {"3": {"n1": [0, 1], "n2": [0, 1]}}
    assert held(read({"3": ("n0", "n1")}, {**GANG, "job_state": "CANCELLED"})) == {}
