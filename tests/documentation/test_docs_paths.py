"""Every file that the documents name is there (issue 16, A12: a page named one that was not)."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *(
        p
        for room in ("docs", "bench", "instances")
        for p in sorted((ROOT / room).glob("*.md"))
        if p.name != "mutants.md"
    ),
]
"""Without the table of mutants, whose code spans are changed code."""
ENDINGS = "py|md|json|jsonl|csv|test|solu|toml|svg|html|txt|lock"
NAMED = re.compile(rf"`((?:[\w.-]+/)*\w[\w.-]*\.(?:{ENDINGS}))`|\]\((?!https?:|#)([^)#\s]+)")
ELSEWHERE = frozenset(
    {
        # written by commands
        *("results/results.jsonl", "papers/results.jsonl", "summaries.json", "report.md", "papers.md"),
        # of other people's repositories, which the page names
        *("data/data.csv", "openb_node_list_all_node.csv", "profiles/prof_from_experiments.json"),
    }
)
"""Named, and no file of this repository."""
FOREIGN = re.compile(r"<!-- begin: bench/topology_table.py -->.*?<!-- end", re.DOTALL)
"""A table of dumps in a folder outside of this repository."""
FOLDERS = ("", "docs", "src/placeopt", "src/placeopt/solvers", "tests", "tests/solvers", "bench", "instances")
"""Where a path may begin; a bare name may be anywhere in the room that its page is about."""


def named(page: Path) -> list[str]:
    """Return the paths that a page names in code spans and links."""
    return [span or link for span, link in NAMED.findall(FOREIGN.sub("", page.read_text(encoding="utf-8")))]


def is_there(page: Path, name: str) -> bool:
    """Tell whether a path leads to a file: from the page, from a room, or anywhere below, also gzipped."""
    if name in ELSEWHERE or (page.parent / name).exists():
        return True
    if any((ROOT / folder / name).exists() for folder in FOLDERS):
        return True
    return "/" not in name and any(
        any((ROOT / room).rglob(one)) for room in ("src", "tests", "bench") for one in (name, f"{name}.gz")
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_that_a_page_names_is_there(page: Path) -> None:
    """Issue 16, A12."""
    assert [name for name in named(page) if not is_there(page, name)] == []


def test_what_is_not_there_is_found(tmp_path: Path) -> None:
    """Otherwise the test above would prove nothing."""
    page = tmp_path / "page.md"
    page.write_text("`terms/nowhere.py`, `terms/rules/where.py`, [x](gone.md), [y](https://x.org/z), `nothing_such.py`")
    assert [name for name in named(page) if not is_there(page, name)] == [
        "terms/nowhere.py",
        "gone.md",
        "nothing_such.py",
    ]


def test_no_exception_is_left_over() -> None:
    """What no page names any more leaves the list."""
    assert {name for page in PAGES for name in named(page)} >= ELSEWHERE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_fence_stands_on_a_line_of_its_own(page: Path) -> None:
    """A fence inside a line closes nothing: all that follows would be shown as code, or as text."""
    lines = page.read_text(encoding="utf-8").splitlines()
    fences = [line for line in lines if "```" in line]
    assert [line for line in fences if not re.fullmatch(r"```\w*", line)] == []
    assert len(fences) % 2 == 0
