"""What a what-if answer says is what was asked."""

import io

import pytest
from rich.console import Console
from test_round_questions import SHORT

from placeopt.build import instance, job, machine, node, running
from placeopt.model import Domain, Policy
from placeopt.report.html import failures_figure
from placeopt.report.text import defrag_page, failures_page, fit_page, prices_page
from placeopt.whatif import Defrag, Price, Prices, fail, fit, parse_job


def page(parts: list) -> str:  # type: ignore[type-arg]
    """Return a page as text of 100 columns."""
    out = io.StringIO()
    Console(file=out, width=100).print(*parts, sep="\n")
    return out.getvalue()


def three_racks():  # type: ignore[no-untyped-def]
    """Return three racks of one node each; in the first two a job that fills its node."""
    nodes = [node(f"n{i}", domain=f"rack-{i}") for i in range(3)]
    jobs = [job(f"j{i}", gpus=4) for i in range(2)]
    return instance(
        nodes,
        jobs,
        machines=[machine("m", gpus=4)],
        domains=tuple(Domain(id=f"rack-{i}", level="rack") for i in range(3)),
        running=[running(jobs[i], [(f"n{i}", (0, 1, 2, 3))]) for i in range(2)],
    )


def test_an_answer_about_some_domains_names_them() -> None:
    """The answer "yes  whatever fails" stood there."""
    found = fail(three_racks(), "rack", domains=["rack-2"], limits=SHORT)
    assert (found.answer, found.asked, found.domains) == ("yes", ("rack-2",), 3)
    text = page(failures_page(found))
    assert text.startswith("if rack-2 fails: yes")
    assert "about 1 of 3 of level rack" in text
    assert "whatever" not in text
    assert "whichever" not in text
    assert failures_figure(found, "x").title.startswith("If rack-2 fails: ")


def test_an_answer_about_pairs_of_some_domains_is_marked() -> None:
    """--k with --domains; all of them together, and any of them."""
    two = fail(three_racks(), "rack", k=2, domains=["rack-0", "rack-2"], limits=SHORT)
    assert page(failures_page(two)).startswith("if rack-0, rack-2 fail together: no")
    any_one = fail(three_racks(), "rack", domains=["rack-0", "rack-2"], changes=True, limits=SHORT)
    text = page(failures_page(any_one))
    assert text.startswith("if any one of rack-0, rack-2 fails: yes")
    assert "jobs that still run may be changed as the policy allows" in text


def test_an_answer_about_all_domains_is_n_plus_k() -> None:
    """Also where all of them are listed one by one."""
    for names in (None, ["rack-0", "rack-1", "rack-2"]):
        found = fail(three_racks(), "rack", domains=names, limits=SHORT)
        text = page(failures_page(found))
        assert text.startswith("N+1 by rack: yes")
        assert "whichever rack fails" in text
        assert "jobs that still run stay; waiting jobs are ignored" in text
    found = fail(three_racks(), "rack", k=2, limits=SHORT)
    assert failures_figure(found, "x").title.startswith("N+2 by rack: ")


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
