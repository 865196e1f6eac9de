"""The compiled local search takes the steps of its source: the same plan, value and cost after thousands of them."""

import subprocess
import sys
from pathlib import Path

import pytest

from placeopt.search import is_compiled

PROGRAM = Path(__file__).with_name("search_program.py")
ROUNDS = [
    ["uniform", "40", "8", "8"],
    ["gangs", "40", "8", "8"],
    ["fractions", "40", "8", "4"],
    ["uniform", "12", "3", "16"],
    ["gangs-queue", "40", "8", "8"],
    ["uniform-fgd", "10", "3", "4"],
]


def run(*arguments: str) -> list[str]:
    """What the program prints: the form that ran, then what came of it."""
    done = subprocess.run(
        [sys.executable, PROGRAM, *arguments], check=True, capture_output=True, text=True, timeout=300
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("of_round", ROUNDS, ids=" ".join)
def test_both_forms_make_the_same_plan(of_round: list[str]) -> None:
    """Value, cost, every placement and the state of the random numbers."""
    source = run("source", *of_round)
    assert source[0] == "uncompiled"
    assert len(source) > 4
    if not is_compiled():
        pytest.skip("the local search is not compiled here")
    compiled = run("compiled", *of_round)
    assert compiled[0] == "compiled"
    assert compiled[1:] == source[1:]
