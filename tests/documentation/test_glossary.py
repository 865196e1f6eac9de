"""`docs/glossary.md` and the code hold together: what the page names exists, and no former name comes back."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import placeopt

PACKAGE = Path(placeopt.__file__).parent
PAGE = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text(encoding="utf-8")
TERMS, FORMER = PAGE.split("## Former names")
NAMES = sorted(set(re.findall(r"`(placeopt\.[\w.]+)`", TERMS)))
COMMON = {"page", "layout", "taken", "kept", "settled", "mapping", "moment", "family", "contents", "forced", "Mapping"}
"""Plain words of English or of a paper that functions may use; as packages and modules they are gone too."""


def former_words() -> set[str]:
    """Return the former names of the page, in lower case without underscores."""
    return {word.lower().replace("_", "") for word in re.findall(r"\| `(\w+)`", FORMER)}


def defined() -> Iterator[tuple[str, str]]:
    """Yield (place, name) of every package, module, class and function."""
    for path in sorted(PACKAGE.rglob("*.py")):
        place = str(path.relative_to(PACKAGE))
        yield place, path.parent.name if path.name == "__init__.py" else path.stem
        if path.name != "aliases.py":
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef | ast.FunctionDef):
                    yield f"{place}:{node.lineno}", node.name


@pytest.mark.parametrize("name", NAMES)
def test_what_the_glossary_names_exists(name: str) -> None:
    """A module, or something in one."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute)


def test_every_package_has_a_term() -> None:
    """A room that the glossary does not name is a room that a reader cannot find."""
    rooms = {f"placeopt.{path.parent.name}" for path in PACKAGE.glob("*/__init__.py")}
    assert sorted(room for room in rooms if not any(name.startswith(room) for name in NAMES)) == []


def test_no_former_name_comes_back() -> None:
    """As a package, module, or public class or function."""
    words = former_words()
    assert len(words) > 50  # else the pattern finds nothing
    found = [
        (place, name)
        for place, name in defined()
        if not name.startswith("_") and name.lower().replace("_", "") in words
    ]
    assert [(place, name) for place, name in found if ":" not in place or name not in COMMON] == []


def test_every_term_has_one_sentence() -> None:
    """It ends with a full stop, and the term stands once."""
    rows = re.findall(r"^\| ([^|`]+) \| ([^|]+) \| `", TERMS, re.MULTILINE)
    assert len(rows) > 60
    assert [term for term, meaning in rows if not meaning.strip().endswith(".")] == []
    terms = [one.strip() for term, _ in rows for one in term.split(",")]
    assert len(terms) == len(set(terms))
