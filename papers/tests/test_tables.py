"""Figures, orders and comparisons on rows made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from placeopt import BadInput
from placeopt_papers import tables
from placeopt_papers.__main__ import main
from placeopt_papers.figures import Figure, Order, figures
from placeopt_papers.results import Cell, Results, Row
from placeopt_papers.tables import BEGIN, END, compare, estimate_table, judge_order, own_table, with_block

PLAIN = replace(figures()[0], theirs=None, said="-", settings=("one",), policies=("mine",), over=(), constants=())


def rows(
    setting: str, measure: str, constant: str = "", factor: float = 1.0, **policies: tuple[float, ...]
) -> list[Row]:
    """Make rows of one measure, policy -> its values seed by seed; an underscore stands for a dash."""
    return [
        Row(Cell(setting, policy.replace("_", "-"), seed, False, constant, factor), "", 1.0, {measure: value})
        for policy, values in policies.items()
        for seed, value in enumerate(values)
    ]


def figure(form: str, measure: str, policies: str = "mine", over: str = "", settings: str = "one") -> Figure:
    """Make a figure of a form."""
    names = {"settings": tuple(settings.split()), "policies": tuple(policies.split()), "over": tuple(over.split())}
    return replace(PLAIN, form=form, measure=measure, **names)


def test_values_are_of_the_seeds_that_all_compared_have() -> None:
    """Otherwise pairs would be of different scenarios; a value alone is of all its seeds."""
    runs = Results(rows("s", "wait_s", a=(1.0, 2.0, 3.0), b=(4.0, 5.0)))
    assert runs.values("s", "a", "wait_s") == [1.0, 2.0, 3.0]
    assert runs.values("s", "a", "wait_s", ("b",)) == [1.0, 2.0]
    assert runs.values("s", "a", "wait_s", ("c",)) is runs.values("s", "c", "wait_s") is None
    assert runs.values("s", "a", "slowdown") is None
    assert figure("ratio", "wait_s", "a", "b", "s").ours(runs) == [0.25, 0.4]


def test_beliefs_stand_beside_each_other() -> None:
    """A row for each policy: the means under each of the settings; nothing where none is named, or was run."""
    runs = Results(
        [
            *rows("horus-w-large", "makespan_min", horus=(3.0, 5.0)),
            *rows("horus-w-large-twice", "makespan_min", horus=(6.0, 6.0)),
        ]
    )
    row = next(row for row in estimate_table(runs).rows if row[0] == "horus-w-large" and row[2] == "horus")
    assert row == ("horus-w-large", "makespan, min", "horus", "4 ± 12.7", None, None, "6 ± 0", None)


def test_forms_of_one_setting() -> None:
    """A gain in percent of the same seed; the outermost mean gains of several policies; a deviation of 2, 4 and 9."""
    runs = Results(
        rows("one", "run_s", mine=(3.0, 5.0), a=(11.0, 12.0), b=(13.0, 14.0), base=(10.0, 10.0), d=(2.0, 4.0, 9.0))
    )
    assert figure("gain", "run_s", "mine", "base").ours(runs) == pytest.approx([-70.0, -50.0])
    assert figure("largest gain", "run_s", "a b", "base").ours(runs) == pytest.approx([30.0, 40.0])
    assert figure("least gain", "run_s", "a b", "base").ours(runs) == pytest.approx([10.0, 20.0])
    assert figure("least gain", "run_s", "a c", "base").ours(runs) is None
    assert figure("deviation", "run_s", "d").ours(runs) == [pytest.approx(13**0.5)]
    assert figure("deviation", "run_s", "c").ours(runs) is None
    zero = Results(rows("one", "run_s", mine=(1.0,), a=(0.0,)))
    assert figure("ratio", "run_s", "mine", "a").ours(zero) is None


def test_forms_over_settings() -> None:
    """Seed by seed from another setting; and the largest change from the best rival of each."""
    runs = Results(
        [
            *rows("one", "in_time_percent", mine=(60.0, 80.0), a=(50.0, 50.0), b=(20.0, 90.0)),
            *rows("two", "in_time_percent", mine=(30.0, 30.0), a=(20.0, 10.0), b=(5.0, 5.0)),
            *rows("one", "makespan_h", mine_h=(8.0,), a_h=(10.0,), b_h=(20.0,)),
            *rows("two", "makespan_h", mine_h=(9.0,), a_h=(10.0,)),
        ]
    )
    assert figure("between", "in_time_percent", "mine", "", "two one").ours(runs) == pytest.approx([-50.0, -62.5])
    assert figure("between", "in_time_percent", "mine", "", "two three").ours(runs) is None
    up = figure("best change", "in_time_percent", "mine", "a b", "one two")
    assert up.ours(runs) == pytest.approx([50.0, 200.0])  # setting two over a; in one the best is b, by its sum
    assert figure("best change", "in_time_percent", "mine", "c").ours(runs) is None
    assert figure("best change", "makespan_h", "mine-h", "a-h b-h", "one two").ours(runs) == pytest.approx([-20.0])


def test_the_time_of_a_big_batch_over_a_tiny_one() -> None:
    """SC'17 3.2: 68 / 3 by the paper's parts; by the artifact's times 1,779.79 over 127.415 s."""
    (found,) = (one for one in figures() if one.measure == "time_ratio")
    assert found.theirs == pytest.approx(68 / 3, abs=0.05)
    assert found.ours(Results(())) == [pytest.approx(1_779_790 / 127_415)]


