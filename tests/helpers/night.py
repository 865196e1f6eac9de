"""Parameters of a test of which ``make test`` tries some, and ``make night`` all others."""

from collections.abc import Iterable
from typing import Any

import pytest


def nightly(values: Iterable[Any], *by_day: Any) -> list[Any]:
    """Return the values as parameters; all but those ``by_day`` have the mark ``night``."""
    return [value if value in by_day else pytest.param(value, marks=pytest.mark.night) for value in values]


def seeds(number: int) -> list[Any]:
    """Return seeds from 0 on as parameters; by day a quarter of them is tried."""
    return nightly(range(number), *range(-(-number // 4)))


def tried_by_day(cases: Iterable[tuple[Any, ...]], every: int) -> list[Any]:
    """Return cases of several values as parameters; by day one of ``every`` is tried."""
    return [
        case if number % every == 0 else pytest.param(*case, marks=pytest.mark.night)
        for number, case in enumerate(cases)
    ]
