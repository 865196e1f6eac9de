"""Figures and the page: numbers by hand, tips, escaping, nothing from elsewhere."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.plans import plan_for
from placeopt import BadInput, whatif
from placeopt.benchmark import FORMATS, Figure, render
from placeopt.build import instance, job, machine, node, option, running, scenario
from placeopt.model import Domain
from placeopt.report.html import (
    Column,
    Fact,
    ResultTable,
    WhatIfAnswer,
    answer_figures,
    answer_type,
    gpu_map,
    page,
    read_log,
    simulation_figures,
)
from placeopt.simulation.replay import ReplayPoint, ReplaySeries

pytest.importorskip("matplotlib")


def points(figure: Figure) -> list[tuple[float, float]]:
    found = []
    for _, x, y in figure.rows:
        assert isinstance(x, int | float)
        assert isinstance(y, int | float)
        found.append((float(x), float(y)))
    return found


def written(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def on(name: str, **gpus: int) -> dict[str, Any]:
    """Return the start of a job on GPUs of n0, ``g0=500`` a half of the first."""
    return {"job": name, "assignments": [{"node": "n0", "gpus": {gpu[1:]: milli for gpu, milli in gpus.items()}}]}


LINES = (
    {"e": "scenario", "scenario": "s"},
    {"t": 1000, "e": "arrival", "job": "a"},
    {"t": 1000, "e": "round", "n": 1, "start": [on("a", g0=1000)]},
    {"t": 2000, "e": "arrival", "job": "b"},
    {"t": 5000, "e": "end", "job": "a"},
    {"t": 5000, "e": "round", "n": 2, "start": [on("b", g1=500)]},
    {"t": 9000, "e": "end", "job": "b"},
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two jobs, one after the other; the second waits three seconds."""
    return written(tmp_path / "s.fcfs.s0.jsonl", *LINES)


