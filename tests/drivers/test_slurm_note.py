"""Notes in comments: what the driver reads back of its own words."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeopt.drivers.slurm import Note, NoteKind, read_note, with_note

WORDS = st.text("abcXYZ0123456789_.-[]=", min_size=1, max_size=12)
MAX_COUNT = 10**12
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
        'placeopt/1 {"kind":"start"}',
        'placeopt/1 {"kind":"jump","job":"1"}',
        'placeopt/1 {"kind":"start","job":1}',
        'placeopt/1 {"kind":"start","job":"1","at_s":"x"}',
        'placeopt/1 {"kind":"start","job":"1","at_s":-1}',
        'placeopt/1 {"kind":"start","job":"1","at_s":99999999999999999}',
        'placeopt/1 {"kind":"start","job":"1","nodes":"g1*999999999"}',
        'placeopt/1 {"kind":"start","job":"1","nodes":"g1*90000,g2*90000"}',
        'placeopt/1 {"kind":"start","job":"1","nodes":"g1,,g2"}',
        'placeopt/1 {"kind":"start","job":"1","colour":"red"}',
        'placeopt/1 {"kind":"start","job":"1"',
        'placeopt/2 {"kind":"start","job":"1"}',
        'see placeopt/1 {"kind":"start","job":"1"}',
        'placeopt/1 {"kind":"start","job":"1"} | somebody else\'s',
    ],
)
def test_what_is_no_note_is_none(comment: str) -> None:
    assert read_note(comment) is None


def test_a_value_may_hold_what_ends_notes() -> None:
    note = Note("wait", "7", why='bars | quotes " and } braces')
    assert "|" not in note.text()
    assert read_note(with_note("ticket 7", note)) == note


def test_nodes_of_workers_are_written_in_runs() -> None:
    note = Note("start", "7", nodes=("g1", "g1", "g2", "g1"))
    assert note.text() == 'placeopt/1 {"kind":"start","job":"7","nodes":"g1*2,g2,g1"}'
