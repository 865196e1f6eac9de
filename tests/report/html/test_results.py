"""Tables of results and their comparison: logs against summaries, verdicts by hand, pages read again."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from helpers.scenarios import scenario, timed
from placeopt import BadInput, solve
from placeopt.formats import Figure, ink_on, render
from placeopt.formats.figure import luminance
from placeopt.readable import time_unit
from placeopt.report.html import (
    ResultTable,
    comparisons,
    page,
    plan_table,
    policy_table,
    read_log,
    read_results,
    simulation_figures,
)
from placeopt.report.html.comparison import RESULTS, changes, results_link
from placeopt.report.html.curves import MOST_POINTS, grouped, step_figure
from placeopt.report.html.inline_svg import FONT_SIZE, LEAST_PX, inline_svg
from placeopt.report.html.result_table import Column
from placeopt.report.html.simulation import job_colours
from placeopt.report.text import simulation_facts
from placeopt.simulation import named_policy, simulate, summarise
from placeopt.simulation.journal import log_name, logged_policy

pytest.importorskip("matplotlib")

WORLD = scenario(
    [timed(name, at, 60_000, gpus=gpus) for name, at, gpus in (("a", 0, 3), ("b", 1000, 4), ("c", 2000, 1))]
)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two policies on one scenario, their logs and summaries."""
    policies = [named_policy(name) for name in ("fcfs", "best-fit")]
    histories = [simulate(WORLD, p, log=tmp_path / log_name(WORLD.name, p.name, 0)) for p in policies]
    facts = simulation_facts([summarise(history) for history in histories])
    (tmp_path / "summaries.json").write_text(json.dumps(facts), encoding="utf-8")
    return tmp_path


def test_a_log_has_the_figures_of_its_summary(runs: Path) -> None:
    """Two ways to each figure: the simulation's own summary, and the log read again."""
    logs = [read_log(path) for path in sorted(runs.glob("*.jsonl"))]
    summaries = json.loads((runs / "summaries.json").read_text())
    by_summary, by_log = policy_table(summaries, logs, WORLD), policy_table([], logs, WORLD)
    assert [row[0] for row in by_log.rows] == ["best-fit", "fcfs"]
    for one, other in zip(by_summary.rows, by_log.rows, strict=True):
        assert one[:-1] == pytest.approx(other[:-1])
        assert other[-1] is None


def test_names_of_logs_round_trip() -> None:
    """The policy is read back from a name, whatever the scenario is called."""
    for name in ("s", "a b.c", "x.fcfs.s0"):
        assert logged_policy(log_name(name, "best-fit", 3), name, 3) == "best-fit"
    assert logged_policy("mine.jsonl", "s", 0) == "mine"


def test_a_policy_and_a_job_have_one_colour(runs: Path) -> None:
    """The table, the panels, the bars: jobs by arrival, whichever policy starts them first."""
    logs = [read_log(path) for path in sorted(runs.glob("*.jsonl"))]
    assert len({tuple(job_colours([log]).items()) for log in logs}) == 1
    table = policy_table([], logs, WORLD)
    held = next(figure for figure in simulation_figures(logs, WORLD) if figure.name == "held")
    assert [panel.title.rpartition(": ")[2] for panel in held.panels()] == list(table.colours)
    for panel, colour in zip(held.panels(), table.colours.values(), strict=True):
        assert colour.lower() in render(panel, "svg").decode()


def table(rows: list[tuple[str | int | float | None, ...]], better: str = "less") -> ResultTable:
    """A table of one figure."""
    assert better in ("less", "more", "")
    return ResultTable("t", "T", "", (Column("policy"), Column("wait", "s", better)), rows)  # type: ignore[arg-type]  # asserted


@pytest.mark.parametrize(
    ("before", "after", "better", "verdict", "words"),
    [
        (200.0, 100.0, "less", "better", "-50.0 %"),
        (100.0, 150.0, "less", "worse", "+50.0 %"),
        (100.0, 150.0, "more", "better", "+50.0 %"),
        (100.0, 150.0, "", "changed", "+50.0 %"),
        (5.0, 5.0, "less", "same", "0 %"),
        (0.0, 5.0, "less", "worse", "-"),
        (None, 5.0, "less", "changed", "-"),
    ],
)
def test_verdicts(before: float | None, after: float, better: str, verdict: str, words: str) -> None:
    """A figure is better or worse only where one of the two is."""
    (change,) = changes(table([("fcfs", before)], better), table([("fcfs", after)], better))
    assert (change.verdict, change.words) == (verdict, words)


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [(1.0, 1.9, "changed"), (1.0, 2.0, "worse"), (1.0, 0.5, "better"), (1.0, 0.6, "changed")],
)
def test_measured_times_differ_from_run_to_run(before: float, after: float, verdict: str) -> None:
    """A time per decision is better or worse from a factor of 2 on."""
    columns = (Column("policy"), Column("per decision", "decision_s", "less"))
    (change,) = changes(*(ResultTable("t", "T", "", columns, [("fcfs", cell)]) for cell in (before, after)))
    assert change.verdict == verdict


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
    assert [change.key for change in changes(two, table([("las", 3.0)]))] == [("las",)]
    assert [change.key for change in changes(table([("fcfs", 1.0)]), table([("las", 3.0)]))] == [("fcfs → las",)]
    (compared,) = comparisons([two], [table([("las", 3.0), ("new", 1.0)])])
    assert "1 row only before. 1 row only after." in compared.caption


