"""Tables of results and their comparison: logs against summaries, verdicts by hand, pages read again."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from helpers.accessibility import contrast
from helpers.scenarios import scenario, timed
from placeopt import BadInput, solve
from placeopt.benchmark import Figure, ink_on, render
from placeopt.build import instance, job
from placeopt.readable import time_unit
from placeopt.report.html import (
    Column,
    ResultTable,
    SimulationLog,
    comparisons,
    page,
    plan_table,
    policy_table,
    read_log,
    read_results,
    simulation_figures,
    step_figure,
)
from placeopt.report.text import simulation_facts
from placeopt.scheduling import named_policy
from placeopt.simulation import simulate, summarise

pytest.importorskip("matplotlib")

JOBS = (("a", 0, 3), ("b", 1000, 4), ("c", 2000, 1))
WORLD = scenario([timed(name, at, 60_000, gpus=gpus) for name, at, gpus in JOBS])


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two policies on one scenario, their logs and summaries."""
    policies = [named_policy(name) for name in ("fcfs", "best-fit")]
    histories = [simulate(WORLD, p, log=tmp_path / f"{WORLD.name}.{p.name}.s0.jsonl") for p in policies]
    facts = simulation_facts([summarise(history) for history in histories])
    (tmp_path / "summaries.json").write_text(json.dumps(facts), encoding="utf-8")
    return tmp_path


def test_a_log_has_the_figures_of_its_summary(runs: Path, logs: list[SimulationLog]) -> None:
    """Two ways to each figure: the simulation's own summary, and the log read again."""
    summaries = json.loads((runs / "summaries.json").read_text())
    by_summary, by_log = policy_table(summaries, logs, WORLD), policy_table([], logs, WORLD)
    assert [row[0] for row in by_log.rows] == ["best-fit", "fcfs"]
    for one, other in zip(by_summary.rows, by_log.rows, strict=True):
        assert one[:-1] == pytest.approx(other[:-1])
        assert other[-1] is None


@pytest.fixture
def logs(runs: Path) -> list[SimulationLog]:
    return [read_log(path) for path in sorted(runs.glob("*.jsonl"))]


@pytest.mark.parametrize("name", ["s", "a.b.c", "x.fcfs.s0"])
def test_the_policy_is_in_the_name_of_a_log(tmp_path: Path, name: str) -> None:
    world, log = WORLD.model_copy(update={"name": name}), tmp_path / f"{name}.best-fit.s3.jsonl"
    simulate(world, named_policy("best-fit"), log=log, seed=3)
    assert policy_table([], [read_log(log)], world).rows[0][0] == "best-fit"


def test_a_policy_has_one_colour(logs: list[SimulationLog]) -> None:
    table = policy_table([], logs, WORLD)
    held = next(figure for figure in simulation_figures(logs, WORLD) if figure.name == "held")
    assert [panel.title.rpartition(": ")[2] for panel in held.panels()] == list(table.colours)
    for panel, colour in zip(held.panels(), table.colours.values(), strict=True):
        assert colour.lower() in render(panel, "svg").decode()


def table(rows: list[tuple[Any, ...]], better: str = "less", unit: str = "s") -> ResultTable:
    """A table of one figure; a measured time has the unit ``decision_s``."""
    return ResultTable("t", "T", "", (Column("policy"), Column("wait", unit, better)), rows)


def compared(before: ResultTable, after: ResultTable) -> list[tuple[object, object, object]]:
    """Row, verdict and words of each change."""
    (found,) = comparisons([before], [after])
    return [(row[0], row[-1], row[-2]) for row in found.rows]


@pytest.mark.parametrize(
    ("before", "after", "better", "unit", "verdict", "words"),
    [
        (200.0, 100.0, "less", "s", "better", "-50.0 %"),
        (100.0, 150.0, "less", "s", "worse", "+50.0 %"),
        (100.0, 150.0, "more", "s", "better", "+50.0 %"),
        (100.0, 150.0, "", "s", "changed", "+50.0 %"),
        (5.0, 5.0, "less", "s", "same", "0 %"),
        (0.0, 5.0, "less", "s", "worse", "-"),
        (None, 5.0, "less", "s", "changed", "-"),
        # a time per decision differs from run to run: it is better or worse from a factor of 2 on
        (1.0, 1.9, "less", "decision_s", "changed", "+90.0 %"),
        (1.0, 2.0, "less", "decision_s", "worse", "+100.0 %"),
        (1.0, 0.5, "less", "decision_s", "better", "-50.0 %"),
        (1.0, 0.6, "less", "decision_s", "changed", "-40.0 %"),
    ],
)
def test_verdicts(before: float | None, after: float, better: str, unit: str, verdict: str, words: str) -> None:
    """A figure is better or worse only where one of the two is."""
    tables = (table([("fcfs", value)], better, unit) for value in (before, after))
    assert compared(*tables) == [("fcfs", verdict, words)]


