"""Benchmarks that are stopped from outside: nothing lost, nothing twice, nobody left behind."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.processes import alive, children, eventually
from placeopt.benchmark import NAME, read_journal

ITEMS = 6


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    for i in range(ITEMS):
        (tmp_path / f"m{i}.gap").write_text("1 2\n 3 4\n 1 1\n 2\n")
    (tmp_path / "six.test").write_text("\n".join(f"m{i}.gap" for i in range(ITEMS)))
    options = ["--set", "six", "--solvers", "highs", "--case-limit", "5", "--instances", str(tmp_path)]
    return [sys.executable, "-m", "placeopt.cli", "bench", "run", *options, "--out", str(tmp_path / "out")]


def rows(out: Path) -> int:
    path = out / NAME
    return path.read_text().count('{"row":') if path.exists() else 0


def descendants(pid: int) -> list[int]:
    """Return the process ids of all processes below a process."""
    return [one for child in children(pid) for one in (child, *descendants(child))] if alive(pid) else []


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_a_killed_benchmark_goes_on_where_it_was(command: list[str], tmp_path: Path) -> None:
    """SIGKILL in the middle; its cases end with it, and the second start runs what is left, each case once."""
    out = tmp_path / "out"
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert eventually(lambda: rows(out) >= 2, 60)
        assert eventually(lambda: bool(descendants(process.pid)) or rows(out) == ITEMS, 60)
        below = descendants(process.pid)
    finally:
        process.kill()
        process.wait()
    assert eventually(lambda: not any(map(alive, below)), 20)
    kept = rows(out)
    assert 2 <= kept <= ITEMS
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    runs, found = read_journal(out)
    assert len(found) == rows(out) == ITEMS  # no key twice, none missing
    assert len(runs) == (2 if kept < ITEMS else 1)
    for line in (out / NAME).read_text().splitlines():
        json.loads(line)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_benchmark_keeps_its_rows(
    command: list[str], tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """It says so by its exit code; the case that was cut off is not written down."""
    out = tmp_path / "out"
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert eventually(lambda: rows(out) >= 1, 60)
            os.kill(process.pid, number)
            said, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == code or rows(out) == ITEMS
    assert 1 <= rows(out) <= ITEMS
    assert f"{rows(out)} of {ITEMS} cases" in said
    read_journal(out)
