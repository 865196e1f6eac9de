"""The rule for what cannot be read, common to all resource managers; each round is a few lines and counted by hand."""

import pytest

from helpers.imported_rounds import drained, held, notes_of
from placeopt import BadInput, build
from placeopt.documents import dumps
from placeopt.importers import ImportNotes, ObservedJob, ObservedWorker, observed_instance
from placeopt.model import Instance, Policy

CLUSTER = build.cluster(build.nodes(2, first=1), machines=[build.machine(cpu_millicores=64_000)])
At = ObservedWorker


def job(name: str, *workers: At, gpus: int = 1, started_ms: int = 0, unreadable: str | None = None) -> ObservedJob:
    """A job that runs, one CPU a worker."""
    one = build.job(name, workers=len(workers), gpus=gpus, cpu_millicores=1000)
    return ObservedJob(one, workers, started_ms=started_ms, where=name, unreadable_reason=unreadable)


def read(*seen: ObservedJob, notes: ImportNotes | None = None) -> Instance:
    """The round of these jobs."""
    return observed_instance("r", "From here.", notes or ImportNotes(), 0, CLUSTER, seen, Policy())


def said(found: Instance) -> list[str]:
    """The notes of the reading, as text."""
    assert found.note == "From here."
    return notes_of(found).splitlines()


def test_a_job_on_a_node_that_is_not_listed_stands_and_is_counted() -> None:
    """A cloud node that is gone, a pod on a deleted node; told GPUs and untold ones."""
    found = read(job("told", At("gone", (5,))), job("silent", At("gone"), At("n1"), gpus=2))
    assert held(found) == {"told": {"gone": [5]}, "silent": {"gone": [0, 1], "n1": [0, 1]}}
    assert said(found) == ["Kept as running, on a node that is not listed: 2 (told, silent)."]


def test_more_gpus_than_the_node_lists_have_indices_beyond_its_own() -> None:
    """A pod with 8 GPUs on a node that now allocates 7; here 3 and 2 on a node of 4."""
    found = read(job("a", At("n1"), gpus=3), job("b", At("n1"), gpus=2), job("c", At("n2", (7,))))
    assert held(found) == {"a": {"n1": [0, 1, 2]}, "b": {"n1": [3, 4]}, "c": {"n2": [7]}}
    assert said(found) == ["Kept as running, on more GPUs than its node has or has left: 2 (b, c)."]


def test_of_two_jobs_on_one_gpu_the_later_keeps_it_and_both_count() -> None:
    """The earlier one's GPUs there count as not told: one more is used, on the other node as told."""
    early = job("early", At("n1", (1,)), At("n2", (3,)), started_ms=5)
    found = read(early, job("late", At("n1", (1,)), started_ms=9))
    assert held(found) == {"early": {"n1": [0], "n2": [3]}, "late": {"n1": [1]}}
    assert "listed as held twice; others counted as used instead: 1 (early)" in notes_of(found)
    assert held(read(job("same", At("n1", (1,)), At("n1", (1,))))) == {"same": {"n1": [0, 1]}}


def test_a_job_that_cannot_be_read_holds_what_is_left_and_its_nodes_are_drained() -> None:
    """Unknown and running: in doubt the whole node. Jobs that are told come first in either order."""
    found = read(job("odd", At("n1"), At("gone"), unreadable="cannot be read"), job("told", At("n1", (2,))))
    assert held(found) == {"odd": {"n1": [0, 1, 3]}, "told": {"n1": [2]}}
    assert drained(found) == ["n1"]
    assert said(found) == [
        "Drained, a job there holds what cannot be read: 1 (n1).",
        "Kept as running, on a node that is not listed: 1 (odd).",
        "Kept as running, cannot be read: holds all GPUs left on its nodes: 1 (odd).",
    ]
    found = read(job("odd", At("gone"), gpus=0, unreadable="cannot be read"))
    assert (held(found), found.jobs[0].kind) == ({"odd": {"gone": []}}, "cpu")


def test_the_notes_count_by_reason_and_their_text_stays_short() -> None:
    """Names are the first three, counts are whole, what does not fit is counted, signs are printable."""
    notes = ImportNotes()
    notes.assume("One assumption.")
    for i in range(5):
        notes.leave_out("too odd", f"j{i}")
        notes.leave_out("too odd", "j0")
    notes.drain("state\x1b[2J unknown", "n2")
    found = read(notes=notes)
    counted = ["Left out, too odd: 5 (j0, j1, j2, ...).", "Drained, state?[2J unknown: 1 (n2)."]
    assert (said(found), drained(found)) == (["One assumption.", *counted], ["n2"])
    for i in range(200):
        notes.leave_out(f"{i} {'x' * 300}", "job")
    text = notes.text()
    assert text.count("Left out, ") == 98
    assert text.endswith("Reasons that do not fit here: 103, jobs and nodes: 103.")


SEEN = [job("a", At("n1"), gpus=2), job("b", At("n1"), At("n2"))]


def test_a_round_whose_placements_are_made_here_reads_like_any_other() -> None:
    assert Instance.model_validate_json(dumps(read(*SEEN))) == read(*SEEN)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (job("a", At("n2")), "'a' appears twice"),
        (ObservedJob(build.gang("c", workers=2, together="hall")), "no level 'hall'"),
        (job("d", At("n2", (2, 3))), r"2 GPUs, the option's demand is 1"),
        (
            job("e", At("n2"), At("n2"))._replace(workers=(At("n2"),)),
            r"1 workers; option 'default' of job 'e' has 2",
        ),
    ],
)
def test_a_round_whose_placements_are_made_here_is_checked_all_the_same(wrong: ObservedJob, words: str) -> None:
    """Refused as by the instance."""
    with pytest.raises(BadInput, match=words):
        read(*SEEN, wrong)
