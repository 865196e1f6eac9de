"""`docs/glossary.md` and the code hold together: what the page names exists."""

import importlib
import re
from pathlib import Path

import pytest

import placeopt

PACKAGE = Path(placeopt.__file__).parent
PAGE = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`(placeopt\.[\w.]+)`", PAGE)))


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


def test_every_term_has_one_sentence() -> None:
    """It ends with a full stop, and the term stands once."""
    rows = re.findall(r"^\| ([^|`]+) \| ([^|]+) \| `", PAGE, re.MULTILINE)
    assert len(rows) > 60
    assert [term for term, meaning in rows if not meaning.strip().endswith(".")] == []
    terms = [one.strip() for term, _ in rows for one in term.split(",")]
    assert len(terms) == len(set(terms))
