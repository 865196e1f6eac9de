"""What a what-if answer says is what was asked."""

import io
from typing import Any

import pytest
from rich.console import Console
from test_round_questions import SHORT

from placeopt.build import instance, job, machine, node, running
from placeopt.model import Policy
from placeopt.report.html import failures_figure
from placeopt.report.text import defrag_page, failures_page, fit_page, prices_page
from placeopt.whatif import Defrag, Price, Prices, fail, fit, parse_job


def page(parts: list) -> str:
    """Return a page as text of 100 columns."""
    out = io.StringIO()
    Console(file=out, width=100).print(*parts, sep="\n")
    return out.getvalue()


JOBS = [job(f"j{i}", gpus=4) for i in range(2)]
RACKS = instance(3, JOBS, racks=3, running=[running(one, [(f"n{i}", range(4))]) for i, one in enumerate(JOBS)])
"""Three racks of one node each; in the first two a job that fills its node."""


@pytest.mark.parametrize(
    ("asked", "begins", "words"),
    [
        # the answer "yes  whatever fails" stood there
        ({"domains": ["r2"]}, "if r2 fails: yes", ["about 1 of 3 of level rack"]),
        ({"domains": ["r0", "r2"], "k": 2}, "if r0, r2 fail together: no", []),
        (
            {"domains": ["r0", "r2"], "changes": True},
            "if any one of r0, r2 fails: yes",
            ["jobs that still run may be changed as the policy allows"],
        ),
        ({}, "N+1 by rack: yes", ["whichever rack fails", "jobs that still run stay; waiting jobs are ignored"]),
        ({"domains": ["r0", "r1", "r2"]}, "N+1 by rack: yes", ["whichever rack fails"]),
        ({"k": 2}, "N+2 by rack: ", []),
    ],
)
def test_an_answer_names_what_it_is_about(asked: dict[str, Any], begins: str, words: list[str]) -> None:
    """Some domains, some together, any of them; all of them, also listed one by one, are N+k."""
    found = fail(RACKS, "rack", limits=SHORT, **asked)
    text = page(failures_page(found))
    assert text.startswith(begins)
    assert [word for word in words if word not in text] == []
    assert "N+" in begins or not {"whatever", "whichever"} & set(text.split())
    assert failures_figure(found, "x").title.startswith(begins[0].upper() + begins[1:].rpartition(":")[0])
    assert (found.domains, found.asked == tuple(asked.get("domains", ()))) == (3, "N+" not in begins)


def test_workers_of_half_a_gpu_hold_half_a_gpu() -> None:
    """842 such workers, no two of a gang on one GPU, "held 842 GPUs"."""
    base = instance([node("n0")], [], machines=[machine("m", gpus=4)], policy=Policy(share_mode="fraction"))
    found = fit(base, parse_job("0.5", base), SHORT)
    cluster = found.gangs[-1]
    assert (cluster.workers, cluster.gpus_each, cluster.gpu_milli_each) == (4, 1, 500)
    assert page(fit_page(found, "0.5")).split("cluster")[1].split()[:2] == ["4", "2"]


@pytest.mark.parametrize(
    ("low", "high", "duals", "word"),
    [
        (10, 10, 10, "equal"),
        (0, 16_347, 16_346, "inside"),
        (0, 10, 11, "outside"),
        (None, 10, 5, "-"),
        (0, 1, None, "-"),
    ],
)
def test_an_open_interval_agrees_with_nothing(low: int | None, high: int, duals: int | None, word: str) -> None:
    """The words "agree yes" stood beside an interval of 0 to +16,347."""
    price = Price(of="node", name="m", low=low, high=high, by_duals=duals, price_milli_per_hour=1_213_000, gpus=8)
    text = page(prices_page(Prices(value=1, value_bound=2, prices=(price,), left=0, seconds=0.0)))
    line = next(line for line in text.splitlines() if line.split()[:2] == ["node", "m"])
    assert line.split()[-3:] == [word, "1,213", "8"]
    assert ("neither confirms nor refutes" in text) == (word == "inside")


def test_a_restricted_defragmentation_is_marked() -> None:
    """Limits of the question stand in the answer."""
    found = Defrag(level="node", domains=4, free_before=1, front=(), most=3, stuck=0, seconds=0.0)
    asked = found.model_copy(update={"moves_most": 2, "exempt": 1, "all_movable": True})
    text = " ".join(page(defrag_page(asked)).split())
    assert "with at most 2 moves; 1 job exempt; all running jobs may be moved, marked as movable or not" in text
    assert "at most" not in page(defrag_page(found))
