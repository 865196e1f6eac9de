"""
Solve tiny random rounds by CBC and by HiGHS, and count where they disagree.

Usage: ``python tests/campaigns/cbc_optima.py [--models N] [--seed N] [--solver NAME]``.
With its preprocessing, CBC 2.10.3 called 17 of 2,000 wrong optima optimal; as it is called here, it must call none.
Where the two disagree, CP-SAT is asked too. Exit code 1 if an answer was wrong or an error.
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from helpers.solver_models import placement
from placeopt.solvers.registry import load
from placeopt.solvers.result import SolveOptions


def main() -> int:
    """Run the campaign and report."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--solver", default="pulp-cbc")
    arguments = parser.parse_args()
    rng, options = np.random.default_rng(arguments.seed), SolveOptions(30.0)
    outcomes: Counter[str] = Counter()
    faults, seconds = 0, 0.0
    for number in range(arguments.models):
        model = placement(rng)
        began = time.monotonic()
        answer = load(arguments.solver)(model, options)
        seconds += time.monotonic() - began
        judge = load("highs")(model, options)
        outcomes[answer.status] += 1
        if (answer.status, answer.objective) != (judge.status, judge.objective):
            faults += 1
            third = load("cpsat")(model, options)
            said = ", ".join(
                f"{name} {found.status} {found.objective}"
                for name, found in ((arguments.solver, answer), ("highs", judge), ("cpsat", third))
            )
            print(f"model {number}: {said}; {answer.message}")
    average = 1000 * seconds / max(arguments.models, 1)
    print(f"{arguments.models} models, {faults} faults; {dict(outcomes)}; {average:.1f} ms each")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
