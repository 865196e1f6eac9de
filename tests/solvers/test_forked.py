"""A solver process that is a copy of this one: it serves as a new one does, and keeps none of its files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = str(Path(__file__).parents[1])

PROGRAM = f"""
import os, signal, sys, time
sys.path.insert(0, {TESTS!r})
from helpers.processes import alive, eventually
from helpers.solver_models import hard, knapsack
from placeopt.solvers import SolveOptions, Worker
kept = open(os.devnull)
worker = Worker(("highs",), copied=True)
worker.start()

def is_copy(pid):
    return open(f"/proc/{{pid}}/cmdline").read() == open("/proc/self/cmdline").read()

def solve(model, seconds=20.0, **more):
    return worker.solve("highs", model, SolveOptions(60.0), deadline=time.monotonic() + seconds, **more)
"""

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="copies only where threads can be counted")


def run(program: str) -> list[str]:
    """Run a program in an interpreter of its own, without threads of NumPy; return the words that it prints."""
    settings = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM + program], capture_output=True, text=True, env=settings)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@ON_LINUX
def test_a_copy_answers_and_leaves_nothing() -> None:
    """It is a copy, in a group of its own, without the files of this process; `close` leaves no process."""
    words = run("""
pid = worker.pid
assert is_copy(pid)
print(solve(knapsack()).objective, os.getpgid(pid) == pid, worker.pid == pid)
files = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
print(files.count(os.readlink(f"/proc/self/fd/{kept.fileno()}")))
worker.kill()
worker.close()
print(os.path.exists(f"/proc/{pid}"))
""")
    assert words == ["227", "True", "True", "1", "False"]  # /dev/null is its standard input


@ON_LINUX
def test_a_copy_that_does_not_answer_is_killed_at_the_deadline() -> None:
    """The next solve has another process."""
    words = run("""
solve(knapsack())
pid = worker.pid
os.kill(pid, signal.SIGSTOP)
print(solve(hard(), 0.3).limit, eventually(lambda: not alive(pid)))
print(solve(knapsack()).objective, worker.pid != pid)
worker.close()
""")
    assert words == ["time", "True", "227", "True"]


@ON_LINUX
@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_a_copy_ends_with_its_parent_and_ignores_ctrl_c(how: str) -> None:
    """In the middle of a solve; Ctrl-C is the parent's business."""
    words = run(f"""
reader, writer = os.pipe()
if os.fork() == 0:  # the parent of another copy
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    worker = Worker(("highs",), copied=True)
    worker.start()
    os.write(writer, f"{{worker.pid}} {{is_copy(worker.pid)}}\\n".encode())
    solve(hard(), 60, on_progress=lambda _: os.write(writer, b"solving\\n"))
    os._exit(0)
lines = os.fdopen(reader)
worker_pid, is_copy = lines.readline().split()
assert lines.readline() == "solving\\n"
os.kill(int(worker_pid), signal.SIGINT)
print(is_copy, alive(int(worker_pid)))
parent = int(open(f"/proc/{{worker_pid}}/status").read().split("PPid:")[1].split()[0])
os.kill(parent, signal.{how})
os.waitpid(parent, 0)
print(eventually(lambda: not alive(int(worker_pid))))
worker.close()
""")
    assert words == ["True", "True", "True"]


@ON_LINUX
def test_a_process_with_threads_is_not_copied() -> None:
    """A lock that another thread holds would stay locked in the copy."""
    words = run("""
import threading
over = threading.Event()
threading.Thread(target=over.wait).start()
other = Worker(("highs",), copied=True)
other.start()
print(is_copy(worker.pid), is_copy(other.pid))
other.close()
over.set()
worker.close()
""")
    assert words == ["True", "False"]
