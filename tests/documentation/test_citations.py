"""What is cited of the five papers exists in them (issue 16, A12); whether it says so, only reading tells."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    path
    for room in ("src", "docs", "bench", "tests")
    for path in sorted((ROOT / room).rglob("*"))
    if path.suffix in (".py", ".md") and "library" not in path.parts and path != Path(__file__).resolve()
]
POLICIES = sorted((ROOT / "src" / "placeopt" / "simulation" / "scheduling" / "policies").glob("*.json"))


def numbered(text: str) -> set[str]:
    """Return the sections ``1 2 2.1-2.3 ...`` of a contents line, with those above each."""
    found = set()
    for word in text.split():
        first, _, last = word.partition("-")
        head, _, number = first.rpartition(".")
        names = [first] if not last else [f"{head}.{i}" for i in range(int(number), int(last.rpartition(".")[2]) + 1)]
        for name in names:
            parts = name.split(".")
            found |= {".".join(parts[:i]) for i in range(1, len(parts) + 1)}
    return found


PAPERS = {
    "Horus": {
        "section": numbered("1 2.1-2.2 3.1-3.3 4.1.1-4.1.2 4.2.1-4.2.3 4.3 5.1-5.2 6.1-6.2 7 8"),
        "eq": 10,
        "fig": 9,
        "table": 7,
        "algorithm": 1,
    },
    "DynamoML": {
        "section": numbered("1 2.1-2.3 3.1-3.3 4 5.1-5.3 6 7"),
        "eq": 0,
        "fig": 10,
        "table": 2,
        "algorithm": 0,
    },
    "SC'17": {
        "section": numbered("1 2 3.1-3.3 4.1.1-4.1.2 4.2-4.4 5.1 5.2.1-5.2.2 5.3-5.4 5.5.1-5.5.3 6 7"),
        "eq": 5,
        "fig": 11,
        "table": 1,
        "algorithm": 3,
    },
    "GENIE": {
        "section": numbered(
            "1 2 3.1-3.2 4.1-4.2 5.1.1-5.1.5 5.2.1-5.2.2 5.3-5.4 6 7.1 7.2.1-7.2.4 7.3 7.4.1-7.4.3 8 9"
        ),
        "eq": 16,
        "fig": 18,
        "table": 3,
        "algorithm": 1,
    },
}
"""Sections, and how many equations, figures, tables and algorithms each paper has, counted in the papers."""
KINDS = {"eq": r"eqs?\.", "fig": r"fig(?:ure|\.)s?", "table": r"tables?", "algorithm": r"alg(?:orithms?|\.)"}


@pytest.mark.parametrize("paper", PAPERS)
def test_cited_numbers_exist(paper: str) -> None:
    """Sections, equations, figures, tables and algorithms that follow the paper's name at once."""
    has, wrong, seen = PAPERS[paper], [], 0
    name = re.escape(paper) + r"(?:'s)?(?: \(TPDS'22\))?,? "
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        for number in re.findall(name + r"(?:section )?(\d(?:\.\d)*)(?![\d%./])(?= ?[,;:).]|$)", text, re.MULTILINE):
            seen += 1
            if number not in has["section"]:
                wrong.append(f"{path.relative_to(ROOT)}: {paper} {number}")
        for kind, words in KINDS.items():
            for number in re.findall(name + words + r" (\d+)", text):
                seen += 1
                if not 1 <= int(number) <= has[kind]:
                    wrong.append(f"{path.relative_to(ROOT)}: {paper} {kind} {number}")
    assert wrong == []
    assert seen >= 3  # else the patterns find nothing


def test_sections_of_policies_exist() -> None:
    """Issue 16, A12: horus-f named section 5.4 of a paper that ends its section 5 at 5.2."""
    of = {
        "Horus": "Horus",
        "DynamoML": "DynamoML",
        "Topology-Aware": "SC'17",
        "GENIE": "GENIE",
        "Deep Learning Research": "GENIE",
    }
    judged = 0
    for path in POLICIES:
        source = json.loads(path.read_text()).get("source")
        paper = next((of[word] for word in of if source and word in source["paper"]), None)
        if paper is None:
            continue
        judged += 1
        for number in re.findall(r"\d(?:\.\d)+", source["section"]):
            assert number in PAPERS[paper]["section"], (path.name, number)
    assert judged >= 12


def test_what_was_wrong_stays_mended() -> None:
    """Issue 16, A12: the curve is in Horus's figure 4 (6 has features), the rate of a GPU GENIE's eq. 7."""
    both = {path: path.read_text(encoding="utf-8") for path in FILES}
    assert [path.name for path, text in both.items() if re.search(r"Horus,? fig(ure|\.) 6", text)] == []
    assert "(GENIE eq. 7)" in both[ROOT / "src/placeopt/predict/rate.py"]
    for name in ("horus", "horus-f"):
        departures = json.loads((ROOT / f"src/placeopt/simulation/scheduling/policies/{name}.json").read_text())[
            "source"
        ]["departures"]
        assert not any("No resubmission" in one for one in departures)
        assert any("queued again" in one for one in departures)
    page = " ".join((ROOT / "docs/files.md").read_text(encoding="utf-8").split())
    assert "any of its options" in page
    assert "keeps its option and its number of workers" not in page
