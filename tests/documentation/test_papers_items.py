"""The table of what is built of each paper: it has every item, and what is called faithful is shown by tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from placeopt_papers.records import KINDS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
HOW = ("faithful", "deviates", "input", "row", "none")
ROMAN = {"I": 1, "II": 2, "III": 3, "IV": 4, "V": 5}
NUMBERED = {
    "SC'17": {"eq.": 5, "algorithm": 3, "table": 1, "figure": 11},
    "Horus": {"eq.": 10, "algorithm": 1, "table": 7, "figure": 9},
    "GENIE": {"eq.": 16, "algorithm": 1, "table": 3, "figure": 18},
    "DynamoML": {"table": 2, "figure": 10},
    "SODA": {"eq.": 1, "table": 5, "figure": 19},
}
"""How many of each the papers number."""
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def rows(paper: str) -> list[list[str]]:
    """Return item, code, how and tests of a paper's table."""
    section = PAGE.split(f"### Items of {paper}\n")[1].split("\n### ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def numbers(item: str, kind: str) -> set[int]:
    """Return the numbers that an item names: ``eq. 5 to 7`` are three."""
    found = re.fullmatch(rf"{re.escape(kind)}s? (\w+)(?: to (\w+))?", item)
    if found is None:
        return set()
    first, last = (int(ROMAN.get(end, end)) for end in (found[1], found[2] or found[1]))
    return set(range(first, last + 1))


@pytest.mark.parametrize("paper", NUMBERED)
def test_every_numbered_item_is_there_once(paper: str) -> None:
    """Equations, algorithms, tables and figures."""
    for kind, most in NUMBERED[paper].items():
        found = [number for item, *_ in rows(paper) for number in numbers(item, kind)]
        assert sorted(found) == list(range(1, most + 1)), kind


@pytest.mark.parametrize("paper", NUMBERED)
def test_what_is_faithful_is_shown_by_a_test(paper: str) -> None:
    """Every row says how it is built; the files are there, and so are the tests in them."""
    for item, code, how, tests in rows(paper):
        assert how.startswith(HOW), item
        assert code == "-" or (ROOT / code.strip("`")).exists(), code
        named = NAMED.findall(tests)
        assert named or not how.startswith("faithful"), item
        assert len(named) == tests.count("`") // 2, f"{item}: {tests}"
        for path, name in named:
            assert re.search(rf"^ *def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), (path, name)


def test_the_page_states_the_kinds_of_rows() -> None:
    """All of them, with what they mean."""
    for kind in KINDS:
        assert f"| `{kind}` |" in PAGE


def test_what_is_missing_is_found() -> None:
    """Otherwise the tests above would prove nothing."""
    assert numbers("eq. 5 to 7", "eq.") == {5, 6, 7}
    assert numbers("figures 10 to 11", "figure") == {10, 11}
    assert numbers("table V", "table") == {5}
    assert numbers("eq. 5", "figure") == numbers("V-C", "table") == set()
