"""The compiled local search takes the steps of its source: the same plan, value and cost after 800 of them."""

import subprocess
import sys
from pathlib import Path

import pytest

from placeopt.search import is_compiled

PROGRAM = Path(__file__).with_name("search_program.py")
ROUNDS = [
    "uniform 40 8 8",
    "gangs 40 8 8",
    "fractions 40 8 4",
    "uniform 12 3 16",
    "gangs-queue 40 8 8",
    "uniform-fgd 10 3 4",
    "preempt 40 8 8",
    "defrag 40 8 4",
]


def run(form: str) -> list[str]:
    """What the program prints: the form that ran, then the plan of each round."""
    done = subprocess.run(
        [sys.executable, PROGRAM, form, *ROUNDS], check=True, capture_output=True, text=True, timeout=300
    )
    return done.stdout.splitlines()


def test_both_forms_make_the_same_plans() -> None:
    """Value, cost, and every placement."""
    form, *plans = run("source")
    assert form == "uncompiled"
    assert all("Placement(" in plan for plan in plans)
    if not is_compiled():
        pytest.skip("the local search is not compiled here")
    assert run("compiled") == ["compiled", *plans]
    assert len(plans) == len(ROUNDS)
