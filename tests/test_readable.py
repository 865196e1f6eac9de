"""Numbers for people: no exponents, no seconds by the million."""

import io
import random
import re

import pytest
from rich.console import Console

from placeopt.readable import amount, duration
from placeopt.report.text import TextTable


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((None, "-"), (0, "0"), (0.0, "0"), (1213.0, "1,213"), (1213, "1,213"), (1_234_567.8, "1,234,568")),
        *((12.3456, "12.35"), (12.5, "12.5"), (-0.25, "-0.25"), (0.000123456, "0.0001235"), (9.99996, "10")),
        *((1e-9, "between 0 and 0.000001"), (-1e-9, "between 0 and -0.000001"), (float("inf"), "inf")),
    ],
)
def test_amounts(value: float | None, text: str) -> None:
    """The number 1,213 was written "1.21e+03"."""
    assert amount(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((None, "-"), (0, "0 s"), (0.0125, "12.5 ms"), (0.52, "0.52 s"), (54.8, "54.8 s"), (3599.9, "3,599.9 s")),
        *((3600, "1.00 h"), (172_799, "48.00 h"), (172_800, "2.00 d"), (3_133_088.8, "36.26 d")),
        (100_000_000, "1,157.4 d"),
    ],
)
def test_durations(value: float | None, text: str) -> None:
    """A span of 36 days was "3,133,088.8 s"."""
    assert duration(value) == text


def test_no_amount_has_an_exponent() -> None:
    """Whatever its size, and it is the value to three digits."""
    random.seed(0)
    for _ in range(2000):
        value = random.uniform(-1, 1) * 10 ** random.uniform(-5, 15)
        value = value if abs(value) > 1e-5 else 1.0
        text = amount(value)
        assert re.fullmatch(r"-?[\d,]+(\.\d+)?", text), (value, text)
        assert float(text.replace(",", "")) == pytest.approx(value, rel=1e-3)


@pytest.mark.parametrize("width", [30, 40, 60, 100])
def test_no_column_is_hidden(width: int) -> None:
    """Columns that a page is too narrow for stand below, beside the first column again."""
    names = ["policy", *(f"measure-{i}" for i in range(9))]
    rows = [[f"name-{r}", *(f"{r}cell{i}" for i in range(9))] for r in range(3)]
    out = io.StringIO()
    Console(file=out, width=width).print(TextTable(names, rows, drop=names[:0:-1]))
    text = out.getvalue()
    assert all(name in text for name in names)
    assert all(cell in text for row in rows for cell in row)
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    assert text.count("policy") == len(re.findall(r"^ *policy", text, re.MULTILINE))
