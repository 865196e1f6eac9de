"""Slurm's licences: counted for the whole cluster, beside what nodes have."""

from typing import Any

import pytest

from helpers.imported_rounds import left_out
from helpers.slurm_files import RUNS, WAITS, replies
from helpers.solved import planned
from placeopt import Instance, Unsupported
from placeopt.importers import read_slurm

PAIR = {"tasks": 2, "max_nodes": 2, "tres_req_str": "cpu=2,mem=2G,node=2,license/a=2", "tres_per_node": "gres:gpu:1"}


def listed(**fields: int) -> dict[str, Any]:
    """Return what Slurm prints of the licence ``a``."""
    return {"licenses": [{"LicenseName": "a", "Total": 3, "Used": 0, "Free": 3, "Reserved": 0, **fields}]}


def read(*jobs: dict[str, Any], **fields: int) -> Instance:
    return read_slurm(*replies(*jobs), licenses=listed(**fields))


@pytest.mark.parametrize(
    ("fields", "running", "started"),
    [
        ({}, "", 3),
        ({"Reserved": 2}, "", 1),
        ({"Used": 2}, "", 1),  # by jobs that are not listed
        ({"Used": 2}, "a:2", 1),
        ({"Used": 3}, "a:2", 0),
    ],
)
def test_as_many_jobs_start_as_licences_are_left(fields: dict[str, int], running: str, started: int) -> None:
    waiting = [WAITS | {"job_id": n, "licenses": "a", "state_reason": "Licenses"} for n in range(2, 7)]
    found = read(RUNS | {"licenses": running}, *waiting, **fields)
    assert left_out(found) == []
    plan = planned(found)
    assert len({one.job for one in plan.placements} - {"1"}) == started


@pytest.mark.parametrize(
    ("licenses", "of_each", "reason"),
    [
        ("a:2", 1, None),
        ("a:1,a:1", 1, None),
        ("b:2", None, "asks for license/b, which is not listed"),
        ("a:2|b:2", None, "asks for license/b, which is not listed"),
        ("a:2|b:2,c", None, "cannot be read: licenses"),
    ],
)
def test_workers_share_licences_evenly(licenses: str, of_each: int | None, reason: str | None) -> None:
    found = read(WAITS | PAIR | {"licenses": licenses}, WAITS | {"job_id": 9})
    assert left_out(found) == ([] if reason is None else [f"{reason}: 1 (2)."])
    shares = {job.id: job.options[0].demand.resources.get("license/a") for job in found.jobs}
    assert shares == {"9": None} | ({} if of_each is None else {"2": of_each})


@pytest.mark.parametrize(
    ("asked", "running", "starts"),
    [
        ("a:3", "", True),  # of two workers: one takes all
        ("a:3", "a:1", False),
        ("a:1", "a:2", True),
        ("a:4", "", False),
        ("a:4|b:1", "", True),
        ("a:3|b:2", "a:1", False),
        ("b:1|a:3", "a:0", True),
    ],
)
def test_a_job_starts_where_the_licences_of_one_way_are_left(asked: str, running: str, starts: bool) -> None:
    lists = listed()
    lists["licenses"].append(lists["licenses"][0] | {"LicenseName": "b", "Total": 1})
    found = read_slurm(*replies(RUNS | {"licenses": running}, WAITS | PAIR | {"licenses": asked}), licenses=lists)
    plan = planned(found)
    assert (left_out(found), len(plan.placements)) == ([], 1 + starts)


def test_another_list_is_refused() -> None:
    with pytest.raises(Unsupported, match=r"no list 'licenses', but Slurm's list of jobs; give .* show licenses"):
        read_slurm(*replies(WAITS), licenses={"jobs": []})
