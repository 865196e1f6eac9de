"""
Kill one of the engine's solver processes at random moments: every call still answers with a valid plan, in time.

Every round has a time limit drawn from 0.3 to 3 s and gets one SIGKILL at a moment drawn from the whole of it: while
compiling, while a process starts, while a model is built or solved, while the plan is checked. In a race of two
solvers there are two processes, and either is hit. The plan has to pass referee and audit, no later than the time
limit plus the larger of 10 % and 0.1 s, measured from the call; and where the kill hit a solve, a stage has to name the
cause.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle

from campaigns.harness import ROOT, Campaign, Case
from placeopt import Engine, Instance, audit, read_instance, violations
from placeopt.solvers import Solution

ROUNDS = (
    *(f"generated/uniform-50x16x8-s{seed}.json.gz" for seed in range(3)),
    *(f"generated/varied-50x16x4-s{seed}.json.gz" for seed in range(3)),
    "openb/openb-first-100.json.gz",
    "openb/openb-first-500.json.gz",
)
CAUSE = "signal 9"
ANSWERED_S = 0.02
"""A kill so shortly before the end of a solve may come after its answer."""


@dataclass
class Window:
    """When which runner solved, and what it said; times of the monotonic clock."""

    runner: int
    begin: float
    end: float
    message: str
    beaten: bool = True


def cases(seed: int) -> Iterator[Case]:
    """Kill one round after the other."""
    rng = random.Random(seed)
    rounds = [read_instance(ROOT / "instances" / name) for name in ROUNDS]
    with Engine() as engine:
        windows: list[Window] = []
        for number, runner in enumerate(engine._solver._runners):
            runner.solve = partial(_noted, windows, number, runner.solve)
        for instance in cycle(rounds):
            limit = rng.uniform(0.3, 3.0)
            windows.clear()
            yield one_round(engine, windows, instance, limit, rng.uniform(0.0, limit), rng.randrange(2))


def _noted(windows: list[Window], runner: int, inner: Callable[..., Solution], *args: object, **kw: object) -> Solution:
    window = Window(runner, time.monotonic(), math.inf, "")
    windows.append(window)
    over = kw.get("cancel")
    solution = inner(*args, **kw)
    window.end, window.message = time.monotonic(), solution.message
    window.beaten = bool(over is not None and over())  # the race was over: nobody listens any more
    return solution


def one_round(
    engine: Engine, windows: list[Window], instance: Instance, limit: float, moment: float, first: int
) -> Case:
    """Solve once with a kill after ``moment`` seconds, of runner ``first`` if it lives."""
    killed: list[tuple[int, float]] = []

    def kill() -> None:
        living = [(n, runner.pid) for n, runner in enumerate(engine._solver._runners) if runner.pid is not None]
        for number, pid in sorted(living, key=lambda one: one[0] != first)[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed.append((number, time.monotonic()))

    where = f"{instance.name}, limit {limit:.2f} s, kill at {moment:.2f} s"
    killer = threading.Timer(moment, kill)
    began = time.monotonic()
    killer.start()
    try:
        plan = engine.solve(instance, time_limit_s=limit)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault to report
        return Case("raised", [f"{where}: {type(error).__name__}: {error}"])
    finally:
        ended = time.monotonic()
        killer.cancel()
        killer.join()
    late = ended - began - limit
    hits = [w for w in windows if killed and w.runner == killed[0][0] and w.begin <= killed[0][1] <= w.end]
    hit = next((w for w in hits if not w.beaten), None)
    kind = "no process" if not killed else "after the answer" if killed[0][1] > ended else "between solves"
    wrong = [violation.message for violation in violations(instance, plan)] + audit(instance, plan)
    if late > max(0.1 * limit, 0.1):
        wrong.append(f"{late:.3f} s late")
    named = any(CAUSE in stage.detail for stage in plan.stages)
    if hit and not named and (CAUSE in hit.message or killed[0][1] < hit.end - ANSWERED_S):
        wrong.append(f"no stage names the kill; the solve said {hit.message!r}")
    return Case("in a solve" if hit else kind, [f"{where}: {what}" for what in wrong], {"late_ms": 1000 * late})


CAMPAIGN = Campaign("is a round whose solver is killed answered, validly and in time?", cases, 200)
