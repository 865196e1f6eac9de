"""
Kill the solver process at random moments, and see that nothing is lost and nothing is late.

Every solve gets a SIGKILL at a moment drawn from the whole of its time, starting and sending included. It has to
return a solution that keeps the model, no worse than the last one that was reported, with a bound on the right side,
no later than the deadline plus the larger of 10 % and 0.1 s.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from itertools import cycle

from campaigns.harness import Campaign, Case
from helpers.solver_models import hard
from placeopt.solvers import Progress, SolveOptions, Worker

DEADLINE_S = 0.6


def cases(seed: int) -> Iterator[Case]:
    """Kill one solve after the other, of either solver."""
    rng = random.Random(seed)
    with Worker() as worker:
        for solver in cycle(("highs", "cpsat")):
            yield solve_with_kill(worker, solver, DEADLINE_S, rng.uniform(0, DEADLINE_S))


def solve_with_kill(worker: Worker, solver: str, seconds: float, moment: float) -> Case:
    """One solve whose child is killed after ``moment`` seconds."""
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
    late = time.monotonic() - deadline
    killer.join()
    held = solution.values is not None
    wrong = {
        f"{late:.3f} s late": late > max(0.1 * seconds, 0.1),
        "lost its solution": not held and bool(reported),
        "values break the model": held and not model.is_feasible(solution.values),
        "wrong objective": held and solution.objective != model.objective_value(solution.values),
        "worse than reported": held and bool(reported) and solution.objective < max(reported),
        "bound below the objective": held and solution.bound < solution.objective,
        "a kill is no proof": solution.status == "infeasible",
    }
    where = f"{solver} killed after {moment:.3f} s: {solution.message}"
    faults = [f"{where}: {what}" for what, found in wrong.items() if found]
    return Case(f"{solution.status}/{solution.limit}", faults, {"late_ms": 1000 * late})


CAMPAIGN = Campaign("is a solve whose process is killed in time and right?", cases, 200, 10)