def test_the_best_is_of_those_that_compare() -> None:
    """Means over a part of the jobs are no best; equal values neither."""
    rows = [("a", 3.0), ("b", 2.0), ("c", 1.0)]
    assert table(rows).best(1) == 1.0
    part = ResultTable("t", "T", "", table([]).columns, rows, partial=frozenset("c"))
    assert part.best(1) == 2.0
    assert table([("a", 3.0), ("b", 3.0)]).best(1) is None


def test_results_are_read_back() -> None:
    """What a page holds, and nothing else."""
    written = table([("fcfs", 1.5), ("<las>", None)])
    (again,) = read_results(f"<p>{results_link([written])}</p>", "x.html")
    assert [tuple(row) for row in again.rows] == written.rows
    assert (again.columns, again.name) == (written.columns, "t")
    for data in ("[1]", '[{"name": "t"}]', "no json", json.dumps([{"name": "t", "rows": [[[]]]}])):
        link = f'download="{RESULTS}" href="data:application/json;base64,{base64.b64encode(data.encode()).decode()}"'
        with pytest.raises(BadInput, match=r"x\.html"):
            read_results(link, "x.html")
    with pytest.raises(BadInput, match="no results in it"):
        read_results("<html></html>", "x.html")


def test_plans_side_by_side() -> None:
    """Value, bound and gap of the levels, and the jobs."""
    from placeopt.build import instance, job

    plan = solve(instance(1, [job("a"), job("b", gpus=9)]))
    result = plan_table([plan])
    row = dict(zip((column.name for column in result.columns), result.rows[0], strict=True))
    assert (row["jobs placed"], row["jobs waiting"], row["value"]) == (1, 1, plan.levels[0].objective)


def test_text_is_never_smaller_than_stated(runs: Path) -> None:
    """At its least width the smallest text of each panel still has ``LEAST_PX``."""
    import re

    logs = [read_log(path) for path in sorted(runs.glob("*.jsonl"))]
    for figure in simulation_figures(logs, WORLD):
        for panel in figure.panels():
            svg = inline_svg(panel)
            found = re.search(r'viewBox="0 0 ([\d.]+).*?min-width:(\d+)px', svg)
            assert found is not None
            smallest = min(map(float, FONT_SIZE.findall(svg)))
            assert smallest * float(found[2]) / float(found[1]) >= LEAST_PX - 1e-6
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


def test_long_curves_keep_means_and_extremes() -> None:
    """Groups hold all points: the time-weighted mean of all, the least and the largest."""
    points = [(float(i), float(i % 7)) for i in range(10 * MOST_POINTS + 3)]
    at, low, mean, high = grouped(points)
    assert len(at) == MOST_POINTS
    assert (min(low), max(high), at[0]) == (0.0, 6.0, 0.0)
    lengths = [b - a for a, b in zip(at, [*at[1:], points[-1][0]], strict=True)]
    exact = sum(y for _, y in points[:-1])
    last = mean[-1] * lengths[-1] - sum(y for x, y in points[:-1] if x >= at[-1])  # the last is where the curve ends
    assert sum(m * n for m, n in zip(mean, lengths, strict=True)) - last == pytest.approx(exact)


def test_ink_has_the_higher_contrast() -> None:
    """By WCAG's formula: black on white is 21 to 1."""
    assert (luminance("#FFFFFF") + 0.05) / (luminance("#000000") + 0.05) == pytest.approx(21)
    for colour in ("#0072B2", "#E69F00", "#000000", "#FFFFFF"):
        contrasts = {ink: abs(luminance(ink) - luminance(colour)) for ink in ("#111111", "#FEFEFE")}
        lighter, darker = sorted((luminance(colour), luminance(ink_on(colour))), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, contrasts


def test_panels_of_one_figure() -> None:
    """A single drawing is its own panel; a file holds all panels."""
    single = Figure("f", "F", "", (2.0, 2.0), lambda axes: {}, ("x",), [])
    assert single.panels() == [single]
    several = Figure("f", "F", "", (2.0, 2.0), {label: lambda axes: {} for label in "abcd"}, ("x",), [])
    assert [panel.name for panel in several.panels()] == ["f-0", "f-1", "f-2", "f-3"]
    assert b'viewBox="0 0 432 288"' in render(several, "svg")
