"""What a what-if answer says is what was asked."""

from typing import Any

import pytest

from placeopt.build import instance, job, machine, node, running
from placeopt.model import Policy
from placeopt.whatif import Added, Defrag, Limits, NodesOfType, fail, fit, parse_job

SHORT = Limits(time_limit_s=20.0, threads=1)

JOBS = [job(f"j{i}", gpus=4) for i in range(2)]
RACKS = instance(3, JOBS, racks=3, running=[running(one, [(f"n{i}", range(4))]) for i, one in enumerate(JOBS)])
"""Three racks of one node each; in the first two a job that fills its node."""


@pytest.mark.parametrize(
    ("asked", "begins", "words"),
    [
        # the answer "yes  whatever fails" stood there
        ({"domains": ["r2"]}, "if r2 fails: yes", ["1 of 3 racks"]),
        ({"domains": ["r0", "r2"], "k": 2}, "if r0, r2 fail together: no", []),
        (
            {"domains": ["r0", "r2"], "changes": True},
            "if any one of r0, r2 fails: yes",
            ["jobs that still run may be changed as the policy allows"],
        ),
        (
            {},
            "N+1 by rack: yes",
            ["whichever rack fails", "jobs that still run stay; waiting jobs are ignored", "the least value together"],
        ),
        ({"domains": ["r0", "r1", "r2"]}, "N+1 by rack: yes", ["whichever rack fails"]),
        ({"k": 2}, "N+2 by rack: ", []),
    ],
)
def test_an_answer_names_what_it_is_about(asked: dict[str, Any], begins: str, words: list[str]) -> None:
    """Some domains, some together, any of them; all of them, also listed one by one, are N+k."""
    found = fail(RACKS, "rack", limits=SHORT, **asked)
    view = found.view()
    text = " ".join((view.title, *view.notes))
    assert text.startswith(begins)
    assert [word for word in words if word not in text] == []
    assert "N+" in begins or not {"whatever", "whichever"} & set(text.split())
    assert len(view.table("Worst first").rows) == len(found.scenarios)
    assert (found.domains, found.asked == tuple(asked.get("domains", ()))) == (3, "N+" not in begins)


def test_workers_of_half_a_gpu_hold_half_a_gpu() -> None:
    """842 such workers, no two of a gang on one GPU, "held 842 GPUs"."""
    base = instance([node("n0")], [], machines=[machine("m", gpus=4)], policy=Policy(share_mode="fraction"))
    found = fit(base, parse_job("0.5", base), SHORT)
    cluster = found.gangs[-1]
    assert (cluster.workers, cluster.gpus_each, cluster.gpu_milli_each) == (4, 1, 500)
    assert found.view("0.5").table("Largest gang").rows[-1] == ("cluster", 4, 2000)


def test_a_restricted_defragmentation_is_marked() -> None:
    """Limits of the question stand in the answer."""
    found = Defrag(level="node", domains=4, free_before=1, front=(), most=3, stuck=0, seconds=0.0)
    asked = found.model_copy(update={"moves_most": 2, "exempt": 1, "all_movable": True})
    said = ("with at most 2 moves", "1 job exempt", "all running jobs may be moved, marked as movable or not")
    assert (asked.view().notes, found.view().notes) == (said, ())


def test_jobs_are_given_up_in_the_order_of_solve() -> None:
    """By value the cheap one of high priority goes; where priorities are strict, the one of low priority."""
    jobs = [job("prod", gpus=4, value=1, priority=2), job("batch", gpus=4, value=9), job("third", gpus=4, value=5)]
    runs = [running(one, [(f"n{i}", range(4))]) for i, one in enumerate(jobs)]
    for priorities, order, first in (("price", "value", "prod"), ("strict", "priority", "batch")):
        base = instance(4, jobs, running=runs, policy=Policy(priorities=priorities))
        found = fail(base, "node", k=2, domains=["n0", "n1"], limits=SHORT)
        assert (found.order, found.worst and found.worst.lost_jobs) == (order, (first,))
        assert found.view().table("Given up").rows == ((1, first),)


@pytest.mark.parametrize(
    ("least", "found", "impossible", "words"),
    [
        (3, 3, False, "3 more nodes like box place all jobs: price 3 an hour"),
        (1, 1, False, "1 more node like box places all jobs: price 1 an hour"),
        (2, 5, False, "2 to 5 more nodes like box place all jobs: price 5 an hour"),
        (4, None, False, "at least 4 more nodes like box; no number was found to be enough"),
        (None, None, True, "no number of nodes like box places all jobs"),
    ],
)
def test_numbers_of_nodes_in_words(least: int | None, found: int | None, impossible: bool, words: str) -> None:
    """It once said "4 to None nodes"."""
    one = NodesOfType(
        node_type="box", at_least=least, found=found, price_milli_per_hour=1000, gpus=4, impossible=impossible
    )
    price = None if found is None else 1000 * found
    answer = Added(
        types=(one,),
        found=None if found is None else (found,),
        price_milli_per_hour=price,
        at_least_milli_per_hour=None if least is None else 1000 * least,
        tried=(),
        seconds=0.0,
    )
    assert answer.view().title == words
