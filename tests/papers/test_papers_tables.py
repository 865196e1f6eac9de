"""Figures, orders and comparisons on rows made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from placeopt_papers import tables
from placeopt_papers.catalogue import PAPERS, SETTINGS, select
from placeopt_papers.metrics import Change, Gain, Ratio, Value
from placeopt_papers.records import Ordering, PaperCase, PaperRow, ReportedFigure
from placeopt_papers.report import aligned_lines, make_report
from placeopt_papers.tables import CampaignRows, compare, figure_table, judge_order, neighbours, own_table


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


def test_missing_figures_have_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reason stands with what is far off or missing, not with what agrees."""
    figures = (
        ReportedFigure("near", "horus", "t", "near", "s", 100.0, Value("s", "fcfs", "wait_s"), "unused"),
        ReportedFigure("far", "horus", "t", "far", "s", 50.0, Value("s", "fcfs", "wait_s"), "lists differ"),
        ReportedFigure("none", "horus", "t", "none", "s", 50.0, None, "no inference yet"),
        ReportedFigure(
            "lacking", "horus", "t", "lacking", "s", 50.0, Value("horus-trace", "no-such-policy", "wait_s"), "unused"
        ),
        ReportedFigure("zero", "horus", "t", "zero", "jobs", 0.0, Value("s", "fcfs", "slowed"), "unused"),
    )
    paper = PAPERS["horus"]
    monkeypatch.setitem(tables.PAPERS, "horus", type(paper)(paper.title, paper.settings, figures))
    runs = CampaignRows([row("s", "fcfs", 0, wait_s=101.0, slowed=0.0)])
    table, reasons = figure_table(["horus"], runs)
    shown = [(one[2], one[5], one[6], None if one[7] is None else reasons[int(one[7]) - 1]) for one in table.rows]
    assert shown == [
        ("near", "101.0", "1.01", None),
        ("far", "101.0", "2.02", "lists differ"),
        ("none", None, None, "no inference yet"),
        ("lacking", None, None, "Not built yet: no-such-policy."),
        ("zero", "0", None, None),
    ]


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
    with pytest.raises(Exception, match="neither a paper"):
        select(["horas"])


def test_the_page_is_no_wider_than_100_columns() -> None:
    """It is read as plain text too; with every figure there, at the widths that means with intervals have."""
    played = [
        row(setting.name, policy, seed, **dict.fromkeys(tables.MEASURES, 123.4 + seed * len(policy)))
        for setting in SETTINGS.values()
        for policy in setting.policies
        for seed in setting.played(policy, (0, 1))
    ]
    page = make_report(list(PAPERS), list(SETTINGS.values()), played, []).page
    assert [line for line in page.splitlines() if len(line) > 100] == []


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
