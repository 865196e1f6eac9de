"""
Rounds ended by force: by the clock, a kill, a memory limit, the caller, an error of the solver. Is what they say true?

    python tests/campaigns/forced_endings.py --endings 500 --seed 0 --out FILE.md

Every try draws a round (``helpers.small_rounds``, or a generated one of up to 60 jobs), where solvers run, and the
moment; methods take turns. Tries go on until each kind of ending has been felt by its share of ``--endings``. Each plan
has to pass referee and audit. It may be called optimal only if it is: against brute force on every small round, against
a full solve on larger ones that were ended and on a sample of the others. On small rounds no bound may exclude the
optimum. The limit has to be one that applied, and a plan without limit and proof needs a stage that says why. Exit code
1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from helpers.brute_force import Enumeration
from helpers.small_rounds import random_round
from placeopt import Engine, Instance, Plan, audit, generate, violations
from placeopt.environment import usable_cores, versions
from placeopt.problem import compile_problem
from placeopt.solvers.registry import load
from placeopt.solvers.result import Solution
from placeopt.solving.methods import METHODS

SHARES = {"time": 0.23, "kill": 0.23, "memory": 0.08, "user": 0.23, "error": 0.23}
"""Of the endings; that by memory is felt only by large models, which take their time."""
FORCED = "an error by force"
FELT = {
    "time": ("stopped by time", "no time left"),
    "kill": ("signal 9",),
    "memory": ("memory",),
    "user": ("stopped by user",),
    "error": (FORCED, "signal 11"),
}
"""What stages say of it."""
SPECS = ("uniform", "varied", "gangs", "fractions", "cubemesh")
PATIENCE_S = 1.0
"""Time limit where something else is to end the round."""
RESOLVE_S = 15.0
MOST_TRIES = 20
"""For an ending that is felt, on average; then the campaign gives up."""
SAMPLE = 5
"""Every so many of the larger rounds that ended unhurt and optimal are solved once more."""


@dataclass
class Case:
    """One ending, as drawn."""

    number: int
    instance: Instance
    small: bool
    ending: str
    isolation: str
    method: str
    deterministic: bool
    moment: float
    memory_mib: int

    def __str__(self) -> str:
        return (
            f"{self.number}: {self.instance.name}, {self.method}, {self.isolation}, {self.ending} at "
            f"{self.moment:.3f} s{', deterministic' if self.deterministic else ''}"
        )


@dataclass
class Tally:
    """What came of the endings of one kind."""

    tries: int = 0
    felt: int = 0
    optimal: int = 0
    optimal_though_ended: int = 0
    confirmed: int = 0
    open: int = 0
    limits: Counter[str] = field(default_factory=Counter)


def main() -> int:
    """Run the campaign and report."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--endings", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write the table here as well")
    arguments = parser.parse_args()
    tallies: dict[tuple[str, str], Tally] = {}
    methods: dict[str, Tally] = {}
    faults: list[str] = []
    with Engine() as process, Engine(isolation="thread") as thread, Engine() as judge:
        for case in cases(arguments.endings, arguments.seed, tallies):
            engine = process if case.isolation == "process" else thread
            both = [
                tallies.setdefault((case.ending, case.isolation), Tally()),
                methods.setdefault(case.method, Tally()),
            ]
            try:
                plan, seconds, cancelled = ended(engine, case)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault to report
                found = [f"{type(error).__name__}: {error}"]
            else:
                found = judged(case, plan, seconds, judge, both, cancelled=cancelled)
            for complaint in found:
                faults.append(f"- {case}: {complaint}")
                print(faults[-1], flush=True)
    text = report(tallies, methods, faults, arguments)
    print(text)
    if arguments.out is not None:
        arguments.out.write_text(text, encoding="utf-8")
    return 1 if faults else 0


