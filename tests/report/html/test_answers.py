"""Figures of what-if answers: numbers by hand, and what they say under the pointer."""

import json

import pytest

from placeopt import whatif
from placeopt.benchmark import render
from placeopt.report.html import WhatIfAnswer, answer_figures, answer_type
from placeopt.simulation.replay import ReplayPoint, ReplaySeries

pytest.importorskip("matplotlib")


def outcome(placed: int, bound: int) -> whatif.RoundOutcome:
    return whatif.RoundOutcome(
        value=1, value_bound=1, jobs_placed=1, jobs_waiting=0, gpu_milli_placed=placed, gpu_milli_bound=bound,
        gpu_milli_capacity=4000, nodes=1, price_milli_per_hour=0,
    )  # fmt: skip


def choice(kind: str, price: int, found: int) -> whatif.NodesNeeded:
    """So many nodes of a kind will do, fewer not."""
    tried = (
        whatif.NodeTrial(nodes=found - 1, fits=False, waiting=2, gpu_milli_waiting=1500),
        whatif.NodeTrial(nodes=found, fits=True, waiting=0, gpu_milli_waiting=0),
    )
    return whatif.NodesNeeded(
        node_type=kind, at_least=found, found=found, price_milli_per_hour=price, impossible=False, never=(),
        tried=tried, seconds=0.1,
    )  # fmt: skip


def failures(k: int, domains: list[tuple[str, ...]]) -> whatif.Failures:
    """Failures of which the second loses one job or none, the third two, and so on."""
    lost = [
        whatif.Failure(domains=d, nodes=1, displaced=2, displaced_gpu_milli=1, lost=i, lost_at_least=i // 2,
                       lost_gpu_milli=0)
        for i, d in enumerate(domains)
    ]  # fmt: skip
    return whatif.Failures(level="rack", k=k, answer="no", scenarios=tuple(lost), left=0, worst=None, seconds=0.0)


GANG, MEMORY = whatif.LargestGang(level="node", workers=2, gpus_each=2), whatif.Binding(name="memory", asks="9 MiB")
FIT = whatif.Fit(found=3, most=5, gpu_milli_each=2000, gangs=(GANG,), binds=(MEMORY,), seconds=0.1)
COUNTS = tuple(whatif.SlotCount(level="node", size=size, slots=slots, largest=5) for size, slots in ((4, 2), (8, 0)))
SLOTS = whatif.Slots(free_gpus=9, gpus=16, model=None, counts=COUNTS)
SWAP = whatif.Swap(before=outcome(1000, 2000), after=outcome(2000, 2000), exchanged=4, gain_low=-1, gain_high=None,
            answer="unknown", seconds=0.1)  # fmt: skip
PRICES = whatif.Prices(value=7, value_bound=7, left=0, seconds=0.1, prices=(
    whatif.Price(of="node", name="box", low=2, high=4, by_duals=3),
    whatif.Price(of="quota", name="q", low=None, high=9, by_duals=None),
))  # fmt: skip
TERM = whatif.CostComparison(name="communication", unit="paths", weight=3, raw=10, best_raw=4)
REVIEW = whatif.Review(valid=True, value=5, best_value=6, value_bound=10, seconds=0.1, terms=(TERM,))
MIX = whatif.Cheapest(
    choices=(choice("a", 1000, 3), choice("b", 500, 4)), best="b", mixture=(1, 1), price_milli_per_hour=1500,
    at_least_milli_per_hour=1500, seconds=0.1,
)  # fmt: skip
FRONT = (whatif.EmptiedDomains(freed=2, domains=("n1",), moves=(), at_least=0, ordered=True),)
SWEPT = tuple(whatif.SweepPoint(setting=i, outcome=outcome(1000 * i, bound)) for i, bound in ((2, 2500), (1, 1000)))
OPEN = {"setting": "0", "nodes": 1, "values": (None, 9.0), "mean": None, "low": None, "high": None, "stranded": 1}
MET = {"setting": "2", "nodes": 3, "values": (4.0, 6.0), "mean": 5.0, "low": 1.0, "high": 9.0, "stranded": 0}


