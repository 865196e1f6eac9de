"""
Rounds ended by force: by the clock, a kill, a memory limit, the caller, an error of the solver. Is what they say true?

Every try draws a round (``strategies``, or a generated one of up to 60 jobs), where solvers run, and the moment;
endings and methods take turns. Each plan has to pass referee and audit. It may be called optimal only if it is: against
brute force on every small round, against a full solve on larger ones that were ended and on a sample of the others. On
small rounds no bound may exclude the optimum. The limit has to be one that applied, and a plan without limit and proof
needs a stage that says why.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any
from unittest import mock

from campaigns.harness import Campaign, Case
from helpers.brute_force import Enumeration
from made_rounds import generate
from placeopt import Engine, Instance, Plan, audit, violations
from placeopt.problem import compile_problem
from placeopt.solvers import Solution, load
from placeopt.solving import METHODS
from strategies import make_round, seeded

ENDINGS = ("time", "kill", "user", "error", "time", "kill", "user", "error", "memory")
"""In turn; that by memory is felt only by large models, which take their time."""
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
SAMPLE = 5
"""Every so many of the larger rounds that ended unhurt and optimal are solved once more."""


@dataclass
class Try:
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


def tries(seed: int) -> Iterator[Try]:
    """Draw endings in turn; methods take turns, exact ones more often."""
    exact = [name for name, method in METHODS.items() if method.exact]
    methods = [*exact, *exact, *(name for name in METHODS if name not in exact)]
    for number in count():
        ending = ENDINGS[number % len(ENDINGS)]
        dice = random.Random(f"{seed} {number}")
        small = ending != "memory" and dice.random() < 0.4
        if small:
            instance = make_round(seeded(f"{seed} {number}"), changes=dice.random() < 0.3)
        else:
            large = 1 + (ending == "memory")  # small models fit into any memory
            spec, jobs, nodes = dice.choice(SPECS), dice.randint(8, 30) * large, dice.randint(2, 8) * large
            gpus = 8 if spec == "cubemesh" else dice.choice((4, 8))
            instance = generate(spec, jobs=jobs, nodes=nodes, gpus=gpus, seed=dice.randrange(10**6))
        yield Try(
            number=number,
            instance=instance,
            small=small,
            ending=ending,
            # neither a kill nor a limit on memory reaches a thread
            isolation="process" if ending in ("kill", "memory") else dice.choice(("process", "thread")),
            method=methods[number // len(ENDINGS) % len(methods)],
            deterministic=dice.random() < 0.1,
            moment=0.02 * 50 ** dice.random(),
            memory_mib=dice.choice((1, 4)),
        )


def cases(seed: int) -> Iterator[Case]:
    """End one round after the other, and judge its plan."""
    with Engine() as process, Engine(isolation="thread") as thread, Engine() as judge:
        for one in tries(seed):
            try:
                plan, seconds, cancelled = ended(process if one.isolation == "process" else thread, one)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault to report
                yield Case("raised", [f"{one}: {type(error).__name__}: {error}"])
                continue
            kind, faults = judged(one, plan, seconds, judge, cancelled=cancelled)
            yield Case(kind, [f"{one}: {fault}" for fault in faults], {"seconds": seconds})


def ended(engine: Engine, one: Try) -> tuple[Plan, float, bool]:
    """Solve the round and end it: the plan, the seconds that it took, whether it was cancelled by then."""
    cancel = threading.Event()
    timer: threading.Timer | None = None
    if one.ending == "user":
        timer = threading.Timer(one.moment, cancel.set)
    elif one.ending == "kill" or (one.ending == "error" and one.isolation == "process"):
        number = signal.SIGKILL if one.ending == "kill" else signal.SIGSEGV
        timer = threading.Timer(one.moment, _strike, (engine, number, one.number % 3 != 0))
    with contextlib.ExitStack() as stack:
        if one.ending == "error" and one.isolation == "thread":
            broken = mock.patch("placeopt.solvers.frames.load", lambda name: _breaking(load(name), one.moment))
            stack.enter_context(broken)
        if timer is not None:
            timer.start()
            stack.callback(timer.join)
            stack.callback(timer.cancel)
        began = time.monotonic()
        plan = engine.solve(
            one.instance,
            method=one.method,
            time_limit_s=one.moment if one.ending == "time" else PATIENCE_S,
            threads=2,
            seed=one.number,
            deterministic=one.deterministic,
            cancel=cancel,
            memory_limit_mib=one.memory_mib if one.ending == "memory" else None,
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


def judged(one: Try, plan: Plan, seconds: float, judge: Engine, *, cancelled: bool) -> tuple[str, list[str]]:
    """Return how the round ended, and everything that is untrue about the plan."""
    broke = any(
        words in stage.detail
        for stage in plan.stages
        for words in ("signal", FORCED, "out of memory", "stopped by memory")
    )
    hurt = plan.limit == one.ending or any(word in stage.detail for stage in plan.stages for word in FELT[one.ending])
    faults = [violation.message for violation in violations(one.instance, plan)] + audit(one.instance, plan)
    faults += limit_faults(one, plan, seconds, broke=broke, cancelled=cancelled)
    if plan.status == "optimal" and any(level.bound != level.objective for level in plan.levels):
        faults.append("optimal, but a bound is apart from its objective")
    if one.small:
        faults += small_faults(one.instance, plan)
    elif plan.status == "optimal" and (hurt or one.number % SAMPLE == 0):
        faults += better_plan(one.instance, plan, judge)
    kind = f"{one.ending} in a {one.isolation}" if hurt else f"over before the {one.ending}"
    return f"{kind}, {plan.status}", faults


def limit_faults(one: Try, plan: Plan, seconds: float, *, broke: bool, cancelled: bool) -> list[str]:
    """
    The limit has to have applied; without one and without a proof, a stage has to say why.

    Up to half the time is kept back for the final check, or more: four times what the referee has taken.
    """
    limit = one.moment if one.ending == "time" else PATIENCE_S
    skipped = any(stage.outcome in ("skipped", "failed") for stage in plan.stages)
    heuristic = not METHODS[one.method].exact
    applied = {
        "none": plan.status == "optimal" or broke or skipped or heuristic or bool(plan.bound_relaxes),
        "time": plan.seconds.check is None
        or seconds > 0.9 * (limit - max(limit / 2, 0.02 + 4 * plan.seconds.check))
        or any(
            "stopped by time" in stage.detail for stage in plan.stages
        ),  # CP-SAT ends before a step that lasts longer
        "work": one.deterministic,
        "size": skipped,
        "memory": one.ending == "memory",
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


def better_plan(instance: Instance, plan: Plan, judge: Engine) -> list[str]:
    """Solve in full: what contradicts the proof."""
    again = judge.solve(instance, time_limit_s=RESOLVE_S)
    found, claimed = (
        [level.objective if level.sense == "min" else -level.objective for level in one.levels] for one in (again, plan)
    )
    return [f"optimal with {claimed}, but {found} can be had"] if found < claimed else []


CAMPAIGN = Campaign("is what a plan says true, however its round was ended?", cases, 500, 60)
