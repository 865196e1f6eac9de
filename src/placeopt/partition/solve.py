"""A round solved in parts, side by side, and repaired as a whole."""

from __future__ import annotations

import time
from dataclasses import dataclass
from numbers import Integral

from placeopt.arguments import INSTANCE, checked, expect
from placeopt.environment import usable_cores
from placeopt.errors import BadInput
from placeopt.model import Instance, Plan, Policy
from placeopt.parallel import run_parallel
from placeopt.partition.split import Way, split
from placeopt.solving.api import solve
from placeopt.solving.params import SolveParams

MEND_SHARE = 0.4
"""Part of the time that is kept for the whole: putting together, filling up, the bound, the check."""


@dataclass(frozen=True)
class _Task:
    """One part, as it goes to another process."""

    instance: Instance
    method: str
    time_limit_s: float
    ends_at: float
    """Seconds since the epoch: a part that begins late, for want of a process, has less time."""
    seed: int
    deterministic: bool


@checked
def solve_in_parts(
    instance: Instance,
    *,
    parts: int,
    by: Way = "random",
    jobs: int | None = None,
    policy: Policy | None = None,
    method: str = "auto",
    mend: str = "stranding",
    time_limit_s: float = 3.0,
    seed: int = 0,
    deterministic: bool = False,
) -> Plan:
    """
    Split a round, solve the parts side by side, join the plans and repair the rest as a whole.

    Parameters
    ----------
    instance, policy, time_limit_s, seed, deterministic
        As for ``placeopt.solve``.
    parts, by
        See ``split``.
    jobs
        Parts solved at a time, by processes of this machine; None: one for each usable core. Under
        ``joblib.parallel_config(backend="dask")`` or ``"ray"``, once registered with joblib, by other machines.
    method
        Of the parts.
    mend
        Of the whole: its greedy places what fits in no part, and its relaxation bounds the whole round.

    Returns
    -------
    Plan
        Of the whole round, checked as a whole, with a bound that holds for the whole. Never worse than ``mend`` alone.
        Running jobs are changed by ``mend`` only.

    Raises
    ------
    BadInput
        As ``placeopt.solve`` and ``split``.
    """
    expect("instance", instance, Instance, INSTANCE)
    if policy is not None:
        expect("policy", policy, Policy, "a Policy, or None")
    for name, number in (("parts", parts), ("jobs", 1 if jobs is None else jobs)):
        expect(name, number, Integral, "a whole number")
    SolveParams(time_limit_s=time_limit_s, seed=seed).check()
    if jobs is not None and jobs < 1:
        raise BadInput(f"jobs: {jobs}; expected 1 or more")
    started = time.monotonic()
    whole = instance if policy is None else instance.model_copy(update={"policy": policy})
    pieces = split(whole, parts, by, seed)
    left = time_limit_s - (time.monotonic() - started)
    side_by_side = min(usable_cores() if jobs is None else jobs, len(pieces))
    each = max(left * (1 - MEND_SHARE), 0.01) * side_by_side / len(pieces)
    ends_at = time.time() + left * (1 - MEND_SHARE)
    tasks = [_Task(piece, method, each, ends_at, seed, deterministic) for piece in pieces]
    plans = list(run_parallel(_solve_part, tasks, side_by_side))
    joined = plans[0].model_copy(update={"placements": tuple(p for plan in plans for p in plan.placements)})
    spent = time.monotonic() - started
    return solve(
        whole,
        method=mend,
        time_limit_s=max(time_limit_s - spent, 0.01),
        seed=seed,
        deterministic=deterministic,
        previous=joined,
    )


def _solve_part(task: _Task) -> Plan:
    left = task.ends_at - time.time()
    return solve(
        task.instance,
        method=task.method,
        time_limit_s=task.time_limit_s if task.deterministic else max(min(task.time_limit_s, left), 0.01),
        threads=1,
        seed=task.seed,
        deterministic=task.deterministic,
    )
