"""Figures, orders and comparisons on rows made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from placeopt_papers import tables
from placeopt_papers.catalogue import EVERY_SETTING, PAPERS, SETTINGS, VARIED, select
from placeopt_papers.metrics import BetweenSettings, Change, Deviation, Gain, OutermostGain, Ratio, Value, Worked
from placeopt_papers.records import KINDS, Constant, FigureMetric, Ordering, PaperCase, PaperRow, ReportedFigure
from placeopt_papers.report import aligned_lines, make_report
from placeopt_papers.tables import (
    CampaignRows,
    compare,
    figure_table,
    judge_order,
    neighbours,
    own_table,
    sensitivity_table,
)

INSTANCES = Path(__file__).resolve().parents[2] / "instances"


def row(setting: str, policy: str, seed: int, **figures: float | None) -> PaperRow:
    """Make a row with these measures."""
    case = PaperCase(setting=setting, policy=policy, seed=seed)
    return PaperRow(case=case, scenario="", scheduling="", version="", figures=dict(figures), cpu_s=1.0)


def rows(setting: str, measure: str, **policies: tuple[float, ...]) -> list[PaperRow]:
    """Make rows of one measure, policy -> its values seed by seed; an underscore stands for a dash."""
    return [
        row(setting, policy.replace("_", "-"), seed, **{measure: value})
        for policy, values in policies.items()
        for seed, value in enumerate(values)
    ]


def test_values_are_of_the_seeds_that_all_compared_have() -> None:
    """Otherwise pairs would be of different scenarios; a value alone is of all its seeds."""
    runs = CampaignRows(rows("s", "wait_s", a=(1.0, 2.0, 3.0), b=(4.0, 5.0)))
    assert runs.seeds("s", ("a", "b")) == [0, 1]
    assert runs.values("s", "a", "wait_s") == [1.0, 2.0, 3.0]
    assert runs.values("s", "a", "wait_s", ("b",)) == [1.0, 2.0]
    assert runs.values("s", "a", "wait_s", ("c",)) is None
    assert runs.values("s", "c", "wait_s") is None
    assert Ratio("s", "a", "b", "wait_s").of(runs) == [0.25, 0.4]
    assert runs.values("s", "a", "slowdown") is None


def test_gains_are_in_percent() -> None:
    """Of the same seed."""
    runs = CampaignRows(rows("one", "run_s", mine=(3.0, 5.0), a=(10.0, 10.0)))
    assert Gain("one", "mine", "a", "run_s").of(runs) == pytest.approx([-70.0, -50.0])


def test_ways() -> None:
    """A value, a ratio seed by seed, and the largest change over the best rival of each setting."""
    runs = CampaignRows(
        [
            *rows("one", "in_time_percent", mine=(60.0, 80.0), a=(50.0, 50.0), b=(20.0, 90.0)),
            *rows("two", "in_time_percent", mine=(30.0, 30.0), a=(20.0, 10.0), b=(5.0, 5.0)),
        ]
    )
    assert Value("one", "mine", "in_time_percent").of(runs) == [60.0, 80.0]
    assert Ratio("one", "mine", "a", "in_time_percent").of(runs) == [1.2, 1.6]
    up = Change(("one", "two"), "mine", ("a", "b"), "in_time_percent", more=True)
    assert up.of(runs) == pytest.approx([50.0, 200.0])  # setting two over a; in one the best is b, by its sum
    assert Change(("one",), "mine", ("c",), "in_time_percent", more=True).of(runs) is None
    assert Ratio("one", "mine", "a", "wait_s").of(CampaignRows(rows("one", "wait_s", mine=(1.0,), a=(0.0,)))) is None


def test_less_is_better_for_a_change_of_makespan() -> None:
    """The best rival is the shortest, and "up to" the deepest cut."""
    runs = CampaignRows(
        [
            *rows("one", "makespan_h", mine=(8.0,), a=(10.0,), b=(20.0,)),
            *rows("two", "makespan_h", mine=(9.0,), a=(10.0,)),
        ]
    )
    assert Change(("one", "two"), "mine", ("a", "b"), "makespan_h", more=False).of(runs) == pytest.approx([-20.0])


def test_gains_between_settings_and_outermost_gains() -> None:
    """Seed by seed over another setting; of several policies the largest mean gain, and the least."""
    runs = CampaignRows(
        [
            *rows("one", "run_s", a=(11.0, 12.0), b=(13.0, 14.0), fcfs=(10.0, 10.0)),
            *rows("two", "run_s", fcfs=(5.0, 20.0)),
        ]
    )
    assert OutermostGain("one", ("a", "b"), "fcfs", "run_s", True).of(runs) == pytest.approx([30.0, 40.0])
    assert OutermostGain("one", ("a", "b"), "fcfs", "run_s", False).of(runs) == pytest.approx([10.0, 20.0])
    assert OutermostGain("one", ("a", "c"), "fcfs", "run_s", False).of(runs) is None
    assert BetweenSettings("one", "two", "fcfs", "run_s").of(runs) == pytest.approx([100.0, -50.0])


def test_deviation_over_seeds() -> None:
    """Of 2, 4 and 9: 3.606; one seed has none."""
    runs = CampaignRows(rows("one", "run_s", a=(2.0, 4.0, 9.0), b=(2.0,)))
    assert Deviation("one", "a", "run_s").of(runs) == [pytest.approx(13**0.5)]
    assert Deviation("one", "b", "run_s").of(runs) is None
    assert Deviation("one", "c", "run_s").of(runs) is None
    assert BetweenSettings("one", "three", "fcfs", "run_s").of(runs) is None
    assert Value("one", "a", "run_s").renamed(lambda name: f"{name}@xx2") == Value("one@xx2", "a", "run_s")


ORDER = Ordering("p", "here", "openb", "wait_s", (("a",), ("b", "c"), ("d",)))


def test_neighbours_of_an_order_with_equals() -> None:
    """Equals are not compared with each other."""
    assert neighbours(ORDER) == [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ((1.0, 2.0, 3.0), (2.0, 3.1, 4.0), "holds"),
        ((2.0, 3.1, 4.0), (1.0, 2.0, 3.0), "reversed"),
        ((1.0, 2.0, 3.0), (2.0, 1.0, 3.0), "tie"),
        ((1.0,), (1.0,), "tie"),
        ((1.0,), (2.0,), "holds"),
        ((1.0,), (), "missing"),
    ],
)
def test_orders_are_judged_by_pairs(first: tuple[float, ...], second: tuple[float, ...], verdict: str) -> None:
    """Waits, so less is better; one scenario has no interval."""
    assert judge_order(ORDER, "a", "b", CampaignRows(rows("openb", "wait_s", a=first, b=second)))[0] == verdict


def test_own_policy_beside_others() -> None:
    """By the direction of the measure; what cannot be told apart is a tie."""
    assert compare([1.0, 2.0], [3.0, 4.1], more=False)[1] == "better"
    assert compare([1.0, 2.0], [3.0, 4.1], more=True)[1] == "worse"
    assert compare([1.0, 5.0], [3.0, 4.1], more=True)[1] == "tie"
    assert compare([215.7 + 1e-14], [215.7], more=False) == ("0", "tie")
    setting = SETTINGS["horus-w-large"]
    table = own_table(
        [setting], CampaignRows(rows(setting.name, "makespan_min", placeopt=(1.0, 2.0), horus=(2.0, 3.5)))
    )
    assert [(one[2], one[4], one[5]) for one in table.rows] == [
        ("horus", "-1.25 ± 3.18 tie", ""),
        ("placeopt", "", ""),
    ]


def figure(name: str, reported: float | None, metric: FigureMetric | None, reason: str, **more: Any) -> ReportedFigure:
    """Make a figure of Horus that is fitted, unless it has no data."""
    kind = "no data" if metric is None else "fitted"
    fixed = {"paper": "horus", "place": "t", "what": name, "unit": "s", "kind": kind}
    return ReportedFigure(name=name, reported=reported, metric=metric, reason=reason, **fixed, **more)


def test_every_figure_has_a_kind_and_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it agrees with the paper: a match says nothing about where our value comes from."""
    figures = (
        figure("near", 100.0, Value("s", "fcfs", "wait_s"), "chosen so"),
        figure("far", 50.0, Value("s", "fcfs", "wait_s"), "lists differ"),
        figure("none", 50.0, None, "no inference yet"),
        figure("lacking", 50.0, Value("horus-trace", "no-such-policy", "wait_s"), "unused"),
        figure("zero", 0.0, Value("s", "fcfs", "slowed"), "chosen so"),
        figure("said", None, Worked(lambda: 4.0), "worked out", said="< 5 s"),
    )
    paper = PAPERS["horus"]
    monkeypatch.setitem(tables.PAPERS, "horus", type(paper)(paper.title, paper.settings, figures))
    runs = CampaignRows([row("s", "fcfs", 0, wait_s=101.0, slowed=0.0)])
    table, reasons = figure_table(["horus"], runs)
    assert table.columns == ("paper", "where", "what", "paper's", "ours", "ratio", "kind", "why")
    assert [(*one[2:7], reasons[int(str(one[7])) - 1]) for one in table.rows] == [
        ("near", "100 s", "101.0", "1.01", "fitted", "chosen so"),
        ("far", "50 s", "101.0", "2.02", "fitted", "lists differ"),
        ("none", "50 s", "no data", None, "no data", "no inference yet"),
        ("lacking", "50 s", None, None, "fitted", "Not built yet: no-such-policy."),
        ("zero", "0 s", "0", None, "fitted", "chosen so"),
        ("said", "< 5 s", "4", None, "fitted", "worked out"),
    ]


