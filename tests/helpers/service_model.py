"""
What a client of the service knows from answers alone: what waits and runs where, and every action with its outcome.

Effects of answered calls are carried out in the order of their revisions, since a round commits beside other calls.
Nothing of ``placeopt.service`` is used: the rules of the calls are restated for the requests that the kills send.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Parts = tuple[tuple[int, str, tuple[int, ...]], ...]
"""Rank, node and GPUs of every worker."""


SETTLED = "settled"
"""An outcome of which is known only that it is no longer open: a later action of the job followed."""


class Contradiction(Exception):
    """An action does what cannot be done, such as the start of a job that runs."""


@dataclass
class State:
    """A cluster as far as clients can follow it."""

    waiting: dict[str, int] = field(default_factory=dict)
    """Job -> priority."""
    running: dict[str, tuple[int, Parts]] = field(default_factory=dict)
    """Job -> priority, and where it runs."""
    drained: set[str] = field(default_factory=set)
    now_ms: int = 0
    policy: str = ""


@dataclass
class Effect:
    """What one call did, and the revision after it."""

    revision: int
    steps: list[Json] = field(default_factory=list)
    actions: list[Json] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    """Jobs whose start failed."""
    loaded: Json | None = None


def observed(snapshot: Json) -> State:
    """Return the state that a snapshot shows."""
    priority = {job["id"]: job.get("priority", 0) for job in snapshot["jobs"]}
    running = {
        held["job"]: (
            priority[held["job"]],
            parts([{**worker, "node": on["node"]} for on in held["assignments"] for worker in on["workers"]]),
        )
        for held in snapshot.get("running", [])
    }
    return State(
        waiting={job: rank for job, rank in priority.items() if job not in running},
        running=running,
        drained={node["id"] for node in snapshot["cluster"]["nodes"] if node.get("drained")},
        now_ms=snapshot.get("now_ms", 0),
        policy=snapshot.get("policy", {}).get("name", ""),
    )


def parts(workers: list[Json]) -> Parts:
    """Return workers in order of their ranks."""
    return tuple(sorted((w["rank"], w["node"], tuple(sorted(w.get("gpus", ())))) for w in workers))


def after(state: State, effects: list[Effect]) -> State:
    """Return the state after effects, in the order of their revisions."""
    state = deepcopy(state)
    for effect in sorted(effects, key=lambda effect: effect.revision):
        if effect.loaded is not None:
            state = observed(effect.loaded)
        for step in effect.steps:
            _step(state, step)
        for action in effect.actions:
            _action(state, action["action"])
        for job in effect.failed:
            if job in state.running:  # a round may have stopped it before
                _stop(state, job)
    return state


def _step(state: State, step: Json) -> None:
    if step["do"] == "update":
        for job in step.get("add_jobs", ()):
            if job["id"] in state.waiting or job["id"] in state.running:
                raise Contradiction(f"job {job['id']!r} came twice")
            state.waiting[job["id"]] = job.get("priority", 0)
        for job in [*step.get("remove_jobs", ()), *step.get("priority", {})]:
            if job not in state.waiting:
                raise Contradiction(f"job {job!r} went or changed and did not wait")
        for job in step.get("remove_jobs", ()):
            del state.waiting[job]
        for node, word in step.get("nodes", {}).items():
            (state.drained.add if word == "drain" else state.drained.discard)(node)
        state.waiting.update(step.get("priority", {}))
        state.now_ms = step.get("now_ms", state.now_ms)
    elif step["do"] == "release":
        if state.running.pop(step["job"], None) is None:
            raise Contradiction(f"job {step['job']!r} ended and did not run")
    elif step["do"] == "undo":
        _stop(state, step["job"])
    elif step["do"] == "set_policy":
        state.policy = step["policy"]["name"]
    else:
        assert step["do"] == "fail_node"
        state.drained.add(step["node"])
        for job in [
            job for job, (_, held) in state.running.items() if any(node == step["node"] for _, node, _ in held)
        ]:
            _stop(state, job)


def _action(state: State, action: Json) -> None:
    do, job = action["do"], action["job"]
    if do == "start":
        if job not in state.waiting:
            raise Contradiction(f"job {job!r} was told to start{' twice' * (job in state.running)}")
        state.running[job] = state.waiting.pop(job), parts(action["parts"])
    elif do == "preempt":
        _stop(state, job)
    else:
        if job not in state.running:
            raise Contradiction(f"job {job!r} was told to {do} and did not run")
        state.running[job] = state.running[job][0], parts(action["parts"])


def _stop(state: State, job: str) -> None:
    if job not in state.running:
        raise Contradiction(f"job {job!r} stopped and did not run")
    state.waiting[job] = state.running.pop(job)[0]


def settled(actions: dict[str, Json], host: Json) -> dict[str, str]:
    """Return the outcome of each open action by what a host says runs."""
    runs = observed(host).running
    last = {told["action"]["job"]: name for name, told in actions.items() if told["outcome"] == "open"}
    outcomes = {}
    for name, told in actions.items():
        if told["outcome"] == "open" and last[told["action"]["job"]] != name:
            outcomes[name] = SETTLED
        elif told["outcome"] == "open":
            there = (
                sorted(node for _, node, _ in runs[told["action"]["job"]][1]) if told["action"]["job"] in runs else []
            )
            wanted = sorted(part["node"] for part in told["action"].get("parts", ()))
            outcomes[name] = "done" if there == wanted else "failed"
    return outcomes
