"""One question that a measurement answers, the rounds it is asked of, and the line of JSON that each answer becomes."""

from __future__ import annotations

import functools
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import placeopt

Row = dict[str, Any]
"""Name of a field -> a number, a text, or None where nothing is known; units end the names."""
FAILED = "failed"
"""Field of a row that has no answer, or a wrong one: what happened."""
PACKAGES = ("placeopt", "ortools", "highspy", "numpy")


@dataclass(frozen=True)
class BenchSpec:
    """
    A question, and how it is measured.

    Parameters
    ----------
    name
        Of its file in ``bench/specs`` and of its results.
    question
        In one sentence.
    rounds
        What it is asked of, by name, the smallest first: that one takes about a second.
    run
        Measures one of ``rounds``; yields a row for each answer. What it raises becomes a row, too.
    columns
        Fields of a row in the order in which people read them.
    minutes
        Of all rounds, on two cores without other work.
    """

    name: str
    question: str
    rounds: Mapping[str, Any]
    run: Callable[[Any], Iterable[Row]]
    columns: tuple[str, ...]
    minutes: float


def measure(spec: BenchSpec, names: Iterable[str]) -> Iterator[Row]:
    """Yield the rows of some rounds of a spec, each with where, when and on what it was measured."""
    for name in names:
        load = os.getloadavg()[0]
        began = time.monotonic()
        about = {"spec": spec.name, "round": name}
        try:
            for row in spec.run(spec.rounds[name]):
                yield about | row | stamp(load)
        except Exception as error:  # noqa: BLE001  # a round that ends in an error stays visible
            text = f"{type(error).__name__}: {error}".splitlines()[0]
            yield about | {FAILED: text, "after_s": round(time.monotonic() - began, 2)} | stamp(load)


def stamp(load: float) -> Row:
    """Return what a row says about its origin; ``load`` is that of the machine as the round began, mean of a minute."""
    return {"date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"), "load": round(load, 1), **_origin()}


@functools.cache
def _origin() -> Row:
    return {
        "commit": commit_of(Path(placeopt.__file__).parent),
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
    }


def commit_of(folder: Path) -> str | None:
    """Return the commit that the package in ``folder`` is of, with ``+`` if its files differ; None outside of git."""

    def git(*words: str) -> str | None:
        done = subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True, check=False)  # noqa: S607
        return done.stdout.strip() if done.returncode == 0 else None

    commit = git("rev-parse", "--short=12", "HEAD")
    return commit and commit + "+" * bool(git("status", "--porcelain", "."))


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if sys.platform == "linux" else []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def append(path: Path, row: Row) -> None:
    """Append a row to a file of JSON lines."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file of JSON lines; none if there is no such file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def key_of(row: Row) -> tuple[str, ...]:
    """Return what makes two rows answers to the same question: spec, round and every text of its answer's name."""
    return tuple(str(row.get(field, "")) for field in ("spec", "round", "method", "limit_s", "call", "stream"))


def latest(rows: Iterable[Row]) -> list[Row]:
    """Return the last row for each answer, in the order of the first ones; a failure stays until its round succeeds."""
    found: dict[tuple[str, ...], Row] = {}
    for row in rows:
        if FAILED not in row:
            found.pop(key_of({key: row[key] for key in ("spec", "round")}), None)
        found[key_of(row)] = row
    return list(found.values())
