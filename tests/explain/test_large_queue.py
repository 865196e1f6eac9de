"""Whole queues of larger rounds: reasons, conflicts and changes, against a look at every node."""

from __future__ import annotations

import pytest

from helpers.explained_queues import tried
from helpers.free_nodes import FreeNodes, assert_known
from helpers.instance_edits import fits_somewhere
from helpers.long_queues import with_licences
from placeopt import generate, solve
from placeopt.build import instance, job, node
from placeopt.explain import explain_all


@pytest.mark.parametrize("spec", ["uniform", "varied", "fractions", "licences"])
def test_every_statement(spec: str) -> None:
    """Some 200 jobs on 25 nodes."""
    round_ = generate("varied" if spec == "licences" else spec, jobs=300, nodes=25, gpus=8, seed=1)
    if spec == "licences":
        round_ = with_licences(round_)
    plan = solve(round_, method="stranding", time_limit_s=60)
    found = tried(round_, plan, explain_all(round_, plan, time_limit_s=60))
    assert found.faults == []
    assert found.waiting > 100
    assert found.changes > 0
    assert found.members >= found.examples > 0


def test_wrong_statements_are_found() -> None:
    """A reason that moved and a change that frees one more."""
    round_ = generate("varied", jobs=150, nodes=8, gpus=8, seed=1)
    plan = solve(round_, method="stranding", time_limit_s=60)
    queue = explain_all(round_, plan, time_limit_s=60)
    more = queue.changes[0].model_copy(update={"jobs_alone": queue.changes[0].jobs_alone + 1})
    assert len(tried(round_, plan, queue.model_copy(update={"changes": (more, *queue.changes[1:])})).faults) == 1
    moved = queue.reasons[0].model_copy(update={"jobs": queue.reasons[0].jobs + 1})
    assert len(tried(round_, plan, queue.model_copy(update={"reasons": (moved, *queue.reasons[1:])})).faults) == 1


def test_the_look_at_every_node_is_that_of_all_placements() -> None:
    """Beside what runs, job by job; and what it does not know is refused."""
    round_ = generate("varied", jobs=40, nodes=3, gpus=4, seed=2)
    assert_known(round_)
    free = FreeNodes(round_, round_.running)
    running = {held.job for held in round_.running}
    answers = []
    for one in round_.jobs:
        if one.id not in running and one.options[0].workers <= 2:
            answers.append(free.fits(one))
            alone = tuple(other for other in round_.jobs if other.id in running or other.id == one.id)
            assert fits_somewhere(round_.model_copy(update={"jobs": alone}), one.id) == answers[-1]
    assert {*answers} == {True, False}
    with pytest.raises(AssertionError, match="nodes_allowed"):
        assert_known(instance([node("n")], [job("a", nodes_allowed=("n",))]))
