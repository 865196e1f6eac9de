"""Code that nothing uses is removed; what vulture cannot see the use of stands in ``pyproject.toml`` with a reason."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_unused_names_are_those_listed_with_a_reason() -> None:
    """Of the library and the campaigns: tests are no use."""
    vulture = pytest.importorskip("vulture", reason="vulture is not installed (extra dev)")
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["vulture"]
    scan = vulture.Vulture(ignore_decorators=listed["ignore_decorators"])
    scan.scavenge([str(ROOT / path) for path in listed["paths"]])
    unused = {item.name: str(item.filename) for item in scan.get_unused_code(listed["min_confidence"])}
    assert {name: path for name, path in unused.items() if name not in listed["ignore_names"]} == {}
    assert sorted(set(listed["ignore_names"]) - unused.keys()) == [], "used by now: take them off the list"