def test_sensitivity_is_of_the_same_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """At half and double the constant, beside the mean of as many seeds as it stands."""
    constant = Constant("LENGTH", "1", "table 6")
    one = figure("end", 50.0, Value("s", "fcfs", "wait_s"), "chosen so", constants=(constant,))
    paper = PAPERS["horus"]
    monkeypatch.setitem(tables.PAPERS, "horus", type(paper)(paper.title, paper.settings, (one,)))
    values = {"s": (10.0, 20.0, 90.0), "s@LENGTHx0.5": (5.0, 10.0), "s@LENGTHx2": (20.0, 40.0)}
    runs = CampaignRows([made for setting, waits in values.items() for made in rows(setting, "wait_s", fcfs=waits)])
    assert sensitivity_table(["horus"], runs).rows == (("horus", "LENGTH", "end", "50 s", "7.5", "15", "30", "fitted"),)
    assert sensitivity_table(["horus"], CampaignRows(rows("s", "wait_s", fcfs=(1.0,)))).rows == ()


def test_kinds_and_constants_go_together() -> None:
    """A fitted figure names a constant that was chosen with it in view, and some figure of its runs varies it."""
    for paper in PAPERS.values():
        for one in paper.figures:
            assert one.kind in KINDS, one.name
            assert one.reason, one.name
            assert (one.metric is None) == (one.kind == "no data"), one.name
            assert (one.reported is None) == bool(one.said), one.name
            assert one.constants or one.kind != "fitted", one.name
    named = {one.name for paper in PAPERS.values() for figure in paper.figures for one in figure.constants}
    varied = {name.partition("@")[2].partition("x")[0] for settings in VARIED.values() for name in settings}
    assert named - varied == {"KINDS"}, "the best cores of one model, of which half is no other month"