def cases(count: int, seed: int, tallies: dict[tuple[str, str], Tally]) -> Iterator[Case]:
    """Draw tries of each kind in turn until it was felt often enough; methods take turns, exact ones more often."""
    exact = [name for name, method in METHODS.items() if method.exact]
    methods = [*exact, *exact, *(name for name in METHODS if name not in exact)]
    for number in range(MOST_TRIES * count):
        ending = list(SHARES)[number % len(SHARES)]
        missing = {kind: share * count for kind, share in SHARES.items()}
        for (kind, _), tally in tallies.items():
            missing[kind] -= tally.felt
        if max(missing.values()) <= 0:
            return
        if missing[ending] <= 0:
            continue
        dice = random.Random(f"{seed} {number}")
        small = ending != "memory" and dice.random() < 0.4
        if small:
            instance = random_round(np.random.default_rng([seed, number]), changes=dice.random() < 0.3)
        else:
            large = 1 + (ending == "memory")  # small models fit into any memory
            spec, jobs, nodes = dice.choice(SPECS), dice.randint(8, 30) * large, dice.randint(2, 8) * large
            gpus = 8 if spec == "cubemesh" else dice.choice((4, 8))
            instance = generate(spec, jobs=jobs, nodes=nodes, gpus=gpus, seed=dice.randrange(10**6))
        yield Case(
            number=number,
            instance=instance,
            small=small,
            ending=ending,
            # neither a kill nor a limit on memory reaches a thread
            isolation="process" if ending in ("kill", "memory") else dice.choice(("process", "thread")),
            method=methods[number // len(SHARES) % len(methods)],
            deterministic=dice.random() < 0.1,
            moment=0.02 * 50 ** dice.random(),
            memory_mib=dice.choice((1, 4)),
        )


def ended(engine: Engine, case: Case) -> tuple[Plan, float, bool]:
    """Solve the round and end it: the plan, the seconds that it took, whether it was cancelled by then."""
    cancel = threading.Event()
    timer: threading.Timer | None = None
    if case.ending == "user":
        timer = threading.Timer(case.moment, cancel.set)
    elif case.ending == "kill" or (case.ending == "error" and case.isolation == "process"):
        number = signal.SIGKILL if case.ending == "kill" else signal.SIGSEGV
        timer = threading.Timer(case.moment, _strike, (engine, number, case.number % 3 != 0))
    with contextlib.ExitStack() as stack:
        if case.ending == "error" and case.isolation == "thread":
            broken = mock.patch("placeopt.solvers.frames.load", lambda name: _breaking(load(name), case.moment))
            stack.enter_context(broken)
        if timer is not None:
            timer.start()
            stack.callback(timer.join)
            stack.callback(timer.cancel)
        began = time.monotonic()
        plan = engine.solve(
            case.instance,
            method=case.method,
            time_limit_s=case.moment if case.ending == "time" else PATIENCE_S,
            threads=2,
            seed=case.number,
            deterministic=case.deterministic,
            cancel=cancel,
            memory_limit_mib=case.memory_mib if case.ending == "memory" else None,
        )
        seconds, cancelled = time.monotonic() - began, cancel.is_set()
    return plan, seconds, cancelled


def _strike(engine: Engine, number: int, one: bool) -> None:
    """Send a signal to one of the solver processes, or to all."""
    for pid in engine.solver_pids[: 1 if one else None]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _breaking(solve: Callable[..., Solution], moment: float) -> Callable[..., Solution]:
    """A solver that reports for a while, and then breaks."""

    def broken(model: Any, options: Any, on_progress: Any, stop: threading.Event) -> Solution:
        mine = threading.Event()
        timer = threading.Timer(moment, mine.set)
        timer.daemon = True
        timer.start()
        threading.Thread(target=_pass_on, args=(stop, mine), daemon=True).start()
        solution = solve(model, options, on_progress, mine)
        if solution.limit == "user" and not stop.is_set():
            raise RuntimeError(FORCED)
        return solution

    return broken


def _pass_on(stop: threading.Event, mine: threading.Event) -> None:
    while not mine.wait(0.02):
        if stop.is_set():
            mine.set()


def judged(
    case: Case, plan: Plan, seconds: float, judge: Engine, tallies: list[Tally], *, cancelled: bool
) -> list[str]:
    """Everything that is untrue about the plan; what came of it goes to the tallies."""
    broke = [s for s in plan.stages if "signal" in s.detail or FORCED in s.detail or "out of memory" in s.detail]
    broke += [s for s in plan.stages if "stopped by memory" in s.detail and s not in broke]
    felt = FELT[case.ending]
    hurt = plan.limit == case.ending or any(word in stage.detail for stage in plan.stages for word in felt)
    faults = [violation.message for violation in violations(case.instance, plan)] + audit(case.instance, plan)
    faults += limit_faults(case, plan, seconds, broke=bool(broke), cancelled=cancelled)
    if plan.status == "optimal" and any(level.bound != level.objective for level in plan.levels):
        faults.append("optimal, but a bound is apart from its objective")
    confirmed = None
    if case.small:
        faults += small_faults(case.instance, plan)
        confirmed = plan.status == "optimal"
    elif plan.status == "optimal" and (hurt or case.number % SAMPLE == 0):
        confirmed, better = resolved(case.instance, plan, judge)
        faults += better
    for tally in tallies:
        tally.tries += 1
        tally.felt += hurt
        tally.optimal += plan.status == "optimal"
        tally.optimal_though_ended += hurt and plan.status == "optimal"
        tally.confirmed += confirmed is True
        tally.open += confirmed is False and plan.status == "optimal"
        tally.limits[plan.limit] += 1
    return faults


def limit_faults(case: Case, plan: Plan, seconds: float, *, broke: bool, cancelled: bool) -> list[str]:
    """
    The limit has to have applied; without one and without a proof, a stage has to say why.

    Up to half the time is kept back for the final check, or more: four times what the referee has taken.
    """
    limit = case.moment if case.ending == "time" else PATIENCE_S
    skipped = any(stage.outcome in ("skipped", "failed") for stage in plan.stages)
    heuristic = not METHODS[case.method].exact
    applied = {
        "none": plan.status == "optimal" or broke or skipped or heuristic or bool(plan.bound_relaxes),
        "time": plan.seconds.check is None
        or seconds > 0.9 * (limit - max(limit / 2, 0.02 + 4 * plan.seconds.check))
        or any(
            "stopped by time" in stage.detail for stage in plan.stages
        ),  # CP-SAT ends before a step that lasts longer
        "work": case.deterministic,
        "size": skipped,
        "memory": case.ending == "memory",
        "user": cancelled,
    }
    faults = [] if applied[plan.limit] else [f"limit {plan.limit!r} after {seconds:.3f} of {limit:.3f} s"]
    if plan.status == "optimal" and plan.limit != "none":
        faults.append(f"optimal with limit {plan.limit!r}")
    return faults


def small_faults(instance: Instance, plan: Plan) -> list[str]:
    """Against all allocations that there are."""
    everything = Enumeration(compile_problem(instance))
    best, least, _ = everything.best()
    value, faults = plan.levels[0], []
    if value.bound is not None and value.bound < best:
        faults.append(f"the bound on value is {value.bound}, but {best} can be had")
    if plan.status == "optimal" and value.objective != best:
        faults.append(f"optimal with value {value.objective}, but {best} can be had")
    if len(plan.levels) > 1:
        price = plan.levels[1]
        rows, _ = everything.rows(value.objective)
        as_good = int(everything.costs(rows).min())
        if price.bound is not None and price.bound > as_good:
            faults.append(f"the bound on cost is {price.bound}, but {as_good} can be had at no less value")
        if plan.status == "optimal" and price.objective != least:
            faults.append(f"optimal with cost {price.objective}, but {least} can be had")
    return faults


def resolved(instance: Instance, plan: Plan, judge: Engine) -> tuple[bool, list[str]]:
    """Solve in full: whether that proves the same optimum, and what contradicts it."""
    again = judge.solve(instance, time_limit_s=RESOLVE_S)
    found = [(level.objective if level.sense == "min" else -level.objective) for level in again.levels]
    claimed = [(level.objective if level.sense == "min" else -level.objective) for level in plan.levels]
    faults = [f"optimal with {claimed}, but {found} can be had"] if found < claimed else []
    return again.status == "optimal" and found == claimed, faults


def report(
    tallies: dict[tuple[str, str], Tally], methods: dict[str, Tally], faults: list[str], arguments: argparse.Namespace
) -> str:
    """Return the tables and the faults as Markdown."""
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    head = (
        "tries | felt | called optimal | of them felt | confirmed | not decided | limits of the plans |",
        "---|---|---|---|---|---|---|",
    )
    lines = [
        "# Rounds ended by force",
        "",
        f"`python tests/campaigns/forced_endings.py --endings {arguments.endings} --seed {arguments.seed}`. Felt: the "
        "plan's limit or a stage names what ended it; other tries were over before. Confirmed: optimal by brute force "
        "(all small rounds) or by a full solve (larger ones that felt it, a sample of the others); not decided: that "
        "had no proof within its time.",
        "",
        f"{usable_cores()} cores, Python {platform.python_version()}, {known}.",
        "",
        f"| ended by | solvers run in | {head[0]}",
        f"|---|---|{head[1]}",
        *(_row(" | ".join(kind), tallies[kind]) for kind in sorted(tallies)),
        "",
        f"| method | {head[0]}",
        f"|---|{head[1]}",
        *(_row(name, tally) for name, tally in methods.items()),
        "",
        f"{sum(tally.felt for tally in tallies.values())} endings felt in "
        f"{sum(tally.tries for tally in tallies.values())} tries, {len(faults)} faults.",
        *(["", *faults] if faults else []),
        "",
    ]
    return "\n".join(lines)


def _row(name: str, tally: Tally) -> str:
    limits = ", ".join(f"{limit} {count}" for limit, count in sorted(tally.limits.items()))
    cells = (tally.tries, tally.felt, tally.optimal, tally.optimal_though_ended, tally.confirmed, tally.open, limits)
    return f"| {name} | {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    sys.exit(main())
