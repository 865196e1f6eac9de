"""The options of a solve, checked before any work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placeopt.arguments import MAX_SEED, MAX_TIME_LIMIT_S
from placeopt.cli.exits import UsageError
from placeopt.errors import BadInput
from placeopt.solving.methods import METHODS

if TYPE_CHECKING:
    from placeopt.model import Instance, Plan

MAX_JOBS = 4096
"""Largest number of parallel processes."""


@dataclass(frozen=True)
class Settings:
    """Options of ``Engine.solve``."""

    method: str
    time_limit_s: float
    gap: float
    threads: int | None
    seed: int
    deterministic: bool
    memory_limit_mib: int | None
    solver_options: Mapping[str, str]

    def check(self) -> None:
        """
        Refuse what is out of range.

        Raises
        ------
        UsageError
            Names the option, the value and what is expected.
        """
        _expect(self.method in METHODS, "--method", self.method, f"one of {', '.join(METHODS)}")
        most = f"seconds above 0 and up to {MAX_TIME_LIMIT_S}"
        _expect(0 < self.time_limit_s <= MAX_TIME_LIMIT_S, "--time-limit", self.time_limit_s, most)
        _expect(0 <= self.gap < 1, "--gap", self.gap, "a fraction from 0 up to 1, such as 0.01 for one percent")
        _expect(self.threads is None or self.threads >= 1, "--threads", self.threads, "1 or more")
        _expect(0 <= self.seed <= MAX_SEED, "--seed", self.seed, f"0 to {MAX_SEED}")
        if self.solver_options and not METHODS[self.method].exact:
            raise UsageError(f"--solver-option: method {self.method!r} runs no exact solver; use another --method")
        memory = self.memory_limit_mib
        _expect(memory is None or memory >= 1, "--memory-limit", memory, "1 MiB or more")


def check_jobs(jobs: int) -> None:
    """Refuse a number of parallel processes that is out of range."""
    _expect(1 <= jobs <= MAX_JOBS, "--jobs", jobs, f"1 to {MAX_JOBS}")


def parse_solver_options(texts: list[str]) -> dict[str, str]:
    """Read ``K=V`` options; raises `UsageError` at one that is not, or that stands twice."""
    found: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        _expect(bool(name and sign and value), "--solver-option", text, "NAME=VALUE, such as mip_heuristic_effort=0.2")
        _expect(name not in found, "--solver-option", text, "each name once")
        found[name] = value
    return found


def check_previous(plan: Plan, instance: Instance, source: str) -> None:
    """
    Refuse an earlier plan of another round: with another instance's name, or with unknown jobs.

    Raises
    ------
    BadInput
        Names the file, the path inside it, the value and what is expected.
    """
    if plan.instance.name != instance.name:
        raise BadInput(
            f"{source}: instance.name: {plan.instance.name!r}, expected {instance.name!r}: a plan of the same instance"
        )
    known = {job.id for job in instance.jobs}
    places = [(f"placements[{i}]", entry.job) for i, entry in enumerate(plan.placements)]
    places += [(f"unplaced[{i}]", waiting.job) for i, waiting in enumerate(plan.unplaced)]
    for where, job in places:
        if job not in known:
            raise BadInput(f"{source}: {where}.job: no job {job!r} in the instance")


def _expect(holds: bool, option: str, value: object, expected: str) -> None:
    if not holds:
        raise UsageError(f"{option}: {value!r}, expected {expected}")