def test_varied_settings_differ_by_the_constant_alone() -> None:
    """Each factor makes another scenario of the same name and seed; as it stands, none."""
    for name, setting in EVERY_SETTING.items():
        base = SETTINGS[name.partition("@")[0]]
        if setting is base:
            continue
        made, as_it_stands = setting.make(0, INSTANCES, False), base.make(0, INSTANCES, False)
        assert made.digest != as_it_stands.digest, name
        assert base.make(0, INSTANCES, False, factors={}).digest == as_it_stands.digest
        assert set(setting.policies) <= set(base.policies)


def test_the_catalogue_is_consistent() -> None:
    """Names are unique, figures and orders are of settings and policies that are played."""
    names = [figure.name for paper in PAPERS.values() for figure in paper.figures]
    assert len(names) == len(set(names))
    for paper in PAPERS.values():
        for figure in paper.figures:
            for setting, policy in () if figure.metric is None else figure.metric.needs:
                assert policy in SETTINGS[setting].policies, figure.name
        for ordering in paper.orderings:
            for rank in ordering.ranks:
                assert set(rank) <= set(SETTINGS[ordering.setting].policies)


def test_papers_and_settings_are_chosen_by_name() -> None:
    """A setting brings its paper with it."""
    papers, settings = select(["horus-trace"])
    assert papers == ["horus"]
    assert [setting.name for setting in settings] == ["horus-trace"]
    varied = {setting.name for setting in select(["dynamoml"])[1]} - {"dynamoml-12", "dynamoml-12-lag", "dynamoml-16"}
    assert varied == set(VARIED["dynamoml"])
    with pytest.raises(Exception, match="neither a paper"):
        select(["horas"])


