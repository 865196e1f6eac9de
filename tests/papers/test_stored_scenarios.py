"""The papers' settings as files are what the generators make."""

import sys
from pathlib import Path

import pytest

from placeopt import read_scenario

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from paper_scenarios import DRAWN, FOLDER, made  # noqa: E402


@pytest.mark.parametrize("name", DRAWN)
def test_a_stored_scenario_is_current(name: str) -> None:
    """If this fails, a generator has changed: run ``python bench/paper_scenarios.py``, and review what differs."""
    scenario = made(name, FOLDER.parent)
    assert read_scenario(FOLDER / f"{scenario.name}.json.gz") == scenario
