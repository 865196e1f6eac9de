"""Views: what a record refuses, cells as words, CSV, and comparisons with verdicts by hand."""

import pytest
from pydantic import ValidationError

from placeopt import BadInput
from placeopt.documents import dumps, loads
from placeopt.view import Better, Cell, Chart, Column, Figure, Table, Unit, View, as_csv, compare, words


def view(value: Cell, better: Better = "", unit: Unit = "", *, row: str = "fcfs") -> View:
    """A view of one table with one row."""
    table = Table(
        name="T", columns=(Column(name="policy"), Column(name="wait", better=better, unit=unit)), rows=((row, value),)
    )
    return View(title="t", tables=(table,))


@pytest.mark.parametrize(
    ("before", "after", "better", "unit", "verdict", "change"),
    [
        (200.0, 100.0, "less", "s", "better", "-50.0 %"),
        (100.0, 150.0, "less", "s", "worse", "+50.0 %"),
        (100.0, 150.0, "more", "s", "better", "+50.0 %"),
        (100.0, 150.0, "", "s", "other", "+50.0 %"),
        (0.5, 0.6, "more", "fraction", "better", "+10.0 points"),
        (0, 5, "less", "", "worse", ""),
        (None, 5.0, "less", "s", "other", ""),
        ("a", "b", "", "", "other", ""),
    ],
)
def test_verdicts(before: Cell, after: Cell, better: Better, unit: Unit, verdict: str, change: str) -> None:
    """A figure is better or worse only where one of the two is."""
    (row,) = compare(view(before, better, unit), view(after, better, unit)).table("What changed").rows
    assert (row[0], row[1], row[4], row[5]) == ("T: fcfs", "wait", change, verdict)


def test_what_is_the_same_or_on_one_side_is_counted() -> None:
    same = compare(view(5), view(5))
    assert (same.verdict, same.table("What changed").rows, same.figure("figures that both have")) == ("", (), 1)
    both = View(title="b", figures=(Figure(name="n", value=1, better="less"),), tables=view(5).tables)
    less = compare(both, both.model_copy(update={"figures": (), "tables": (*view(5).tables,)}))
    assert (less.figure("only before"), less.figure("only after")) == (1, 0)
    with pytest.raises(BadInput, match="nothing to compare"):
        compare(view(5), view(5, row="las"))


def test_the_cells_of_a_map_are_not_compared() -> None:
    """Ten thousand GPUs that changed hands say nothing; a table that is listed, too, is compared."""

    def mapped(job: str, shown: int) -> View:
        columns = tuple(Column(name=name) for name in ("node", "GPU", "job"))
        table = Table(name="GPUs", columns=columns, rows=(("n0", 0, job),), keys=2, shown=shown)
        chart = Chart(kind="map", table="GPUs", x="GPU", lane="node", label="job")
        return View(title="t", figures=(Figure(name="n", value=1),), tables=(table,), chart=chart)

    assert compare(mapped("a", 0), mapped("b", 0)).table("What changed").rows == ()
    ((row, *_),) = compare(mapped("a", 20), mapped("b", 20)).table("What changed").rows
    assert row == "GPUs: n0: 0"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "s", "-"),
        (2500, "gpu_milli", "2.5"),
        (1500, "cpu_millicores", "1.5"),
        (2048, "mib", "2 GiB"),
        (90, "s", "90.0 s"),
        (1500, "ms", "1.50 s"),
        (0.25, "fraction", "25.0 %"),
        (3, "change", "+3"),
        (1234, "", "1,234"),
        ("a\nb", "", "a\\nb"),
    ],
)
def test_cells_as_words(value: Cell, unit: Unit, text: str) -> None:
    assert words(value, unit) == text


def test_csv() -> None:
    """Units in the headers, formulas of spreadsheets disarmed, several tables under their names."""
    assert as_csv(view(1.5, unit="s", row="=1+1")) == "policy,wait (s)\n'=1+1,1.5\n"
    two = View(title="t", tables=(*view(1).tables, Table(name="U", columns=(Column(name="x"),), rows=((None,),))))
    assert as_csv(two) == 'T\npolicy,wait\nfcfs,1\n\nU\nx\n""\n'


def test_files_hold_all_of_it() -> None:
    assert loads(View, dumps(view(1.5, "less", "s"))) == view(1.5, "less", "s")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tables": [{"name": "T", "columns": [{"name": "a"}, {"name": "a"}]}]}, "stands twice"),
        ({"tables": [{"name": "T", "columns": [{"name": "a"}], "rows": [[1, 2]]}]}, "2 cells, expected 1"),
        ({"tables": [{"name": "T", "columns": [{"name": "a"}]}] * 2}, "stands twice"),
        ({"chart": {"kind": "bars", "table": "T", "x": "a"}}, "no column 'a'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        View.model_validate({"title": "t", **fields})
