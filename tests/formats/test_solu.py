"""The file of best known values only ever improves, and calls optimal only what is."""

from pathlib import Path

import pytest

from placeopt import BadInput
from placeopt.formats import Known, read_solu, write_solu


def test_the_finder_stays_with_the_better_value(tmp_path: Path) -> None:
    """A comment at the line's end; an equal value leaves the first who had it."""
    first = Known(5, 9, "greedy", "cuts")
    assert first.improved(5, 7, by="exact").bound_by == "exact"
    assert first.improved(5, 7, by="exact").value_by == "greedy"
    both = first.improved(7, 7, by="exact")
    write_solu(tmp_path / "x.solu", {"a": both, "b": first, "c": Known(1, None)})
    text = (tmp_path / "x.solu").read_text()
    assert text == "=opt= a 7  # exact\n=best= b 5  # greedy\n=bound= b 9  # cuts\n=best= c 1\n"
    again = read_solu(tmp_path / "x.solu")
    assert [(one.value_by, one.bound_by) for one in again.values()] == [
        ("exact", "exact"),
        ("greedy", "cuts"),
        ("", ""),
    ]


def test_a_missing_finder_is_filled_in_by_an_equal_value() -> None:
    """Older lines have no finder; what is worse names nobody."""
    nobody = Known(5, 9)
    again = nobody.improved(5, 10, by="exact")
    assert (again.value_by, again.bound_by) == ("exact", "")
    assert (again.improved(5, 9, by="late").value_by, again.improved(5, 9, by="late").bound_by) == ("exact", "late")
    assert nobody.improved(None, None, by="exact").value_by == ""


def test_values_and_bounds_only_improve() -> None:
    """A worse run must not overwrite what a better one has found."""
    known = Known(value=90, bound=100).improved(80, 105)
    assert known == Known(90, 100)
    assert not known.optimal
    assert known.improved(95, 95) == Known(95, 95)
    assert known.improved(95, 95).optimal


def test_a_value_above_a_bound_is_refused() -> None:
    """One of the two is wrong, and silently keeping either would hide it."""
    with pytest.raises(BadInput, match="above bound"):
        Known(value=90, bound=100).improved(101, None)


def test_round_trip(tmp_path: Path) -> None:
    """What is written is read back, proven values as ``=opt=``."""
    known = {"a": Known(5, 5), "b": Known(3, 7), "c": Known(2, None)}
    write_solu(tmp_path / "x.solu", known)
    assert (tmp_path / "x.solu").read_text() == "=opt= a 5\n=best= b 3\n=bound= b 7\n=best= c 2\n"
    assert read_solu(tmp_path / "x.solu") == known


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    """File and line stand in the message."""
    (tmp_path / "x.solu").write_text("=opt= a 5\n=opt= b five\n")
    with pytest.raises(BadInput, match=r"x\.solu:2"):
        read_solu(tmp_path / "x.solu")


@pytest.mark.parametrize("digits", ["9" * 5000, "-" + "9" * 5000, "9" * 41])
def test_a_value_of_thousands_of_digits_is_refused(tmp_path: Path, digits: str) -> None:
    """Python itself refuses to convert 5,000 digits, with an error of its own."""
    path = tmp_path / "best.solu"
    path.write_text(f"=best= round {digits}\n")
    with pytest.raises(BadInput, match=r"best\.solu:1: .*, expected '=opt='"):
        read_solu(path)
