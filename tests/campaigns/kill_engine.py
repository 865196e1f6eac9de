"""
Kill one of the engine's solver processes at random moments: every call still answers with a valid plan, in time.

Usage: ``python tests/campaigns/kill_engine.py [--kills N] [--seed N] [--out FILE.md] [INSTANCE ...]``.
Every round has a time limit drawn from 0.3 to 3 s and gets one SIGKILL at a moment drawn from the whole of it: while
compiling, while a process starts, while a model is built or solved, while the plan is checked. In a race of two
solvers there are two processes, and either is hit. The plan has to pass referee and audit, no later than the time limit
plus the larger of 10 % and 0.1 s, measured from the call; and where the kill hit a solve, a stage has to name the
cause. Exit code 1 if any does not.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import platform
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from placeopt import Engine, Instance, audit, read_instance, violations
from placeopt.environment import usable_cores, versions
from placeopt.solvers.result import Solution

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
DEFAULT = (
    *(f"generated/uniform-50x16x8-s{seed}.json.gz" for seed in range(3)),
    *(f"generated/varied-50x16x4-s{seed}.json.gz" for seed in range(3)),
    "openb/openb-first-100.json.gz",
    "openb/openb-first-500.json.gz",
)
CAUSE = "signal 9"
ANSWERED_S = 0.02
"""A kill so shortly before the end of a solve may come after its answer."""


@dataclass
class Tally:
    """What happened on one instance."""

    moments: Counter[str] = field(default_factory=Counter)
    late: list[float] = field(default_factory=list)
    named: int = 0
    second: int = 0
    faults: list[str] = field(default_factory=list)


@dataclass
class Window:
    """When which runner solved, and what it said; times of the monotonic clock."""

    runner: int
    begin: float
    end: float
    message: str
    beaten: bool = True


def main() -> int:
    """Run the campaign and report."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("instances", nargs="*", type=Path, help="default: eight of the stored ones")
    parser.add_argument("--kills", type=int, default=100, help="number of rounds, each with one kill")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write the table here as well")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    paths = arguments.instances or [INSTANCES / name for name in DEFAULT]
    rounds = {path.name.removesuffix(".gz").removesuffix(".json"): read_instance(path) for path in paths}
    tallies = {name: Tally() for name in rounds}
    with Engine() as engine:
        windows = watch(engine)
        for number in range(arguments.kills):
            name = list(rounds)[number % len(rounds)]
            limit = rng.uniform(0.3, 3.0)
            moment = rng.uniform(0.0, limit)
            windows.clear()
            one_round(engine, windows, rounds[name], limit, moment, rng.randrange(2), tallies[name])
    text = report(tallies, arguments)
    print(text)
    if arguments.out is not None:
        arguments.out.write_text(text, encoding="utf-8")
    return 1 if any(tally.faults for tally in tallies.values()) else 0


def watch(engine: Engine) -> list[Window]:
    """Note every solve of the engine's solver processes."""
    windows: list[Window] = []
    for number, runner in enumerate(engine._solver._runners):
        runner.solve = partial(_noted, windows, number, runner.solve)
    return windows


def _noted(windows: list[Window], runner: int, inner: Callable[..., Solution], *args: object, **kw: object) -> Solution:
    begin = time.monotonic()
    over = kw.get("cancel")
    window = Window(runner, begin, math.inf, "")
    windows.append(window)
    solution = inner(*args, **kw)
    window.end, window.message = time.monotonic(), solution.message
    window.beaten = bool(over is not None and over())  # the race was over: nobody listens any more
    return solution


def one_round(
    engine: Engine,
    windows: list[Window],
    instance: Instance,
    limit: float,
    moment: float,
    first: int,
    tally: Tally,
) -> None:
    """Solve once with a kill after ``moment`` seconds, of runner ``first`` if it lives, and tally what came of it."""
    killed_at: list[float] = []
    victim: list[int] = []

    def kill() -> None:
        living = [(n, runner.pid) for n, runner in enumerate(engine._solver._runners) if runner.pid is not None]
        for number, pid in sorted(living, key=lambda one: one[0] != first)[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed_at.append(time.monotonic())
                victim.append(number)

    killer = threading.Timer(moment, kill)
    began = time.monotonic()
    killer.start()
    try:
        plan = engine.solve(instance, time_limit_s=limit)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault to report
        tally.faults.append(f"limit {limit:.2f} s, kill at {moment:.2f} s: {type(error).__name__}: {error}")
        return
    finally:
        ended = time.monotonic()
        killer.cancel()
        killer.join()
    tally.late.append(ended - began - limit)
    hits = [w for w in windows if killed_at and w.runner == victim[0] and w.begin <= killed_at[0] <= w.end]
    hit = next((w for w in hits if not w.beaten), None)
    where = "no process" if not killed_at else "after the answer" if killed_at[0] > ended else "between solves"
    tally.moments["in a solve" if hit else where] += 1
    tally.second += bool(hit and hit.runner)
    named = [stage.name for stage in plan.stages if CAUSE in stage.detail]
    tally.named += bool(named)
    complaints = [violation.message for violation in violations(instance, plan)] + audit(instance, plan)
    if ended - began > limit + max(0.1 * limit, 0.1):
        complaints.append(f"{ended - began - limit:.3f} s late")
    if hit and not named and (CAUSE in hit.message or killed_at[0] < hit.end - ANSWERED_S):
        complaints.append(f"no stage names the kill; the solve said {hit.message!r}")
    tally.faults += [f"limit {limit:.2f} s, kill at {moment:.2f} s: {complaint}" for complaint in complaints]


def report(tallies: dict[str, Tally], arguments: argparse.Namespace) -> str:
    """Return the table and the faults as Markdown."""
    rounds = sum(sum(tally.moments.values()) for tally in tallies.values())
    faults = [f"- {name}: {fault}" for name, tally in tallies.items() for fault in tally.faults]
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    lines = [
        "# Killing the solver process in the middle of a round",
        "",
        f"`python tests/campaigns/kill_engine.py --kills {arguments.kills} --seed {arguments.seed}`: each round has a "
        "time limit from 0.3 to 3 s and one SIGKILL at a random moment, of either process. Valid: passes "
        "referee and audit. Late: past "
        "the time limit, measured from the call (negative: before); allowed is the larger of 10 % and 0.1 s.",
        "",
        f"{usable_cores()} cores, Python {platform.python_version()}, {known}.",
        "",
        "| instance | rounds | kill hit a solve | of them the second process | between solves | after the answer | "
        "cause named | late, median ms | worst ms | faults |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, tally in tallies.items():
        late = sorted(1000 * seconds for seconds in tally.late) or [0.0]
        lines.append(
            f"| {name} | {sum(tally.moments.values())} | {tally.moments['in a solve']} | "
            f"{tally.second} | {tally.moments['between solves'] + tally.moments['no process']} | "
            f"{tally.moments['after the answer']} | "
            f"{tally.named} | {late[len(late) // 2]:.0f} | {late[-1]:.0f} | {len(tally.faults)} |"
        )
    lines += ["", f"{rounds} rounds, {len(faults)} faults.", *(["", *faults] if faults else []), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