ORDER = Order("p", "here", "openb", "wait_s", (("a",), ("b", "c"), ("d",)))


def test_neighbours_of_an_order_with_equals() -> None:
    """Equals are not compared with each other."""
    assert ORDER.neighbours == [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]


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
    assert judge_order(ORDER, "a", "b", Results(rows("openb", "wait_s", a=first, b=second)))[0] == verdict


def test_a_policy_under_which_jobs_never_end_ranks_nowhere() -> None:
    """It says how many, has no figure, and is better than nobody."""
    stuck = Row(Cell("openb", "a"), "", 1.0, {"wait_s": None}, 100, 99, "huge: finds no place")
    told = judge_order(ORDER, "a", "b", Results([stuck, *rows("openb", "wait_s", b=(30.0,))]))
    assert told == ("missing", "under a 99 of 100 jobs never end (huge: finds no place)")


def test_ours_beside_a_papers_own_system() -> None:
    """By the direction of the measure; what cannot be told apart is a tie, and so are rounding errors."""
    assert compare([1.0, 2.0], [3.0, 4.1], more=False)[1] == "better"
    assert compare([1.0, 2.0], [3.0, 4.1], more=True)[1] == "worse"
    assert compare([1.0, 5.0], [3.0, 4.1], more=True)[1] == "tie"
    assert compare([215.7 + 1e-14], [215.7], more=False) == ("0", "tie")
    table = own_table(Results(rows("horus-w-large", "makespan_min", placeopt=(1.0, 2.0), horus=(2.0, 3.5))))
    assert table.rows == (("horus-w-large", "makespan, min", "horus", "2.75", "1.5", "-1.25 ± 3.18", "tie"),)


def test_figures_beside_the_papers(monkeypatch: pytest.MonkeyPatch) -> None:
    """With their kind and reason also where they agree; what was not run and what has no data say so."""
    wait = figure("value", "wait_s", "fcfs", "", "s")
    made = (
        replace(wait, what="near", theirs=100.0, unit="s"),
        replace(wait, what="none", theirs=50.0, unit="s", form="", kind="no data"),
        replace(wait, what="lacking", theirs=50.0, unit="s", policies=("k",)),
        replace(wait, what="said", said="< 5 s"),
    )
    monkeypatch.setattr(tables, "figures", lambda: made)
    table = tables.figure_table(Results(rows("s", "wait_s", fcfs=(101.0,))))
    assert [row[2:7] for row in table.rows] == [
        ("near", "100 s", "101.0", "1.01", "artifact"),
        ("none", "50 s", "no data", None, "no data"),
        ("lacking", "50 s", "not run", None, "artifact"),
        ("said", "< 5 s", "101.0", None, "artifact"),
    ]


def test_sensitivity_is_of_the_same_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """At half and double the constant, beside the mean of as many seeds as it stands."""
    one = replace(figure("value", "wait_s", "fcfs", "", "s"), constants=("LENGTH",), varied=True, kind="fitted")
    monkeypatch.setattr(tables, "figures", lambda: (one,))
    runs = [
        *rows("s", "wait_s", fcfs=(10.0, 20.0, 90.0)),
        *rows("s", "wait_s", "LENGTH", 0.5, fcfs=(5.0, 10.0)),
        *rows("s", "wait_s", "LENGTH", 2.0, fcfs=(20.0, 40.0)),
    ]
    assert [row[4:] for row in tables.sensitivity_table(Results(runs)).rows] == [("7.5", "15", "30", "fitted")]
    assert tables.sensitivity_table(Results(runs[:1])).rows == ()


def test_the_page_is_what_the_stored_rows_make(capsys: pytest.CaptureFixture[str]) -> None:
    """``python -m placeopt_papers tables`` writes it."""
    assert main(["tables", "--check"]) == 0
    assert main(["tables", "--all"]) == 0
    assert "AlexNet batch 64: spread / pack" in capsys.readouterr().out


def test_a_page_without_markers_is_refused() -> None:
    """Rather than lose the rest of it."""
    assert with_block(f"a {BEGIN} b {END} c", "new") == "a new c"
    with pytest.raises(BadInput, match="no <!-- begin"):
        with_block("nothing", "new")


def test_items_of_the_papers_lead_to_code() -> None:
    """Every file that the list of items names is there."""
    root = Path(__file__).resolve().parents[2]
    lines = (root / "papers" / "items.csv").read_text(encoding="utf-8").splitlines()[1:]
    named = {line.rpartition(",")[2] for line in lines} - {""}
    assert named
    assert {name for name in named if not (root / name).exists()} == set()