def test_changes_stand_below_their_policy() -> None:
    """The policy once, with its colour, then a row a figure; figures that are the same are marked."""
    columns = (Column("policy"), Column("wait", "s", "less"), Column("use", "share", "more"))
    before, after = (
        ResultTable("t", "T", "", columns, [("fcfs", 1.0, 0.5), ("las", wait, 0.5)], colours={"las": "#0072b2"})
        for wait in (2.0, 3.0)
    )
    text = page("t", "c", [], [], comparisons([before], [after]))
    assert text.count('scope="rowgroup"') == 2
    assert '<th colspan="5" scope="rowgroup"><span class="chip" style="background:#0072b2"></span>las</th>' in text
    assert text.count('<tr class="same">') == 3
    assert '<td class="worse">▼ worse</td>' in text
    assert "<td>0 points</td>" in text


def test_rows_are_paired_by_name() -> None:
    """A single row on each side is a pair, as when the policy itself was changed; else only equal names are."""
    two = table([("fcfs", 1.0), ("las", 2.0)])
    assert [change[0] for change in compared(two, table([("las", 3.0)]))] == ["las"]
    assert [change[0] for change in compared(table([("fcfs", 1.0)]), table([("las", 3.0)]))] == ["fcfs → las"]
    (changes,) = comparisons([two], [table([("las", 3.0), ("new", 1.0)])])
    assert "1 row only before. 1 row only after." in changes.caption


def test_the_best_is_of_those_that_compare() -> None:
    """Means over a part of the jobs are no best; equal values neither."""
    rows = [("a", 3.0), ("b", 2.0), ("c", 1.0)]
    assert table(rows).best(1) == 1.0
    part = ResultTable("t", "T", "", table([]).columns, rows, partial=frozenset("c"))
    assert part.best(1) == 2.0
    assert table([("a", 3.0), ("b", 3.0)]).best(1) is None


def test_results_are_read_back() -> None:
    written = table([("fcfs", 1.5), ("<las>", None)])
    (again,) = read_results(page("t", "c", [], [], [written], [written]), "x.html")
    assert [tuple(row) for row in again.rows] == written.rows
    assert (again.columns, again.name) == (written.columns, "t")
    for data in ("[1]", '[{"name": "t"}]', "no json", json.dumps([{"name": "t", "rows": [[[]]]}])):
        link = f'download="results.json" href="data:application/json;base64,{base64.b64encode(data.encode()).decode()}"'
        with pytest.raises(BadInput, match=r"x\.html"):
            read_results(link, "x.html")
    with pytest.raises(BadInput, match="no results in it"):
        read_results("<html></html>", "x.html")


def test_plans_side_by_side() -> None:
    plan = solve(instance(1, [job("a"), job("b", gpus=9)]))
    result = plan_table([plan])
    row = dict(zip((column.name for column in result.columns), result.rows[0], strict=True))
    assert (row["jobs placed"], row["jobs waiting"], row["value"]) == (1, 1, plan.levels[0].objective)


def test_text_is_never_smaller_than_9_px(logs: list[SimulationLog]) -> None:
    """At its least width the smallest text of each panel has 9 px."""
    drawn = re.findall("<svg.*?</svg>", page("t", "c", [], simulation_figures(logs, WORLD), []), re.DOTALL)
    assert len(drawn) > 4
    for svg in drawn:
        found = re.search(r'viewBox="0 0 ([\d.]+).*?min-width:(\d+)px', svg)
        assert found is not None
        smallest = min(map(float, re.findall(r"font(?:-size)?:[^;\"']*?([\d.]+)px", svg)))
        assert smallest * float(found[2]) / float(found[1]) >= 9 - 1e-6
        assert ' id="patch' not in svg


@pytest.mark.parametrize(
    ("seconds", "unit"), [(0.5, "seconds"), (119, "seconds"), (120, "minutes"), (7200, "hours"), (172_800, "days")]
)
def test_one_unit_of_time(seconds: float, unit: str) -> None:
    """By the longest time; the points are converted to it."""
    length, name = time_unit(seconds)
    assert name == unit
    figure = step_figure("f", "F", "", {"a": [(0.0, 1.0), (seconds, 2.0)]}, ("seconds", "GPUs"))
    assert (figure.header[1], figure.rows[1][1]) == (unit, pytest.approx(seconds / length))


def test_ink_has_the_higher_contrast() -> None:
    """By WCAG's formula: black on white is 21 to 1."""
    assert contrast("#FFFFFF", "#000000") == pytest.approx(21)
    for colour in ("#0072B2", "#E69F00", "#000000", "#FFFFFF"):
        assert contrast(colour, ink_on(colour)) >= 4.5


def test_panels_of_one_figure() -> None:
    """A single drawing is its own panel; a file holds all panels."""
    single = Figure("f", "F", "", (2.0, 2.0), lambda axes: {}, ("x",), [])
    assert single.panels() == [single]
    several = Figure("f", "F", "", (2.0, 2.0), {label: lambda axes: {} for label in "abcd"}, ("x",), [])
    assert [panel.name for panel in several.panels()] == ["f-0", "f-1", "f-2", "f-3"]
    assert b'viewBox="0 0 432 288"' in render(several, "svg")