def test_the_page_is_not_too_wide() -> None:
    """It is read as plain text too; tables may be as wide as code, with every figure there, with its interval."""
    played = [
        row(setting.name, policy, seed, **dict.fromkeys(tables.MEASURES, 123.4 + seed * len(policy)))
        for setting in SETTINGS.values()
        for policy in setting.policies
        for seed in setting.played(policy, (0, 1))
    ]
    page = make_report(list(PAPERS), list(SETTINGS.values()), played, []).page
    assert [line for line in page.splitlines() if len(line) > (120 if line.startswith("|") else 100)] == []


def test_aligned_tables_are_markdown() -> None:
    """Every line has the same bars."""
    assert aligned_lines(("a", "bb"), [(1, "x|y"), (None, "z")], right=("a",)) == [
        "| a | bb   |",
        "| : | ---- |",
        "| 1 | x\\|y |",
        "|   | z    |",
    ]


def test_a_policy_under_which_jobs_never_end_ranks_nowhere() -> None:
    """Issue 16, C5: it says how many end, has no figure, and is better than nobody."""
    stuck = row("sc17-workloads-5", "fcfs", 0, wait_s=None).model_copy(
        update={"jobs": 100, "never_end": 99, "why": "huge: finds no place"}
    )
    runs = CampaignRows(
        [
            stuck,
            row("sc17-workloads-5", "placeopt", 0, wait_s=30.0),
            row("sc17-workloads-5", "best-fit", 0, wait_s=40.0),
        ]
    )
    setting = replace(SETTINGS["sc17-workloads-5"], policies=("fcfs", "best-fit", "placeopt"), measures=("wait_s",))
    lines = own_table([setting], runs).rows
    assert [line[2:4] for line in lines] == [("fcfs", "1 of 100 jobs end"), ("best-fit", "40"), ("placeopt", "30")]
    assert set(lines[0][4:]) == {""}
    order = Ordering(
        paper="sc17", place="x", setting="sc17-workloads-5", measure="wait_s", ranks=(("fcfs",), ("best-fit",))
    )
    verdict, told = judge_order(order, "fcfs", "best-fit", runs)
    assert verdict == "missing"
    assert told == "No mean over all jobs: under fcfs 99 of 100 jobs never end (huge: finds no place)."
