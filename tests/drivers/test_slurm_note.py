"""Notes in comments, pauses, states and versions: what the driver reads back of its own words and of Slurm's."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeopt import Unsupported
from placeopt.drivers.slurm import JobNow, Note, NoteKind, Ownership, read_note
from placeopt.drivers.slurm.commands import job_now_of, nodes_command
from placeopt.drivers.slurm.job_view import CONSENT, Standing, view_job
from placeopt.drivers.slurm.note import MAX_COUNT, with_note
from placeopt.drivers.slurm.restd import newest_version

WORDS = st.text("abcXYZ0123456789_.-[]=", min_size=1, max_size=12)
COUNTS = st.integers(0, MAX_COUNT)
NOTES = st.builds(
    Note,
    kind=st.sampled_from(get_args(NoteKind)),
    job=st.from_regex(r"[1-9][0-9]{0,8}(_[0-9]{1,6})?", fullmatch=True),
    round=WORDS,
    plan=WORDS,
    at_s=COUNTS,
    nodes=st.lists(st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True), max_size=8).map(tuple),
    restarts=COUNTS,
    tries=COUNTS,
    retry_s=COUNTS,
    was=st.from_regex(r"([0-9]{1,3}-[0-9]{1,3})?", fullmatch=True),
    required=st.from_regex(r"([a-z][0-9]{1,2}(,[a-z][0-9]{1,2}){0,3})?", fullmatch=True),
    own_hold=st.booleans(),
    why=WORDS,
)


@given(NOTES, st.text(max_size=60))
def test_a_note_is_read_as_it_was_written_whatever_stands_before_it(note: Note, others: str) -> None:
    comment = with_note(others, note)
    assert read_note(comment) == note
    assert comment.startswith(others) or read_note(others) is not None


@given(NOTES, NOTES, st.text("ab |/placeopt1", max_size=30))
def test_a_later_note_replaces_the_earlier_one(first: Note, second: Note, others: str) -> None:
    comment = with_note(with_note(others, first), second)
    assert read_note(comment) == second
    assert comment.count("placeopt/1 ") == with_note(others, second).count("placeopt/1 ")


@pytest.mark.parametrize(
    "comment",
    [
        "",
        "placeopt",
        "placeopt/1",
        "placeopt/1 start",
        "placeopt/1 jump job=1",
        "placeopt/1 start job=1 at_s=x",
        "placeopt/1 start job=1 at_s=99999999999999999",
        "placeopt/1 start job=1 nodes=g1*999999999",
        "placeopt/1 start job=1 colour=red",
        "placeopt/2 start job=1",
        "see placeopt/1 start job=1",
        "placeopt/1 start job=1 | somebody else's",
    ],
)
def test_what_is_no_note_is_none(comment: str) -> None:
    assert read_note(comment) is None


def test_nodes_of_workers_are_written_in_runs() -> None:
    note = Note("start", "7", nodes=("g1", "g1", "g2", "g1"))
    assert note.text() == "placeopt/1 start job=7 nodes=g1*2,g2,g1"


@pytest.mark.parametrize(
    ("comment", "given_to_placeopt"),
    [
        ("placeopt", True),
        ("please, placeopt: tonight", True),
        ("placeopt | placeopt/1 start job=3", True),
        ("placeopt/1 start job=3", False),
        ("myplaceopt", False),
        ("placeopt2", False),
        ("no-placeopt", False),
        ("", False),
    ],
)
def test_the_word_by_which_a_job_is_given_to_placeopt(comment: str, given_to_placeopt: bool) -> None:
    assert (CONSENT.search(comment) is not None) == given_to_placeopt


def test_a_task_does_not_take_the_note_of_its_array_for_its_own() -> None:
    """Slurm copies the admin comment when it splits a task off; only a hold concerns all tasks."""
    held = {"job_state": "PENDING", "state_reason": "JobHeldUser", "partition": "gpu"}
    task = {**held, "job_id": 24, "array_job_id": 23, "array_task_id": 2}
    start = Note("start", "23_1", nodes=("g1",), own_hold=True).text()
    hold = Note("hold", "23", own_hold=True).text()
    own = Ownership("gpu")
    assert view_job({**task, "admin_comment": start}, own, 0.0).standing is Standing.FOREIGN
    assert view_job({**task, "admin_comment": hold}, own, 0.0).standing is Standing.WAITS


@pytest.mark.parametrize(
    ("state", "reason", "description", "standing"),
    [
        ("PENDING", "JobHeldUser", "", Standing.WAITS),
        ("PENDING", "JobHeldAdmin", "", Standing.FOREIGN),
        ("PENDING", "JobHeldUser", "launch failed requeued held", Standing.FOREIGN),
        ("PENDING", "Priority", "", Standing.FOREIGN),
        (["PENDING", "REQUEUE_HOLD"], "JobHeldUser", "", Standing.FOREIGN),
        ("RUNNING", "None", "", Standing.HOLDS),
        (["RUNNING", "COMPLETING"], "None", "", Standing.HOLDS),
        (["PENDING", "COMPLETING"], "JobHeldUser", "", Standing.HOLDS),
        (["STRANGE"], "None", "", Standing.HOLDS),
        (["COMPLETED"], "None", "", Standing.ENDED),
    ],
)
def test_the_standing_of_a_job_that_names_placeopt(
    state: str | list[str], reason: str, description: str, standing: Standing
) -> None:
    fields = {"job_id": 5, "job_state": state, "state_reason": reason, "comment": "placeopt", "nodes": "g1"}
    fields["state_description"] = description
    assert view_job(fields, Ownership(), 0.0).standing is standing


def test_numbers_in_the_form_of_later_slurm_are_read() -> None:
    """From data parser v0.0.39 on a number is an object (written by hand, after the fields of v0.0.42)."""
    fields = {
        "job_id": 24,
        "array_job_id": {"set": True, "infinite": False, "number": 23},
        "array_task_id": {"set": True, "infinite": False, "number": 2},
        "job_state": ["PENDING"],
        "state_reason": "JobHeldUser",
        "comment": "placeopt",
        "restart_cnt": 3,
    }
    view = view_job(fields, Ownership(), 0.0)
    assert (view.job, view.standing, view.restarts) == ("23_2", Standing.WAITS, 3)


@pytest.mark.parametrize(
    ("version", "command"),
    [
        ("slurm-wlm 22.05.8\n", "sinfo"),
        ("slurm 20.11.4\n", "sinfo"),
        ("slurm 23.02.0\n", "scontrol"),
        ("slurm 25.11.1\n", "scontrol"),
        ("something", "scontrol"),
    ],
)
def test_which_command_lists_nodes(version: str, command: str) -> None:
    assert nodes_command(version)[0] == command


def test_the_state_of_one_job() -> None:
    assert job_now_of("PENDING|JobHeldUser|0\n") == JobNow("PENDING", "JobHeldUser", 0)
    held = job_now_of("PENDING|JobHeldUser,None|0\n")
    assert held is not None
    assert held.held_by_user
    assert not JobNow("RUNNING", "JobHeldUser", 0).held_by_user
    assert not JobNow("PENDING", "JobHeldUser", 5).held_by_user
    assert job_now_of("\n") is None


def test_the_newest_version_of_slurmrestd() -> None:
    paths = ["/slurm/v0.0.41/jobs/", "/slurm/v0.0.42/jobs/", "/slurmdb/v0.0.43/jobs/", "/slurm/v0.0.43/nodes/"]
    assert newest_version({"paths": {path: {} for path in paths}}) == 42
    with pytest.raises(Unsupported):
        newest_version({"paths": {}})
