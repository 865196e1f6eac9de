"""Rounds of a driver against a Slurm in memory, step by step."""

from __future__ import annotations

from typing import Any

from drivers.fake_slurm import FakeSlurm
from placeopt import Engine
from placeopt.drivers import RoundReport
from placeopt.drivers.slurm import Ownership, SlurmDriver, SlurmOptions

EVERY_S = 10.0


def driver(slurm: FakeSlurm, own: str = "held", **options: Any) -> SlurmDriver:
    """A driver whose clock is that of the fake."""
    given: dict[str, Any] = {"every_s": EVERY_S, "deterministic": True, **options}
    chosen = SlurmOptions(own=Ownership.parse(own), **given)
    return SlurmDriver(slurm, Engine(isolation="thread"), chosen, clock=lambda: float(slurm.now_s))


def step(running: SlurmDriver, slurm: FakeSlurm, seconds: int = 10) -> RoundReport:
    """One round, after which Slurm schedules and time goes on."""
    record = running.run_round()
    slurm.schedule()
    slurm.now_s += seconds
    assert slurm.broken_rules == []
    return record


def steps(slurm: FakeSlurm, count: int, **options: Any) -> list[RoundReport]:
    """So many rounds of a new driver."""
    running = driver(slurm, **options)
    return [step(running, slurm) for _ in range(count)]


def started(record: RoundReport) -> dict[str, tuple[str, ...]]:
    return {a.job: a.nodes for a in record.actions if a.do == "start" and a.result == "done"}


def came_of(record: RoundReport, kind: str) -> int:
    """Number of outcomes of a kind."""
    return sum(outcome.kind == kind for outcome in record.outcomes)