class TestMap:
    def test_states_by_hand(self) -> None:
        """Running before, placed by the plan, several jobs, idle, drained."""
        old, new, half = job("old"), job("new<b>"), [job(f"h{i}", gpu_milli=500) for i in range(2)]
        nodes = [node("n0", domain="r0"), node("n1", domain="r0", drained=True)]
        round_ = instance(
            nodes, [old, new, *half], domains=[Domain(id="r0")], machines=[machine(gpus=4)],
            running=[running(old, [("n0", [0])])],
        )  # fmt: skip
        placed = {"new<b>": [("n0", [1])], "h0": [("n0", [2])], "h1": [("n0", [2])]}
        figure = gpu_map(round_, plan_for(round_, placed))
        assert [row[3] for row in figure.rows] == [
            "running before", "placed by the plan", "several jobs", "idle", *["drained"] * 4,
        ]  # fmt: skip
        assert [row[4] for row in figure.rows] == [1000, 1000, 1000, 0, 0, 0, 0, 0]
        svg = render(figure, "svg").decode()
        assert "<title>n0 GPU 1: new&lt;b&gt; 1000/1000</title>" in svg
        assert svg.count("<title>n") == 8
        assert figure.csv().splitlines()[1] == "n0,r0,0,running before,1000,old 1000/1000"

    def test_large_clusters_by_node(self) -> None:
        """A square a node, with how much of it is held."""
        held = job("j", gpus=3)
        large = instance(2000, [held], machines=[machine(gpus=4)], running=[running(held, [("n0", [0, 1, 2])])])
        figure = gpu_map(large)
        assert "a square is a node" in figure.caption
        assert "<title>n0: 75% of 4 GPUs held</title>" in render(figure, "svg").decode()

    @pytest.mark.parametrize("form", FORMATS)
    def test_every_format_is_drawn_and_repeats(self, form: str) -> None:
        figure = gpu_map(instance(2, []))
        drawn = render(figure, form)
        assert drawn.startswith({"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[form])
        if form == "svg":
            assert drawn == render(figure, form)


class TestSimulations:
    def test_figures_by_hand(self, log: Path) -> None:
        """One GPU held from 1 to 5 s, half a one from 5 to 9; waits of 0 and 3 s."""
        held, waits, bars = simulation_figures([read_log(log)])
        assert bars.rows == [("n0", 0, "a", 1.0, 5.0, 1000), ("n0", 1, "b", 5.0, 9.0, 500)]
        assert points(held) == [(1, 1.0), (5, 0.5), (9, 0.0)]
        assert held.header == ("log", "seconds", "GPUs")
        assert points(waits) == [(0.0, 0.5), (3.0, 1.0)]
        assert "<title>b on n0 GPU 1: 5 to 9 seconds, 500/1000</title>" in render(bars, "svg").decode()

    def test_bars_of_jobs_that_were_changed(self, tmp_path: Path) -> None:
        """Moved at 3 s, stopped at 5 s, again from 7 s on; another one fails, and leaves while it waits."""
        there, moved = on("a", g0=1000), on("a", g1=1000)
        other = {"job": "b", "assignments": [{"node": "n1", "gpus": {"0": 500}}]}
        path = written(
            tmp_path / "changed.jsonl",
            {"t": 1000, "e": "round", "start": [there, other]},
            {"t": 2000, "e": "failure", "job": "b"},
            {"t": 3000, "e": "round", "start": [], "move": [moved]},
            {"t": 5000, "e": "round", "start": [], "stop": ["a"]},
            {"t": 6000, "e": "leave", "job": "b"},
            {"t": 7000, "e": "round", "start": [there]},
            {"t": 9000, "e": "end", "job": "a"},
        )
        told = read_log(path)
        assert told.held == {
            ("n0", 0): [(1000, 3000, "a", 1000), (7000, 9000, "a", 1000)],
            ("n0", 1): [(3000, 5000, "a", 1000)],
            ("n1", 0): [(1000, 2000, "b", 500)],
        }
        assert (told.starts, told.ends) == ({"a": 1000, "b": 1000}, {"b": 6000, "a": 9000})

    def test_what_has_run_from_the_beginning(self, tmp_path: Path) -> None:
        """No line tells its start: it was no log then, once it was stopped. The scenario tells; else it comes later."""
        there = running(job("a"), [("n0", [0])])
        path = written(
            tmp_path / "running.jsonl",
            {"t": 2000, "e": "round", "start": [], "stop": ["a"]},
            {"t": 5000, "e": "round", "start": [{**on("a", g1=1000), "option": "default"}]},
            {"t": 9000, "e": "end", "job": "a"},
        )
        alone, told = read_log(path), read_log(path, [there])
        assert alone.held == {("n0", 1): [(5000, 9000, "a", 1000)]}
        assert told.held == {("n0", 0): [(0, 2000, "a", 1000)], **alone.held}
        assert told.starts == {"a": 0}
        assert simulation_figures([told])[1].rows == []

    def test_what_idle_gpus_are_good_for(self, log: Path) -> None:
        """
        Two nodes of four GPUs; on one a GPU is held from 1 s to 9 s: three others are idle there.

        Slots of four: both nodes, one meanwhile. Of two: 4, and 2 + 3 // 2 = 3 meanwhile.
        """
        figures = {figure.name: figure for figure in simulation_figures([read_log(log)], scenario(2, []))}
        for name, first, meanwhile in (("fragments", 0, 3), ("idle-slots-2", 4, 3), ("idle-slots-4", 2, 1)):
            assert points(figures[name]) == [(0, first), (1, meanwhile), (5, meanwhile), (9, first)]

    def test_slowdowns_by_hand(self, tmp_path: Path) -> None:
        """
        Two jobs from 1 to 5 s and from 2 to 9 s; alone they take 2 s, and 3.5 s in the option that is chosen.

        So 7 / 3.5 and 4 / 2; a job that is not of the scenario, such as a replica, is not drawn.
        """
        short, long = option("a", run_time_ms=1000), option("b", run_time_ms=3500)
        jobs = [job("a", arrival_ms=1000, options=(short,)), job("b", arrival_ms=2000, options=(short, long))]
        world = scenario(1, jobs, run_time_ms={"a": 2000})
        path = written(
            tmp_path / "log.jsonl",
            {"t": 1000, "e": "round", "start": [on("a", g0=1000), on("replica", g0=1000)]},
            {"t": 2000, "e": "round", "start": [{**on("b", g0=1000), "option": "b"}]},
            {"t": 5000, "e": "end", "job": "a"},
            {"t": 6000, "e": "end", "job": "replica"},
            {"t": 9000, "e": "end", "job": "b"},
        )
        drawn = {figure.name: figure for figure in simulation_figures([read_log(path)], world)}
        assert points(drawn["slowdowns"]) == [(0.0, 2.0), (1.0, 2.0)]

    def test_a_log_that_was_cut_is_read_to_its_last_line(self, log: Path) -> None:
        """Who runs at its end is shown so far. Unicode has more ends of lines than a log: a name may hold one."""
        text = log.read_text(encoding="utf-8").replace('"scenario": "s"', '"scenario": "s\u2028t"')
        assert "\u2028" in text
        for shown, ends in ((text, {"a": 5000, "b": 9000}), (text[:-10], {"a": 5000})):
            log.write_text(shown, encoding="utf-8")
            assert read_log(log).ends == ends

    def test_the_scenario_of_other_logs_is_refused(self, log: Path) -> None:
        with pytest.raises(BadInput, match="node 'n0' is not in the scenario"):
            simulation_figures([read_log(log)], scenario([node("else")], []))

    @pytest.mark.parametrize("text", ["", "no json\n", '{"t": 1}\n', "[]\n"])
    def test_other_files_are_refused(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "x.jsonl").write_text(text, encoding="utf-8")
        with pytest.raises(BadInput, match=r"x\.jsonl"):
            read_log(tmp_path / "x.jsonl")
        with pytest.raises(BadInput, match=r"y\.jsonl"):
            read_log(tmp_path / "y.jsonl")


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


def test_racks_stand_side_by_side() -> None:
    """Wide rather than high, in lines of alike length; with names."""
    racks = [Domain(id=f"r{i}") for i in range(8)]
    nodes = [node(f"n{i}", domain=f"r{i // 4}") for i in range(32)]
    figure = gpu_map(instance(nodes, [], domains=racks, machines=[machine(gpus=4)]))
    assert figure.inches[0] > figure.inches[1]
    drawn = render(figure, "svg").decode()
    assert all(f">{rack.id}<" in drawn for rack in racks)


TABLE = ResultTable("t", "T", "", (Column("policy"), Column("wait", "s", "less")), [("fcfs", 7200.0), ("las", 9000.0)])


def test_the_page_is_self_contained() -> None:
    """Figures inside, numbers behind a link, names escaped, no address of another host to be loaded."""
    figure = gpu_map(instance(2, []))
    text = page("A <title>", "placeopt report x", [Fact("seed", "0 & more")], [figure], [TABLE], [TABLE])
    assert "A &lt;title&gt;" in text
    assert "0 &amp; more" in text
    assert text.count("<svg") == 1
    assert 'href="data:text/csv;base64,' in text
    assert 'src="' not in text
    assert 'href="http' not in text.replace('xmlns:xlink="http', "")
    assert "<script" not in text
