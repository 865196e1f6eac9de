"""The options of a solve, checked before any work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placeopt.arguments import MAX_SEED, MAX_TIME_LIMIT_S
from placeopt.cli.exits import UsageError
from placeopt.errors import BadInput

if TYPE_CHECKING:
    from placeopt.model import Instance, Plan
    from placeopt.solving.params import SolveParams

MAX_JOBS = 4096
"""Largest number of parallel processes."""


def check_params(params: SolveParams) -> None:
    """
    Refuse options of a solve that are out of range.

    Raises
    ------
    UsageError
        Names the option, the value and what is expected.
    """
    from placeopt.solving.methods import METHODS  # only here: it loads every stage

    _expect(params.method in METHODS, "--method", params.method, f"one of {', '.join(METHODS)}")
    most = f"seconds above 0 and up to {MAX_TIME_LIMIT_S}"
    _expect(0 < params.time_limit_s <= MAX_TIME_LIMIT_S, "--time-limit", params.time_limit_s, most)
    _expect(0 <= params.gap < 1, "--gap", params.gap, "a fraction from 0 up to 1, such as 0.01 for one percent")
    _expect(params.threads is None or params.threads >= 1, "--threads", params.threads, "1 or more")
    _expect(0 <= params.seed <= MAX_SEED, "--seed", params.seed, f"0 to {MAX_SEED}")
    if params.solver_options and not METHODS[params.method].exact:
        raise UsageError(f"--solver-option: method {params.method!r} runs no exact solver; use another --method")
    memory = params.memory_limit_mib
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
