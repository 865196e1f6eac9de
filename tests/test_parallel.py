"""Tasks side by side: all results, in any order, and an end when it is asked for."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from joblib import parallel_config

from placeopt.parallel import run_parallel


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of ray find this module by their own path."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


def square(number: int) -> int:
    return number * number


def broken(number: int) -> int:
    raise RuntimeError(f"task {number} broke")


@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_all_results_come(jobs: int) -> None:
    assert sorted(run_parallel(square, range(10), jobs, prefer="threads")) == [square(i) for i in range(10)]
    assert list(run_parallel(square, [3], jobs)) == [9]
    assert list(run_parallel(square, [], jobs)) == []


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "sequential"])
def test_the_callers_configuration_counts(backend: str) -> None:
    """With ``jobs`` None; one of these backends cannot give results one by one."""
    with parallel_config(backend=backend, n_jobs=2):
        assert sorted(run_parallel(square, range(6), None)) == [square(i) for i in range(6)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_it_ends_when_cancelled(jobs: int) -> None:
    """Between results; what was asked for before is all that comes."""
    seen: list[int] = []

    def enough() -> bool:
        return len(seen) >= 2

    def paced(number: int) -> int:  # not far ahead of what has been seen
        while number > len(seen) + 3 and not enough():
            time.sleep(0.001)
        return number

    results = run_parallel(paced, range(100), jobs, prefer="threads", cancelled=enough)
    while (result := next(results, None)) is not None:
        seen.append(result)
    assert 2 <= len(seen) <= 10


def failing(jobs: int, cancelled: Callable[[], bool]) -> list[int]:
    return list(run_parallel(broken, range(4), jobs, prefer="threads", cancelled=cancelled))


def test_what_breaks_after_a_cancellation_is_no_news() -> None:
    """Ctrl-C takes other processes along; otherwise a fault is a fault."""
    asked: list[None] = []

    def later() -> bool:  # not yet when the first is handed out, but when it has failed
        asked.append(None)
        return len(asked) > 1

    assert failing(2, later) == []
    with pytest.raises(RuntimeError, match="broke"):
        failing(2, lambda: False)


STARTING = """
import os, pathlib, sys, time
if os.environ.get("SLOW_START"):  # an import of a worker, in which Ctrl-C comes
    pathlib.Path(os.environ["SLOW_START"], str(os.getpid())).touch()
    time.sleep(1)
"""
SCRIPT = """
import os, signal, sys, time
from placeopt.parallel import run_parallel

stopped = []
signal.signal(signal.SIGINT, lambda *_: stopped.append(True))
os.environ["SLOW_START"] = sys.argv[1]
print(len(list(run_parallel(time.sleep, [60, 60], 2, cancelled=lambda: bool(stopped)))), "came", bool(stopped))
"""


def unignored() -> None:
    """Where tests run in the background SIGINT is ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_an_interrupt_while_workers_start_ends_without_a_word(tmp_path: Path) -> None:
    """It used to end in a page of tracebacks, from whatever the new processes were importing; tasks end by it, too."""
    (tmp_path / "started").mkdir()
    (tmp_path / "sitecustomize.py").write_text(STARTING)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, tmp_path / "started"],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=unignored,
    ) as process:
        while process.poll() is None and len(list((tmp_path / "started").iterdir())) < 2:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=50)
    assert (out, err) == ("0 came True\n", "")


def test_a_cancellation_ends_the_processes_at_work() -> None:
    """A signal to one process, such as SIGTERM, ends what the others are at, too; nobody waits for an hour."""
    event = threading.Event()
    timer = threading.Timer(0.3, event.set)
    timer.start()
    assert list(run_parallel(time.sleep, [3600] * 8, 2, cancelled=event.is_set)) == []
    assert event.is_set()
