"""The file of best known values only ever improves, and calls optimal only what is."""

from pathlib import Path

import pytest

from placeopt import BadInput
from placeopt.benchmark import Known, read_solu, write_solu


def told(known: Known) -> tuple[object, ...]:
    """Return the figures and who found them, which `Known` does not compare."""
    return known.value, known.bound, known.value_by, known.bound_by


def test_values_and_bounds_only_improve_and_keep_their_finders() -> None:
    """A worse run overwrites nothing; an equal one names itself only where nobody is named, as on older lines."""
    known = Known(90, 100, "greedy", "cuts")
    assert told(known.improved(80, 105, by="exact")) == (90, 100, "greedy", "cuts")
    assert told(known.improved(90, 99, by="exact")) == (90, 99, "greedy", "exact")
    assert told(known.improved(95, 95, by="exact")) == (95, 95, "exact", "exact")
    assert (known.optimal, Known(95, 95).optimal) == (False, True)
    again = Known(5, 9).improved(5, 10, by="exact")
    assert told(again) == (5, 9, "exact", "")
    assert told(again.improved(5, 9, by="late")) == (5, 9, "exact", "late")
    assert told(Known(5, 9).improved(None, None, by="exact")) == (5, 9, "", "")
    with pytest.raises(BadInput, match="above bound"):  # one of both is wrong, and keeping either would hide it
        known.improved(101, None)


def test_round_trip(tmp_path: Path) -> None:
    """What is written is read back, proven values as ``=opt=``, the finder as a comment at the line's end."""
    known = {"a": Known(7, 7, "exact", "exact"), "b": Known(5, 9, "greedy", "cuts"), "c": Known(1, None)}
    known["d"] = Known(5, 5)
    write_solu(tmp_path / "x.solu", known)
    text = "=opt= a 7  # exact\n=best= b 5  # greedy\n=bound= b 9  # cuts\n=best= c 1\n=opt= d 5\n"
    assert (tmp_path / "x.solu").read_text() == text
    again = read_solu(tmp_path / "x.solu")
    assert {name: told(one) for name, one in again.items()} == {name: told(one) for name, one in known.items()}


@pytest.mark.parametrize("digits", ["five", "9" * 5000, "-" + "9" * 5000, "9" * 41])
def test_a_broken_line_is_named(tmp_path: Path, digits: str) -> None:
    """File and line; also for 5,000 digits, which Python refuses to convert with an error of its own."""
    (tmp_path / "best.solu").write_text(f"=opt= a 5\n=best= round {digits}\n")
    with pytest.raises(BadInput, match=r"best\.solu:2: .*, expected '=opt='"):
        read_solu(tmp_path / "best.solu")
