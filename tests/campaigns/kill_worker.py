"""
Kill the solver process at random moments, and see that nothing is lost and nothing is late.

Usage: ``python tests/campaigns/kill_worker.py [--kills N] [--deadline S] [--seed N] [--solver NAME ...]``.
Every solve gets a SIGKILL at a moment drawn from the whole of its time, starting and sending included. It has to
return a solution that keeps the model, no worse than the last one that was reported, with a bound on the right side,
no later than the deadline plus the larger of 10 % and 0.1 s. Exit code 1 if any did not.
"""

import argparse
import contextlib
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from helpers.solver_models import hard
from placeopt.solvers.pool import Worker
from placeopt.solvers.result import Progress, Solution, SolveOptions


def main() -> int:
    """Run the campaign and report."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--kills", type=int, default=200, help="number of solves, each with one kill")
    parser.add_argument("--deadline", type=float, default=0.6, help="seconds per solve")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--solver", nargs="+", default=["highs", "cpsat"])
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    late: list[float] = []
    outcomes: Counter[str] = Counter()
    faults = 0
    with Worker() as worker:
        for number in range(arguments.kills):
            solver = arguments.solver[number % len(arguments.solver)]
            moment = rng.uniform(0, arguments.deadline)
            solution, overshoot, complaints = solve_with_kill(worker, solver, arguments.deadline, moment)
            late.append(overshoot)
            outcomes[f"{solution.status}/{solution.limit}"] += 1
            for complaint in complaints:
                faults += 1
                print(f"solve {number} ({solver}, killed after {moment:.3f} s): {complaint}: {solution.message}")
    marks = np.percentile(late, [50, 90, 99, 100]) * 1000
    print(f"{arguments.kills} kills, {faults} faults; {dict(outcomes)}")
    print(
        "past the deadline, ms (negative: before): median {:.1f}, 90 % {:.1f}, 99 % {:.1f}, worst {:.1f}".format(*marks)
    )
    return 1 if faults else 0


def solve_with_kill(worker: Worker, solver: str, seconds: float, moment: float) -> tuple[Solution, float, list[str]]:
    """One solve whose child is killed after ``moment`` seconds: the solution, its lateness, what is wrong with it."""
    model, reported = hard(), []

    def on_progress(progress: Progress) -> None:
        if progress.values is not None:
            reported.append(progress.objective)

    def kill() -> None:
        if worker.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGKILL)

    deadline = time.monotonic() + seconds
    killer = threading.Timer(moment, kill)
    killer.start()
    solution = worker.solve(solver, model, SolveOptions(60.0), deadline=deadline, on_progress=on_progress)
    overshoot = time.monotonic() - deadline
    killer.join()
    complaints = []
    if overshoot > max(0.1 * seconds, 0.1):
        complaints.append(f"{overshoot:.3f} s late")
    if solution.values is None and reported:
        complaints.append("lost its solution")
    if solution.values is not None:
        if not model.is_feasible(solution.values):
            complaints.append("values break the model")
        if solution.objective != model.objective_value(solution.values):
            complaints.append("wrong objective")
        if reported and solution.objective < max(reported):
            complaints.append("worse than reported")
        if solution.bound < solution.objective:
            complaints.append("bound below the objective")
    if solution.status == "infeasible":
        complaints.append("a kill is no proof")
    return solution, overshoot, complaints


if __name__ == "__main__":
    sys.exit(main())
