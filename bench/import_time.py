"""
How long ``import placeopt`` takes, and what it loads: ``python bench/import_time.py [--runs N] [--goal-ms MS]``.

Every run is a fresh interpreter, which starts its clock itself, so the interpreter's own start is not counted.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

PROGRAM = """
import sys, time
before = set(sys.modules)
began = time.perf_counter()
import placeopt
ended = time.perf_counter()
print(ended - began, *sorted(set(sys.modules) - before))
"""


def main() -> int:
    """Measure and print; exit code 1 if the median misses the goal."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--goal-ms", type=float, default=50.0)
    arguments = parser.parse_args()
    seconds, modules = [], []
    for _ in range(arguments.runs):
        run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
        first, *modules = run.stdout.split()
        seconds.append(float(first))
    median = 1000 * statistics.median(seconds)
    print(f"import placeopt: median {median:.2f} ms, worst {1000 * max(seconds):.2f} ms of {arguments.runs} runs")
    print(f"{len(modules)} modules loaded: {', '.join(modules)}")
    return 0 if median <= arguments.goal_ms else 1


if __name__ == "__main__":
    sys.exit(main())
