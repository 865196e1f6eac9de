"""The rule for what cannot be read, common to all resource managers; each round is a few lines and counted by hand."""

from __future__ import annotations

import pytest

from placeopt import BadInput, build
from placeopt.formats import ImportNotes, ObservedJob, ObservedWorker, dumps, observed_instance
from placeopt.model import Instance, Policy

CLUSTER = build.cluster(build.nodes(2, first=1), machines=[build.machine(cpu_millicores=64_000)])


def job(
    name: str, *workers: ObservedWorker, gpus: int = 1, started_ms: int = 0, unreadable_reason: str | None = None
) -> ObservedJob:
    """A job that runs, one CPU a worker."""
    one = build.job(name, workers=len(workers), gpus=gpus, cpu_millicores=1000)
    return ObservedJob(one, workers, started_ms=started_ms, where=name, unreadable_reason=unreadable_reason)


def read(*seen: ObservedJob, notes: ImportNotes | None = None) -> Instance:
    """The round of these jobs."""
    return observed_instance("r", "From here.", notes or ImportNotes(), 0, CLUSTER, seen, Policy())


def held(found: Instance) -> dict[tuple[str, str], list[int]]:
    """GPUs by job and node."""
    return {(one.job, part.node): [int(gpu) for gpu in part.gpus] for one in found.running for part in one.assignments}


def test_a_job_on_a_node_that_is_not_listed_stands_and_is_counted() -> None:
    """A cloud node that is gone, a pod on a deleted node; told GPUs and untold ones."""
    found = read(
        job("told", ObservedWorker("gone", (5,))), job("silent", ObservedWorker("gone"), ObservedWorker("n1"), gpus=2)
    )
    assert held(found) == {("told", "gone"): [5], ("silent", "gone"): [0, 1], ("silent", "n1"): [0, 1]}
    assert found.note.splitlines() == [
        "From here.",
        "Kept as running, on a node that is not listed: 2 (told, silent).",
    ]


def test_more_gpus_than_the_node_lists_have_indices_beyond_its_own() -> None:
    """A pod with 8 GPUs on a node that now allocates 7; here 3 and 2 on a node of 4."""
    found = read(
        job("a", ObservedWorker("n1"), gpus=3),
        job("b", ObservedWorker("n1"), gpus=2),
        job("c", ObservedWorker("n2", (7,))),
    )
    assert held(found) == {("a", "n1"): [0, 1, 2], ("b", "n1"): [3, 4], ("c", "n2"): [7]}
    assert found.note.splitlines()[1:] == ["Kept as running, on more GPUs than its node has or has left: 2 (b, c)."]


def test_of_two_jobs_on_one_gpu_the_later_keeps_it_and_both_count() -> None:
    """The earlier one's GPUs there count as not told: one more is used, on the other node as told."""
    early = job("early", ObservedWorker("n1", (1,)), ObservedWorker("n2", (3,)), started_ms=5)
    found = read(early, job("late", ObservedWorker("n1", (1,)), started_ms=9))
    assert held(found) == {("early", "n1"): [0], ("early", "n2"): [3], ("late", "n1"): [1]}
    assert "listed as held twice; others counted as used instead: 1 (early)" in found.note
    found = read(job("same", ObservedWorker("n1", (1,)), ObservedWorker("n1", (1,))))
    assert held(found) == {("same", "n1"): [0, 1]}


def test_a_job_that_cannot_be_read_holds_what_is_left_and_its_nodes_are_drained() -> None:
    """Unknown and running: in doubt the whole node. Jobs that are told come first in either order."""
    found = read(
        job("odd", ObservedWorker("n1"), ObservedWorker("gone"), unreadable_reason="cannot be read"),
        job("told", ObservedWorker("n1", (2,))),
    )
    assert held(found) == {("odd", "n1"): [0, 1, 3], ("told", "n1"): [2]}
    assert [node.drained for node in found.cluster.nodes] == [True, False]
    assert found.note.splitlines()[1:] == [
        "Drained, a job there holds what cannot be read: 1 (n1).",
        "Kept as running, on a node that is not listed: 1 (odd).",
        "Kept as running, cannot be read: holds all GPUs left on its nodes: 1 (odd).",
    ]
    found = read(job("odd", ObservedWorker("gone"), gpus=0, unreadable_reason="cannot be read"))
    assert (held(found), found.jobs[0].kind) == ({("odd", "gone"): []}, "cpu")


def test_the_note_counts_by_reason_and_stays_within_its_length() -> None:
    """Names are the first three, counts are whole, what does not fit is counted, signs are printable."""
    notes = ImportNotes()
    notes.assume("One assumption.")
    for i in range(5):
        notes.leave_out("too odd", f"j{i}")
        notes.leave_out("too odd", "j0")
    notes.drain("state\x1b[2J unknown", "n2")
    found = read(notes=notes)
    assert found.note.splitlines()[1:] == [
        "One assumption.",
        "Left out, too odd: 5 (j0, j1, j2, ...).",
        "Drained, state?[2J unknown: 1 (n2).",
    ]
    assert [node.drained for node in found.cluster.nodes] == [False, True]
    for i in range(200):
        notes.leave_out(f"{i} {'x' * 300}", "job")
    text = notes.text()
    shown = text.count("Left out, ") - 1
    assert len(text) < 10_000 - 300
    assert text.endswith(f"Reasons that do not fit here: {200 - shown}, jobs and nodes: {200 - shown}.")


def test_a_round_whose_placements_are_made_here_is_checked_all_the_same() -> None:
    """Refused as by the instance: an id twice, a node that there is not, more GPUs than the option asks for."""
    seen = [job("a", ObservedWorker("n1"), gpus=2), job("b", ObservedWorker("n1"), ObservedWorker("n2"))]
    found = read(*seen)
    assert Instance.model_validate_json(dumps(found)) == found
    with pytest.raises(BadInput, match="'a' appears twice"):
        read(*seen, job("a", ObservedWorker("n2")))
    elsewhere = seen[0].job.model_copy(update={"id": "c", "nodes_allowed": ("n9",)})
    with pytest.raises(BadInput, match="no node 'n9'"):
        read(*seen, ObservedJob(elsewhere))
    with pytest.raises(BadInput, match=r"2 GPUs, the option's demand is 1"):
        read(*seen, job("d", ObservedWorker("n2", (2, 3))))
    with pytest.raises(BadInput, match=r"1 workers; option 'default' of job 'e' has 2"):
        read(*seen, job("e", ObservedWorker("n2"), ObservedWorker("n2"))._replace(workers=(ObservedWorker("n2"),)))