@pytest.mark.parametrize(
    ("answer", "title", "row", "words"),
    [
        (FIT, "Fit: 3 to 5 more of the job", ("node", 2, 4), "2 workers"),
        (SLOTS, "Slots: 9 of 16 GPUs free", ("node", 4, 2, 5), ">2<"),
        (choice("box", 1000, 3), "Add box: 3 nodes, proven", (2, 2, 1.5, "not all fit, proven"), "2 jobs waiting"),
        (MIX, "Add nodes of several types: the cheapest alone, and mixed", ("a", 3, 3.0), "1 a + 1 b"),
        (SWAP, "Exchange of 4 nodes: unknown, gain -1 to unknown", ("before", 1, 1, 1, 0, 1.0), "1 job placed"),
        (PRICES, "Prices: what one more is worth", ("node", "box", 2, 4, 3), "box: +2 to +4"),
        (REVIEW, "Audit: value 5, 100.00 % from the bound 10", ("communication", "paths", 3, 10, 4, 18), "10 paths"),
    ],
)
def test_every_other_answer(answer: WhatIfAnswer, title: str, row: tuple[object, ...], words: str) -> None:
    fields = set(json.loads(answer.model_dump_json()))
    assert answer_type(fields) is type(answer)
    (figure,) = answer_figures(answer, 0)
    assert (figure.title, figure.rows[0]) == (title, row)
    assert words in render(figure, "svg").decode()


@pytest.mark.parametrize(
    ("least", "found", "impossible", "words"),
    [
        (3, 3, False, "3 nodes, proven"),
        (1, 1, False, "1 node, proven"),
        (2, 5, False, "2 to 5 nodes"),
        (4, None, False, "4 nodes or more"),
        (None, None, True, "no number of nodes is enough"),
    ],
)
def test_number_of_nodes_in_a_title(least: int | None, found: int | None, impossible: bool, words: str) -> None:
    """It once said "4 to None nodes"."""
    answer = choice("box", 1, 3).model_copy(update={"at_least": least, "found": found, "impossible": impossible})
    (figure,) = answer_figures(answer, 0)
    assert figure.title == f"Add box: {words}"


def test_sweep() -> None:
    (figure,) = answer_figures(whatif.Sweep(varied="nodes", points=SWEPT, left=0, seconds=0.0), 0)
    assert figure.rows == [(1, 1.0, 1.0, 0), (2, 2.0, 2.5, 0)]
    assert render(figure, "svg")


def test_replay() -> None:
    """A band where arrivals were drawn; a setting without end has a row and no mark."""
    spots = [ReplayPoint.model_validate({**OPEN, "met": False, "cut": 0}), ReplayPoint(**MET, met=True, cut=0)]
    words = {"question": "add", "replayed": "nodes:box", "scenario": "s", "policy": "fcfs", "measure": "p95_wait"}
    answer = ReplaySeries.model_validate({**words, "unit": "s", "draws": (0, 1), "spots": spots, "seconds": 0.0})
    (figure,) = answer_figures(answer, 0)
    assert [row[2:5] for row in figure.rows] == [(None, None, None), (5.0, 1.0, 9.0)]
    drawn = render(figure, "svg").decode()
    assert "95 % of the mean" in drawn
    assert drawn.count("<title>") == 1


def test_front() -> None:
    answer = whatif.Defrag(level="node", domains=3, free_before=1, front=FRONT, most=2, stuck=0, seconds=0.0)
    (figure,) = answer_figures(answer, 1)
    assert "<title>2 empty by 0 moves, at least 0: n1</title>" in render(figure, "svg").decode()


@pytest.mark.parametrize("domains", [[("a",), ("b",), ("c",)], [("a", "b"), ("a", "c"), ("b", "c")]])
def test_failures(domains: list[tuple[str, ...]]) -> None:
    """One square a scenario with who fails and what is lost, pairs as a matrix; the title is the answer."""
    (figure,) = answer_figures(failures(len(domains[0]), domains), 0)
    assert [row[5] for row in figure.rows] == ["survives", "open", "loses jobs"]
    assert figure.title.endswith("some failure costs jobs their place")
    drawn = render(figure, "svg").decode()
    assert drawn.count(" displaced, ") == 3
    assert "2 lost" in drawn
    assert all(f">{name}<" in drawn for name in "abc")


def test_many_failures_are_squares_without_words() -> None:
    """Who fails is said where the pointer rests."""
    drawn = render(answer_figures(failures(1, [(f"node-{i}",) for i in range(200)]), 0)[0], "svg").decode()
    assert ">node-7<" not in drawn
    assert "<title>node-7: 2 jobs displaced" in drawn
