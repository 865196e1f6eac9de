"""Figures and the page: numbers by hand, tips, escaping, nothing from elsewhere."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.plans import plan_for
from placeopt import BadInput
from placeopt.benchmark import FORMATS, Figure, render
from placeopt.build import instance, job, machine, node, option, running, scenario
from placeopt.model import Domain
from placeopt.report.html import (
    Column,
    Fact,
    ResultTable,
    gpu_map,
    page,
    read_log,
    simulation_figures,
)

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
