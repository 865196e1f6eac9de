"""
Campaign: in deterministic mode a longer limit never gives a worse plan.

    python tests/campaigns/monotony.py [--limits 0.3,1,3,10] [--most-jobs 12000] [--sets tiny,hand,..]
        [--journal FILE.jsonl] [--out FILE.md]

Solves every round of the library at each limit, and compares (value, cost) and the proven bound with those at shorter
limits. The clock, which guards deterministic rounds on slow machines, is set `FAR_S` away, so that it hardly ever ends
one; such a plan depends on the machine and is not compared. With a journal every solve is a line of it, written at
once, and is not done again, so that a run may be stopped and continued. Ends with code 1 if a limit gave a worse plan
or a weaker bound than a shorter one.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from pathlib import Path
from typing import NamedTuple

from placeopt import Instance, Plan, read_instance
from placeopt.benchmark.sets import read_sets
from placeopt.environment import usable_cores, versions
from placeopt.problem import compile_problem
from placeopt.solving.api import RoundInput, Solver
from placeopt.solving.budget import Budget
from placeopt.solving.params import SolveParams

INSTANCES = Path(__file__).resolve().parent.parent.parent / "instances"
FAR_S = 300.0
"""Seconds until the clock ends a round, whatever its limit."""


class WorkBudget(Budget):
    """A budget whose clock is `FAR_S` away."""

    @property
    def ends(self) -> float:
        """When the whole call is due."""
        return self.started + FAR_S


class WorkInput(RoundInput):
    """A round that work alone ends."""

    def budget(self, params: SolveParams, reserve_s: float = 0.0) -> Budget:
        """Return its budget."""
        del reserve_s
        return WorkBudget(params, started=self.started, deadline=self.started + FAR_S, threads=1)


def solved(solver: Solver, instance: Instance, limit: float) -> Plan:
    """Solve in deterministic mode."""
    params = SolveParams(time_limit_s=limit, deterministic=True)
    given = WorkInput(time.monotonic())
    return solver.solve_compiled(lambda: compile_problem(instance, instance.policy), params, given)


class Outcome(NamedTuple):
    """
    What a solve gave.

    Attributes
    ----------
    levels
        Name and objective of each level.
    objectives
        The objectives so that more is better.
    bound
        The bound on value, None if there is none.
    ended
        ``optimal``, or the limit that ended the round.
    """

    levels: list[tuple[str, int]]
    objectives: list[int]
    bound: int | None
    ended: str

    @classmethod
    def of(cls, plan: Plan) -> Outcome:
        """Return the outcome of a plan."""
        signed = [level.objective if level.sense == "max" else -level.objective for level in plan.levels]
        ended = "optimal" if plan.status == "optimal" else plan.limit
        return cls([(level.name, level.objective) for level in plan.levels], signed, plan.levels[0].bound, ended)

    @property
    def tightness(self) -> float:
        """The bound on value so that more is tighter."""
        return float("-inf") if self.bound is None else -float(self.bound)

    @property
    def cell(self) -> str:
        """Objectives, and what ended the round."""
        return f"{' / '.join(f'{objective:,}' for _, objective in self.levels)} {self.ended}"


class Journal:
    """The solves done, as lines of a file; without a file, of this run only."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.known: dict[tuple[str, float], Outcome] = {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                name, limit, *outcome = json.loads(line)
                self.known[name, limit] = Outcome(*outcome)

    def add(self, name: str, limit: float, outcome: Outcome) -> Outcome:
        """Write an outcome down, and return it."""
        self.known[name, limit] = outcome
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([name, limit, *outcome]) + "\n")
        return outcome


SETS = ("tiny", "hand", "generated", "hard", "real", "openb", "large")


def main() -> int:
    """Solve, compare and report."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--limits", default="0.3,1,3,10", help="seconds, ascending")
    parser.add_argument("--most-jobs", type=int, default=12_000)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--journal", type=Path, help="JSON lines of all solves, added to")
    parser.add_argument("--out", type=Path, help="write the table here as well")
    arguments = parser.parse_args()
    journal = Journal(arguments.journal)
    limits = [float(limit) for limit in arguments.limits.split(",")]
    known = ", ".join(f"{package} {version}" for package, version in versions().items())
    lines = [
        "# Longer limits in deterministic mode",
        "",
        "Value / cost by limit, and what ended the round. Plans with `time` were ended by the clock.",
        "",
        f"`python tests/campaigns/monotony.py --limits {arguments.limits} --most-jobs {arguments.most_jobs} "
        f"--sets {arguments.sets}`, {usable_cores()} cores, Python {platform.python_version()}, {known}.",
        "",
        f"| round | jobs | {' | '.join(f'{limit:g} s' for limit in limits)} | worse |",
        "|---" * (len(limits) + 3) + "|",
    ]
    print(*lines, sep="\n", flush=True)
    rounds = worse = by_clock = 0
    with Solver() as solver:
        for entry in read_sets(arguments.sets.split(","), INSTANCES):
            if entry.kind != "placement":
                continue
            instance = read_instance(entry.there())
            if len(instance.jobs) > arguments.most_jobs:
                continue
            outcomes = [
                journal.known.get((entry.name, limit))
                or journal.add(entry.name, limit, Outcome.of(solved(solver, instance, limit)))
                for limit in limits
            ]
            faults = violated(outcomes, limits)
            rounds, worse = rounds + 1, worse + bool(faults)
            by_clock += any(outcome.ended == "time" for outcome in outcomes)
            cells = " | ".join(outcome.cell for outcome in outcomes)
            lines.append(f"| {entry.name} | {len(instance.jobs):,} | {cells} | {'; '.join(faults) or '-'} |")
            print(lines[-1], flush=True)
    ended = f"{worse} with a worse plan or a weaker bound at a longer limit; the clock ended plans of {by_clock}."
    lines += ["", f"{rounds} rounds: {ended}"]
    print(*lines[-2:], sep="\n")
    if arguments.out is not None:
        arguments.out.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return 1 if worse else 0


def violated(outcomes: list[Outcome], limits: list[float]) -> list[str]:
    """Return the pairs of limits of which the longer one gave less, both ended by work."""
    out = []
    ended = [pair for pair in zip(limits, outcomes, strict=True) if pair[1].ended != "time"]
    for number, (limit, longer) in enumerate(ended):
        for shorter, before in ended[:number]:
            if longer.objectives < before.objectives:
                out.append(f"plan at {limit:g} s worse than at {shorter:g}")
            if longer.tightness < before.tightness:
                out.append(f"bound at {limit:g} s weaker than at {shorter:g}")
    return out


if __name__ == "__main__":
    sys.exit(main())
