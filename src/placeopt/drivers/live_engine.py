"""An engine that follows a host system: each reading becomes differences, where it can, or a load."""

from __future__ import annotations

import threading
from hashlib import sha256

from placeopt.errors import BadInput, Unsupported
from placeopt.live_cluster.changes import changes_between
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Placement, Plan
from placeopt.solving.bounds import relative_gap


def follow(engine: Engine, after: Instance, *, loaded: bool) -> None:
    """
    Bring an engine to a reading of its cluster; ``loaded``: whether it has an earlier one.

    Nothing that a plan decided is committed: what the host system shows is what happened.
    """
    if loaded:
        try:
            if _changed(engine, after):
                return
        except (BadInput, Unsupported):
            pass  # some of the differences may be in: the load below replaces them
    engine.load(after)


def _changed(engine: Engine, after: Instance) -> bool:
    """Apply the differences; return False where an engine has to load the reading as a whole."""
    now = engine.snapshot
    changes = changes_between(now, after)
    if changes.reload:
        return False
    for job in changes.release:
        engine.release(job)
    engine.update(
        remove_jobs=changes.remove_jobs,
        nodes=changes.nodes,
        add_jobs=changes.add_jobs,
        expected_end_ms=changes.expected_end_ms,
        priority={job: rank for job, rank in changes.priorities.items() if job not in _running(after)},
        now_ms=max(changes.now_ms, now.now_ms),
    )
    for held in changes.adopt:
        engine.adopt(
            Placement(job=held.job, option=held.option, assignments=held.assignments),
            started_ms=held.started_ms,
            expected_end_ms=held.expected_end_ms,
            movable=held.movable,
            shrinkable=held.shrinkable,
            preemptible=held.preemptible,
        )
    _set_flags(engine, after)
    return True


def _running(instance: Instance) -> frozenset[str]:
    return frozenset(held.job for held in instance.running)


def _set_flags(engine: Engine, after: Instance) -> None:
    """Say of every running job whether it may be moved, shrunk or preempted, where that changed."""
    names = ("movable", "shrinkable", "preemptible")
    now = {held.job: held for held in engine.snapshot.running}
    flags = {
        held.job: {name: getattr(held, name) for name in names}
        for held in after.running
        if any(getattr(held, name) != getattr(now[held.job], name) for name in names)
    }
    if flags:
        engine.update(flags=flags)


def decide(engine: Engine, time_limit_s: float, cancel: threading.Event) -> Plan:
    """Return the plan of a round within a time limit; what runs is a load, unless some of it may be changed."""
    if not any(held.movable or held.shrinkable or held.preemptible for held in engine.snapshot.running):
        try:
            return engine.place(time_limit_s=time_limit_s, waiting_only=True, cancel=cancel)
        except Unsupported:
            pass  # a rule of the policy looks at each running job
    return engine.place(time_limit_s=time_limit_s, cancel=cancel)


def plan_digest(plan: Plan) -> str:
    """Return 16 hexadecimal digits of SHA-256 over what a plan places."""
    text = "\n".join(placement.model_dump_json() for placement in plan.placements)
    return sha256(text.encode()).hexdigest()[:16]


def value_gap(plan: Plan) -> float | None:
    """Return by what share of the proven bound a plan's value may be below the best one; None without a bound."""
    return relative_gap(plan.levels[0].objective, plan.levels[0].bound)
