"""Jobs that were released with a list of nodes and do not run yet: they count as running there."""

from typing import Any

import pytest

from helpers.imported_rounds import drained, held, notes_of, waiting
from helpers.slurm_files import RUNS, WAITS, idle_nodes
from placeopt.importers import read_slurm
from placeopt.model import Instance

NODES = idle_nodes(3)
TWO_NODES = {"tasks": 2, "node_count": 2, "max_nodes": 3, "tres_req_str": "cpu=2,mem=2G,node=2"}
GANG = {**WAITS, **TWO_NODES, "job_id": 3, "tres_per_node": "gres:gpu:2"}
ALL = [0, 1, 2, 3]


def read(starting: dict[str, tuple[str, ...]], *jobs: dict[str, Any], previous: Instance | None = None) -> Instance:
    return read_slurm(NODES, {"jobs": list(jobs)}, starting=starting, previous=previous)


def test_a_gang_that_starts_holds_its_nodes_in_the_option_of_as_many_workers() -> None:
    found = read({"3": ("n2", "n0")}, GANG, {**WAITS, "job_id": 4, "tres_per_node": "gres:gpu:4"})
    assert held(found) == {"3": {"n2": [0, 1], "n0": [0, 1]}}
    assert [option.workers for job in found.jobs for option in job.options if job.id == "3"] == [2]
    assert [option.workers for option in read({}, GANG).jobs[0].options] == [2, 3]


def test_its_gpus_are_those_of_before_where_no_other_job_has_them() -> None:
    """GPUs 2 and 3 of both nodes; where another job has GPU 3 by now, the lowest free ones."""
    held_before = {"gres_detail": ["gpu:a100:2(IDX:2-3)"] * 2, "tres_alloc_str": "cpu=2,mem=2G,node=2,gres/gpu=4"}
    before = read({}, {**GANG, "job_state": "RUNNING", "nodes": "n[0-1]", **held_before})
    assert held(read({"3": ("n0", "n1")}, GANG, previous=before)) == {"3": {"n0": [2, 3], "n1": [2, 3]}}
    other = RUNS | {"job_id": 9, "nodes": "n1", "tres_alloc_str": "cpu=1,mem=1G,node=1,gres/gpu=1"}
    found = read({"3": ("n0", "n1")}, GANG, other | {"gres_detail": ["gpu:a100:1(IDX:3)"]}, previous=before)
    assert held(found) == {"3": {"n0": [2, 3], "n1": [0, 1]}, "9": {"n1": [3]}}


def test_a_job_that_cannot_be_read_holds_all_of_its_nodes() -> None:
    """Also one that was released on another number of nodes than it asks for."""
    found = read({"3": ("n0", "n1")}, {**GANG, "licenses": "matlab:1"})
    assert (held(found), drained(found)) == ({"3": {"n0": ALL, "n1": ALL}}, ["n0", "n1"])
    assert "asks for license/matlab, which is not listed" in notes_of(found)
    assert held(read({"3": ("n0",)}, GANG)) == {"3": {"n0": ALL}}


@pytest.mark.parametrize(("starting", "waits"), [({}, 2), ({"7_0": ("n0",)}, 1), ({"7_0": ("n0",), "7_1": ("n1",)}, 0)])
def test_tasks_that_start_count_against_the_limit_of_their_array(
    starting: dict[str, tuple[str, ...]], waits: int
) -> None:
    own = {**WAITS, "tres_per_node": "gres:gpu:1", "array_job_id": 7}
    split = [{**own, "job_id": 20 + int(name[-1]), "array_task_id": int(name[-1])} for name in starting]
    rest = {**own, "job_id": 7, "array_task_string": f"{len(starting)}-5%2", "array_max_tasks": 2}
    found = read(starting, *split, rest)
    assert held(found).keys() == starting.keys()
    assert len(waiting(found)) == waits


def test_a_job_that_runs_or_has_ended_is_read_as_it_is() -> None:
    runs = {**GANG, "job_state": "RUNNING", "nodes": "n1,n2", "tres_alloc_str": "cpu=2,mem=2G,node=2,gres/gpu=4"}
    assert held(read({"3": ("n0", "n1")}, runs)) == {"3": {"n1": [0, 1], "n2": [0, 1]}}
    assert held(read({"3": ("n0", "n1")}, {**GANG, "job_state": "CANCELLED"})) == {}
