"""Every mechanism of the papers leads to its line of code, and to its test."""

import csv
import re
from pathlib import Path

import pytest

import mechanisms
from placeopt.scheduling import DIVISIONS, ELASTIC_RULES, OPTION_CHOICES, PREEMPTION_RULES, QUEUE_ORDERS
from placeopt.solving import METHODS

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "src" / "placeopt" / "systems").glob("*/README.md"))


def test_pages_of_mechanisms_are_current() -> None:
    """Lines move; ``python tools/mechanisms.py`` writes the pages anew."""
    assert mechanisms.main(["--check"]) == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_links_of_mechanisms_lead_to_what_they_name(page: Path) -> None:
    """The line that a link names defines what its text says; a place without a symbol is a file."""
    links = re.findall(r"\[([^\]]+)\]\(([^)#]+)(?:#L(\d+))?\)", page.read_text(encoding="utf-8"))
    assert len(links) > 15
    for text, target, line in links:
        path = page.parent / target
        assert path.exists(), target
        if line:
            assert re.search(rf"\b{re.escape(text)}\b", path.read_text(encoding="utf-8").splitlines()[int(line) - 1])


FIELDS = {
    "order": QUEUE_ORDERS,
    "preempts": PREEMPTION_RULES,
    "choice": OPTION_CHOICES,
    "elastic": ELASTIC_RULES,
    "divides": DIVISIONS,
    "method": METHODS,
}
OTHERS = {"gang", "share", "hold_after", "telemetry", "predictions", "cost communication", "postpone utility"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_what_a_policy_does_live_is_counted_by_a_name_that_drivers_use(page: Path) -> None:
    """`fired` names counts by field and rule; what is not live is not counted."""
    with (page.parent / "mechanisms.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        what, _, did = row["counted"].partition(": ")
        live = re.search(r"`--(policy|telemetry)\b", row["live"]) is not None
        assert bool(what) or not live, row["mechanism"]
        if what:
            field, _, rule = what.partition(" ")
            assert not row["live"].startswith(("-", "no")), row["mechanism"]
            assert what in OTHERS or rule in FIELDS[field], what
            assert did


def test_a_mechanism_that_is_not_there_is_named() -> None:
    room = PAGES[0].parent
    with pytest.raises(ValueError, match=r"no no/linear\.py"):
        mechanisms.link(room, "no/linear.py:x", ROOT)
    with pytest.raises(ValueError, match="no Nothing"):
        mechanisms.link(room, "linear.py:Nothing", mechanisms.PACKAGE)
