"""What an explanation says of jobs and nodes that were not read."""

import pytest

from placeopt import BadInput, solve
from placeopt.build import instance, job, machine, node, running
from placeopt.edits import edit_instance
from placeopt.explain import explain, explain_all
from placeopt.model import Instance, ReadingNote


def reading(gpus: int, **notes: str) -> Instance:
    """A node of 4 GPUs that ``held`` fills, one that is drained, and a job that waits."""
    held = job("held", gpus=4)
    made = instance(
        [node("n0"), node("n1", drained=True)],
        [held, job("waits", gpus=gpus)],
        machines=[machine(gpus=4)],
        running=[running(held, [("n0", range(4))])],
    )
    names = {"left_out": "left out", "kept": "kept as running", "drained": "drained", "not_eligible": "not eligible"}
    records = (
        ReadingNote.model_validate({"kind": names[kind], "reason": "odd", "names": (name,)})
        for kind, name in notes.items()
    )
    return edit_instance(made, reading=tuple(records))


@pytest.mark.parametrize(
    ("round_", "of", "unread"),
    [
        (reading(4), "cluster", ()),
        (reading(4, drained="n1"), "reading", ("n1",)),
        (reading(5, drained="n1"), "cluster", ()),  # no node has so many
        (reading(4, kept="held"), "reading", ("held",)),
        (reading(4, left_out="gone"), "cluster", ()),  # what else waits is not asked
        (reading(4, not_eligible="later"), "cluster", ()),
    ],
)
def test_a_reason_is_one_of_the_reading_where_it_may_be_another(
    round_: Instance, of: str, unread: tuple[str, ...]
) -> None:
    """A node or a job that was not read may have room."""
    plan = solve(round_, isolation="thread")
    found = explain(round_, plan, "waits", isolation="thread", time_limit_s=30)
    assert (found.reason, found.proven, found.of, found.unread) == ("conflict", True, of, unread)
    queue = explain_all(round_, plan)
    assert queue.of == of or (queue.of, queue.changes[0].change) == ("reading", "undrain all drained nodes (1)")


@pytest.mark.parametrize("kind", ["left_out", "not_eligible"])
def test_a_job_that_was_left_out_is_known(kind: str) -> None:
    """By the reason for which it was."""
    round_ = reading(4, **{kind: "gone"})
    with pytest.raises(BadInput, match=r"'gone' was left out when .* was read: odd"):
        explain(round_, solve(round_, isolation="thread"), "gone", time_limit_s=60)
