"""What can be chosen by name is described where people look for it."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from placeopt.simulation import policy_names
from placeopt.solving.methods import METHODS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("page", "names"), [("concepts.md", METHODS), ("simulation.md", policy_names())])
def test_every_name_is_described(page: str, names: Iterable[str]) -> None:
    """Methods in the table of stages, scheduling policies in theirs."""
    text = (DOCS / page).read_text(encoding="utf-8")
    assert [name for name in names if f"`{name}`" not in text] == []
