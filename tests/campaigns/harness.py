"""What all campaigns share: cases until there are so many or time is over, every fault at once, one line of JSON."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import median

from placeopt.environment import usable_cores, versions

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results" / "campaigns.jsonl"


@dataclass
class Case:
    """
    One thing tried.

    Attributes
    ----------
    kind
        What came of it, in a few words: cases are counted by them.
    faults
        What must not be, in words that say how to see it again.
    figures
        What was measured, by name with its unit.
    """

    kind: str
    faults: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Campaign:
    """
    Something tried very often.

    Attributes
    ----------
    question
        What it asks.
    cases
        Yields cases without end, or all that there are; by a seed.
    examples, minutes
        How many, and for how long at most, where the command does not say.
    missing
        Why it cannot run here; None if it can.
    """

    question: str
    cases: Callable[[int], Iterator[Case]]
    examples: int
    minutes: float = 30.0
    missing: Callable[[], str | None] = lambda: None


@dataclass
class Result:
    """All cases of one run."""

    kinds: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    figures: dict[str, list[float]] = field(default_factory=dict)

    def add(self, case: Case) -> None:
        """Count a case, and print its faults."""
        self.kinds[case.kind] += 1
        self.faults += case.faults
        for name, value in case.figures.items():
            self.figures.setdefault(name, []).append(value)
        for fault in case.faults:
            print(f"FAULT {fault}", flush=True)


def run(campaign: Campaign, examples: int, minutes: float, seed: int) -> Result:
    """Try cases until there are ``examples``, or ``minutes`` are over."""
    result, ends = Result(), time.monotonic() + 60 * minutes
    for case in islice(campaign.cases(seed), examples):
        result.add(case)
        if time.monotonic() > ends:
            break
    return result


def write_down(name: str, result: Result, seed: int, seconds: float, out: Path = RESULTS) -> None:
    """Add a line to the results: what was tried, with which code, on what machine, and what came of it."""
    shown = {name: [median(values), max(values)] for name, values in result.figures.items()}
    record = {
        "spec": "campaigns",
        "round": name,
        "seed": seed,
        "cases": result.kinds.total(),
        "kinds": dict(result.kinds),
        "median_and_largest": {name: [round(value, 3) for value in pair] for name, pair in shown.items()},
        "faults": [fault.replace(f"{ROOT}/", "") for fault in result.faults[:20]],
        "seconds": round(seconds),
        **about(),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(record) + "\n")


def about() -> dict[str, object]:
    """Return code, machine and load."""
    changed = git("status", "--porcelain", "src", "tests")
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": git("rev-parse", "--short=12", "HEAD") + "+" * bool(changed),
        "cpu": platform.processor() or platform.machine(),
        "cores": usable_cores(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "versions": versions(),
    }


def git(*words: str) -> str:
    """Return what git says of this checkout."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S607
    return done.stdout.strip()
