"""A hundred wrong differences, made on purpose in the source of the local search: each is noticed by the checks."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
WRONG = (HERE / "wrong_differences.txt").read_text().splitlines()
"""What stands in a function, and what is put in its place, one a line."""
SAME = {
    "accounts.take: -1 -> 1": "nothing is taken of it then",
    "costs.gap_change: part & gpus -> part": "a part of which nothing is taken has the gap that it had",
    "costs.path_out: number <= 8 -> number < 8": "the loop adds up what the table of 8 GPUs holds",
    "costs.excess_of_entries: s.searches += 1 -> s.searches -= 1": "the number only has to be another one",
    "gangs._look_at: s.closed[node] & s.whole_node -> s.closed[node] | s.whole_node": "no gang is placed",
}
"""What changes no figure, and why: it is left out of the hundred."""


def outcomes(wrong: list[str]) -> dict[str, str]:
    """What was noticed of each that is put wrong, and of what is right, after a number of steps with all checks."""
    done = subprocess.run(
        [sys.executable, HERE / "wrong_search_program.py"],
        input="\n".join(wrong),
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(HERE.parent)},
    )
    return dict(line.rsplit(" | ", 1) for line in done.stdout.splitlines())


def test_some_are_noticed_and_what_is_right_is_not() -> None:
    """Every tenth of them."""
    found = outcomes(WRONG[::10])
    assert found.pop("right") == "not noticed"
    assert set(found) == set(WRONG[::10])
    assert "not noticed" not in found.values()


@pytest.mark.night  # 80 s of CPU time
def test_each_is_noticed() -> None:
    """By value, cost, what is free or taken, lists, limits, estimates that are exact, or the referee's word."""
    assert len(WRONG) == len(set(WRONG)) == 100
    found = outcomes([*WRONG, *SAME])
    assert set(found) == {"right", *WRONG, *SAME}
    assert {what for what, outcome in found.items() if outcome == "not noticed"} == {"right", *SAME}
